"""Random changes to random entries, wherever other moves have put them; what does not apply is left out."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.roundtrip.moves_shapes import NAMES
from tests.roundtrip.scene import LAST, Spot, move

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CONTENTS = (
    b"",
    b"x\n",
    b"x",
    b"\0binary\xff",
    b"one\r\ntwo\r\n",
    b"mixed\r\nlines\n",
    b"$Id$\n",
    b"x" * 70_000,
)
TARGETS = (b"a", b"../b", b"nowhere", b".", b"/nowhere/at all", b"..", b"c/", b"\xff\n")
MOST = 8


def _entries(place: bytes) -> list[bytes]:
    """Returns what is in the tree, repositories inside of it and everything in them left out."""
    found = []
    for directory, directories, files in os.walk(place):
        inner = [name for name in directories if not os.path.lexists(os.path.join(directory, name, b".git"))]
        directories[:] = [name for name in inner if name.lower() != b".git"]
        names = [name for name in files if name != b".git" and len(directory) + len(name) < 3500]
        found += [os.path.relpath(os.path.join(directory, name), place) for name in (*directories, *names)]
    return sorted(found)


def _picked(spot: Spot) -> bytes:
    there = _entries(spot.scene.place)
    return os.path.join(spot.scene.place, spot.rng.choice(there))


def _make(spot: Spot, path: bytes) -> None:
    """Makes any entry there, never in place of another. Raises OSError."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    kind, mode = spot.rng.choice(("file", "file", "link", "directory")), spot.rng.randrange(0o10000)
    if kind == "link":
        os.symlink(spot.rng.choice(TARGETS), path)
    elif kind == "directory":
        os.mkdir(path)
        os.chmod(path, 0o500 | mode & 0o777)
    else:
        with open(path, "xb") as file:
            file.write(spot.rng.choice(CONTENTS))
        os.chmod(path, mode | stat.S_IRUSR)


def _new(spot: Spot) -> bytes:
    """Returns where nothing is yet, beside some entry. Raises NotADirectoryError where links lead away."""
    directory = os.path.dirname(_picked(spot))
    if os.path.realpath(directory) != directory:
        raise NotADirectoryError(directory)
    return os.path.join(directory, *spot.rng.choices(NAMES, k=spot.rng.randint(1, 3)))


def _edit(spot: Spot) -> None:
    path = _picked(spot)
    mode = os.lstat(path).st_mode
    if stat.S_ISREG(mode):
        os.chmod(path, 0o600)
        with open(path, "ab") as file:
            file.write(spot.rng.choice(CONTENTS) or b"more")
        os.chmod(path, stat.S_IMODE(mode))


def _remove(path: bytes) -> None:
    if stat.S_ISDIR(os.lstat(path).st_mode):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _swap(spot: Spot) -> None:
    path = _picked(spot)
    _remove(path)
    _make(spot, path + b"/below" if spot.rng.random() < 0.3 else path)


def _set_mode(spot: Spot) -> None:
    path, mode = _picked(spot), spot.rng.randrange(0o10000)
    kind = os.lstat(path).st_mode
    if not stat.S_ISLNK(kind):
        os.chmod(path, mode | (0o500 if stat.S_ISDIR(kind) else 0o400))


def _rename(spot: Spot) -> None:
    to = _new(spot)
    if not os.path.lexists(to):
        os.renames(_picked(spot), to)


def _on_path(*arguments: str) -> Callable[[Spot], object]:
    """Returns the act of running a git command on an entry; that git declines is one of its answers."""

    def act(spot: Spot) -> object:
        path = os.path.relpath(_picked(spot), spot.scene.place)
        return spot.scene.run(spot.scene.place, "--literal-pathspecs", *arguments, "--", path)

    return act


ACTS: tuple[Callable[[Spot], object], ...] = (
    lambda spot: _make(spot, _new(spot)),
    _edit,
    _edit,
    lambda spot: _remove(_picked(spot)),
    _swap,
    _set_mode,
    _rename,
    _on_path("add"),
    _on_path("add", "--intent-to-add"),
    _on_path("update-index", "--chmod=+x"),
    _on_path("rm", "-rqf"),
    _on_path("rm", "-rqf", "--cached"),
)


@move(1, order=LAST + 1)
def anywhere(spot: Spot) -> Iterator[None]:
    """Random changes of all these kinds to whatever is in the lane"""
    for name in spot.rng.sample(NAMES, 4):
        spot.write(b"dir/" + name)
    yield
    for _ in range(spot.rng.randint(1, MOST)):
        with suppress(OSError):  # the tree is not such that it could be done: then it is not done
            spot.rng.choice(ACTS)(spot)
