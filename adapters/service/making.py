"""The commands that are about no lane yet: making one, taking a repository, making the tables anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from adapters.api import operations
from adapters.api.answers import Answer
from adapters.api.documents import Rebuilt
from adapters.service.commanding import Wanted, run, service_of
from adapters.service.responding import respond
from adapters.store import views

if TYPE_CHECKING:
    from litestar import Response

    from adapters.api import bodies
    from adapters.engine import Request as Asked
    from adapters.service.responding import Http
    from adapters.service.service import Station


async def create(request: Http, body: bodies.CreateBody) -> Response[bytes]:
    """Makes a lane in the repository around a path."""
    repository = await service_of(request).repository_at(body.repository)

    async def work(station: Station, asked: Asked) -> Answer:
        return await operations.create(station.yard, body, asked)

    return await run(request, Wanted(body=body, repository=repository, lane=None, work=work))


async def register(request: Http, body: bodies.RepositoryBody) -> Response[bytes]:
    """Takes the repository around a path under our care."""
    repository = await service_of(request).repository_at(body.path)

    async def work(station: Station, asked: Asked) -> Answer:
        return await operations.register(station.yard, body, asked)

    return await run(request, Wanted(body=body, repository=repository, lane=None, work=work))


async def rebuild(request: Http) -> Response[bytes]:
    """Makes every table anew from the log; doing it twice is doing it once."""
    service = service_of(request)
    done = service.journal.maintain(views.rebuild)
    await trio.to_thread.run_sync(done.result)
    return respond(request, Answer(document=Rebuilt(), text="every table is made anew from the log"))
