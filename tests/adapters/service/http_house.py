"""A service in this process, behind its real socket, over a scratch repository; and who asks it."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import h11
import httpx
import msgspec
import trio

from adapters.service.building import open_service
from adapters.service.front import connections
from adapters.service.front.sockets import listen_unix
from adapters.service.recovering import Recovery
from adapters.service.web import app
from domain.paths import pack
from tests.adapters.service.front import LOG
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from adapters.service.service import Service

JSON, TEXT, PROBLEM = "application/json", "text/plain", "application/problem+json"
NDJSON, SSE = "application/x-ndjson", "text/event-stream"
Answer = httpx.Response


class House:
    """A service that runs, its repository, and a client."""

    def __init__(self, world: World, service: Service, client: httpx.AsyncClient) -> None:
        self.world, self.service, self.client = world, service, client

    @property
    def root(self) -> str:
        """Returns the repository's path as requests write it."""
        return pack(self.world.root)

    @property
    def socket(self) -> bytes:
        """Returns where the service listens."""
        return os.path.join(self.world.settings.state_dir, b"laneyard.sock")

    async def get(self, address: str, accept: str = JSON, **query: Any) -> Answer:  # noqa: ANN401
        """Asks for something."""
        return await self.client.get(address, headers={"accept": accept}, params=query)

    async def post(self, address: str, body: object = None, **headers: str) -> Answer:
        """Sends a command; `idempotency_key` is spelt `Idempotency-Key` in the request."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.client.post(address, json=body, headers=named)

    async def create(self, name: str = "work", **headers: str) -> Answer:
        """Makes a lane."""
        return await self.post("/v1/lanes", {"repository": self.root, "name": name}, **headers)

    async def lane(self, name: str = "work") -> str:
        """Makes a lane and returns its id."""
        made = await self.create(name)
        assert made.status_code == 201, made.text
        return str(made.json()["id"])

    async def raw(self, data: bytes) -> bytes:
        """Sends bytes as they are, and returns everything up to the end of the connection."""
        stream = await trio.open_unix_socket(os.fsdecode(self.socket))
        async with stream:
            await stream.send_all(data)
            pieces = [piece async for piece in stream]
        return b"".join(pieces)


@asynccontextmanager
async def house(home: Path | World, **limits: Any) -> AsyncIterator[House]:  # noqa: ANN401
    """Runs a service until the block ends; the same world may be served again after that."""
    world = home if isinstance(home, World) else World(home)
    settings = world.settings
    chosen = msgspec.structs.replace(settings.configuration.service, **limits)
    settings = msgspec.structs.replace(
        settings, configuration=msgspec.structs.replace(settings.configuration, service=chosen)
    )
    with open_service(settings) as service:
        async with trio.open_nursery() as nursery:
            await nursery.start(service.tail.run)
            await Recovery(service).run()
            whole = app.whole(service)
            path, stopping = os.path.join(settings.state_dir, b"laneyard.sock"), trio.Event()
            terms = connections.Limits(
                header_bytes=chosen.header_bytes,
                body_bytes=chosen.body_bytes,
                head_seconds=chosen.head_timeout,
            )
            await nursery.start(
                partial(
                    connections.serve, whole, [listen_unix(path)], terms, LOG,
                    uid=os.getuid(), stopping=stopping, grace=1, counters=service.connections,
                )
            )  # fmt: skip
            service.status = "ready"
            transport = httpx.AsyncHTTPTransport(uds=os.fsdecode(path))
            async with httpx.AsyncClient(transport=transport, base_url="http://laneyard") as client:
                client.timeout = httpx.Timeout(20)
                with trio.fail_after(60):
                    yield House(world, service, client)
            service.commands.stop()
            service.tail.stop()
            stopping.set()
            assert await service.isolates.stop_all(5)
            os.unlink(path)


class Following:
    """A stream of events as a plain client reads it: httpx leaves generators where it is not read up."""

    def __init__(self, wire: trio.SocketStream) -> None:
        self._wire, self._parser = wire, h11.Connection(h11.CLIENT)
        self.status, self.headers, self.text = 0, dict[str, str](), ""

    async def begin(self, target: str, headers: dict[str, str]) -> None:
        """Sends the request and reads the head of the answer."""
        fields = [("host", "laneyard"), *headers.items()]
        asked = h11.Request(method="GET", target=target, headers=fields)
        await self._wire.send_all(self._parser.send(asked))
        head = await self._next()
        assert isinstance(head, h11.Response)
        self.status = head.status_code
        self.headers = {name.decode(): value.decode() for name, value in head.headers}

    async def more(self) -> bool:
        """Reads another piece; returns whether there was any before the end."""
        event = await self._next()
        if isinstance(event, h11.Data):
            self.text += bytes(event.data).decode()
        return isinstance(event, h11.Data)

    async def until(self, enough: Callable[[str], bool]) -> str:
        """Reads until there is enough, and returns all of it."""
        while not enough(self.text):
            assert await self.more(), f"the stream has ended: {self.text}"
        return self.text

    async def _next(self) -> object:
        while (event := self._parser.next_event()) is h11.NEED_DATA:
            self._parser.receive_data(await self._wire.receive_some())
        return event


@asynccontextmanager
async def stream(house: House, accept: str = SSE, **query: Any) -> AsyncIterator[Following]:  # noqa: ANN401
    """Opens a stream of events; `last` is the last event's id that was received."""
    headers = {"accept": accept} | ({"last-event-id": str(query.pop("last"))} if "last" in query else {})
    async with await trio.open_unix_socket(os.fsdecode(house.socket)) as wire:
        following = Following(wire)
        await following.begin(f"/v1/events/stream?{urlencode(query)}", headers)
        yield following
