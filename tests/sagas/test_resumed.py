"""A request that was interrupted is gone on with, by the next start and by whoever asks again with its id."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio

from adapters.wiring import new_request, open_store, recover, unfinished, yard_over
from adapters.yard import ending, putting_away
from domain.envelope import stream_of
from domain.errors import VersionMismatch
from domain.lane import pending
from domain.states import name
from tests.sagas.asking import creates, dies, forces_and_reaps, once, removes, removes_and_reaps, restores
from tests.sagas.scenarios import clean, dirty, nothing, overgrown, place_of, removed, removed_clean, resting
from tests.sagas.trees import write
from tests.sagas.worlds import Open, World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from adapters.yard.yard import Done
    from domain.states import Lane
    from tests.sagas.asking import Act

pytestmark = pytest.mark.slow

INTERRUPTED: dict[str, tuple[Callable[[Open], Awaitable[object]], Act, str, str]] = {
    "create": (nothing, creates, "CreateLane", "active"),
    "snapshot": (dirty, lambda o, r: putting_away.snapshot(o.yard, o.row(), r), "SnapshotLane", "active"),
    "remove": (dirty, removes, "RemoveLane", "quarantined"),
    "restore": (removed, restores, "RestoreLane", "active"),
    "reap": (removed, lambda o, r: ending.reap(o.yard, o.row(), r), "ReapLane", "reaped"),
}


def prepared(home: Path, prepare: Callable[[Open], Awaitable[object]], *, retention: str = "7d") -> World:
    world = World(home, retention=retention)
    asked(world, prepare)
    return world


def asked(world: World, act: Callable[[Open], Awaitable[object]]) -> object:
    """Opens the yard anew, which drives on what was interrupted, and asks."""

    async def main() -> object:
        async with world.open() as opened:
            return await act(opened)

    return trio.run(main)


def version(world: World) -> int:
    """Returns the version of the lane."""
    found: list[int] = []

    async def look(opened: Open) -> None:
        found.append(int(opened.row()["version"] or 0))

    asked(world, look)
    return found[0]


@pytest.mark.parametrize("case", INTERRUPTED)
def test_who_asks_again_after_a_crash_gets_the_outcome_of_the_recovery(home: Path, case: str) -> None:
    prepare, act, command, state = INTERRUPTED[case]
    world = prepared(home, prepare)
    start = len(world.tags())
    dies(world, lambda o: act(o, once(world)), "after-append", command)
    asked(world, nothing)
    recovered = world.events(start)
    done = asked(world, lambda o: act(o, once(world)))
    assert world.events(start) == recovered
    assert (name(done.lane), done.problem) == (state, None)  # type: ignore[attr-defined]
    assert {event.cause for event in recovered} == {"once"}
    assert (recovered[0].actor.pid == os.getpid(), recovered[-1].actor.pid) == (False, os.getpid())


def test_a_yard_drives_one_lane_on_under_the_cause_it_was_begun_with(home: Path) -> None:
    world = prepared(home, clean)
    dies(world, lambda o: removes(o, once(world)), "after-append", "Lock")

    async def drive() -> None:
        with open_store(world.settings) as journal:
            async with yard_over(world.settings, journal) as yard:
                (stream,) = unfinished(yard.reader)
                lane_id = stream.partition("-")[2]
                for _ in range(2):
                    lane = await yard.drive_on(lane_id, new_request(world.settings))
                    assert (name(lane), pending(lane)) == ("quarantined", None)

    trio.run(drive)
    assert world.tags()[-1] == "lane.quarantined@1"
    assert world.events()[-1].cause == "once"


def test_each_repository_is_recovered_on_its_own_over_one_log(home: Path, tmp_path: Path) -> None:
    world = prepared(home, clean)
    dies(world, lambda o: removes(o, once(world)), "after-append", "Lock")

    async def recover_both() -> None:
        with open_store(world.settings) as journal:
            async with (
                yard_over(world.settings, journal) as here,
                yard_over(world.settings, journal) as there,
            ):
                assert (here.settings, there.settings) == (world.settings, world.settings)
                assert unfinished(there.reader, "/another/.git") == []
                repository = str(here.reader.repositories()[0]["common"])
                streams = unfinished(here.reader, repository)
                assert streams == [stream_of(str(row["id"])) for row in here.reader.lanes() if row["owed"]]
                assert await recover(here, streams) == {}
                assert unfinished(there.reader) == []

    trio.run(recover_both)
    assert world.state() == "quarantined"


def test_the_listener_of_the_log_hears_of_what_is_done_in_a_yard(world: World) -> None:
    heard: list[int] = []

    async def creates_one() -> None:
        with open_store(world.settings, lambda: heard.append(1)) as journal:
            async with yard_over(world.settings, journal) as yard:
                await creates(Open(world, yard), once(world))

    trio.run(creates_one)
    assert len(heard) >= len({event.time for event in world.events()})


def test_a_lane_that_cannot_be_read_stops_no_other(home: Path) -> None:
    world = prepared(home, clean)
    dies(world, lambda o: removes(o, once(world)), "after-append", "Lock")

    async def recover_all() -> dict[str, Exception]:
        with open_store(world.settings) as journal:
            async with yard_over(world.settings, journal) as yard:
                good = unfinished(yard.reader)

                def read(stream: str) -> tuple[Lane, str]:
                    if stream not in good:
                        raise LookupError(stream)
                    lane, _, cause = yard.reader.story(stream.partition("-")[2])
                    return lane, cause

                return await yard.engine.recover(
                    ["lane-damaged", *good],
                    read,
                    new_request(world.settings),
                )

    assert list(trio.run(recover_all)) == ["damaged"]
    assert world.state() == "quarantined"


# The version that is expected -------------------------------------------------------------------------------


@pytest.mark.parametrize("act", [removes, removes_and_reaps, forces_and_reaps])
def test_a_request_of_several_commands_expects_of_each_how_the_one_before_ended(home: Path, act: Act) -> None:
    world = prepared(home, overgrown if act is forces_and_reaps else dirty)
    expected = version(world)
    done = asked(world, lambda o: act(o, once(world, expected=expected)))
    assert name(done.lane) == ("quarantined" if act is removes else "reaped")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "act",
    [
        removes,
        restores,
        lambda o, r: putting_away.snapshot(o.yard, o.row(), r),
        lambda o, r: ending.reap(o.yard, o.row(), r),
    ],
)
def test_a_lane_that_has_changed_since_it_was_looked_at_is_left_as_it_is(home: Path, act: Act) -> None:
    world = prepared(home, dirty if act is removes else removed_clean)
    expected = version(world)
    asked(world, lambda o: o.snapshot())
    before = world.tags()
    with pytest.raises(VersionMismatch) as caught:
        asked(world, lambda o: act(o, once(world, expected=expected)))
    assert (caught.value.expected, caught.value.version) == (expected, expected + 2)
    assert world.tags() == before


def test_a_request_that_was_answered_is_answered_again_though_the_lane_has_another_version(
    home: Path,
) -> None:
    world = prepared(home, clean)
    expected = version(world)
    answers = [asked(world, lambda o: removes(o, once(world, expected=expected))) for _ in range(2)]
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("moment", "step"), [("after-append", "SnapshotLane"), ("before-append", "RemoveLane")]
)
def test_what_a_request_has_done_itself_is_no_change_that_it_did_not_expect(
    home: Path, moment: str, step: str
) -> None:
    world = prepared(home, dirty)
    expected = version(world)
    dies(world, lambda o: removes(o, once(world, expected=expected)), moment, step)
    assert version(world) > expected
    done = asked(world, lambda o: removes(o, once(world, expected=expected)))
    assert name(done.lane) == "quarantined"  # type: ignore[attr-defined]


def test_what_somebody_else_has_done_between_is_a_change(home: Path) -> None:
    world = prepared(home, dirty)
    expected = version(world)
    dies(world, lambda o: removes(o, once(world, expected=expected)), "before-append", "RemoveLane")
    asked(world, lambda o: o.snapshot())
    with pytest.raises(VersionMismatch):
        asked(world, lambda o: removes(o, once(world, expected=expected)))


# Removing and reaping in one request ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("moment", "step"),
    [
        ("after-append", "FreeBranch"),
        ("before-append", "ReapLane"),
        ("after-append", "ReapLane"),
        ("after-effect", "Destroy"),
    ],
)
def test_a_removal_that_was_to_reap_as_well_goes_on_to_it(home: Path, moment: str, step: str) -> None:
    world = prepared(home, dirty)
    dies(world, lambda o: removes_and_reaps(o, once(world)), moment, step)
    answers = [asked(world, lambda o: removes_and_reaps(o, once(world))) for _ in range(2)]
    assert name(answers[0].lane) == "reaped"  # type: ignore[attr-defined]
    assert answers[0] == answers[1]
    assert world.tags().count("lane.quarantined@1") == world.tags().count("lane.reaped@1") == 1


def test_what_was_put_away_anew_since_is_not_reaped(home: Path) -> None:
    world = prepared(home, dirty)
    dies(world, lambda o: removes_and_reaps(o, once(world)), "before-append", "ReapLane")

    async def back_and_away(opened: Open) -> None:
        await opened.restore()
        await opened.remove()

    asked(world, back_and_away)
    before = world.tags()
    done = asked(world, lambda o: removes_and_reaps(o, once(world)))
    assert name(done.lane) == "quarantined"  # type: ignore[attr-defined]
    assert done.row["edition"] == 1  # type: ignore[attr-defined]
    assert (world.state(), world.tags()) == ("quarantined", before)


async def test_a_reaping_that_is_refused_after_the_removal_says_both(world: World) -> None:
    def obstruct(moment: str, step: str) -> None:
        if (moment, step) == ("after-append", "FreeBranch"):  # somebody makes a socket where the lane rests
            os.mkfifo(os.path.join(resting(opened), b"pipe"))

    async with world.open(obstruct) as opened:
        await clean(opened)
        with pytest.raises(putting_away.ReapRefused) as caught:
            await removes_and_reaps(opened, once(world))
        assert (caught.value.slug, caught.value.refusal.code) == ("work", "cannot_hold")
        assert str(caught.value).startswith("work is in quarantine, but was not reaped: no snapshot was made")
        assert opened.state() == "quarantined"
        os.unlink(os.path.join(resting(opened), b"pipe"))
        done: Done = await removes_and_reaps(opened, once(world))
        assert name(done.lane) == "reaped"


async def test_a_removal_alone_leaves_the_lane_in_the_quarantine_though_it_is_asked_for_again(
    world: World,
) -> None:
    async with world.open() as opened:
        await clean(opened)
        write(os.path.join(place_of(opened), b"new"), b"new")
        first = await removes(opened, once(world))
        assert await removes(opened, once(world)) == first
        assert opened.state() == "quarantined"
