"""Sweeps: each repository's lanes are looked at and reaped in its own isolate, under one command."""

from __future__ import annotations

import logging
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import trio

from adapters.api import showing
from adapters.service.refusals import RepositorySilent, Stopping
from adapters.service.web.commanding import Wanted, run, service_of, tell_end
from adapters.service.web.responding import respond
from adapters.wiring import new_request
from adapters.yard import sweeping as sweeps
from domain.errors import Refusal
from domain.events import SweptLane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from litestar import Response

    from adapters.api import bodies
    from adapters.api.answers import Answer
    from adapters.engine import Request as Asked
    from adapters.service.isolates.jobs import Job
    from adapters.service.service import Service, Station
    from adapters.service.web.responding import Http
    from adapters.store.reader import Record
    from adapters.yard.sweeping import Candidate

LOG = logging.getLogger("laneyard.sweep")
AT_ONCE = 2  # lanes of one repository that a sweep has under way: others have work there, too
LOOK = 5.0  # seconds between two looks at whether a repository that a sweep waits for still moves
EVERYWHERE = ""  # the isolate that works for no repository in particular, and touches none
CLIENT = "laneyard serve"


async def show(request: Http, repository: str | None, near: str | None) -> Response[bytes]:
    """Answers with what a sweep would do."""
    service = service_of(request)
    found = await due(service, await service.scope(repository, near))
    return respond(request, showing.candidates(found))


async def sweep(request: Http, body: bodies.SweepBody) -> Response[bytes]:
    """Reaps what has rested long enough, in every repository at the same time."""
    service = service_of(request)
    key = await service.scope(body.repository, body.near)
    return await run(request, wanted(service, key, body))


def start(service: Service) -> Job[Answer]:
    """Begins a sweep of everything, on the service's own account. Raises Unavailable."""
    asked = new_request(service.settings, str(uuid4()), client=CLIENT)
    job = service.isolate(EVERYWHERE).submit(partial(_sweep, service, None, asked))
    job.on_end(partial(tell_end, job, asked.id, None, EVERYWHERE))
    return job


def wanted(service: Service, key: str | None, body: bodies.SweepBody) -> Wanted:
    """Returns the command that a sweep is."""

    async def work(station: Station, asked: Asked) -> Answer:
        return await _sweep(service, key, asked, station)

    return Wanted(body=body, repository=EVERYWHERE, lane=None, work=work)


async def _sweep(service: Service, key: str | None, asked: Asked, station: Station) -> Answer:
    """Plans, reaps each lane in its repository's isolate, and writes down how each has ended."""
    planned = sweeps.planned_before(station.yard, asked)
    if planned is None:
        found = await due(service, key, station)
        planned = await sweeps.plan_sweep(station.yard, key, asked, found)
    results: list[SweptLane] = []
    if planned.results is None:
        limits: defaultdict[str, trio.CapacityLimiter] = defaultdict(partial(trio.CapacityLimiter, AT_ONCE))
        async with trio.open_nursery() as nursery:
            for lane in planned.lanes:
                row = station.yard.reader.row(lane)
                limit = limits[_home(row)]
                nursery.start_soon(_sweep_lane, service, lane, row, asked, limit, results)
    return showing.swept(await sweeps.finish_sweep(station.yard, planned, results, asked))


async def _sweep_lane(
    service: Service,
    lane: str,
    row: Record | None,
    asked: Asked,
    limit: trio.CapacityLimiter,
    results: list[SweptLane],
) -> None:
    async def work(there: Station) -> SweptLane:
        return await sweeps.sweep_lane(there.yard, lane, asked)

    try:
        async with limit:
            isolate = service.isolate(_home(row))
            job = isolate.submit(work, lane)
            while not await job.wait(LOOK):
                if isolate.silent:
                    raise RepositorySilent(_home(row), LOOK)
        results.append(job.result())
    except Stopping:
        raise  # the sweep is planned and not finished: the same request goes on with it
    except Refusal as error:  # the repository is busy, or hangs: the next sweep tries again
        state = "gone" if row is None else str(row["state"])
        results.append(SweptLane(lane=lane, state=state, code=error.code, reason=str(error)))


def _home(row: Record | None) -> str:
    return EVERYWHERE if row is None else str(row["repository"])


async def due(service: Service, key: str | None, station: Station | None = None) -> list[Candidate]:
    """Returns what a sweep would touch.

    Of all repositories one that cannot be looked at is left for the next time; one that is meant says why it
    cannot: raises a Refusal, OSError.
    """
    rows = station.yard.reader.lanes() if station is not None else service.tables.lanes()
    repositories = {str(row["repository"]) for row in rows if key is None or row["repository"] == key}
    found: list[Candidate] = []
    if key is not None:
        for repository in repositories:
            found += await _look(service, repository)
    else:
        async with trio.open_nursery() as nursery:
            for repository in sorted(repositories):
                nursery.start_soon(_look_or_leave, service, repository, found)
    return sorted(found, key=lambda each: (str(each.row["created_at"]), str(each.row["id"])))


async def _look(service: Service, repository: str) -> Sequence[Candidate]:
    async def look(station: Station) -> Sequence[Candidate]:
        return sweeps.candidates(station.yard, repository)

    return await service.isolate(repository).ask(look, service.settings.configuration.service.look_timeout)


async def _look_or_leave(service: Service, repository: str, found: list[Candidate]) -> None:
    try:
        found += await _look(service, repository)
    except (Refusal, OSError) as error:
        LOG.warning(
            "a repository is left out of a sweep",
            extra={"fields": {"repository": repository, "error": str(error)}},
        )
