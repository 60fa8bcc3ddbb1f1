"""A subscription as bytes: server-sent events, lines of JSON, or the lines that people read.

A batch is joined to few chunks, so that ten thousand events are not ten thousand sends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import trio

from adapters.api.events import InvalidPosition, event_text
from adapters.service.stream.tail import Item

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adapters.service.stream.tail import Subscription

HEARTBEAT = 15.0  # seconds without an event after which a stream shows that it lives
CHUNK = 65536  # bytes from which on a chunk is sent; it is longer by at most one event
DIGITS = 18  # of the longest position: SQLite's are below 2**63


class Form(msgspec.Struct, frozen=True):
    """How a stream begins, how an event looks, and what says that nothing more came up to a position."""

    opening: bytes
    frame: Callable[[Item], bytes]
    heartbeat: Callable[[int], bytes]


class Stream:
    """The chunks of a stream, none of them empty; it ends with its subscription."""

    def __init__(self, subscription: Subscription, form: Form, heartbeat: float = HEARTBEAT) -> None:
        self._subscription = subscription
        self._form = form
        self._heartbeat = heartbeat
        self._ready: Iterator[bytes] = iter((form.opening,))

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> bytes:
        """Waits for the next chunk."""
        while True:
            if chunk := next(self._ready, b""):
                return chunk
            self._ready = await self._more()

    async def _more(self) -> Iterator[bytes]:
        with trio.move_on_after(self._heartbeat):
            batch = await anext(self._subscription)
            return joined(map(self._form.frame, batch))
        return iter((self._form.heartbeat(self._subscription.position),))


def sse(subscription: Subscription, heartbeat: float = HEARTBEAT) -> Stream:
    """Returns server-sent events; a heartbeat is a comment with the position to resume after."""
    form = Form(b"retry: 1000\n\n", _server_sent, lambda position: b": %d\n\n" % position)
    return Stream(subscription, form, heartbeat)


def ndjson(subscription: Subscription, heartbeat: float = HEARTBEAT) -> Stream:
    """Returns one event a line as JSON; a heartbeat is an empty line."""
    return Stream(subscription, Form(b"", lambda item: item.json + b"\n", lambda _: b"\n"), heartbeat)


def text(subscription: Subscription, slugs: Mapping[str, str], heartbeat: float = HEARTBEAT) -> Stream:
    """Returns the lines of the log as people read them; a heartbeat is an empty line."""
    form = Form(b"", lambda item: f"{event_text(item.event, slugs)}\n".encode(), lambda _: b"\n")
    return Stream(subscription, form, heartbeat)


def joined(frames: Iterable[bytes], size: int = CHUNK) -> Iterator[bytes]:
    """Yields the frames joined to chunks, each ended by the frame with which it reaches the size."""
    chunk = bytearray()
    for frame in frames:
        chunk += frame
        if len(chunk) >= size:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk)


def start_position(after: int | None, last_event_id: str | None) -> int:
    """Returns the position after which a stream begins; the id of the last event that was received wins.

    Raises InvalidPosition for what is no number from 0 on.
    """
    given = last_event_id or ("0" if after is None else str(after))
    if not (given.isascii() and given.isdigit() and len(given) <= DIGITS):
        raise InvalidPosition(given)
    return int(given)


def _server_sent(item: Item) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (item.position, item.type.encode(), item.json)
