"""The commands that are about no lane yet: making one, taking a repository, making the tables anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from adapters.api import operations
from adapters.service.web.commanding import Wanted, run, service_of
from adapters.service.web.sweeping import EVERYWHERE
from adapters.store import views

if TYPE_CHECKING:
    from litestar import Response

    from adapters.api import bodies
    from adapters.api.answers import Answer
    from adapters.engine import Request as Asked
    from adapters.service.service import Station
    from adapters.service.web.responding import Http


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


async def rebuild(request: Http, body: bodies.RebuildBody) -> Response[bytes]:
    """Makes every table anew from the log."""
    journal = service_of(request).journal

    async def tables() -> None:
        await trio.to_thread.run_sync(journal.maintain(views.rebuild).result)

    async def work(station: Station, asked: Asked) -> Answer:
        return await operations.rebuild(station.yard, tables, asked)

    return await run(request, Wanted(body=body, repository=EVERYWHERE, lane=None, work=work))
