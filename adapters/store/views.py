"""Keeping the projections' tables: catching up behind a position, and rebuilding all of them from the log."""

import apsw

from adapters.store import tables
from adapters.store.fold import Fold
from adapters.store.log import events
from projections.catalogue import EVENTUAL, IMMEDIATE, TABLES
from projections.table import Eventual

# A change of meaning is a change of name: a table of another version is not "tracked" and is rebuilt.
IMMEDIATELY = "tables@" + ".".join(str(each.VERSION) for each in IMMEDIATE)


def ensure(connection: apsw.Connection) -> None:
    """Rebuilds every table if those kept with the log are not at its end, or are of another version."""
    last = connection.execute("SELECT max(position) FROM event").get or 0
    known = lag(connection)
    if last and (known[IMMEDIATELY] != last or not all(known.values())):
        with connection:
            rebuild(connection)


def rebuild(connection: apsw.Connection) -> None:
    """Folds the log in memory and swaps the tables, within the caller's transaction."""
    fold = Fold().take_all(events(connection))
    for table in TABLES:
        tables.swap(connection, table, fold.table(table))
    connection.execute("DELETE FROM tracking")
    for name in (IMMEDIATELY, *(_name(each) for each in EVENTUAL)):
        track(connection, name, fold.position)


def catch_up(connection: apsw.Connection) -> None:
    """Brings the projections that follow behind a position to the end of the log, within a transaction."""
    for each in EVENTUAL:
        get = tables.getter(connection, each.TABLE)
        position = start = tracked(connection, _name(each))
        for event in events(connection, after=start):
            tables.write(connection, each.TABLE, list(each.apply(event, get)))
            position = event.position
        if position != start:
            track(connection, _name(each), position)


def tracked(connection: apsw.Connection, name: str) -> int:
    """Returns the position that a projection has come to, 0 before the first."""
    return int(connection.execute("SELECT position FROM tracking WHERE name = ?", (name,)).get or 0)


def track(connection: apsw.Connection, name: str, position: int) -> None:
    """Notes the position that a projection has come to."""
    connection.execute("INSERT OR REPLACE INTO tracking VALUES (?, ?)", (name, position))


def lag(connection: apsw.Connection) -> dict[str, int]:
    """Returns the position of every projection, by the name under which it is tracked."""
    names = (IMMEDIATELY, *(_name(each) for each in EVENTUAL))
    return {name: tracked(connection, name) for name in names}


def _name(each: Eventual) -> str:
    return f"{each.TABLE.name}@{each.VERSION}"
