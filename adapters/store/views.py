"""Keeping the projections' tables: catching up behind a position, and rebuilding all of them from the log."""

import zlib
from typing import cast

import apsw

from adapters.store import codec, tables
from adapters.store.connection import initialise, transaction
from adapters.store.fold import Fold
from adapters.store.log import events
from adapters.store.tables import Rows
from projections.catalogue import EVENTUAL, IMMEDIATE, TABLES
from projections.table import Eventual

# A change of meaning is a change of name: a table of another version is not "tracked" and is rebuilt.
IMMEDIATELY = "tables@" + ".".join(str(each.VERSION) for each in IMMEDIATE)
# As far as a program with exactly these tags has found no other one in the log.
_UNDERSTOOD = f"tags@{zlib.crc32(' '.join(sorted(codec.KNOWN)).encode()):08x}"


def ensure(connection: apsw.Connection) -> None:
    """Makes the tables what the log says, if they are missing, not at its end, or of another version.

    Raises StoreNewer, and changes nothing, if the log holds a kind of fact that this program does not know.
    """
    with transaction(connection):
        initialise(connection)
        connection.execute(_COMMANDS)
        last = connection.execute("SELECT max(position) FROM event").get or 0
        _understand(connection, last)
        if _are_stale(connection, last):
            rebuild(connection)


def rebuild(connection: apsw.Connection) -> None:
    """Folds the log in memory and swaps the tables, within the caller's transaction."""
    fold = Fold().take_all(events(connection))
    connection.execute(f"DELETE FROM tracking WHERE {_OURS}")
    for table in TABLES:
        tables.swap(connection, table, fold.table(table))
    for name in _names():
        track(connection, name, fold.position)


def catch_up(connection: apsw.Connection) -> None:
    """Brings the projections that follow behind a position to the end of the log, within a transaction."""
    for each in EVENTUAL:
        rows = Rows(connection, each.TABLE)
        position = start = tracked(connection, _name(each)) or 0
        for event in events(connection, after=start):
            rows.put(each.apply(event, rows.get))
            position = event.position
        if position != start:
            rows.keep()
            rows.write()
            track(connection, _name(each), position)


def tracked(connection: apsw.Connection, name: str) -> int | None:
    """Returns the position that a projection has come to, or None if it was never made."""
    return cast("int | None", connection.execute(_TRACKED, (name,)).get)


def track(connection: apsw.Connection, name: str, position: int) -> None:
    """Notes the position that a projection has come to."""
    connection.execute(_TRACK, (name, position))


def position(connection: apsw.Connection, table: str) -> int:
    """Returns the position that a table must be at, by what is tracked."""
    name = next((_name(each) for each in EVENTUAL if each.TABLE.name == table), IMMEDIATELY)
    return tracked(connection, name) or 0


def require_understood(connection: apsw.Connection) -> None:
    """Raises StoreNewer if the log holds a kind of fact that this program does not know.

    Looks only at what has come since a program with the same tags has opened the log to write.
    """
    if connection.execute(_BEGUN).get != 2:
        return
    understood = tracked(connection, _UNDERSTOOD) or 0
    for tag, first in connection.execute(_TAGS, (understood,)).fetchall():
        codec.require_known(cast("str", tag), cast("int", first))


def _understand(connection: apsw.Connection, last: int) -> None:
    if (tracked(connection, _UNDERSTOOD) or 0) < last:
        require_understood(connection)
        track(connection, _UNDERSTOOD, last)


def _are_stale(connection: apsw.Connection, last: int) -> bool:
    known = [tracked(connection, name) for name in _names()]
    return (
        known[0] != last
        or any(at is None or at > last for at in known)
        or not all(tables.exists(connection, table) for table in TABLES)
    )


def _names() -> tuple[str, ...]:
    return (IMMEDIATELY, *(_name(each) for each in EVENTUAL))


def _name(each: Eventual) -> str:
    return f"{each.TABLE.name}@{each.VERSION}"


_OURS = " OR ".join(f"name GLOB '{name}@*'" for name in ("tables", *(each.TABLE.name for each in EVENTUAL)))
_COMMANDS = """
CREATE TABLE IF NOT EXISTS command(
  id TEXT PRIMARY KEY, digest BLOB NOT NULL, stream TEXT NOT NULL, first INTEGER, last INTEGER
) STRICT, WITHOUT ROWID
"""
_BEGUN = "SELECT count(*) FROM sqlite_schema WHERE name IN ('event', 'tracking')"
_TRACKED = "SELECT position FROM tracking WHERE name = ?"
_TRACK = "INSERT INTO tracking VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET position = excluded.position"
_TAGS = "SELECT type, min(position) FROM event WHERE position > ? GROUP BY type ORDER BY 2"
