"""The journal timed against bare SQLite inserts of the same bytes, in turns, and the folding of a log."""

from __future__ import annotations

import tempfile
from collections import defaultdict, deque
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from adapters.store import codec
from adapters.store.connection import connect, initialise
from adapters.store.fold import Fold
from adapters.store.journal import Journal, Promise
from domain.lane import INITIAL, evolve
from tests.adapters.store.lives import interleaved, noon, rows

if TYPE_CHECKING:
    from collections.abc import Callable

    Pair = tuple[float, float]  # events a second: the journal's, and those of bare inserts
    Event = tuple[int, str, int, str, bytes, bytes]

WAITING = (1, 16, 64)  # commands that wait for their answer at the same time
AT_ONCE = 64  # lanes that are lived at the same time
LONG = 6_250  # lives of a log of a hundred thousand events


def journalled(directory: str, lanes: int, rounds: int) -> dict[int, list[Pair]]:
    """Returns the pairs of writing the lives of so many lanes in a directory, by what waits."""
    pairs: dict[int, list[Pair]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="log-", dir=directory) as scratch:
        events = _sample(Path(scratch) / "sample.db", lanes)
        for number in range(rounds):
            for waiting in WAITING:
                place = Path(scratch) / f"{number}-{waiting}"
                place.mkdir()
                pairs[waiting].append(_pair(place, lanes, waiting, events, turn=number % 2 == 1))
    return dict(pairs)


def _sample(path: Path, lanes: int) -> list[Event]:
    """Returns the rows that the journal writes for these lives."""
    _appended(path, lanes, AT_ONCE)
    with closing(connect(bytes(path))) as connection:
        return list(connection.execute("SELECT * FROM event"))


def _pair(place: Path, lanes: int, waiting: int, events: list[Event], *, turn: bool) -> Pair:
    if turn:
        bare = _inserted(place / "bare.db", events)
        return _appended(place / "journal.db", lanes, waiting), bare
    return _appended(place / "journal.db", lanes, waiting), _inserted(place / "bare.db", events)


def _appended(path: Path, lanes: int, waiting: int) -> float:
    """Returns how many events a second the journal takes while so many commands wait."""
    requests, flight = list(interleaved(lanes, AT_ONCE)), deque[Promise]()
    with closing(Journal(bytes(path), noon)) as journal:
        start = perf_counter()
        for request in requests:
            if len(flight) == waiting:
                flight.popleft().result()
            flight.append(journal.submit(request))
        while flight:
            flight.popleft().result()
        return len(requests) / (perf_counter() - start)


def _inserted(path: Path, events: list[Event]) -> float:
    """Returns how many events a second SQLite takes, one to a transaction and nothing else."""
    with closing(connect(bytes(path))) as connection:
        initialise(connection)
        start = perf_counter()
        for event in events:
            connection.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", event)
        return len(events) / (perf_counter() - start)


def folded(rounds: int) -> dict[str, list[float]]:
    """Returns the microseconds that an event of a long log takes to be folded, into lanes and into tables."""
    log = list(rows(LONG))
    return {
        name: [_timed(fold, log) / len(log) * 1e6 for _ in range(rounds)]
        for name, fold in (("lanes", _into_lanes), ("tables", _into_tables))
    }


def _timed(fold: Callable[[list[codec.Row]], object], log: list[codec.Row]) -> float:
    start = perf_counter()
    fold(log)
    return perf_counter() - start


def _into_lanes(log: list[codec.Row]) -> None:
    lanes = dict.fromkeys([""], INITIAL)
    for event in map(codec.decode, log):
        lanes[event.stream] = evolve(lanes.get(event.stream, INITIAL), event.fact)


def _into_tables(log: list[codec.Row]) -> None:
    Fold().take_all(map(codec.decode, log))
