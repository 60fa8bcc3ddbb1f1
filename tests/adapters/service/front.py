"""A front door over a real socket, and clients that are as rude as they like."""

import json
import logging
import os
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import trio

from adapters.service.front.connections import Counters, Limits, serve
from adapters.service.front.sockets import listen_tcp, listen_unix

LOG = logging.getLogger("tests.front")
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Any, Receive, Send], Awaitable[None]]


class Front(NamedTuple):
    listener: socket.socket
    counters: Counters
    stopping: trio.Event
    path: bytes

    async def connect(self) -> trio.SocketStream:
        client = trio.socket.socket(self.listener.family, socket.SOCK_STREAM)
        address = self.path if self.listener.family == socket.AF_UNIX else self.listener.getsockname()
        await client.connect(address)
        return trio.SocketStream(client)

    async def ask(self, data: bytes = LAST) -> bytes:
        async with await self.connect() as client:
            await client.send_all(data)
            return await read_all(client)

    async def empty(self) -> None:
        await until(lambda: self.counters.open == 0)


@asynccontextmanager
async def front(
    app: App,
    folder: Path,
    *,
    tcp: bool = False,
    both: bool = False,
    uid: int | None = None,
    grace: float = 0.5,
    limits: Limits | None = None,
) -> AsyncIterator[Front]:
    path, stopping = os.fsencode(folder / "s"), trio.Event()
    listener = listen_tcp("127.0.0.1:0") if tcp else listen_unix(path)
    listeners = [listener, listen_unix(path)] if both else [listener]
    mine = socket.socket(fileno=os.dup(listener.fileno()))  # serve closes its own
    start = partial(
        serve, app, listeners, limits or Limits(), LOG, stopping=stopping, grace=grace,
        uid=os.getuid() if uid is None else uid,
    )  # fmt: skip
    with mine:
        async with trio.open_nursery() as nursery:
            counters = await nursery.start(start)
            with trio.fail_after(30):
                yield Front(mine, counters, stopping, path)
            stopping.set()


async def until(true: Callable[[], bool], seconds: float = 10) -> None:
    """Looks again and again until a condition of another thread holds."""
    with trio.fail_after(seconds):
        while not true():  # noqa: ASYNC110 (what other threads do, and counters, set no event of ours)
            await trio.sleep(0.001)


async def read_all(client: trio.SocketStream) -> bytes:
    """Everything up to the end, or to a reset."""
    pieces = []
    try:
        while piece := await client.receive_some(1 << 16):
            pieces.append(piece)
    except trio.BrokenResourceError:
        pieces.append(b"")
    return b"".join(pieces)


async def first(client: trio.SocketStream) -> bytes:
    """The next response, whose length its head tells."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += await client.receive_some()
        assert got
    head, _, body = got.partition(b"\r\n\r\n")
    length = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
    while len(body) < length:
        body += await client.receive_some()
    return head + b"\r\n\r\n" + body


def status(response: bytes) -> int:
    return int(response.split(b" ", 2)[1])


def problem(response: bytes) -> dict[str, Any]:
    head, _, body = response.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    found = json.loads(body)
    assert isinstance(found, dict)
    assert found["status"] == status(response)
    return found


async def answer(send: Callable[[Any], Awaitable[None]], body: bytes = b"ok", code: int = 200) -> None:
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send)


async def body_of(receive: Callable[[], Awaitable[Any]]) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body
