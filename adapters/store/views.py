"""Keeping the projections' tables: catching up behind a position, and rebuilding all of them from the log."""

import zlib
from typing import cast

import apsw

from adapters.store import codec, tables
from adapters.store.connection import initialise, transaction
from adapters.store.fold import Fold
from adapters.store.log import events
from adapters.store.tables import Rows
from domain import formats
from domain.envelope import LANE_STREAM
from projections.catalogue import EVENTUAL, IMMEDIATE, TABLES
from projections.table import Eventual

# What this program understands of a log: another one may make other tables of the same log.
_WORDS = (*sorted(codec.KNOWN), *(f"{what} {known}" for what, known in formats.JOURNALS.values()))
_KNOWS = f"{zlib.crc32(' '.join(_WORDS).encode()):08x}"
# A change of meaning is a change of name: a table of another version is not "tracked" and is rebuilt.
IMMEDIATELY = "tables@" + ".".join((*(str(each.VERSION) for each in IMMEDIATE), _KNOWS))
# As far as a program with exactly these tags has found no other one in a stream of no lane.
_UNDERSTOOD = f"tags@{_KNOWS}"


def ensure(connection: apsw.Connection) -> None:
    """Makes the tables what the log says, if they are missing, not at its end, or of another version.

    A kind of fact that this program does not know blocks its lane. Raises StoreNewer, and changes nothing, if
    it is no lane's.
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


def are_ours(connection: apsw.Connection) -> bool:
    """Tells whether the tables are what this program makes of the whole log: a newer one understands more."""
    return has_log(connection) and bool(connection.execute(_CURRENT, (IMMEDIATELY,)).get)


def are_anothers(connection: apsw.Connection) -> bool:
    """Tells whether the tables are what another version of this program makes of the log."""
    made = has_log(connection) and connection.execute(_MADE).get
    return bool(made) and tracked(connection, IMMEDIATELY) is None


def has_log(connection: apsw.Connection) -> bool:
    """Tells whether there is a log yet."""
    return bool(connection.execute(_BEGUN).get == 2)


def require_understood(connection: apsw.Connection) -> None:
    """Raises StoreNewer if a stream of no lane holds a kind of fact that this program does not know.

    Looks only at what has come since a program with the same tags has opened the log to write.
    """
    if not has_log(connection):
        return
    understood = tracked(connection, _UNDERSTOOD) or 0
    for tag, first in connection.execute(_TAGS, (understood,)).fetchall():
        codec.require_known(cast("str", tag), cast("int", first))


def understand_also(connection: apsw.Connection, before: int, last: int) -> None:
    """Notes that all that a writer has appended after a position is understood, if all before was."""
    connection.execute(_GO_ON, (last, _UNDERSTOOD, before))


def _understand(connection: apsw.Connection, last: int) -> None:
    known = tracked(connection, _UNDERSTOOD)
    if known is None or known < last:
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
_MADE = "SELECT count(*) FROM tracking WHERE name GLOB 'tables@*'"
_CURRENT = """
SELECT position = ifnull((SELECT max(position) FROM event), 0) FROM tracking WHERE name = ?
"""
_TRACKED = "SELECT position FROM tracking WHERE name = ?"
_TRACK = "INSERT INTO tracking VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET position = excluded.position"
_GO_ON = "UPDATE tracking SET position = ? WHERE name = ? AND position = ?"
_TAGS = f"""
SELECT type, min(position) FROM event WHERE position > ? AND stream NOT GLOB '{LANE_STREAM}*'
GROUP BY type ORDER BY 2
"""
