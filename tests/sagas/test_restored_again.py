"""A lane that came back is the lane that it was: with its base and commits, as often as it is asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from domain.states import Active

if TYPE_CHECKING:
    from tests.sagas.worlds import Open, World

pytestmark = pytest.mark.slow


def commit(world: World, place: bytes, name: str) -> str:
    with open(os.path.join(place, os.fsencode(name)), "w") as file:
        file.write(name)
    world.git(place, "add", "--", name)
    world.git(place, "commit", "-qm", name)
    return world.git(place, "rev-parse", "HEAD").decode().strip()


def note(world: World, text: str) -> None:
    with open(os.path.join(path(world), b"note"), "w") as file:
        file.write(text)


def noted(world: World) -> str:
    with open(os.path.join(path(world), b"note")) as file:
        return file.read()


def path(world: World, slug: str = "work") -> bytes:
    return os.path.join(world.root, b".laneyard/worktrees", slug.encode())


async def reaped(opened: Open) -> None:
    await opened.remove()
    await opened.reap()


async def test_a_rebuilt_lane_keeps_its_base_and_its_commits_outlive_its_branch(world: World) -> None:
    """The branch is dropped twice, and git has collected its garbage after each: nothing of it is lost."""
    async with world.open() as opened:
        await opened.create()
        base = world.git(world.root, "rev-parse", "HEAD").decode().strip()
        first = commit(world, path(world), "first")
        await opened.remove(delete_branch=True)
        await opened.reap()
        world.git(world.root, "gc", "-q", "--prune=now")
        await opened.restore()
        lane = opened.lane()
        assert isinstance(lane, Active)
        assert (lane.record.base_commit, lane.record.branch) == (base, "refs/heads/work")
        assert world.git(path(world), "rev-parse", "HEAD").decode().strip() == first
        second = commit(world, path(world), "second")
        await opened.remove(delete_branch=True)
        await opened.reap()
        world.git(world.root, "gc", "-q", "--prune=now")
        assert world.git(world.root, "for-each-ref", "refs/heads/work") == b""
        await opened.restore()
        assert world.git(path(world), "log", "--format=%H", f"{base}..").decode().split() == [second, first]
    assert await world.complaints() == []


async def test_the_same_snapshot_can_be_asked_for_again(world: World) -> None:
    async with world.open() as opened:
        await opened.create()
        note(world, "first")
        await reaped(opened)
        [edition] = opened.lane().record.editions  # type: ignore[union-attr]
        for _ in range(2):
            await opened.restore(edition=1, snapshot=edition.snapshot_id)
            assert noted(world) == "first"
            note(world, "changed since")
            await reaped(opened)
    assert await world.complaints() == []
