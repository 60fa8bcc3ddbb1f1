"""Appending to the log: the only place where events are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw

from adapters.store.chain import GENESIS, Head, link
from adapters.store.errors import translate

if TYPE_CHECKING:
    from collections.abc import Sequence

Row = tuple[str, int, str, bytes]  # stream, version, type, state


def append(
    connection: apsw.Connection, rows: Sequence[Row], head: Head | None = None
) -> tuple[list[int], Head]:
    """Appends rows of (stream, version, type, state) and returns their positions and the new head.

    Must be called within a write transaction. Raises `IntegrityError` for a version that is taken, and may
    leave some rows in the transaction: the caller rolls back to its savepoint and keeps the head it had.
    """
    last, previous = head or read_head(connection)
    position = last
    records = []
    for stream, version, type_, state in rows:
        position += 1
        previous = link(previous, position, stream, version, type_, state)
        records.append((position, stream, version, type_, state, previous))
    try:
        connection.executemany(_INSERT, records)
    except apsw.Error:
        with translate():  # only now: entering it for each append would cost a tenth of the append
            raise
    return list(range(last + 1, position + 1)), Head(position, previous)


def read_head(connection: apsw.Connection) -> Head:
    """Returns the last position ever given, even if its row is gone, and the hash of the last row."""
    with translate():
        issued, last, previous = connection.execute(_HEAD).get
    return Head(max(issued or 0, last or 0), previous or GENESIS)


_INSERT = "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)"
_HEAD = """
SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'event'),
       (SELECT max(position) FROM event),
       (SELECT hash FROM event ORDER BY position DESC LIMIT 1)
"""
