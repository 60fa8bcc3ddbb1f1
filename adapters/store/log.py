"""Reading the log in order, in pages: a cursor left open would keep the write-ahead log from being reset."""

from collections.abc import Iterator
from typing import cast

import apsw

from adapters.store.codec import Row, decode
from domain.envelope import Envelope

PAGE = 1000  # events read at a time


def rows(
    connection: apsw.Connection, after: int = 0, to: int | None = None, stream: str | None = None
) -> Iterator[Row]:
    """Yields the rows after a position, up to and with another, of one stream or all."""
    end = (1 << 62) if to is None else to
    while True:
        if stream is None:
            cursor = connection.execute(_ALL, (after, end, PAGE))
        else:
            cursor = connection.execute(_STREAM, (stream, after, end, PAGE))
        page = cast("list[Row]", cursor.fetchall())
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1][0]


def events(
    connection: apsw.Connection, after: int = 0, to: int | None = None, stream: str | None = None
) -> Iterator[Envelope]:
    """Yields the events after a position; raises StoreUnreadable at one that cannot be decoded."""
    for row in rows(connection, after, to, stream):
        yield decode(row)


_ALL = """
SELECT position, stream, version, type, state FROM event WHERE position > ? AND position <= ?
ORDER BY position LIMIT ?
"""
_STREAM = """
SELECT position, stream, version, type, state FROM event
WHERE stream = ? AND position > ? AND position <= ? ORDER BY position LIMIT ?
"""
