"""A snapshot's commit tells at which commit each submodule is, as `git diff HEAD` does."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from adapters.snapshots.capture.capture import verify
from adapters.snapshots.capture.gitlinks import unquoted
from adapters.snapshots.objects import quote
from tests.adapters.snapshots.registrations import ALLOWED, with_submodule
from tests.sagas.trees import write

if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.evidence import Snapshot
    from tests.adapters.snapshots.lanes import Lane

PATH = "libs/sub"


def advance(lane: Lane, path: str = PATH) -> str:
    """Makes a commit in a submodule, and returns it."""
    place = lane.at(path.encode())
    lane.world.git(place, "commit", "-q", "--allow-empty", "-m", "further")
    return lane.world.git(place, "rev-parse", "HEAD").decode().strip()


def on_a_branch(lane: Lane) -> None:
    lane.world.git(lane.at(PATH.encode()), "checkout", "-q", "-b", "further")
    advance(lane)


def on_a_packed_branch(lane: Lane) -> None:
    on_a_branch(lane)
    lane.world.git(lane.at(PATH.encode()), "pack-refs", "--all")


def detached(lane: Lane) -> None:
    lane.world.git(lane.at(PATH.encode()), "checkout", "-q", "--detach")
    advance(lane)


def staged(lane: Lane) -> None:
    detached(lane)
    lane.git("add", PATH)


def staged_and_moved_again(lane: Lane) -> None:
    staged(lane)
    advance(lane)


def staged_and_not_checked_out(lane: Lane) -> None:
    staged(lane)
    shutil.rmtree(lane.at(PATH.encode()))
    os.mkdir(lane.at(PATH.encode()))


def gone(lane: Lane) -> None:
    shutil.rmtree(lane.at(PATH.encode()))


def added(lane: Lane) -> None:
    lane.git(
        *ALLOWED,
        "submodule",
        "--quiet",
        "add",
        os.path.join(os.fsencode(lane.world.home), b"theirs"),
        "odd \"n'\\w",
    )


def not_moved(lane: Lane) -> None:
    lane.write(b"new", b"new\n")


async def again(lane: Lane, taken: Snapshot) -> None:
    """Reads the snapshot back as it is before it is relied on."""
    await verify(lane.door, lane.directory(), lane.world.common, taken)


@pytest.mark.slow
@pytest.mark.parametrize(
    "move",
    [
        on_a_branch,
        on_a_packed_branch,
        detached,
        staged,
        staged_and_moved_again,
        staged_and_not_checked_out,
        gone,
        added,
        not_moved,
    ],
)
async def test_a_submodule_is_told_to_be_where_git_sees_it(lane: Lane, move: Callable[[Lane], None]) -> None:
    with_submodule(lane)
    move(lane)
    taken = await lane.capture()
    seen = lane.git("diff", "--ignore-submodules=dirty", "HEAD", "--", "libs", ".gitmodules", "odd*")
    assert lane.git("diff", "HEAD", taken.commit, "--", "libs", ".gitmodules", "odd*") == seen
    assert bool(seen) == (move is not not_moved)
    await again(lane, taken)


@pytest.mark.slow
async def test_where_a_submodule_is_cannot_always_be_read(lane: Lane) -> None:
    with_submodule(lane)
    head = os.path.join(lane.admin, b"modules", PATH.encode(), b"HEAD")
    detached(lane)
    write(head, b"ref: refs/heads/nowhere\n")
    taken = await lane.capture()
    assert lane.git("diff", "HEAD", taken.commit, "--", "libs") == b""
    await again(lane, taken)


def test_a_path_for_git_is_read_as_it_was_written() -> None:
    for path in (b"a b", b'"', b"\\n\n\\\n", b"\xff\t\\\\"):
        assert unquoted(quote(path)[1:-1]) == path
