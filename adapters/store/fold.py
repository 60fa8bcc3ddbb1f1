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

    def take(self, event: Envelope) -> None:
        """Adds the next event."""
        before = self.lanes.get(event.stream, INITIAL)
        after = evolve(before, event.fact)
        happening = Happening(event, before, after)
        for immediate in IMMEDIATE:
            rows = self.rows[immediate.TABLE.name]
            _change(rows, immediate.apply(happening, rows.get))
        for eventual in EVENTUAL:
            rows = self.rows[eventual.TABLE.name]
            _change(rows, eventual.apply(event, rows.get))
        self.lanes[event.stream] = after
        self.position = event.position

    def take_all(self, events: Iterable[Envelope]) -> "Fold":
        """Adds all the events and returns itself."""
        for event in events:
            self.take(event)
        return self

    def table(self, table: Table) -> list[Row]:
        """Returns a projection's rows, ordered by key."""
        rows = self.rows[table.name]
        return [rows[key] for key in sorted(rows, key=_order)]


def _change(rows: dict[Key, Row], changes: Iterable[Change]) -> None:
    for key, row in changes:
        if row is None:
            rows.pop(key, None)
        else:
            rows[key] = row


def _order(key: Key) -> tuple[tuple[bool, object], ...]:
    """Orders keys as SQLite does: NULL first, text by its UTF-8 bytes."""
    return tuple((part is not None, part.encode() if isinstance(part, str) else part or 0) for part in key)
