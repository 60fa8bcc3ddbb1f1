"""What a crash or a bug has left: each lane goes on by itself, and no repository waits for another.

A lane is driven on as a command of its own, so that it never meets another command of the same lane.
"""

from __future__ import annotations

import logging
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import msgspec
import trio

from adapters.service.refusals import Overloaded, RepositoryBusy, Stopping
from adapters.wiring import new_request
from domain.envelope import lane_of

if TYPE_CHECKING:
    from adapters.service.isolates.jobs import Job
    from adapters.service.service import Service, Station

LOG = logging.getLogger("laneyard.recovery")
AT_ONCE = 4  # lanes of one repository that are driven on at the same time
FIRST, LONGEST = 30.0, 900.0  # seconds until a lane that was stopped is tried again, doubled each time


class Try(msgspec.Struct, frozen=True):
    """When a lane is tried again, and how long it is waited after that."""

    at: float
    pause: float


class Recovery:
    """Drives on what is owed: all of it at the start, and later what has been left behind since."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._tries: dict[str, Try] = {}
        self._seen: dict[str, object] = {}  # by lane that is owed something: the last position it had

    async def run(self) -> None:
        """Drives on everything that is owed, and returns when each lane has ended or was stopped."""
        async with trio.open_nursery() as nursery:
            for repository, lanes in unfinished(self._service).items():
                LOG.info("recovering", extra={"fields": {"repository": repository, "lanes": len(lanes)}})
                self._service.recovering.update(lanes)
                nursery.start_soon(self._repository, repository, lanes)

    async def again(self) -> None:
        """Tries what is owed since the last call without a step, where it is due and nobody is at it."""
        owed, moved = unfinished(self._service), dict[str, object]()
        async with trio.open_nursery() as nursery:
            for repository, lanes in owed.items():
                moved |= {lane: self._position(lane) for lane in lanes}
                due = [lane for lane in lanes if self._due(lane, moved[lane])]
                self._service.recovering.update(due)
                nursery.start_soon(self._repository, repository, due)
            self._seen = moved
            self._tries = {lane: each for lane, each in self._tries.items() if lane in moved}

    def _position(self, lane: str) -> object:
        row = self._service.tables.reader.row(lane)
        return None if row is None else row["position"]

    def _due(self, lane: str, position: object) -> bool:
        if lane in self._service.recovering:
            return False
        known = self._tries.get(lane)
        if known is not None:
            return trio.current_time() >= known.at
        return self._seen.get(lane, self) == position

    async def _repository(self, repository: str, lanes: list[str]) -> None:
        limit = trio.CapacityLimiter(AT_ONCE)
        async with trio.open_nursery() as nursery:
            for lane in lanes:
                nursery.start_soon(self._lane, repository, lane, limit)

    async def _lane(self, repository: str, lane: str, limit: trio.CapacityLimiter) -> None:
        fields: dict[str, object] = {"repository": repository, "lane": lane}
        try:
            async with limit:
                job = await self._submitted(repository, lane)
                await job.wait(inf)
            job.result()
        except Stopping:
            return  # what is owed stays in the journal for the next start
        except Exception as error:  # this lane's, or its repository's, own trouble
            self._stopped(lane, error)
            LOG.error("a lane was not driven on", extra={"fields": fields | {"error": str(error)}})
        else:
            self._service.stopped.pop(lane, None)
            self._tries.pop(lane, None)
            LOG.info("a lane was driven on", extra={"fields": fields})
        finally:
            self._service.recovering.discard(lane)

    def _stopped(self, lane: str, error: Exception) -> None:
        self._service.stopped[lane] = str(error) or type(error).__name__
        known = self._tries.get(lane)
        pause = FIRST if known is None else min(2 * known.pause, LONGEST)
        self._tries[lane] = Try(trio.current_time() + pause, pause)

    async def _submitted(self, repository: str, lane: str) -> Job[None]:
        """Queues the lane when there is room. Raises Stopping, or why the repository cannot be opened."""
        while True:
            try:
                return self._service.isolate(repository).submit(partial(drive, self._service, lane), lane)
            except (Overloaded, RepositoryBusy) as error:
                await trio.sleep(error.retry_after)


async def drive(service: Service, lane: str, station: Station) -> None:
    """Drives a lane on unless the command that it is owed to is under way; runs in the isolate."""
    _, _, cause = station.yard.reader.story(lane)
    command = service.commands.find(cause)
    if command is None or command.job.ended or command.lane == lane:
        await service.drive_on(station, lane, new_request(service.settings))


def unfinished(service: Service) -> dict[str, list[str]]:
    """Returns the lanes whose journals are open, by repository; nothing is read of any other lane."""
    found: dict[str, list[str]] = {}
    for journal in service.tables.reader.open_journals():
        lane = lane_of(str(journal["stream"])) or ""
        repository = _repository_of(service, lane)
        if repository is not None:
            found.setdefault(repository, []).append(lane)
    return found


def _repository_of(service: Service, lane: str) -> str | None:
    row = service.tables.reader.row(lane)
    if row is not None:
        return str(row["repository"])
    known, _ = service.tables.reader.lane(lane)  # it is being undone, and has no row any more
    record = getattr(known, "record", None)
    return None if record is None else str(record.repository)
