"""The front door: who may come in, how many at once, and how all leave when the service stops."""

from __future__ import annotations

import errno
import select
import socket as sockets
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import trio
from hypercorn.trio.worker_context import WorkerContext

from adapters.service.front.denials import ForeignUser, TooManyConnections, response_of
from adapters.service.front.guarded import GuardedStream
from adapters.service.front.http11 import Connection, Terms, configured
from adapters.service.front.sockets import Peer, peer_of

if TYPE_CHECKING:
    import logging
    from collections.abc import Sequence

    from adapters.service.front.http11 import App
    from domain.errors import Refusal

EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
# Errors of a connection that has failed before it was accepted, see accept(2).
PASSING = {
    *(errno.ECONNABORTED, errno.EPROTO, errno.EPERM, errno.ENETDOWN, errno.ENOPROTOOPT, errno.EHOSTDOWN),
    *(errno.ENONET, errno.EHOSTUNREACH, errno.EOPNOTSUPP, errno.ENETUNREACH, errno.ETIMEDOUT),
}
PAUSE = 0.1  # seconds until a descriptor may have become free
RETRY = [(b"retry-after", b"1")]
UNIX, TCP = "unix", "tcp"


class Limits(msgspec.Struct, frozen=True):
    """What a peer may use: connections, bytes, and seconds.

    At most half of the connections come over TCP: whoever reaches the port cannot keep the owner out.
    """

    connections: int = 512
    header_bytes: int = 16384
    body_bytes: int = 1 << 20
    head_seconds: float = 15.0
    send_seconds: float = 20.0
    idle_seconds: float = 75.0
    linger_seconds: float = 1.0
    linger_bytes: int = 1 << 25

    def most(self, transport: str) -> int:
        """Returns how many connections may come this way."""
        return self.connections if transport == UNIX else max(1, self.connections // 2)


class Counters(msgspec.Struct):
    """How many connections are open, have been accepted and have failed, and what was refused, by reason.

    A refusal is of a connection, or of a request that the application has not seen.
    """

    here: dict[str, int] = msgspec.field(default_factory=lambda: {UNIX: 0, TCP: 0})
    accepted: int = 0
    failed: int = 0
    refused: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def open(self) -> int:
        """Returns how many connections are open."""
        return sum(self.here.values())

    def refuse(self, reason: str) -> None:
        """Counts a refusal."""
        self.refused[reason] = self.refused.get(reason, 0) + 1


async def serve(
    app: App,
    listeners: Sequence[sockets.socket],
    limits: Limits,
    log: logging.Logger,
    *,
    uid: int,
    stopping: trio.Event,
    grace: float,
    counters: Counters | None = None,
    task_status: trio.TaskStatus[Counters] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serves the application to `uid` alone until `stopping`; what runs then has `grace` seconds to finish.

    Takes over and closes the listeners. Raises OSError if one of them cannot be used any more.
    """
    door = _Door(app, limits, log, uid, Counters() if counters is None else counters)
    async with trio.open_nursery() as connections:
        try:
            async with trio.open_nursery() as accepting:
                for listener in listeners:
                    accepting.start_soon(door.accept, trio.socket.from_stdlib_socket(listener), connections)
                task_status.started(door.counters)
                await stopping.wait()
                accepting.cancel_scope.cancel()
            await door.empty(grace)
        finally:
            door.kill()
        connections.cancel_scope.cancel()


class _Door:
    def __init__(self, app: App, limits: Limits, log: logging.Logger, uid: int, counters: Counters) -> None:
        self.counters = counters
        self._limits, self._log, self._uid = limits, log, uid
        self._terms = Terms(app, configured(limits, log), WorkerContext(None), log, counters, limits)
        self._streams: set[GuardedStream] = set()
        self._left = trio.Event()
        self._starved: set[int] = set()  # listeners, by descriptor

    async def accept(self, listener: trio.socket.SocketType, connections: trio.Nursery) -> None:
        """Lets connections in until it is cancelled; then closes the listener."""
        with listener:
            while True:
                try:
                    connection, _ = await listener.accept()
                except OSError as error:
                    await self._not_accepted(listener.fileno(), error)
                else:
                    self._recovered(listener.fileno())
                    await self._admit(connection, connections)

    async def empty(self, grace: float) -> None:
        """Closes what is idle, and waits for the rest for at most `grace` seconds."""
        await self._terms.context.terminated.set()
        for stream in self._streams:
            if stream.idle:
                stream.kill()
        with trio.move_on_after(grace):
            while self._streams:
                await self._left.wait()

    def kill(self) -> None:
        """Closes every connection at once; a send that is shielded from cancellation ends by that."""
        for stream in self._streams:
            stream.kill()

    async def _admit(self, connection: trio.socket.SocketType, connections: trio.Nursery) -> None:
        peer = Peer()
        try:
            peer = peer_of(connection)  # type: ignore[arg-type]
            transport = UNIX if connection.family == sockets.AF_UNIX else TCP
            refusal = self._refusal(transport, peer)
        except OSError as error:
            self._log.debug("a connection ended before it began", extra={"fields": {"error": str(error)}})
            connection.close()
            return
        if refusal is not None:
            await self._turn_away(connection, refusal)
            return
        stream = GuardedStream(connection, self._limits, self.counters.refuse, trusted=transport == UNIX)
        self._streams.add(stream)
        self.counters.accepted += 1
        self.counters.here[transport] += 1
        connections.start_soon(self._converse, stream, peer, transport)

    def _refusal(self, transport: str, peer: Peer) -> Refusal | None:
        if transport == UNIX and peer.uid != self._uid:
            self._log.warning("refused another user", extra={"fields": {"uid": peer.uid, "pid": peer.pid}})
            return ForeignUser(-1 if peer.uid is None else peer.uid)
        most = self._limits.most(transport)
        mine = self.counters.here[transport] if transport == TCP else len(self._streams)
        if mine >= most or len(self._streams) >= self._limits.connections:
            return TooManyConnections(most)
        return None

    async def _turn_away(self, connection: trio.socket.SocketType, refusal: Refusal) -> None:
        """Says why and closes, without reading; the words fit into an empty socket's buffer."""
        self.counters.refuse(refusal.code)
        extra = RETRY if isinstance(refusal, TooManyConnections) else []
        with connection, suppress(OSError):  # the peer has gone: nobody is left to be told
            await connection.send(response_of(refusal, extra))

    async def _converse(self, stream: GuardedStream, peer: Peer, transport: str) -> None:
        state: dict[str, Any] = {"peer": peer, "transport": transport, "trust": stream.trust}
        try:
            await Connection(self._terms, state, stream).run()
        except* Exception as failures:
            self.counters.failed += 1
            self._log.error(
                "a connection has failed", exc_info=failures, extra={"fields": {"transport": transport}}
            )
        finally:
            stream.kill()
            self._streams.discard(stream)
            self.counters.here[transport] -= 1
            self._left.set()
            self._left = trio.Event()

    async def _not_accepted(self, listener: int, error: OSError) -> None:
        if error.errno in PASSING:
            return
        if error.errno not in EXHAUSTED:
            raise error
        if not _somebody_waits(listener):  # accept(2) wants a descriptor before it looks
            await trio.lowlevel.wait_readable(listener)
            return
        if not self._starved:
            self._log.error("no connection can be accepted", extra={"fields": {"error": str(error)}})
        self._starved.add(listener)
        self.counters.refuse("exhausted")
        # No event tells that the system has a descriptor again, only that a connection of ours has ended.
        with trio.move_on_after(PAUSE):
            await self._left.wait()

    def _recovered(self, listener: int) -> None:
        """Says so once nobody waits any more: a place for one of many is filled at once."""
        if listener in self._starved and not _somebody_waits(listener):
            self._starved.remove(listener)
            if not self._starved:
                self._log.warning("connections are accepted again")


def _somebody_waits(listener: int) -> bool:
    waiting = select.poll()  # takes no descriptor, unlike epoll
    waiting.register(listener, select.POLLIN)
    return bool(waiting.poll(0))
