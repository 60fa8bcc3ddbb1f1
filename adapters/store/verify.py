"""Is the log what was once written, and are the tables what it says? Every check names what it found."""

from collections.abc import Iterable, Iterator
from typing import cast

import apsw
import msgspec

from adapters.store import chain, log, tables, views
from adapters.store.codec import StoreUnreadable, decode
from adapters.store.connection import translate
from adapters.store.fold import Fold
from projections.catalogue import IMMEDIATE, TABLES
from projections.table import Row, Table


class Finding(msgspec.Struct, frozen=True):
    """Something that is not as it must be; `position` is 0 where it is no single event's."""

    check: str
    position: int
    message: str


def verify(connection: apsw.Connection, heads: Iterable[chain.Head] = ()) -> Iterator[Finding]:
    """Yields everything that is wrong with the store, from the file up to the tables."""
    with translate():
        yield from _integrity(connection)
        for problem in chain.walk(connection, heads):
            yield Finding("chain", problem.position, problem.why)
        yield from _versions(connection)
        fold = Fold()
        unreadable = list(_decode(connection, fold))
        yield from unreadable
        if not unreadable:  # a fold with holes says nothing of the tables
            yield from _tables(connection, fold)


def _integrity(connection: apsw.Connection) -> Iterator[Finding]:
    for (line,) in connection.execute("PRAGMA integrity_check").fetchall():
        if line != "ok":
            yield Finding("sqlite", 0, str(line))


def _versions(connection: apsw.Connection) -> Iterator[Finding]:
    for stream, count, last, position in connection.execute(_VERSIONS).fetchall():
        message = f"{stream} has {count} events but ends at version {last}"
        yield Finding("versions", cast("int", position), message)


def _decode(connection: apsw.Connection, fold: Fold) -> Iterator[Finding]:
    for row in log.rows(connection):
        try:
            fold.take(decode(row))
        except StoreUnreadable as error:
            yield Finding("decode", error.position, error.why)


def _tables(connection: apsw.Connection, fold: Fold) -> Iterator[Finding]:
    known = views.lag(connection)
    immediate = {each.TABLE.name for each in IMMEDIATE}
    behind = {table for table in TABLES if table.name not in immediate and _lags(known, table, fold)}
    for table in TABLES:
        if not tables.exists(connection, table):
            yield Finding("tables", 0, f"the table {table.name} is missing; 'laneyard rebuild' makes it anew")
        elif table not in behind:
            yield from _differences(table, tables.read(connection, table), fold.table(table))


def _lags(known: dict[str, int], table: Table, fold: Fold) -> bool:
    """Tells whether a projection that follows behind has some way to go, which is no fault."""
    return any(name.startswith(f"{table.name}@") and at < fold.position for name, at in known.items())


def _differences(table: Table, found: list[Row], expected: list[Row]) -> Iterator[Finding]:
    if found == expected:
        return
    stray = [row for row in found if row not in set(expected)]
    absent = [row for row in expected if row not in set(found)]
    for what, rows in (("is not what the log says", stray), ("is missing", absent)):
        for row in rows[:5]:
            yield Finding("tables", 0, f"{table.name} {row[: table.keys]!r} {what}")


_VERSIONS = """
SELECT stream, count(*), max(version), max(position) FROM event
GROUP BY stream HAVING count(*) <> max(version) OR min(version) <> 1
"""
