"""Open journals: the lanes to which the world owes something, which is what a start drives on."""

from collections.abc import Iterable

from domain.lane import pending
from domain.states import name
from projections.table import Change, Get, Happening, Table

TABLE = Table(
    "open_journal",
    (("stream", "TEXT"), ("state", "TEXT"), ("step", "TEXT"), ("since", "INTEGER")),
    keys=1,
)
VERSION = 1


def apply(happening: Happening, get: Get) -> Iterable[Change]:
    """Returns the journal's row while something is owed, and drops it afterwards."""
    stream, owed = happening.event.stream, pending(happening.after)
    before = get((stream,))
    if owed is None:
        if before is not None:
            yield (stream,), None
        return
    since = before[-1] if before else happening.event.position
    yield (stream,), (stream, name(happening.after), type(owed).__name__, since)
