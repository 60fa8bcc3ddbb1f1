"""Git's own housekeeping, which `git commit` starts behind the user's back, is nobody's work in a lane."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio

from adapters.git.repository import content
from adapters.snapshots.explain import explain
from domain.errors import CannotHold
from domain.paths import unpack

if TYPE_CHECKING:
    from tests.sagas.worlds import Open, World

pytestmark = pytest.mark.slow


def registration(opened: Open) -> bytes:
    """Returns the git directory of the lane."""
    return unpack(opened.lane().place.admin)  # type: ignore[union-attr]


def touch(directory: bytes, name: bytes) -> None:
    """Makes an empty file."""
    with open(os.path.join(directory, name), "wb"):
        return


async def test_a_log_that_git_writes_anew_with_the_same_lines_is_as_it_was_captured(world: World) -> None:
    async with world.open() as opened:
        await opened.create()
        world.dirty(unpack(str(opened.row()["path"])))
        await opened.remove()
        log = os.path.join(registration(opened), b"logs/HEAD")
        before = content(log)
        world.git(world.root, "reflog", "expire", "--all")
        assert content(log) != before
        await opened.reap()
        assert opened.state() == "reaped"
        await opened.restore()
        assert opened.state() == "active"
    assert await world.complaints() == []


async def test_a_gc_that_runs_or_has_died_in_a_lane_keeps_nobody_from_putting_it_away(world: World) -> None:
    async with world.open() as opened:
        await opened.create()
        world.dirty(unpack(str(opened.row()["path"])))
        touch(registration(opened), b"gc.log.lock")
        await opened.remove()
        await opened.reap()
        assert opened.state() == "reaped"
    assert await world.complaints() == []


async def test_a_lock_that_git_takes_for_a_moment_is_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explain, "LOCKED", 60.0)  # on a busy machine a moment may be long
    begun = trio.Event()

    def notice(moment: str, step: str) -> None:
        if (moment, step) == ("before-effect", "Explain"):
            begun.set()

    async with world.open(notice) as opened:
        await opened.create()
        world.dirty(unpack(str(opened.row()["path"])))
        await opened.remove()
        place = registration(opened)
        touch(place, b"HEAD.lock")

        async def let_go() -> None:
            await begun.wait()
            await trio.sleep(5 * explain.PAUSE)  # as git does its work under the lock
            os.unlink(os.path.join(place, b"HEAD.lock"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(let_go)
            await opened.reap()
        assert opened.state() == "reaped"


async def test_a_registration_that_a_gc_has_made_again_is_none(world: World) -> None:
    async with world.open() as opened:
        await opened.create()
        os.mkdir(os.path.join(world.common, b"worktrees/gone"))
        await opened.create("more")
    assert await world.complaints() == []


async def test_a_sweep_takes_away_what_a_killed_capture_has_kept_in_vain(world: World) -> None:
    pool = world.home / "state/blobs"
    async with world.open() as opened:
        await opened.create()
        world.dirty(unpack(str(opened.row()["path"])))
        await opened.remove()
        kept = sorted(pool.iterdir())
        (pool / ("0" * 64)).write_bytes(b"nobody's")
        await opened.sweep()
        assert sorted(pool.iterdir()) == kept != []
    assert await world.complaints() == []


async def test_a_lock_that_a_killed_git_has_left_on_the_new_branch_is_taken_away(world: World) -> None:
    head = world.git(world.root, "rev-parse", "HEAD")
    for slug, said, state in (("ours", head, "active"), ("theirs", b"a" * 40 + b"\n", "failed")):
        lock = os.path.join(world.common, b"refs/heads", slug.encode() + b".lock")
        with open(lock, "wb") as file:  # noqa: ASYNC230
            file.write(said)
        async with world.open() as opened:
            await opened.create(slug)
            assert opened.state(slug) == state
        assert os.path.exists(lock) == (state == "failed")
    os.unlink(lock)
    assert await world.complaints() == []


async def test_any_other_lock_of_git_is_somebodys_work(world: World) -> None:
    async with world.open() as opened:
        await opened.create()
        world.dirty(unpack(str(opened.row()["path"])))
        touch(registration(opened), b"index.lock")
        with pytest.raises(CannotHold, match=r"index\.lock"):
            await opened.remove()
        assert opened.state() == "active"
