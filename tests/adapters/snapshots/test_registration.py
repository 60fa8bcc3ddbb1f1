"""A registration is kept whole, or what cannot be kept is named."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adapters.files.errors import MountInside, Unstable
from adapters.snapshots.registration import registered, registration
from domain.evidence import Obstacle
from domain.paths import pack
from tests.adapters.snapshots.registrations import conflicted, files_of, kept, put, within
from tests.adapters.volumes import volume

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.adapters.snapshots.lanes import Lane


ODD = pack(b"odd\nname\xff")


def test_everything_is_kept_parents_first(lane: Lane) -> None:
    lane.git("update-ref", "refs/worktree/deep/mine", "HEAD")
    put(lane, "odd\nname\udcff", b"bytes", 0o640)
    put(lane, "large", bytes(3 << 20))
    os.mkdir(within(lane, "empty"), 0o711)
    os.symlink("large", within(lane, "link"))
    os.utime(within(lane, "large"), ns=(1, 1_234_567_891))
    found = kept(lane)
    assert {ODD, "index", "logs", "logs/HEAD", "refs/worktree/deep/mine", "link", "large"} < found.keys()
    order = list(found)
    assert all(order.index(os.path.dirname(name)) < at for at, name in enumerate(order) if "/" in name)
    assert found["empty"].mode == 0o711
    assert (found["empty"].sha256, found["link"].sha256) == ("", "")
    assert (found["link"].link, found["large"].mtime_ns) == ("large", 1_234_567_891)
    said = {name: registration.kept(files_of(lane), tuple(found.values()), name) for name in (*found, "none")}
    assert (said["large"], said[ODD]) == (bytes(3 << 20), b"bytes")
    assert (said["logs"], said["link"], said["none"]) == (b"", b"", b"")


def test_what_a_new_registration_says_of_itself_is_not_kept(lane: Lane) -> None:
    for name in ("locked", "index.lock", "modules/sub/HEAD.lock", ".laneyard-x", "refs/.laneyard-y/z"):
        put(lane, name)
    put(lane, "modules/sub.lock/HEAD")
    put(lane, "modules/sub.lock/locked")
    found = kept(lane)
    assert not {"HEAD", "gitdir", "commondir", "locked", "index.lock", "modules/sub/HEAD.lock"} & found.keys()
    assert not any("laneyard" in name for name in found)
    assert {"modules/sub.lock/HEAD", "modules/sub.lock/locked"} < found.keys()


def test_what_changes_while_it_is_kept_is_noticed(lane: Lane) -> None:
    put(lane, "growing")
    walk = registered.walk(lane.admin)
    found = next(each for each in walk if each.name == b"growing")
    path = within(lane, "growing")
    with pytest.raises(Unstable), registered.opened(found, path), open(path, "ab") as file:
        file.write(b"more")
    with pytest.raises(Unstable), registered.opened(found, path):
        raise AssertionError("it is no longer what was found")
    os.unlink(path)
    with pytest.raises(Unstable), registered.opened(found, path):
        raise AssertionError("it is gone")
    walk.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "act",
    [
        lambda lane: put(lane, "new"),
        lambda lane: put(lane, "ORIG_HEAD", b"again\n"),
        lambda lane: os.unlink(within(lane, "ORIG_HEAD")),
        lambda lane: os.mkdir(within(lane, "directory")),
        lambda lane: os.chmod(within(lane, "logs"), 0o700),
        lambda lane: os.rename(within(lane, "logs/HEAD"), within(lane, "logs/TAIL")),
        lambda lane: lane.git("checkout", "-q", "--detach"),
        lambda lane: lane.git("symbolic-ref", "HEAD", "refs/heads/other"),
        lambda lane: shutil.copy2(within(lane, "index"), within(lane, "index2")),
    ],
)
def test_another_fingerprint_tells_of_every_change(lane: Lane, act: Callable[[Lane], object]) -> None:
    before = registration.fingerprint(lane.admin)
    act(lane)
    assert registration.fingerprint(lane.admin) != before


def test_a_lock_that_comes_and_goes_changes_no_fingerprint(lane: Lane) -> None:
    before = registration.fingerprint(lane.admin)
    put(lane, "index.lock")
    during = registration.fingerprint(lane.admin)
    os.unlink(within(lane, "index.lock"))
    assert (during, registration.fingerprint(lane.admin)) == (before, before)


def test_the_reading_of_a_split_index_changes_no_fingerprint(lane: Lane) -> None:
    lane.git("update-index", "--split-index")
    shared = next(name for name in os.listdir(lane.admin) if name.startswith(b"sharedindex."))
    os.utime(os.path.join(lane.admin, shared), ns=(1, 1))
    before = registration.fingerprint(lane.admin)
    lane.git("status")
    assert os.stat(os.path.join(lane.admin, shared)).st_mtime_ns != 1
    assert registration.fingerprint(lane.admin) == before


def test_what_is_no_file_is_in_the_way(lane: Lane) -> None:
    os.mkfifo(within(lane, "pipe"))
    os.makedirs(within(lane, "modules/deep"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(within(lane, "modules/deep/socket"))
    put(lane, "index.lock")  # git is at work, or was killed
    expected = [
        Obstacle("git-lock", ".git/index.lock"),
        Obstacle("special-file", ".git/modules/deep/socket"),
        Obstacle("special-file", ".git/pipe"),
    ]
    assert list(registration.obstacles(lane.admin)) == expected
    assert not {"pipe", "modules/deep/socket"} & kept(lane).keys()


def test_nothing_that_git_does_is_in_the_way(lane: Lane) -> None:
    conflicted(lane)
    lane.git("update-ref", "refs/worktree/mine", "HEAD")
    lane.git("bisect", "start")
    lane.git("update-index", "--split-index")
    assert registration.obstacles(lane.admin) == ()


def test_a_worktree_of_a_submodule_is_in_the_way(lane: Lane) -> None:
    module = within(lane, "modules/worktrees/sub")
    lane.world.git(lane.world.root, "init", "-q", "--bare", module)
    put(lane, "modules/worktrees/sub/refs/heads/worktrees/one/branch", b"0\n")
    assert registration.obstacles(lane.admin) == ()
    os.makedirs(os.path.join(module, b"worktrees/one"))
    os.makedirs(os.path.join(module, b"worktrees/two"))
    assert registration.obstacles(lane.admin) == (
        Obstacle("nested-worktrees", ".git/modules/worktrees/sub/worktrees"),
    )


def test_what_is_mounted_is_in_the_way(lane: Lane) -> None:
    os.makedirs(within(lane, "modules"))
    with volume(Path(os.fsdecode(within(lane, "modules/mounted")))):
        assert registration.obstacles(lane.admin) == (Obstacle("mount", ".git/modules/mounted"),)
        with pytest.raises(MountInside):
            kept(lane)
