"""Projections' tables in SQLite: their DDL, their rows as they will be, and all of their rows at once."""

from collections.abc import Iterable
from typing import cast

import apsw

from projections.table import Change, Key, Row, Table

REMEMBERED = 20_000  # rows of a table kept in memory


class Rows:
    """A table's rows, read once and changed in memory before they are written.

    A change is at first one command's (`put`), then everybody's (`keep`) or nobody's (`forget`). `write` puts
    what is kept into the caller's transaction, and `settle` says whether that has been committed.
    """

    def __init__(self, connection: apsw.Connection, table: Table) -> None:
        self._connection = connection
        key = _where(table)
        self._select = f"SELECT {', '.join(table.names)} FROM {table.name} WHERE {key}"
        self._delete = f"DELETE FROM {table.name} WHERE {key}"
        self._insert = _insert(table.name, table)
        self._own: dict[Key, Row | None] = {}
        self._kept: dict[Key, Row | None] = {}
        self._known: dict[Key, Row | None] = {}

    def get(self, key: Key) -> Row | None:
        """Returns a row as it will be."""
        if key in self._own:
            return self._own[key]
        if key in self._kept:
            return self._kept[key]
        if key in self._known:
            return self._known[key]
        row = cast("Row | None", self._connection.execute(self._select, key).fetchone())
        self._known[key] = row
        return row

    def put(self, changes: Iterable[Change]) -> None:
        """Changes rows for the command at hand."""
        self._own.update(changes)

    def keep(self) -> None:
        """Makes the command's changes part of what will be written."""
        if self._own:
            self._kept.update(self._own)
            self._own.clear()

    def forget(self) -> None:
        """Drops the command's changes."""
        self._own.clear()

    def write(self) -> None:
        """Writes what is kept, within the caller's transaction."""
        put = [row for row in self._kept.values() if row is not None]
        if put:
            self._connection.executemany(self._insert, put)
        if len(put) < len(self._kept):
            gone = [key for key, row in self._kept.items() if row is None]
            self._connection.executemany(self._delete, gone)

    def settle(self, *, committed: bool) -> None:
        """Takes what was kept for what the table holds, or drops it."""
        if committed:
            self._known.update(self._kept)
        self._kept.clear()
        self._own.clear()
        if len(self._known) > REMEMBERED:
            self._known.clear()

    def reread(self) -> None:
        """Drops all that was read: somebody else has written the table."""
        self._known.clear()


def create(connection: apsw.Connection, table: Table, name: str | None = None) -> None:
    """Creates the table if it is not there."""
    columns = ", ".join(f"{column} {kind}" for column, kind in table.columns)
    key = ", ".join(table.names[: table.keys])
    rows = f"({columns}, PRIMARY KEY({key})) STRICT, WITHOUT ROWID"
    connection.execute(f"CREATE TABLE IF NOT EXISTS {name or table.name}{rows}")


def swap(connection: apsw.Connection, table: Table, rows: Iterable[Row]) -> None:
    """Replaces the table by one with exactly these rows, within the caller's transaction."""
    fresh = f"{table.name}_fresh"
    connection.execute(f"DROP TABLE IF EXISTS {fresh}")
    create(connection, table, fresh)
    connection.executemany(_insert(fresh, table), rows)
    connection.execute(f"DROP TABLE IF EXISTS {table.name}")
    connection.execute(f"ALTER TABLE {fresh} RENAME TO {table.name}")


def read(connection: apsw.Connection, table: Table) -> list[Row]:
    """Returns every row, ordered by key."""
    order = ", ".join(table.names[: table.keys])
    cursor = connection.execute(f"SELECT {', '.join(table.names)} FROM {table.name} ORDER BY {order}")
    return cast("list[Row]", cursor.fetchall())


def one(connection: apsw.Connection, table: Table, key: Key) -> Row | None:
    """Returns the row with this key."""
    found = connection.execute(
        f"SELECT {', '.join(table.names)} FROM {table.name} WHERE {_where(table)}", key
    )
    return cast("Row | None", found.fetchone())


def exists(connection: apsw.Connection, table: Table) -> bool:
    """Tells whether the table is there."""
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table.name,)).fetchone()
    return found is not None


def _insert(name: str, table: Table) -> str:
    return f"INSERT OR REPLACE INTO {name} VALUES ({', '.join('?' * len(table.columns))})"


def _where(table: Table) -> str:
    return " AND ".join(f"{column} = ?" for column in table.names[: table.keys])
