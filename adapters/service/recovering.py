"""What a crash has left: every repository goes on with its own lanes, and none waits for another."""

from __future__ import annotations

import logging
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from adapters.wiring import recover
from domain.envelope import lane_of

if TYPE_CHECKING:
    from adapters.service.isolate_jobs import Job
    from adapters.service.service import Service, Station

    Stopped = dict[str, Exception]

LOG = logging.getLogger("laneyard.recovery")


def unfinished(service: Service) -> dict[str, list[str]]:
    """Returns the streams whose journals are open, by repository."""
    found: dict[str, list[str]] = {}
    for row in service.tables.reader.open_journals():
        stream = str(row["stream"])
        lane, _ = service.tables.reader.lane(lane_of(stream) or "")
        record = getattr(lane, "record", None)
        if record is not None:
            found.setdefault(record.repository, []).append(stream)
    return found


def begin(service: Service) -> list[Job[Stopped]]:
    """Starts to drive on every lane that is owed something."""
    jobs = []
    for repository, streams in unfinished(service).items():
        LOG.info("recovering", extra={"fields": {"repository": repository, "lanes": len(streams)}})
        job = service.isolate(repository).submit(partial(_recover, streams))
        job.on_end(partial(_tell, service, repository, job))
        jobs.append(job)
    return jobs


async def settled(jobs: list[Job[Stopped]], seconds: float) -> bool:
    """Waits for the recovery to end, for so many seconds; returns whether it has."""
    deadline = monotonic() + seconds
    for job in jobs:
        if not await job.wait(deadline - monotonic()):
            return False
    return True


async def _recover(streams: list[str], station: Station) -> Stopped:
    return await recover(station.yard, streams)


def _tell(service: Service, repository: str, job: Job[Stopped]) -> None:
    """Writes down how a repository's recovery has ended; runs in the isolate's thread."""
    fields: dict[str, object] = {"repository": repository}
    try:
        stopped = job.result()
    except Exception as error:  # the repository's own trouble: what is journaled waits for the next time
        LOG.error("a recovery was not done", extra={"fields": fields | {"error": str(error)}})
        service.stopped[repository] = str(error)
        return
    for lane, why in stopped.items():
        LOG.error("a lane was not driven on", extra={"fields": fields | {"lane": lane, "error": str(why)}})
        service.stopped[lane] = str(why)
    if not stopped:
        LOG.info("recovered", extra={"fields": fields})
