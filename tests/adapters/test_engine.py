"""What failed and may pass is tried again after a pause, in which nothing is held."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import trio
from msgspec.structs import replace

from adapters.clock import now
from adapters.engine import Engine, Request
from adapters.store.journal import Journal
from adapters.store.reader import Reader
from domain import effects
from domain.commands import AdoptLane, RemoveLane
from domain.effects import NotDone
from domain.envelope import Actor, stream_of
from domain.lane import pending
from domain.retries import ATTEMPTS
from domain.states import Active, Leaving, Quarantined
from tests.domain.facts import ADMIN, CLEAN, COMMON, LANE, PLACE, RESTING
from tests.domain.worlds import answers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from domain.effects import Effect, Outcome
    from domain.states import Lane

OTHER = "1f6a0c1e-5a40-4c7b-9d53-0f5f4f1f6b02"
TIMES = (0.0, 0.1, 0.5, 2.1)  # seconds after the first attempt at which each is made


def request() -> Request:
    return Request(id="once", actor=Actor(os.getuid(), os.getpid(), "test"))


class Disturbed:
    """A world in which one kind of step of one lane does not take for a while; it notes when it was tried."""

    def __init__(self, step: type[Effect], failures: int, *, transient: bool = True) -> None:
        self.step = step
        self.failures = failures
        self.transient = transient
        self.tried: list[float] = []

    async def perform(self, effect: Effect) -> Outcome:
        """Answers as the best of worlds does, unless it is disturbed."""
        if not isinstance(effect, self.step) or OTHER in str(effect):
            return answers(effect)[0]
        self.tried.append(trio.current_time())
        if len(self.tried) > self.failures:
            return answers(effect)[0]
        return NotDone(step="step", code="locked", reason="held", transient=self.transient)

    async def settle(self, effect: Effect) -> None:
        """Has nothing to make durable."""

    @property
    def pattern(self) -> list[float]:
        """Returns when each attempt was made, in seconds after the first."""
        return [round(time - self.tried[0], 3) for time in self.tried]


@contextmanager
def store(tmp_path: Path) -> Iterator[tuple[Journal, Reader]]:
    path = bytes(tmp_path / "journal.db")
    journal = Journal(path, now)
    try:
        with Reader(path) as reader:
            yield journal, reader
    finally:
        journal.close()


async def adopt(engine: Engine, lane: str = LANE) -> None:
    place = replace(PLACE, path=f"/srv/{lane}", admin=f"{ADMIN}/{lane}")
    await engine.handle(
        lane,
        AdoptLane(
            lane=lane,
            repository=COMMON,
            name=lane,
            slug=lane,
            kind="external",
            place=place,
            branch=f"refs/heads/{lane}",
            head=None,
        ),
        request(),
    )


async def remove(engine: Engine, lane: str = LANE) -> Lane:
    command = RemoveLane(resting=f"{RESTING}/{lane}", seen=CLEAN)
    return (await engine.handle(lane, command, request())).lane


@pytest.mark.parametrize("failures", range(ATTEMPTS + 1))
async def test_a_step_is_tried_again_after_growing_pauses(
    failures: int, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    world = Disturbed(effects.Move, failures)
    with store(tmp_path) as (journal, reader):
        engine = Engine(journal, world)
        await adopt(engine)
        lane = await remove(engine)
        told = [event.type for event in reader.events(stream=stream_of(LANE))]
    assert world.pattern == list(TIMES[: min(failures + 1, ATTEMPTS)])
    assert told.count("removal.step-failed@1") == min(failures, ATTEMPTS)
    assert isinstance(lane, Quarantined if failures < ATTEMPTS else Active)
    assert ("removal.abandoned@1" in told) == (failures == ATTEMPTS)


async def test_what_will_not_pass_is_not_tried_again(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    world, begun = Disturbed(effects.Move, 1, transient=False), trio.current_time()
    with store(tmp_path) as (journal, _):
        engine = Engine(journal, world)
        await adopt(engine)
        assert isinstance(await remove(engine), Active)
    assert (world.pattern, trio.current_time()) == ([0.0], begun)


async def test_others_are_not_kept_waiting_by_a_pause(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    world, paused, begun = Disturbed(effects.Lock, 2), trio.Event(), trio.current_time()

    def notice(moment: str, step: str) -> None:
        if (moment, step) == ("after-append", "Lock"):
            paused.set()

    with store(tmp_path) as (journal, reader):
        engine = Engine(journal, world, notice)
        await adopt(engine)
        await adopt(engine, OTHER)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(remove, engine)
            await paused.wait()
            assert isinstance(await remove(engine, OTHER), Quarantined)
            assert trio.current_time() == begun
            assert isinstance(reader.lane(LANE)[0], Leaving)
            mock_clock.autojump_threshold = 0
        assert isinstance(reader.lane(LANE)[0], Quarantined)


async def test_who_stops_in_a_pause_leaves_the_journal_open_and_the_next_start_counts_on(
    tmp_path: Path, mock_clock: trio.testing.MockClock
) -> None:
    world, scope = Disturbed(effects.Move, 1000), trio.CancelScope()

    def notice(moment: str, step: str) -> None:
        if (moment, step) == ("after-append", "Move"):
            scope.cancel()

    for attempt in range(1, ATTEMPTS + 1):
        with store(tmp_path) as (journal, reader):
            engine = Engine(journal, world, notice)
            if attempt == 1:
                await adopt(engine)
            with trio.CancelScope() as scope:
                if attempt == 1:
                    await remove(engine)
                else:
                    await engine.drive(stream_of(LANE), reader.lane(LANE)[0], request())
            lane, _ = reader.lane(LANE)
            assert len(world.tried) == attempt
            assert scope.cancelled_caught == (attempt < ATTEMPTS)
            assert (pending(lane) is not None) == (attempt < ATTEMPTS)
    assert isinstance(lane, Active)
    with store(tmp_path) as (_, reader):
        assert [*reader.events(stream=stream_of(LANE))][-1].type == "removal.abandoned@1"
