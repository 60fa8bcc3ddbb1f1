"""What git is busy with in a lane goes on after its registration was lost and put back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.git.heads import operation_in_progress
from tests.adapters.snapshots.lanes import Lane
from tests.adapters.snapshots.registrations import commit, restored, said, state
from tests.sagas.trees import walk
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Scene = Callable[[Lane], None]

pytestmark = pytest.mark.slow


def diverged(lane: Lane) -> str:
    """Makes three commits on `theirs` and three on the lane's branch; the first of each conflict."""
    start = lane.head()
    lane.git("checkout", "-q", "-b", "theirs")
    commit(lane, "shared", "theirs\n")
    commit(lane, "two", "theirs\n")
    commit(lane, "three", "theirs\n")
    lane.git("checkout", "-q", "-B", "work", start)
    commit(lane, "shared", "ours\n")
    commit(lane, "mine", "ours\n")
    commit(lane, "last", "ours\n")
    return start


def fails(lane: Lane, *arguments: str) -> None:
    """Runs git, which stops at a conflict."""
    before = lane.git("status")
    lane.world.git(lane.path, *arguments, check=False)
    assert lane.git("status") != before


def merging(lane: Lane) -> None:
    diverged(lane)
    fails(lane, "merge", "theirs")


def merging_resolved(lane: Lane) -> None:
    merging(lane)
    lane.write(b"shared", b"both\n")
    lane.git("add", "shared")
    assert lane.git("ls-files", "--resolve-undo") != b""


def rebasing(lane: Lane) -> None:
    diverged(lane)
    fails(lane, "rebase", "--merge", "theirs")


def rebasing_apply(lane: Lane) -> None:
    diverged(lane)
    fails(lane, "rebase", "--apply", "theirs")


def rebasing_with_autostash(lane: Lane) -> None:
    diverged(lane)
    lane.write(b"last", b"not committed\n")
    fails(lane, "rebase", "--merge", "--autostash", "theirs")


def breaking(lane: Lane) -> None:
    start = diverged(lane)
    insert = "-c", "sequence.editor=sed -i 1ibreak"
    lane.git(*insert, "rebase", "-q", "-i", start)
    assert os.path.exists(os.path.join(lane.admin, b"rebase-merge/git-rebase-todo"))


def rebasing_interactively(lane: Lane) -> None:
    start = diverged(lane)
    # The second commit changes what only the first made: without the first it conflicts.
    commit(lane, "shared", "again\n")
    fails(lane, "-c", "sequence.editor=sed -i 1d", "rebase", "-i", start)


def picking(lane: Lane) -> None:
    diverged(lane)
    fails(lane, "cherry-pick", "theirs~2", "theirs~1", "theirs")


def reverting(lane: Lane) -> None:
    diverged(lane)
    commit(lane, "shared", "more\n")
    fails(lane, "revert", "--no-edit", "HEAD~3", "HEAD~1")


def mailing(lane: Lane) -> None:
    start = diverged(lane)
    patches = lane.git("format-patch", "-q", "--stdout", f"{start}..theirs")
    lane.world.git(lane.path, "am", "-3", stdin=patches, check=False)
    assert os.path.exists(os.path.join(lane.admin, b"rebase-apply/applying"))


def bisecting(lane: Lane) -> None:
    start = diverged(lane)
    lane.git("bisect", "start", "HEAD", start)
    assert lane.git("for-each-ref", "refs/bisect") != b""


def resolved(lane: Lane) -> None:
    """Takes both sides of whatever conflicts."""
    for path in lane.git("diff", "--name-only", "--diff-filter=U", "-z").split(b"\0")[:-1]:
        lane.write(path, b"resolved\n")
        lane.git("add", "--", path)


def go_on(lane: Lane, command: str) -> None:
    """Resolves what conflicts and goes on until nothing does; what ends in one step is one step."""
    for _ in range(10):
        resolved(lane)
        lane.world.git(lane.path, "-c", "core.editor=true", *command.split(" "), check=False)
        if not command.endswith("--continue") or operation_in_progress(lane.admin) is None:
            return
    raise AssertionError("it never ends")


GOING_ON: list[tuple[Scene, str]] = [
    (merging, "merge --continue"),
    (merging, "merge --abort"),
    (merging_resolved, "merge --continue"),
    (merging_resolved, "checkout -m -- shared"),
    (rebasing, "rebase --continue"),
    (rebasing, "rebase --abort"),
    (rebasing, "rebase --skip"),
    (rebasing_apply, "rebase --continue"),
    (rebasing_apply, "rebase --abort"),
    (rebasing_with_autostash, "rebase --continue"),
    (breaking, "rebase --continue"),
    (rebasing_interactively, "rebase --continue"),
    (picking, "cherry-pick --continue"),
    (picking, "cherry-pick --abort"),
    (reverting, "revert --continue"),
    (mailing, "am --continue"),
    (mailing, "am --abort"),
    (bisecting, "bisect good"),
    (bisecting, "bisect reset"),
]


def outcome(lane: Lane) -> tuple[object, ...]:
    """Returns where a lane is: what is committed, what is not, and what is still to do."""
    left = {name: each[2] for name, each in state(lane).items() if not name.startswith("logs")}
    status = lane.git("status", "--porcelain=v2", "--ignored")
    return lane.git("rev-parse", "HEAD", "HEAD^{tree}"), status, walk(lane.path, (b".git",)), left


def copies(tmp_path: Path) -> tuple[Lane, Lane]:
    """Returns the same lane in two worlds."""
    places = tmp_path / "one", tmp_path / "two"
    for place in places:
        place.mkdir()
    one, two = (Lane(World(place)) for place in places)
    return one, two


@pytest.mark.parametrize(("begin", "command"), GOING_ON)
def test_an_operation_goes_on_as_in_a_lane_that_nobody_touched(
    home: Path, begin: Scene, command: str
) -> None:
    lane, untouched = copies(home)
    begin(lane)
    begin(untouched)
    before, files = said(lane), state(lane)
    back = restored(lane)
    assert (said(back), state(back)) == (before, files)
    go_on(back, command)
    go_on(untouched, command)
    assert outcome(back) == outcome(untouched)
