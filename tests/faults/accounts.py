"""An account of every byte that a user has, made without our code: by git's own names for content."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from tests.sagas.trees import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sagas.worlds import World

# In a registration: what is git's own and written anew, or is not content.
ADMINISTRATION = {b"HEAD", b"gitdir", b"commondir", b"index", b"locked", b"ORIG_HEAD"}
ZERO = b"0" * 40


def owned(world: World) -> dict[bytes, str]:
    """Returns the ids of all that the user has in trees, indexes, branches, reflogs and half-done operations.

    Each with where it was found.
    """
    found = dict(_trees(world)) | _captured(world)
    for admin in _registrations(world):
        where = os.fsdecode(os.path.basename(admin))
        staged = world.git(admin, f"--git-dir={os.fsdecode(admin)}", "ls-files", "--stage", "-z")
        for entry in staged.split(b"\0")[:-1]:
            mode, name, _ = entry.split(None, 2)
            if mode != b"160000":
                found[name] = f"staged in {where}"
        for path, (kind, _, data) in walk(admin).items():
            first = path.split(b"/")[0]
            if kind == "file" and first == b"logs":
                found |= dict.fromkeys(_logged(data), f"in the reflog of {where}")
            elif kind == "file" and path not in ADMINISTRATION:
                found[blob(data)] = f"{os.fsdecode(path)} in the registration of {where}"
    found |= dict.fromkeys(_tips(world), "a ref")
    for _, data in _files(os.path.join(world.common, b"logs")):
        found |= dict.fromkeys(_logged(data), "in a reflog")
    return found


def _captured(world: World) -> dict[bytes, str]:
    """Returns what only snapshots have, perhaps: their files, and what git keeps for them."""
    pool = os.path.join(world.settings.state_dir, b"blobs")
    found = {blob(data): f"snapshots' {os.fsdecode(path)}" for path, data in _files(pool)}
    names = world.git(world.root, "rev-list", "--objects", "--no-object-names", "--glob=refs/laneyard")
    asked = world.git(world.root, "cat-file", "--batch-check", stdin=names)
    lines = (line.split() for line in asked.splitlines())
    return found | {name: "in a snapshot" for name, kind, _ in lines if kind == b"blob"}


def kept(world: World) -> set[bytes]:
    """Returns the ids of all that can be had: on disk, in the snapshots' store, or reached from refs."""
    found = {each for each, _ in _trees(world)} | set(_tips(world))
    for admin in _registrations(world):
        found |= {blob(data) for _, data in _files(admin)}
    for place in (b"snapshots", b"blobs"):
        found |= {blob(data) for _, data in _files(os.path.join(world.settings.state_dir, place))}
    reached = world.git(world.root, "rev-list", "--objects", "--all", "--reflog", "--indexed-objects")
    return found | {line[:40] for line in reached.splitlines()}


def lost(before: dict[bytes, str], world: World) -> dict[bytes, str]:
    """Returns what the user had and nobody can give back."""
    left = kept(world)
    return {each: where for each, where in before.items() if each not in left}


def blob(data: bytes) -> bytes:
    """Returns git's id for a content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest().encode()


def _trees(world: World) -> Iterator[tuple[bytes, str]]:
    """Yields content and where it is, in the main checkout, the lanes and the quarantine, also of links."""
    for path, (kind, _, data) in walk(world.root, (b".git",)).items():
        pointer = path.startswith(b".laneyard/") and path.count(b"/") == 3 and path.endswith(b"/.git")
        if kind in ("file", "link") and not pointer:
            yield blob(data), os.fsdecode(path)


def _files(place: bytes) -> Iterator[tuple[bytes, bytes]]:
    for path, (kind, _, data) in walk(place).items():
        if kind == "file":
            yield path, data


def _registrations(world: World) -> list[bytes]:
    place = os.path.join(world.common, b"worktrees")
    names = sorted(os.listdir(place)) if os.path.isdir(place) else []
    return [os.path.join(place, name) for name in names]


def _tips(world: World) -> list[bytes]:
    tips = world.git(world.root, "for-each-ref", "--format=%(objectname)", "refs/heads", "refs/tags")
    return tips.split()


def _logged(data: bytes) -> list[bytes]:
    names = [name for line in data.splitlines() for name in line.split(None, 2)[:2]]
    return [each for each in names if each != ZERO]
