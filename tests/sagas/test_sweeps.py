"""A sweep is told: what was due, and how each lane has ended; an interrupted one is gone on with."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio

from adapters.wiring import new_request
from adapters.yard import ending
from domain.errors import CommandReused
from domain.events import SweepFinished, SweepPlanned
from tests.sagas.asking import dies
from tests.sagas.scenarios import place_of, resting
from tests.sagas.trees import write
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sagas.worlds import Open

pytestmark = pytest.mark.slow

SWEEP = ("sweep.planned@1", "sweep.finished@1")


async def two_removed(opened: Open) -> None:
    """Two lanes in quarantine, each with something that only its snapshot has."""
    for lane in ("one", "two"):
        await opened.create(lane)
        write(os.path.join(place_of(opened, lane), b"new"), lane.encode())
        await opened.remove(lane)


def swept_world(home: Path, retention: str = "0s") -> World:
    world = World(home, retention=retention)

    async def prepare() -> None:
        async with world.open() as opened:
            await two_removed(opened)

    trio.run(prepare)
    return world


def sweep(world: World, command: str | None = "once") -> list[ending.Swept]:
    """Opens the yard anew and sweeps."""

    async def main() -> list[ending.Swept]:
        async with world.open() as opened:
            return await opened.sweep(command)

    return trio.run(main)


def told(swept: list[ending.Swept]) -> list[tuple[object, object, object]]:
    rows = [(each.candidate.row, each.refused) for each in swept]
    return [(row["slug"], row["state"], refused) for row, refused in rows]


def test_a_sweep_is_told_in_a_stream_of_its_own_and_each_lane_in_its(home: Path) -> None:
    world = swept_world(home)
    start = len(world.tags())
    assert sorted(told(sweep(world))) == [("one", "reaped", None), ("two", "reaped", None)]
    events = world.events(start)
    assert {event.cause for event in events} == {"once"}
    assert [event.type for event in events if event.stream == "sweep-once"] == list(SWEEP)
    assert (events[0].type, events[-1].type) == SWEEP
    planned, finished = events[0].fact, events[-1].fact
    assert isinstance(planned, SweepPlanned)
    assert isinstance(finished, SweepFinished)
    assert planned.lanes == tuple(each.lane for each in finished.results)
    assert trio.run(world.complaints) == []


def test_the_same_sweep_is_answered_with_what_it_has_recorded_whatever_came_since(home: Path) -> None:
    world = swept_world(home)
    first = sweep(world)

    async def restore() -> None:
        async with world.open() as opened:
            await opened.restore("one")

    trio.run(restore)
    before = world.tags()
    assert sweep(world) == first
    assert world.tags() == before


@pytest.mark.parametrize(
    ("moment", "step", "nth"),
    [
        ("after-append", "note", 1),  # planned, and nothing begun
        ("before-append", "ReapLane", 1),
        ("after-append", "ReapLane", 1),
        ("after-effect", "Destroy", 1),
        ("after-append", "Deregister", 1),  # the first lane is done
        ("after-append", "ReapLane", 2),
        ("before-append", "note", 2),  # all is done but the end is not written down
        ("after-append", "note", 2),
    ],
)
def test_a_sweep_that_died_is_gone_on_with_and_finished(home: Path, moment: str, step: str, nth: int) -> None:
    world = swept_world(home)
    start = len(world.tags())
    dies(world, lambda o: o.sweep("once"), moment, step, nth)
    answers = [sweep(world) for _ in range(2)]
    assert sorted(told(answers[0])) == [("one", "reaped", None), ("two", "reaped", None)]
    assert answers[0] == answers[1]
    tags = world.tags(start)
    assert [tags.count(tag) for tag in (*SWEEP, "lane.reaped@1")] == [1, 1, 2]


def test_a_lane_that_is_due_no_more_is_not_reaped_though_it_was_planned(home: Path) -> None:
    world = swept_world(home)
    dies(world, lambda o: o.sweep("once"), "after-append", "note")

    async def back() -> None:
        async with world.open() as opened:
            await opened.restore("one")
            await opened.restore("two")
            await opened.remove("two")

    trio.run(back)
    world.retention = "7d"
    swept = sorted(told(sweep(world)))
    assert [each[:2] for each in swept] == [("one", "active"), ("two", "quarantined")]
    assert all(isinstance(each[2], tuple) and each[2][0] == "wrong_state" for each in swept)
    assert "lane.reaped@1" not in world.tags()


def test_a_lane_that_somebody_else_has_reaped_meanwhile_is_no_trouble(home: Path) -> None:
    world = swept_world(home)
    dies(world, lambda o: o.sweep("once"), "after-append", "note")
    sweep(world, "another")
    assert sorted(told(sweep(world))) == [("one", "reaped", None), ("two", "reaped", None)]
    assert world.tags().count("lane.reaped@1") == 2


async def test_one_lanes_trouble_is_recorded_and_is_no_others(world: World) -> None:
    world.retention = "0s"
    async with world.open() as opened:
        await opened.create("work")
        await opened.remove("work")
        os.mkfifo(os.path.join(resting(opened), b"pipe"))
        await opened.create("other")
        await opened.remove("other")
        first, again = await opened.sweep("once"), await opened.sweep("once")
    found = {each[0]: each[1:] for each in told(first)}
    assert found["other"] == ("reaped", None)
    state, refused = found["work"]
    assert (state, isinstance(refused, tuple) and refused[0]) == ("quarantined", "cannot_hold")
    assert again == first


async def test_nothing_due_is_written_down_only_for_a_request_that_may_come_again(world: World) -> None:
    async with world.open() as opened:
        assert await opened.sweep() == []
        assert world.tags() == []
        assert await opened.sweep("once") == []
        assert world.tags() == list(SWEEP)
        await opened.create()
        await opened.remove()
        world.retention = "0s"
        assert await opened.sweep("once") == []
        assert world.tags().count("sweep.planned@1") == 1


async def test_the_id_of_a_sweep_is_no_other_requests(world: World) -> None:
    async with world.open() as opened:
        await opened.sweep("once")
        with pytest.raises(CommandReused):
            await ending.sweep(opened.yard, None, new_request(world.settings, "once", b"other"))
        await opened.create()
        for digest in (b"sweep", b"other"):
            with pytest.raises(CommandReused):
                await ending.reap(opened.yard, opened.row(), new_request(world.settings, "once", digest))


async def test_the_parts_of_a_sweep_may_be_done_apart_and_in_any_order(home: Path) -> None:
    world = World(home, retention="0s")
    async with world.open() as opened:
        await two_removed(opened)
        request = new_request(world.settings, "once", b"digest")
        found = ending.candidates(opened.yard, None)
        planned = await ending.plan_sweep(opened.yard, None, request, due=found)
        assert ending.planned_before(opened.yard, request) == planned
        backwards = reversed(planned.lanes)
        results = [await ending.sweep_lane(opened.yard, lane_id, request) for lane_id in backwards]
        swept = await ending.finish_sweep(opened.yard, planned, results, request)
        assert await ending.finish_sweep(opened.yard, planned, results, request) == swept
    assert tuple(str(each.candidate.row["id"]) for each in swept) == planned.lanes
    assert world.tags().count("sweep.finished@1") == 1
