"""How long a start takes until the service is ready: with more open journals, and with a longer history."""

from __future__ import annotations

from contextlib import closing
from time import perf_counter
from typing import TYPE_CHECKING

import trio

from adapters.cli.engine import waiting
from adapters.config import load
from adapters.store import views
from adapters.store.append import append
from adapters.store.codec import encode
from adapters.store.connection import connect, initialise, transaction
from adapters.store.reader import Reader
from adapters.wiring import open_yard
from domain.envelope import stream_of
from tests.adapters.store.lives import ACTOR, NOON, life
from tests.bench.ours import Lane
from tests.soak.house import House

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from apsw import Connection

    from adapters.config import Settings
    from adapters.engine import Performer
    from adapters.store.append import Row
    from domain.effects import Effect, Outcome

HISTORIES = (2_000, 20_000, 200_000)  # events
JOURNALS = (0, 10, 50, 100)  # that are open
LANES = 500  # that are there, besides those that have been reaped
PHASES = 3  # effects that are done before everything ends; each lane ends after another number of them
CREATED = 3  # events of a life until the lane is there
AT_ONCE = 20_000  # events that are written in one transaction

Cell = tuple[int, int]  # events, open journals


def recovered(
    home: Path,
    histories: tuple[int, ...] = HISTORIES,
    journals: tuple[int, ...] = JOURNALS,
    lanes: int = LANES,
    rounds: int = 3,
) -> dict[Cell, list[float]]:
    """Returns the seconds from the start of a process until it is ready, by history and open journals."""
    spans: dict[Cell, list[float]] = {}
    for events in histories:
        place = home / str(events)
        place.mkdir(parents=True)
        scene = Interrupted(House(place), max(journals), lanes, events)
        for _ in range(rounds):
            for count in journals:
                scene.interrupt(count)
                spans.setdefault((events, count), []).append(scene.start())
    return spans


class Interrupted:
    """A house with a log of so many events, and lanes that are left in the middle of what was asked for."""

    def __init__(self, house: House, most: int, lanes: int, events: int) -> None:
        """At most `most` lanes can be left so; `lanes` are there, most of them in the log only."""
        self.house = house
        self._names = [f"open-{number}" for number in range(most)]
        self._turn = 0
        house.state.mkdir(mode=0o700, exist_ok=True)
        write_history(house.store, events, max(0, lanes - most))
        trio.run(self._create)

    @property
    def settings(self) -> Settings:
        """Returns what the wiring needs."""
        return waiting(load(str(self.house.state), self.house.environment), 10.0)

    async def _create(self) -> None:
        async with open_yard(self.settings) as (yard, _):
            for name in self._names:
                await Lane(yard, self.house.roots[0], name).create()

    def interrupt(self, count: int) -> None:
        """Leaves so many journals open, of removals and of restores, after no effect, one, or more."""
        trio.run(self._interrupt, count)
        with Reader(self.house.store) as reader:
            assert len(reader.open_journals()) == count

    async def _interrupt(self, count: int) -> None:
        self._turn += 1
        ended: list[Ending] = []

        def ending(performer: Performer) -> Ending:
            ended.append(Ending(performer))
            return ended[-1]

        async with open_yard(self.settings, wrap=ending) as (yard, _):
            for number, name in enumerate(self._names[:count]):
                lane = Lane(yard, self.house.roots[0], name)
                ended[0].left = (number + self._turn) % PHASES
                try:
                    await (lane.remove() if lane.state == "active" else lane.restore())
                except Ended:
                    continue

    def start(self) -> float:
        """Returns the seconds until a new process is ready, after which nothing is owed any more."""
        begun = perf_counter()
        with self.house.serving() as running:
            span = perf_counter() - begun
            with Reader(self.house.store) as reader:
                assert reader.open_journals() == []
            assert running.stop() == 0
        return span


class Ended(BaseException):
    """Everything ends here, as far as the lane can tell."""


class Ending:
    """Performs so many effects, and then no more."""

    def __init__(self, performer: Performer) -> None:
        self._performer, self.left = performer, 1 << 30

    async def perform(self, effect: Effect) -> Outcome:
        """Performs it, or ends everything."""
        if self.left == 0:
            raise Ended
        self.left -= 1
        return await self._performer.perform(effect)

    async def settle(self, effect: Effect) -> None:
        """Does what the real one does."""
        await self._performer.settle(effect)


def write_history(store: bytes, events: int, lanes: int) -> None:
    """Writes a log of at least so many events: of lanes that are there, then of others, whole lives."""
    with closing(connect(store)) as connection:
        with transaction(connection):
            initialise(connection)
        rows: list[Row] = []
        for number, row in enumerate(_events(lanes)):
            if number >= max(events, CREATED * lanes) and row[1] == 1:
                break
            rows.append(row)
            if len(rows) >= AT_ONCE:
                _append(connection, rows)
        _append(connection, rows)
        views.ensure(connection)


def _append(connection: Connection, rows: list[Row]) -> None:
    with transaction(connection):
        append(connection, rows)
    rows.clear()


def _events(lanes: int) -> Iterator[Row]:
    number = 0
    while True:
        name = f"past-{number}"
        facts = life(name)[:CREATED] if number < lanes else life(name)
        for version, fact in enumerate(facts, 1):
            yield stream_of(name), version, fact.TAG, encode(fact, NOON, ACTOR, f"cause-{number}")
        number += 1
