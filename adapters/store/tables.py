"""Projections' tables in SQLite: their DDL, their rows one by one, and all of them at once."""

from collections.abc import Iterable
from typing import cast

import apsw

from projections.table import Change, Get, Key, Row, Table


def create(connection: apsw.Connection, table: Table, name: str | None = None) -> None:
    """Creates the table if it is not there."""
    columns = ", ".join(f"{column} {kind}" for column, kind in table.columns)
    key = ", ".join(table.names[: table.keys])
    rows = f"({columns}, PRIMARY KEY({key})) STRICT, WITHOUT ROWID"
    connection.execute(f"CREATE TABLE IF NOT EXISTS {name or table.name}{rows}")


def getter(connection: apsw.Connection, table: Table) -> Get:
    """Returns a function from a key to its row as it is now."""
    statement = f"SELECT * FROM {table.name} WHERE {_where(table)}"

    def get(key: Key) -> Row | None:
        return connection.execute(statement, key).fetchone()

    return get


def write(connection: apsw.Connection, table: Table, changes: Iterable[Change]) -> None:
    """Puts and drops rows."""
    for key, row in changes:
        if row is None:
            connection.execute(f"DELETE FROM {table.name} WHERE {_where(table)}", key)
        else:
            connection.execute(_insert(table.name, table), row)


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


def exists(connection: apsw.Connection, table: Table) -> bool:
    """Tells whether the table is there."""
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table.name,)).fetchone()
    return found is not None


def _insert(name: str, table: Table) -> str:
    return f"INSERT OR REPLACE INTO {name} VALUES ({', '.join('?' * len(table.columns))})"


def _where(table: Table) -> str:
    return " AND ".join(f"{column} IS ?" for column in table.names[: table.keys])
