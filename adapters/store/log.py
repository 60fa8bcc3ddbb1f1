"""Reading the log in order, in pages: a cursor left open would keep the write-ahead log from being reset."""

from collections.abc import Iterator
from typing import cast

import apsw

from adapters.store.codec import Row, decode
from domain.envelope import Envelope

PAGE = 1000  # events read at a time
_ENDLESS = 1 << 62


def rows(
    connection: apsw.Connection,
    after: int = 0,
    to: int | None = None,
    stream: str | None = None,
    limit: int | None = None,
) -> Iterator[Row]:
    """Yields the rows after a position, up to and with another, of one stream or all, at most `limit`."""
    end = _ENDLESS if to is None else to
    left = _ENDLESS if limit is None else limit
    while left > 0:
        size = min(PAGE, left)
        if stream is None:
            cursor = connection.execute(_ALL, (after, end, size))
        else:
            cursor = connection.execute(_STREAM, (stream, after, end, size))
        page = cast("list[Row]", cursor.fetchall())
        yield from page
        if len(page) < size:
            return
        after = page[-1][0]
        left -= size


def events(
    connection: apsw.Connection,
    after: int = 0,
    to: int | None = None,
    stream: str | None = None,
    limit: int | None = None,
) -> Iterator[Envelope]:
    """Yields the events after a position; raises StoreUnreadable at one that cannot be decoded."""
    for row in rows(connection, after, to, stream, limit):
        yield decode(row)


_ALL = """
SELECT position, stream, version, type, state FROM event WHERE position > ? AND position <= ?
ORDER BY position LIMIT ?
"""
_STREAM = """
SELECT position, stream, version, type, state FROM event
WHERE stream = ? AND position > ? AND position <= ? ORDER BY position LIMIT ?
"""
