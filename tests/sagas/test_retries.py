"""What is in the way for a moment is waited for; what stays in the way leads back, and is told."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from domain.events import RemovalAbandoned, RemovalStepFailed
from domain.retries import ATTEMPTS
from domain.states import Active, Quarantined
from tests.sagas.scenarios import clean, place_of
from tests.sagas.trees import walk, write
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow
LOCKS = {"Lock": (b"index.lock", b"HEAD.lock"), "FreeBranch": (b"HEAD.lock",)}
HELD = [(step, name) for step, names in LOCKS.items() for name in names]


def held(world: World, step: str, name: bytes, *, goes: bool) -> tuple[Callable[[str, str], None], bytes]:
    """Returns by which notice git is at work in the lane from a step on, and its lock."""
    lock, seen = os.path.join(world.common, b"worktrees/work", name), list[str]()

    def notice(moment: str, done: str) -> None:
        if done != step or moment != "before-effect" or (goes and len(seen) > 1):
            return
        seen.append(done)
        if len(seen) == 1:
            write(lock, b"")
        elif goes:
            os.unlink(lock)

    return notice, lock


def failures(world: World) -> list[RemovalStepFailed]:
    return [event.fact for event in world.events() if isinstance(event.fact, RemovalStepFailed)]


@pytest.mark.parametrize(("step", "name"), HELD)
async def test_a_git_that_is_at_work_for_a_moment_is_waited_for(
    tmp_path: Path, step: str, name: bytes
) -> None:
    world = World(tmp_path)
    notice, _ = held(world, step, name, goes=True)
    async with world.open(notice) as opened:
        await clean(opened)
        done = await opened.remove()
        assert isinstance(done.lane, Quarantined)
        assert (done.problem, done.warnings) == (None, ())
    assert [(each.attempt, each.code, each.final) for each in failures(world)] == [(1, "locked", False)]
    assert await world.complaints() == []


@pytest.mark.parametrize("name", LOCKS["Lock"])
async def test_a_git_that_stays_at_work_leads_the_removal_back(tmp_path: Path, name: bytes) -> None:
    world = World(tmp_path)
    notice, lock = held(world, "Lock", name, goes=False)
    async with world.open(notice) as opened:
        await clean(opened)
        before = walk(place_of(opened))
        done = await opened.remove()
        assert isinstance(done.lane, Active)
        assert done.problem is not None
        assert done.problem[0] == "locked"
        assert walk(place_of(opened)) == before
        assert os.listdir(os.path.dirname(lock)).count(b"locked") == 0
    assert [each.attempt for each in failures(world)] == [*range(1, ATTEMPTS + 1)]
    assert isinstance(world.events()[-1].fact, RemovalAbandoned)
    os.unlink(lock)
    async with world.open() as opened:
        assert isinstance((await opened.remove()).lane, Quarantined)
    assert await world.complaints() == []


async def test_a_branch_that_stays_locked_does_not_undo_a_removal(tmp_path: Path) -> None:
    world = World(tmp_path)
    notice, lock = held(world, "FreeBranch", b"HEAD.lock", goes=False)
    async with world.open(notice) as opened:
        await clean(opened)
        done = await opened.remove()
        assert isinstance(done.lane, Quarantined)
        [warning] = done.warnings
        assert "HEAD" in warning
        os.unlink(lock)
        assert isinstance((await opened.restore()).lane, Active)
        assert world.git(place_of(opened), "symbolic-ref", "HEAD") == b"refs/heads/work\n"
    assert len(failures(world)) == ATTEMPTS - 1
    assert await world.complaints() == []


async def test_a_forced_removal_does_not_wait_for_what_it_may_lose(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        write(os.path.join(world.common, b"worktrees/work/index.lock"), b"")
        assert isinstance((await opened.remove(mode="force")).lane, Quarantined)
    assert failures(world) == []


async def test_a_branch_whose_lock_is_let_go_is_deleted(tmp_path: Path) -> None:
    world = World(tmp_path)
    lock, tried = os.path.join(world.common, b"refs/heads/work.lock"), list[str]()

    def notice(moment: str, step: str) -> None:
        if (moment, step) == ("before-effect", "DropBranch"):
            tried.append(step)
            if len(tried) == 1:
                write(lock, b"")
            else:
                os.unlink(lock)

    async with world.open(notice) as opened:
        await clean(opened)
        done = await opened.remove(delete_branch=True)
        assert isinstance(done.lane, Quarantined)
        assert done.warnings == ()
    assert len(tried) == 2
    assert world.git(world.root, "for-each-ref", "refs/heads/work") == b""


async def test_a_lock_that_cannot_be_taken_back_is_told_and_the_next_removal_takes_it_over(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    locked = os.path.join(world.common, b"worktrees/work/locked")

    def notice(moment: str, step: str) -> None:
        if (moment, step) == ("before-effect", "Move"):
            write(os.path.join(world.root, b".laneyard/quarantine"), b"somebody's\n")
        elif (moment, step) == ("before-effect", "Unlock") and os.path.exists(locked):
            kept.append(os.stat(locked).st_ino)
            os.rename(locked, locked + b"-aside")
            os.mkdir(locked)

    kept: list[int] = []
    async with world.open() as opened:
        await clean(opened)
    async with world.open(notice) as opened:
        done = await opened.remove()
        assert isinstance(done.lane, Active)
        assert done.problem is not None
        assert "it is still locked, as unlock" in done.problem[1]
    assert len(kept) == 1
    os.rmdir(locked)
    os.rename(locked + b"-aside", locked)
    os.unlink(os.path.join(world.root, b".laneyard/quarantine"))
    async with world.open() as opened:
        assert isinstance((await opened.remove()).lane, Quarantined)
    assert await world.complaints() == []
