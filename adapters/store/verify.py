"""Is the log what was once written, and are the tables what it says? Every check names what it found."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import apsw
import msgspec

from adapters.store import chain, log, tables, views
from adapters.store.codec import StoreUnreadable, decode
from adapters.store.errors import translate
from adapters.store.fold import Fold
from domain import formats
from domain.envelope import Envelope
from projections.catalogue import IMMEDIATE, TABLES
from projections.table import Row, Table

SHOWN = 5  # differences of a table that are named


class Finding(msgspec.Struct, frozen=True):
    """Something that is not as it must be; `position` is 0 where it is no single event's."""

    check: str
    position: int
    message: str


def verify(connection: apsw.Connection, heads: Iterable[chain.Head] = ()) -> Iterator[Finding]:
    """Yields everything that is wrong with the store, from the file up to the tables."""
    with translate(), _one_moment(connection):
        yield from _integrity(connection)
        for problem in chain.walk(connection, heads):
            yield Finding("chain", problem.position, problem.why)
        yield from _Replay(connection).findings()


@contextmanager
def _one_moment(connection: apsw.Connection) -> Iterator[None]:
    """Keeps out of sight what is committed meanwhile: the tables must be those of the log that is read."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN DEFERRED")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def _integrity(connection: apsw.Connection) -> Iterator[Finding]:
    for (line,) in connection.execute("PRAGMA integrity_check").fetchall():
        if line != "ok":
            yield Finding("sqlite", 0, str(line))


class _Replay:
    """Reads every event, and holds each table against the log at the position that the table has come to."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._versions: dict[str, int] = {}
        self._fold: Fold | None = Fold()  # none as soon as it has a hole: it would say nothing of the tables
        self._due = {table: views.position(connection, table.name) for table in TABLES}
        self._others = views.are_anothers(connection)
        if self._others:
            self._fold, self._due = None, {}

    def findings(self) -> Iterator[Finding]:
        if self._others:
            yield Finding(
                "tables", 0, "another version has made the tables: 'laneyard rebuild' makes them anew"
            )
        yield from self._compare(0)
        position = 0
        for row in log.rows(self._connection):
            position, stream, version, *_ = row
            yield from self._order(position, stream, version)
            try:
                event = decode(row)
            except StoreUnreadable as error:
                self._fold = None
                yield Finding("decode", position, error.why)
                continue
            if (unknown := formats.unknown(event.fact)) is not None:
                yield Finding("decode", position, f"{unknown}: update Laneyard")
            yield from self._take(event)
        yield from self._ahead(position)

    def _order(self, position: int, stream: str, version: int) -> Iterator[Finding]:
        expected = self._versions.get(stream, 0) + 1
        if version != expected:
            yield Finding("versions", position, f"{stream} has version {version} where {expected} belongs")
        self._versions[stream] = version

    def _take(self, event: Envelope) -> Iterator[Finding]:
        if self._fold is None:
            return
        try:
            self._fold.take(event)
        except Exception as error:  # what has been tampered with may not fit what it was done to
            self._fold = None
            yield Finding("fold", event.position, f"{event.type} cannot be folded: {error!r}")
        yield from self._compare(event.position)

    def _compare(self, position: int) -> Iterator[Finding]:
        if self._fold is None:
            return
        for table, due in self._due.items():
            if due == position:
                yield from _differences(self._connection, table, self._fold)

    def _ahead(self, last: int) -> Iterator[Finding]:
        """Yields what no comparison has been made of, and tables that should not be behind."""
        for table, due in self._due.items():
            if due > last:
                yield Finding("tables", 0, f"{table.name} is at position {due}, beyond the log's end")
            elif due < last and table.name in _NEVER_BEHIND:
                yield Finding("tables", 0, f"{table.name} is at position {due}, behind the log's end")


def _differences(connection: apsw.Connection, table: Table, fold: Fold) -> Iterator[Finding]:
    if not tables.exists(connection, table):
        yield Finding("tables", 0, f"the table {table.name} is missing; 'laneyard rebuild' makes it anew")
        return
    found, expected = tables.read(connection, table), fold.table(table)
    if found != expected:
        yield from _named(table, set(found) - set(expected), "is not what the log says")
        yield from _named(table, set(expected) - set(found), "is missing")


def _named(table: Table, rows: set[Row], what: str) -> Iterator[Finding]:
    for row in sorted(rows, key=repr)[:SHOWN]:
        yield Finding("tables", 0, f"{table.name} {row[: table.keys]!r} {what}")


_NEVER_BEHIND = {each.TABLE.name for each in IMMEDIATE}
