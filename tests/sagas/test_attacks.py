"""Holes that were found by attacking, each with the smallest way through it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.config import Settings
from domain.errors import NotTheLanesBranch, StateInside
from domain.states import NeedsReview, Quarantined, Reaped
from tests.sagas.scenarios import clean, place_of
from tests.sagas.trees import write
from tests.sagas.worlds import World, walk

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


async def test_a_consent_to_lose_a_merge_is_none_to_lose_a_directory_of_that_name(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        lane = place_of(opened)
        world.git(lane, "commit", "-q", "--allow-empty", "-m", "ours")
        world.git(lane, "merge", "-q", "--no-commit", "--no-ff", "-s", "ours", "HEAD~1", check=False)
        write(
            os.path.join(os.fsencode(world.git(lane, "rev-parse", "--git-dir").strip()), b"MERGE_HEAD"),
            b"0" * 40,
        )
        await opened.remove(mode="force")
        resting = opened.lane()
        assert isinstance(resting, Quarantined)
        write(os.path.join(os.fsencode(resting.place.path), b"merge", b"late"), b"work")
        done = await opened.reap()
    assert isinstance(done.lane, NeedsReview)
    assert os.path.exists(os.path.join(os.fsencode(resting.place.path), b"merge", b"late"))


async def test_a_file_larger_than_any_answer_of_git_comes_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        lane = place_of(opened)
        write(os.path.join(lane, b"large"), os.urandom(1 << 20) * 70)
        before = walk(lane)
        await opened.remove()
        assert isinstance((await opened.reap()).lane, Reaped)
        await opened.restore()
        assert walk(lane) == before


async def test_a_replaced_object_is_not_taken_for_the_one_that_is_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        lane = place_of(opened)
        name = world.git(lane, "ls-files").split(b"\n")[0]
        blob = world.git(lane, "rev-parse", b"HEAD:" + name).strip()
        other = world.git(lane, "hash-object", "-w", "--stdin", stdin=b"quite another").strip()
        before = walk(lane)
        world.git(lane, "replace", blob, other)
        await opened.remove()
        await opened.reap()
        world.git(world.root, "replace", "-d", blob)
        await opened.restore()
        assert walk(lane) == before


async def test_another_branch_than_the_lanes_own_is_not_deleted(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        world.git(place_of(opened), "switch", "-q", "-c", "shared")
        with pytest.raises(NotTheLanesBranch):
            await opened.remove(delete_branch=True)
    assert world.git(world.root, "branch", "--list", "shared").strip()


async def test_a_lane_that_holds_the_log_is_not_moved(tmp_path: Path) -> None:
    class Nested(World):
        @property
        def settings(self) -> Settings:
            outer = super().settings
            inner = os.path.join(self.root, b".laneyard", b"worktrees", b"work", b"state")
            return Settings(
                state_dir=inner if os.path.isdir(os.path.dirname(inner)) else outer.state_dir,
                environment=outer.environment,
                client=outer.client,
                configuration=outer.configuration,
            )

    world = Nested(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        opened.yard.settings = world.settings
        with pytest.raises(StateInside):
            await opened.remove(mode="force")


async def test_a_repository_of_the_lanes_own_can_be_put_away_by_force(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        lane = place_of(opened)
        inner = next(
            os.path.dirname(path) for path in world.git(lane, "ls-files").split(b"\n") if b"/" in path
        )
        world.git(os.path.join(lane, inner), "init", "-q")
        done = await opened.remove(mode="force")
    assert isinstance(done.lane, Quarantined), done.problem
