"""The hash chain: the only place that says how one event is bound to the one before it."""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import apsw

    _Row = tuple[int, str, int, str, bytes, bytes]

GENESIS = bytes(32)


class Head(NamedTuple):
    """The last position of a log and its hash: what an auditor exports, and what the next event builds on."""

    position: int
    hash: bytes


class Problem(NamedTuple):
    """A place where the log is not what was once written."""

    position: int
    why: str


def link(previous: bytes, position: int, stream: str, version: int, type: str, state: bytes) -> bytes:  # noqa: A002
    """Returns the hash of one event, bound to the `previous` event's hash of 32 bytes."""
    name, tag = stream.encode(), type.encode()
    frame = _FRAME(position, version, len(name), len(tag), len(state))
    return blake2b(b"".join((previous, frame, name, tag, state)), digest_size=32).digest()


def walk(connection: apsw.Connection, heads: Iterable[Head] = ()) -> Iterator[Problem]:
    """Yields every problem of the log in order of position, then every exported head that it contradicts.

    A tail cut off together with its `sqlite_sequence`, or a chain computed anew, shows only against `heads`.
    """
    last = Head(0, GENESIS)
    issued = _issued(connection)  # before the pages: a writer may append while we walk
    for position, stream, version, type_, state, found in _rows(connection):
        if position != last.position + 1:
            yield Problem(last.position + 1, f"no events from {last.position + 1} to {position - 1}")
        if link(last.hash, position, stream, version, type_, state) != found:
            yield Problem(position, "the hash does not follow from the event and the one before it")
        last = Head(position, found)
    if last.position < issued:
        yield Problem(last.position + 1, f"no events from {last.position + 1} to {issued}")
    yield from _contradicted(connection, heads)


def _rows(connection: apsw.Connection) -> Iterator[_Row]:
    # Pages, because a cursor left open would keep the write-ahead log from being reset.
    after = 0
    while page := cast("list[_Row]", connection.execute(_PAGE, (after,)).fetchall()):
        yield from page
        after = page[-1][0]


def _issued(connection: apsw.Connection) -> int:
    return int(connection.execute(_ISSUED).get or 0)


def _contradicted(connection: apsw.Connection, heads: Iterable[Head]) -> Iterator[Problem]:
    for head in heads:
        if (connection.execute(_HASH, (head.position,)).get or GENESIS) != head.hash:
            yield Problem(head.position, "an exported head says otherwise")


# Fixed widths before the fields, so that no two events share a framing; the previous hash is fixed too.
_FRAME = Struct(">QQQQQ").pack

_PAGE = """
SELECT position, stream, version, type, state, hash FROM event WHERE position > ? ORDER BY position LIMIT 1000
"""
_ISSUED = "SELECT seq FROM sqlite_sequence WHERE name = 'event'"
_HASH = "SELECT hash FROM event WHERE position = ?"
