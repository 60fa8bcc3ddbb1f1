"""Folding the log in memory: what every table is, by definition. Rebuild, verify and time travel use it."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from domain.envelope import Envelope
from domain.lane import INITIAL, evolve
from projections.catalogue import EVENTUAL, IMMEDIATE, TABLES
from projections.table import Change, Happening, Key, Row, Table

if TYPE_CHECKING:
    from domain.states import Lane


class Fold:
    """The lanes and every projection's rows after the events that were taken, in order."""

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {}
        self.position = 0
        self.rows: dict[str, dict[Key, Row]] = {table.name: {} for table in TABLES}
        self._immediate = [(each.apply, self.rows[each.TABLE.name]) for each in IMMEDIATE]
        self._eventual = [(each.apply, self.rows[each.TABLE.name]) for each in EVENTUAL]

    def take(self, event: Envelope) -> None:
        """Adds the next event."""
        before = self.lanes.get(event.stream, INITIAL)
        after = evolve(before, event.fact)
        happening = Happening(event, before, after)
        for apply, rows in self._immediate:
            if changes := apply(happening, rows.get):
                _change(rows, changes)
        for follow, rows in self._eventual:
            if changes := follow(event, rows.get):
                _change(rows, changes)
        self.lanes[event.stream] = after
        self.position = event.position

    def take_all(self, events: Iterable[Envelope]) -> "Fold":
        """Adds all the events and returns itself."""
        for event in events:
            self.take(event)
        return self

    def table(self, table: Table) -> list[Row]:
        """Returns a projection's rows, ordered by key as SQLite orders them."""
        # Keys of one table have the same types throughout, and UTF-8 keeps the order of code points.
        return [row for _, row in sorted(self.rows[table.name].items())]


def _change(rows: dict[Key, Row], changes: Iterable[Change]) -> None:
    for key, row in changes:
        if row is None:
            rows.pop(key, None)
        else:
            rows[key] = row
