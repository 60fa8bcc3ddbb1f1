"""Open journals: the lanes to which the world owes something, which is what a start drives on."""

from collections.abc import Iterable

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
    key = (happening.event.stream,)
    before = get(key)
    if happening.owed is None:
        return () if before is None else ((key, None),)
    since = before[-1] if before else happening.event.position
    return ((key, (*key, name(happening.after), happening.owed, since)),)
