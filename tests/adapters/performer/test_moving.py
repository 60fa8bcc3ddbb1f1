"""Locks, renames and branches: done once, found done, and never at a stranger's cost."""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from domain.effects import (
    DropBranch,
    Dropped,
    FreeBranch,
    Freed,
    Joined,
    Lock,
    Locked,
    Move,
    Moved,
    NotDone,
    Rejoin,
)
from domain.paths import pack
from tests.adapters.snapshots.lanes import REASON
from tests.sagas.trees import walk, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from domain.effects import Effect
    from tests.adapters.snapshots.lanes import Lane

WORK = "refs/heads/work"


async def code(lane: Lane, effect: Effect) -> str:
    outcome = await lane.perform(effect)
    assert isinstance(outcome, NotDone), outcome
    return outcome.code


def target(lane: Lane) -> bytes:
    return os.path.join(lane.world.root, b".laneyard/quarantine/work-1-0000000000000000000000000001")


def moving(lane: Lane) -> Move:
    return Move(repository=lane.repository, place=lane.place, target=pack(target(lane)))


async def test_a_registration_is_locked_once_and_a_foreign_lock_is_respected(lane: Lane) -> None:
    lock = Lock(repository=lane.repository, admin=lane.place.admin, reason=REASON)
    assert [await lane.perform(lock) for _ in range(2)] == [Locked(), Locked()]
    write(os.path.join(lane.admin, b"locked"), b"theirs\n")
    assert await code(lane, lock) == "foreign_lock"
    assert walk(lane.admin)[b"locked"][2] == b"theirs\n"


async def test_a_registration_that_is_gone_cannot_be_locked(lane: Lane) -> None:
    lock = Lock(repository=lane.repository, admin=lane.place.admin + "-gone", reason=REASON)
    assert await code(lane, lock) == "missing"


async def test_a_tree_is_moved_whole_and_git_knows_where(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    before, status = walk(lane.path), lane.git("status", "--porcelain=v2", "-z")
    effect = moving(lane)
    first = await lane.perform(effect)
    assert isinstance(first, Moved)
    assert (first.place.path, first.place.identity) == (pack(target(lane)), effect.place.identity)
    assert walk(target(lane)) == before
    assert lane.world.git(target(lane), "status", "--porcelain=v2", "-z") == status
    assert await lane.perform(effect) == first


async def test_a_move_that_died_after_the_rename_is_finished(lane: Lane) -> None:
    effect = moving(lane)
    os.makedirs(os.path.dirname(target(lane)))
    os.rename(lane.path, target(lane))
    assert isinstance(await lane.perform(effect), Moved)
    assert lane.world.git(target(lane), "rev-parse", "--show-toplevel").strip() == target(lane)


def points_to(lane: Lane) -> bytes:
    return walk(lane.admin)[b"gitdir"][2]


@pytest.mark.parametrize("strict", [True, False])
async def test_a_leaving_that_died_before_the_rename_begins_anew(lane: Lane, *, strict: bool) -> None:
    effect = replace(moving(lane), leaving=True, strict=strict)
    write(os.path.join(lane.admin, b"gitdir"), target(lane) + b"/.git\n")
    assert isinstance(await lane.perform(effect), Moved)
    assert lane.world.git(target(lane), "rev-parse", "--show-toplevel").strip() == target(lane)


async def test_a_leaving_that_finds_something_in_the_way_leaves_both_as_they_were(lane: Lane) -> None:
    before, said = walk(lane.path), points_to(lane)
    write(os.path.join(target(lane), b"theirs"), b"theirs\n")
    assert await code(lane, replace(moving(lane), leaving=True)) == "path_in_use"
    assert (walk(lane.path), points_to(lane)) == (before, said)


async def test_a_tree_that_is_nowhere_may_be_where_its_registration_says_that_it_goes(lane: Lane) -> None:
    effect = replace(moving(lane), leaving=True)
    write(os.path.join(lane.admin, b"gitdir"), target(lane) + b"/.git\n")
    os.rename(lane.path, lane.path + b"-away")
    write(os.path.join(lane.path, b"theirs"), b"theirs\n")
    outcome = await lane.perform(effect)
    assert isinstance(outcome, Moved)
    assert (outcome.place.path, outcome.place.identity) == (effect.target, effect.place.identity)
    assert walk(lane.path).keys() == {b"theirs"}


@contextmanager
def small_files(most: int) -> Iterator[None]:
    """Lets nobody, and not root either, write a file of more bytes: a lock has fewer, a pointer has more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_move_whose_registration_cannot_be_written_puts_the_tree_back(lane: Lane) -> None:
    before, effect = walk(lane.path), moving(lane)
    with small_files(64):
        assert await code(lane, effect) == "io_failed"
    assert walk(lane.path) == before
    assert not os.path.lexists(target(lane))
    assert walk(lane.admin)[b"gitdir"][2] == lane.path + b"/.git\n"
    assert isinstance(await lane.perform(effect), Moved)


async def test_nothing_in_the_way_is_replaced(lane: Lane) -> None:
    before, effect = walk(lane.path), moving(lane)
    write(os.path.join(target(lane), b"theirs"), b"theirs\n")
    assert await code(lane, effect) == "path_in_use"
    assert walk(lane.path) == before
    assert walk(target(lane)).keys() == {b"theirs"}


async def test_another_directory_in_the_lanes_place_is_not_moved(lane: Lane) -> None:
    effect = moving(lane)
    os.rename(lane.path, lane.path + b"-away")
    write(lane.at(b".git"), walk(lane.path + b"-away")[b".git"][2])
    assert await code(lane, effect) == "io_failed"
    assert not os.path.lexists(target(lane))


async def test_a_tree_that_is_nowhere_is_missing(lane: Lane) -> None:
    effect = moving(lane)
    os.rename(lane.path, lane.path + b"-away")
    assert await code(lane, effect) == "missing"


@pytest.mark.parametrize("pointer", [b"gitdir: /nowhere\n", b"nonsense", b""])
async def test_a_tree_that_does_not_name_its_registration_is_not_moved(lane: Lane, pointer: bytes) -> None:
    write(lane.at(b".git"), pointer)
    assert await code(lane, moving(lane)) == "git_failed"
    assert not os.path.lexists(target(lane))


async def test_relative_pointers_stay_relative_and_true(lane: Lane) -> None:
    write(lane.at(b".git"), b"gitdir: " + os.path.relpath(lane.admin, lane.path) + b"\n")
    pointer = os.path.relpath(lane.at(b".git"), lane.admin)
    write(os.path.join(lane.admin, b"gitdir"), pointer + b"\n")
    assert isinstance(await lane.perform(moving(lane)), Moved)
    assert (
        walk(lane.admin)[b"gitdir"][2]
        == os.path.relpath(os.path.join(target(lane), b".git"), lane.admin) + b"\n"
    )
    assert lane.world.git(target(lane), "rev-parse", "--show-toplevel").strip() == target(lane)


def freeing(lane: Lane) -> FreeBranch:
    return FreeBranch(repository=lane.repository, admin=lane.place.admin, head=lane.head(), branch=WORK)


def joining(lane: Lane) -> Rejoin:
    return Rejoin(repository=lane.repository, admin=lane.place.admin, branch=WORK, head=lane.head())


async def test_a_branch_is_freed_and_joined_again_and_nothing_seems_changed(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    before, log = lane.git("status", "--porcelain"), lane.git("reflog")
    assert [await lane.perform(freeing(lane)) for _ in range(2)] == [Freed(), Freed()]
    assert lane.git("branch", "--show-current") == b""
    assert lane.git("status", "--porcelain") == before
    assert [await lane.perform(joining(lane)) for _ in range(2)] == [Joined(branch=WORK)] * 2
    assert lane.git("symbolic-ref", "HEAD").strip() == WORK.encode()
    assert (lane.git("status", "--porcelain"), lane.git("reflog")) == (before, log)


async def test_a_branch_without_a_commit_needs_no_freeing(lane: Lane) -> None:
    effect = freeing(lane)
    lane.git("symbolic-ref", "HEAD", "refs/heads/unborn")
    outcome = await lane.perform(effect)
    assert outcome == Freed()
    assert lane.git("symbolic-ref", "HEAD").strip() == b"refs/heads/unborn"


async def test_a_head_that_git_is_writing_is_locked_for_now(lane: Lane) -> None:
    effects = freeing(lane), joining(lane)
    write(os.path.join(lane.admin, b"HEAD.lock"), b"")
    assert await code(lane, effects[0]) == "locked"
    os.unlink(os.path.join(lane.admin, b"HEAD.lock"))
    assert await lane.perform(effects[0]) == Freed()
    write(os.path.join(lane.admin, b"HEAD.lock"), b"")
    assert await code(lane, effects[1]) == "locked"


async def test_a_branch_that_is_gone_is_made_again_where_it_was(lane: Lane) -> None:
    await lane.perform(freeing(lane))
    effect = joining(lane)
    lane.git("update-ref", "-d", WORK)
    assert await lane.perform(effect) == Joined(branch=WORK)
    assert lane.git("rev-parse", WORK).decode().strip() == effect.head


async def test_a_branch_that_moved_on_is_left_where_it_is(lane: Lane) -> None:
    await lane.perform(freeing(lane))
    effect = joining(lane)
    lane.world.git(lane.world.root, "commit", "-q", "--allow-empty", "-m", "elsewhere")
    lane.git("update-ref", WORK, "refs/heads/main")
    outcome = await lane.perform(effect)
    assert isinstance(outcome, Joined)
    assert outcome.branch is None
    assert "by now" in (outcome.why or "")
    assert lane.git("rev-parse", WORK) == lane.git("rev-parse", "refs/heads/main")


async def test_a_branch_that_somebody_uses_is_not_joined(lane: Lane) -> None:
    await lane.perform(freeing(lane))
    lane.world.git(lane.world.root, "checkout", "-q", "work")
    outcome = await lane.perform(joining(lane))
    assert isinstance(outcome, Joined)
    assert "in use by" in (outcome.why or "")
    assert lane.git("branch", "--show-current") == b""


async def test_a_lane_that_had_no_branch_joins_none(lane: Lane) -> None:
    lane.git("checkout", "-q", "--detach")
    effect = Rejoin(repository=lane.repository, admin=lane.place.admin, branch=None, head=lane.head())
    assert await lane.perform(effect) == Joined(branch=None)


def dropping(lane: Lane) -> DropBranch:
    return DropBranch(repository=lane.repository, branch=WORK, at=lane.head())


async def test_a_branch_that_nobody_uses_is_dropped_once(lane: Lane) -> None:
    await lane.perform(freeing(lane))
    assert [await lane.perform(dropping(lane)) for _ in range(2)] == [Dropped(), Dropped()]
    assert lane.git("for-each-ref", WORK) == b""


async def test_a_branch_that_is_in_use_or_moved_on_is_kept_and_says_why(lane: Lane) -> None:
    outcome = await lane.perform(dropping(lane))
    assert isinstance(outcome, Dropped)
    assert "in use by" in (outcome.kept or "")
    effect = dropping(lane)
    lane.git("commit", "-q", "--allow-empty", "-m", "moved on")
    outcome = await lane.perform(effect)
    assert isinstance(outcome, Dropped)
    assert "moved on to" in (outcome.kept or "")
    assert lane.git("rev-parse", WORK).decode().strip() == lane.head()
