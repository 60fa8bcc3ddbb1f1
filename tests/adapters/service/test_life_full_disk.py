"""The disk of the log is full: commands are refused, reading goes on, and room is all that it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adapters.service.http_house import house
from tests.adapters.volumes import fill, volume
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


async def test_a_full_disk_refuses_commands_and_nothing_else(tmp_path: Path) -> None:
    world = World(tmp_path)
    with volume(tmp_path / "state", 8) as state:
        async with house(world) as served:
            lane = await served.lane()
            before, events = world.git(world.root, "worktree", "list"), len(world.events())
            ballast = fill(state)
            for number in range(3):
                full = await served.create(f"more-{number}", idempotency_key=f"key-{number}")
                assert (full.status_code, full.json()["code"]) == (507, "disk_full")
                assert full.headers["laneyard-outcome"] == "unavailable"
            assert world.git(world.root, "worktree", "list") == before
            assert (await served.get(f"/v1/lanes/{lane}")).json()["state"] == "active"
            assert len((await served.get("/v1/events")).json()["events"]) == events
            assert (await served.get("/v1/health")).json()["status"] == "ready"
            ballast.unlink()
            made = await served.create("more-0", idempotency_key="key-0")
            assert (made.status_code, made.json()["slug"]) == (201, "more-0")
            removed = await served.post(f"/v1/lanes/{lane}/remove")
            assert (removed.status_code, removed.json()["state"]) == (200, "quarantined")
        assert await world.complaints() == []


async def test_a_disk_that_fills_in_the_middle_of_a_removal_loses_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    with volume(tmp_path / "state", 8) as state:
        async with house(world) as served:
            lane = await served.lane()
            tree = tmp_path / "root/.laneyard/worktrees/work"
            (tree / "work.txt").write_text("nowhere else\n")
            ballast = fill(state)
            stopped = await served.post(f"/v1/lanes/{lane}/remove", idempotency_key="one")
            assert stopped.status_code == 507, stopped.text
            assert (tree / "work.txt").read_text() == "nowhere else\n"
            ballast.unlink()
            again = await served.post(f"/v1/lanes/{lane}/remove", idempotency_key="one")
            assert (again.status_code, again.json()["state"]) == (200, "quarantined")
            back = await served.post(f"/v1/lanes/{lane}/restore")
            assert back.status_code == 200
            assert (tree / "work.txt").read_text() == "nowhere else\n"
        assert await world.complaints() == []
