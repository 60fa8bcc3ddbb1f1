"""A request that comes twice is answered once, and the same, whatever has come since."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from adapters.wiring import new_request
from adapters.yard import ending, putting_away
from domain.errors import CommandReused
from domain.states import name
from tests.sagas.asking import creates, forces_and_reaps, once, removes, removes_and_reaps, restores
from tests.sagas.scenarios import clean, dirty, in_review, nothing, overgrown, reaped, removed, removed_clean
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.sagas.asking import Act
    from tests.sagas.worlds import Open

pytestmark = pytest.mark.slow


ACTS: dict[str, tuple[Callable[[Open], Awaitable[object]], Act, str]] = {
    "create": (nothing, creates, "active"),
    "snapshot": (dirty, lambda o, r: putting_away.snapshot(o.yard, o.row(), r), "active"),
    "remove a clean lane": (clean, removes, "quarantined"),
    "remove a dirty lane": (dirty, removes, "quarantined"),
    "remove and reap": (dirty, removes_and_reaps, "reaped"),
    "remove by force and reap": (overgrown, forces_and_reaps, "reaped"),
    "restore from the quarantine": (removed, restores, "active"),
    "restore from a snapshot": (reaped, restores, "active"),
    "reap": (removed, lambda o, r: ending.reap(o.yard, o.row(), r), "reaped"),
    "reap without a snapshot": (removed_clean, lambda o, r: ending.reap(o.yard, o.row(), r), "reaped"),
    "put back after a review": (in_review, restores, "active"),
    "resnapshot": (in_review, lambda o, r: ending.resnapshot(o.yard, o.row(), r), "reaped"),
    "discard": (in_review, lambda o, r: ending.discard(o.yard, o.row(), r), "reaped"),
}
# What may be done to a lane in each state, so that it is no longer as the answer says.
CHANGES: dict[str, Callable[[Open], Awaitable[object]]] = {
    "active": lambda o: o.remove(mode="force"),
    "quarantined": lambda o: o.restore(),
    "reaped": lambda o: o.restore(),
}


@pytest.mark.parametrize("case", ACTS)
async def test_the_second_time_changes_nothing_and_the_answer_is_the_same_after_changes_and_a_restart(
    home: Path, case: str
) -> None:
    prepare, act, state = ACTS[case]
    world = World(home)
    async with world.open() as opened:
        await prepare(opened)
        first = await act(opened, once(world))
        row, before = opened.row(), world.tags()
        again = await act(opened, once(world))
        assert world.tags() == before
        await CHANGES[state](opened)
        changed, before = opened.row(), world.tags()
        after_changes = await act(opened, once(world))
    async with world.open() as opened:
        after_restart = await act(opened, once(world))
    assert (name(first.lane), first.problem) == (state, None)
    assert first.row == row != changed
    assert [again, after_changes, after_restart] == [first] * 3
    assert world.tags() == before


async def test_an_answer_holds_what_the_request_has_caused_and_nothing_else(world: World) -> None:
    async with world.open() as opened:
        await dirty(opened)
        await opened.snapshot()
        done = await removes(opened, once(world))
    caused = [event for event in world.events() if event.cause == "once"]
    assert done.facts == tuple(event.fact for event in caused)
    assert (done.facts[0].TAG, done.facts[-1].TAG) == ("snapshot.planned@2", "lane.quarantined@1")
    assert done.position == caused[-1].position
    assert done.row is not None
    assert (done.row["position"], done.row["version"]) == (caused[-1].position, caused[-1].version)


async def test_the_same_id_for_another_request_is_refused(world: World) -> None:
    async with world.open() as opened:
        await creates(opened, once(world))
        with pytest.raises(CommandReused):
            await creates(opened, once(world, b"another"))


async def test_a_snapshot_that_failed_is_answered_with_the_same_refusal(world: World) -> None:
    async with world.open() as opened:
        await dirty(opened)
    world.fake('case " $* " in *" ls-tree "*) echo broken >&2; exit 128; esac')
    answers = []
    for program in (world.program, "git"):
        world.program = program
        async with world.open() as opened:
            with pytest.raises(putting_away.SnapshotNotMade) as caught:
                await putting_away.snapshot(opened.yard, opened.row(), once(world))
            answers.append((caught.value.code, str(caught.value)))
    assert answers[0] == answers[1]


async def test_a_branch_that_is_kept_is_said_to_be_each_time(world: World) -> None:
    async with world.open() as opened:
        await dirty(opened)
    world.fake('case " $* " in *" ls-tree "*) echo broken >&2; exit 128; esac')
    answers = []
    for program in (world.program, "git"):
        world.program = program
        async with world.open() as opened:
            answers.append(await removes(opened, once(world), mode="force", delete_branch=True))
    assert answers[0].warnings == ("the branch is kept, as no snapshot holds its commits",)
    assert answers[1] == answers[0]


async def test_many_first_requests_at_once_take_the_repository_once(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened, trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(opened.create, f"lane-{number}")
    told = world.tags()
    assert told.count("repository.registered@1") == told.count("lane.adopted@1") == 1
    assert told.count("lane.created@1") == 8
    assert await world.complaints() == []


async def test_a_lane_that_is_being_made_is_made_by_one(tmp_path: Path) -> None:
    world = World(tmp_path)
    planned = trio.Event()

    def notice(moment: str, step: str) -> None:
        if (moment, step) == ("before-effect", "Checkout"):
            planned.set()

    async with world.open(notice) as opened, trio.open_nursery() as nursery:
        nursery.start_soon(opened.create)
        await planned.wait()
        for _ in range(5):  # what another command does first on a lane that it finds unfinished
            nursery.start_soon(opened.yard.drive_on, str(opened.row()["id"]), new_request(world.settings))
    assert world.tags().count("creation.checked-out@1") == world.tags().count("lane.created@1") == 1
    assert await world.complaints() == []
