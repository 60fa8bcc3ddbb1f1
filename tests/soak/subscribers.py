"""Subscribers of the event stream that come back whenever they are left, with their last position."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import h11
import trio

if TYPE_CHECKING:
    from collections.abc import Iterator

SSE, NDJSON = "text/event-stream", "application/x-ndjson"
PAUSE = 0.05  # seconds until a service that is not there is tried again
PIECE = 1 << 16


class Subscriber:
    """Follows what a query asks for, from the beginning; `positions` is what it has been told, in order."""

    def __init__(self, socket: bytes, query: str = "", media: str = SSE) -> None:
        self.positions: list[int] = []
        self.connected = 0
        self._socket, self._query, self._media = socket, query, media

    @property
    def last(self) -> int:
        """Returns the position to resume after."""
        return self.positions[-1] if self.positions else 0

    async def run(self) -> None:
        """Follows until it is cancelled."""
        while True:
            with suppress(OSError, trio.BrokenResourceError, h11.RemoteProtocolError):  # it comes back
                async with await trio.open_unix_socket(self._socket) as stream:
                    await self.follow(stream)
            await trio.sleep(PAUSE)

    async def follow(self, stream: trio.SocketStream) -> None:
        """Follows one stream to its end. Raises what a connection that is lost raises."""
        connection = h11.Connection(h11.CLIENT)
        await stream.send_all(self.asking(connection))
        self.connected += 1
        left = b""
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(PIECE))
            elif isinstance(event, h11.Data):
                left = self._take(left + event.data)
            elif isinstance(event, h11.Response):
                assert event.status_code == 200, event
            elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                return

    def asking(self, connection: h11.Connection) -> bytes:
        """Returns the request that resumes after what has been told."""
        headers = [("Host", "laneyard"), ("Accept", self._media)]
        query = self._query
        if self._media == SSE:
            headers += [("Last-Event-ID", str(self.last))]
        else:
            query = f"{query}&after={self.last}"
        request = h11.Request(method="GET", target=f"/v1/events/stream?{query.strip('&')}", headers=headers)
        return (connection.send(request) or b"") + (connection.send(h11.EndOfMessage()) or b"")

    def _take(self, data: bytes) -> bytes:
        """Takes the events that are whole, and returns the rest: a frame without its end was never said."""
        mark = b"\n\n" if self._media == SSE else b"\n"
        *frames, left = data.split(mark)
        self.positions += (
            _told(frames) if self._media == SSE else [json.loads(each)["position"] for each in frames if each]
        )
        return left


def _told(frames: list[bytes]) -> Iterator[int]:
    """Yields the ids of server-sent events, each of which says the position that its data have."""
    for frame in frames:
        fields = dict(line.split(b": ", 1) for line in frame.split(b"\n") if line and line[:1] != b":")
        if b"data" in fields:
            position = int(fields[b"id"])
            assert json.loads(fields[b"data"])["position"] == position
            yield position
