"""HTTP/1.1 and nothing else, by Hypercorn's parser, over a guarded stream."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import h11
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.typing import ConnectionState
from hypercorn.utils import parse_socket_addr

from adapters.service.front.denials import HeadTooLarge, NotHttp, UnknownHttp, document_of, headers_of
from adapters.service.web.misuse import RequestTooLarge

if TYPE_CHECKING:
    import logging
    from collections.abc import Awaitable, Callable, MutableMapping

    from hypercorn.trio.worker_context import WorkerContext
    from hypercorn.typing import AppWrapper, Scope

    from adapters.service.front.connections import Counters, Limits
    from adapters.service.front.guarded import GuardedStream
    from domain.errors import Refusal

    Message = MutableMapping[str, Any]
    Send = Callable[[Message], Awaitable[None]]
    Receive = Callable[[], Awaitable[Message]]
    Asked = Any  # an ASGI scope
    App = Callable[[Asked, Receive, Send], Awaitable[None]]

SPOKEN = {b"1.0", b"1.1"}
QUEUED = 4  # pieces of a body that wait for the application, each of 64 KiB at most
REQUESTS = 1_000_000  # on one connection
ANSWERS = {400: ("malformed", NotHttp()), 505: ("version", UnknownHttp())}


class Http11(H11Protocol):
    """Hypercorn's protocol without its ways out: to HTTP/2 and to web sockets."""

    counters: Counters
    limits: Limits
    _refused = False

    async def handle(self, event: Event) -> None:
        """Takes what has arrived, without an empty line before a request (RFC 9112, section 2.2)."""
        if isinstance(event, RawData) and event.data.startswith(b"\r\n") and self._is_between_requests:
            if event.data == b"\r\n":
                return
            event = RawData(event.data[2:])
        await super().handle(event)

    @property
    def _is_between_requests(self) -> bool:
        state = self.connection.their_state
        return state in (h11.IDLE, h11.DONE) and not self.connection.trailing_data[0]

    async def _check_protocol(self, event: h11.Request) -> None:
        status = self._objection(event)
        self._refused = status is not None
        if status is not None:
            await self._send_error_response(status)
            await self.send(Closed())

    async def _create_stream(self, request: h11.Request) -> None:
        if not self._refused:
            await super()._create_stream(_staying(request))

    def _objection(self, request: h11.Request) -> int | None:
        """Returns the status with which a request is refused by its head, or None."""
        if request.http_version not in SPOKEN:
            return 505
        if request.method != request.method.upper():  # Hypercorn would take `get` for GET
            return 400
        # Who asks before he sends a body is told at once, and not first to go on (RFC 9110, section 10.1.1).
        waits = self.connection.they_are_waiting_for_100_continue
        return 413 if waits and _length(request) > self.limits.body_bytes else None

    async def _send_error_response(self, status_code: int) -> None:
        reason, refusal = self._refusal(status_code)
        self.counters.refuse(reason)
        body = document_of(refusal)
        headers = [*headers_of(refusal, body), (b"connection", b"close")]
        headers += self.config.response_headers("h11")
        await self._send_h11_event(h11.Response(status_code=refusal.status, headers=headers))
        await self._send_h11_event(h11.Data(data=body))
        await self._send_h11_event(h11.EndOfMessage())

    def _refusal(self, status: int) -> tuple[str, Refusal]:
        if status == HeadTooLarge.status:
            return "large_head", HeadTooLarge(self.limits.header_bytes)
        if status == RequestTooLarge.status:
            return "large_body", RequestTooLarge(self.limits.body_bytes)
        return ANSWERS.get(status, ANSWERS[400])


class Requests(TaskGroup):
    """The tasks of one connection: each request's failure is its own."""

    def __init__(self, stream: GuardedStream, terms: Terms) -> None:
        super().__init__()
        self._stream, self._terms = stream, terms

    async def spawn_app(
        self, app: AppWrapper, config: Config, scope: Scope, send: Callable[[Any], Awaitable[None]]
    ) -> Callable[[Any], Awaitable[None]]:
        """Starts the application on a request; returns where the pieces of its body go."""
        into, out = trio.open_memory_channel[Any](config.max_app_queue_size)
        self._stream.begin()
        assert self._nursery is not None
        self._nursery.start_soon(self._answer, cast("dict[str, Any]", scope), out.receive, send)
        return partial(self._put, into, out)

    async def _put(
        self, into: trio.MemorySendChannel[Any], out: trio.MemoryReceiveChannel[Any], event: Message
    ) -> None:
        """Hands on a piece of the body, waiting for room; the peer's end never waits.

        Hypercorn tells of the end from within the application's last `send`. Where the application has not
        read the body, waiting for room there would be waiting for itself.
        """
        if event["type"] != "http.disconnect":
            await into.send(event)
            if not event.get("more_body"):
                self._stream.body_is_whole()
            return
        while into.statistics().current_buffer_used >= into.statistics().max_buffer_size:
            out.receive_nowait()  # a piece that nobody will read; a waiting one may take its place
        into.send_nowait(event)

    async def _answer(self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Send) -> None:
        answer = _Answer(self._stream, self._terms.context, send)
        try:
            try:
                await self._terms.app(scope, receive, answer.send)
            except* (Exception, SystemExit) as failures:
                fields = {"method": scope["method"], "path": scope["path"]}
                self._terms.log.error("a request has failed", exc_info=failures, extra={"fields": fields})
            await send(cast("Message", None))  # Hypercorn's mark of the end: 500, or an end in the middle
        finally:
            answer.over()


class _Answer:
    """One response on its way."""

    def __init__(self, stream: GuardedStream, context: WorkerContext, send: Send) -> None:
        self._stream, self._context, self._send = stream, context, send
        self._over = False

    async def send(self, message: Message) -> None:
        """Sends a part of the response; where the service stops, with word that the connection ends."""
        if message["type"] == "http.response.start":
            message = self._begun(message)
        await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.over()

    def _begun(self, message: Message) -> Message:
        headers = list(message.get("headers", ()))
        # A length says that the body is at hand; the head of a stream of events goes ahead.
        if any(name.lower() == b"content-length" for name, _ in headers):
            self._stream.hold()
        if self._context.terminated.is_set():
            headers.append((b"connection", b"close"))
        return {**message, "headers": headers}

    def over(self) -> None:
        """Takes note, once, that the request has been answered."""
        if not self._over:
            self._over = True
            self._stream.end()


class Terms(NamedTuple):
    """What all connections of a service have in common."""

    app: App
    config: Config
    context: WorkerContext
    log: logging.Logger
    counters: Counters
    limits: Limits


class Connection(TCPServer):
    """One connection from its first request to its close."""

    def __init__(self, terms: Terms, state: dict[str, Any], stream: GuardedStream) -> None:
        app, context = cast("AppWrapper", terms.app), cast("Any", terms.context)
        super().__init__(app, terms.config, context, state, cast("Any", stream))
        self._terms, self._guarded = terms, stream

    async def run(self) -> None:
        """Answers requests until the peer, a limit or the service's end closes the connection."""
        requests = Requests(self._guarded, self._terms)
        try:
            async with requests:
                self.protocol = cast("Any", self._spoken(requests))
                await self._read_data()
        finally:
            await self._close()

    async def protocol_send(self, event: Event) -> None:
        """Sends what the protocol has made of a response. Idleness is the stream's business."""
        if not isinstance(event, Updated):
            await super().protocol_send(event)

    def _spoken(self, requests: Requests) -> Http11:
        client, server = _addresses(self._guarded)
        state = ConnectionState(self.state)
        send, context = self.protocol_send, cast("Any", self.context)
        made = Http11(self.app, self.config, context, requests, state, False, client, server, send)
        made.counters, made.limits = self._terms.counters, self._terms.limits
        return made


def configured(limits: Limits, log: logging.Logger) -> Config:
    """Returns Hypercorn's configuration: quiet but for errors, which go to our log."""
    config = Config()
    config.accesslog, config.errorlog = None, log
    config.include_server_header = False
    # The stream hands over as many bytes as a head may have; a head that is incomplete then is too large.
    config.h11_max_incomplete_size = limits.header_bytes - 1
    config.keep_alive_max_requests = REQUESTS
    config.max_app_queue_size = QUEUED
    return config


def _staying(request: h11.Request) -> h11.Request:
    """Returns the request without a wish for another protocol, which a server may ignore (RFC 9110, 7.8)."""
    if all(name != b"upgrade" for name, _ in request.headers):
        return request
    headers = [(name, value) for name, value in request.headers if name != b"upgrade"]
    return h11.Request(
        method=request.method, target=request.target, headers=headers, http_version=request.http_version
    )


def _length(request: h11.Request) -> int:
    """Returns the length that a request's body is said to have; the parser has seen that it is a number."""
    return next((int(value) for name, value in request.headers if name == b"content-length"), 0)


def _addresses(stream: GuardedStream) -> tuple[tuple[str, int] | None, tuple[str, int] | None]:
    socket = stream.socket
    try:
        return (
            parse_socket_addr(socket.family, socket.getpeername()),
            parse_socket_addr(socket.family, socket.getsockname()),
        )
    except OSError:
        return None, None  # the peer has gone already; reading will tell
