"""A connection whose peer cannot take for ever: to send a request's head, to read an answer, to be idle."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

import trio

from adapters.service.front.denials import HeadTooSlow, response_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.service.front.connections import Limits

CHUNK = 1 << 16  # bytes
GONE = (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError)


class GuardedStream:
    """A socket's stream with the limits of a service, told by `begin` and `end` when a request runs.

    A peer that is not trusted has the time of one head, from its first moment on, until `trust` is called.
    `socket` is what the server asks for addresses; `refuse` is told the reason of each forced end.
    """

    def __init__(
        self,
        socket: trio.socket.SocketType,
        limits: Limits,
        refuse: Callable[[str], None],
        *,
        trusted: bool = True,
    ) -> None:
        self.socket = socket
        self._latest = inf if trusted else trio.current_time() + limits.head_seconds
        self._inner = trio.SocketStream(socket)
        self._limits = limits
        self._refuse = refuse
        self._running = 0
        self._body_is_due = False
        self._ended = False  # by the peer
        self._closing = False
        self._holding = False
        self._held = b""
        self._receiving = trio.CancelScope()
        self._head_begun = False
        self._rest()

    @property
    def idle(self) -> bool:
        """Tells that no request runs."""
        return self._running == 0

    def trust(self) -> None:
        """Takes note that the peer may stay."""
        self._latest = inf

    def begin(self) -> None:
        """Takes note that a request's head is complete."""
        self._running += 1
        self._body_is_due = True
        self._until(inf)

    def body_is_whole(self) -> None:
        """Takes note that the request has arrived to its end."""
        self._body_is_due = False

    def end(self) -> None:
        """Takes note that a request has been answered."""
        self._running -= 1
        if self.idle:
            self._rest()

    async def receive_some(self, most: int) -> bytes:
        """Returns what has arrived, b"" at the end. Raises BrokenResourceError when the time is up."""
        if self._closing:  # whatever still arrives is for the one who closes
            raise trio.ClosedResourceError("closed here")
        most = min(most, self._head_left) if self.idle else most
        with trio.CancelScope(deadline=self._deadline) as self._receiving:
            data = bytes(await self._inner.receive_some(max(most, 1)))
            self._arrived(data)
            return data
        if self._closing:
            raise trio.ClosedResourceError("closed here")
        if self._head_begun:
            await self._tell_late()
        raise trio.BrokenResourceError("the peer was silent for too long")

    def hold(self) -> None:
        """Keeps what is sent next until more is sent, so that both leave in one piece."""
        self._holding = True

    async def send_all(self, data: bytes) -> None:
        """Sends the data. Raises BrokenResourceError once the peer has taken nothing for too long."""
        data, self._held = self._held + data if self._held else data, b""
        if self._holding:
            self._holding, self._held = False, data
            return
        left = memoryview(data)
        while left:
            with trio.move_on_after(self._limits.send_seconds) as patience:
                left = left[await self._send(left) :]
            if patience.cancelled_caught:
                self._refuse("slow_reader")
                self.kill()
                raise trio.BrokenResourceError("the peer does not read")

    async def send_eof(self) -> None:
        """Says that nothing more will be sent."""
        await self._inner.send_eof()

    async def aclose(self) -> None:
        """Closes; a peer that may still be sending is heard out for a moment, so that it gets the answer."""
        first, self._closing = not self._closing, True
        try:
            if first and not self._ended and (self._head_begun or (self._running and self._body_is_due)):
                self._receiving.cancel()
                await self._linger()
        finally:
            self.kill()

    def kill(self) -> None:
        """Closes at once; whoever waits on the stream is woken."""
        self._closing = True
        self.socket.close()

    async def _send(self, data: memoryview) -> int:
        try:
            return await self.socket.send(data)
        except OSError as error:
            self._ended = True
            raise trio.BrokenResourceError(str(error)) from error

    def _arrived(self, data: bytes) -> None:
        self._ended = not data
        if self.idle and data:
            self._head_left -= len(data)
            if not self._head_begun:
                self._head_begun = True
                self._deadline = min(self._latest, trio.current_time() + self._limits.head_seconds)

    def _rest(self) -> None:
        self._head_left = self._limits.header_bytes
        self._until(min(self._latest, trio.current_time() + self._limits.idle_seconds))

    def _until(self, deadline: float) -> None:
        """Sets the time until which something must arrive, for a wait that has begun as well."""
        self._head_begun = False
        self._deadline = self._receiving.deadline = deadline

    async def _tell_late(self) -> None:
        self._refuse("slow_head")
        with suppress(*GONE):  # nobody is left to be told
            await self.send_all(response_of(HeadTooSlow(self._limits.head_seconds)))

    async def _linger(self) -> None:
        # A socket that is closed with unread data resets the connection: the peer's writing then fails before
        # it has read why (RFC 9112, section 9.6).
        left = self._limits.linger_bytes
        with trio.move_on_after(self._limits.linger_seconds), suppress(*GONE):
            await self._inner.send_eof()
            while left > 0 and (data := await self._inner.receive_some(CHUNK)):
                left -= len(data)
