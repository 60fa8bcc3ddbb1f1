"""The requests that change something: each is one command with an id, run in its repository's isolate."""

from __future__ import annotations

import logging
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote
from uuid import uuid4

import msgspec

from adapters.api import operations
from adapters.api.answers import Answer, NotReached, encoded
from adapters.api.documents import ChangedLane, Command, GoneLane
from adapters.api.problems import made, problem
from adapters.service.web.headers import client_of, command_id, digest_of, expected_version, preference
from adapters.service.web.misuse import AnswerForgotten, NoSuchCommand
from adapters.service.web.responding import beside, refuse, respond
from adapters.wiring import new_request
from domain.envelope import lane_of
from domain.errors import VersionMismatch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from litestar import Response

    from adapters.api.documents import Problem
    from adapters.engine import Request as Asked
    from adapters.service import commands
    from adapters.service.isolates.jobs import Job
    from adapters.service.service import Service, Station
    from adapters.service.web.responding import Http
    from adapters.yard.yard import Yard

    Work = Callable[[Station, Asked], Awaitable[Answer]]

LOG = logging.getLogger("laneyard.commands")
RETRY = "1"  # seconds after which it is worth asking again


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A command as it was sent: what it says, whose repository, which lane, and what is done."""

    body: object
    repository: str
    lane: str | None
    work: Work


def service_of(request: Http) -> Service:
    """Returns the service that the application was made for."""
    return cast("Service", request.app.state.service)


def prefer_of(request: Http) -> str:
    """Returns what the client prefers, however many lines it took to say so."""
    return ",".join(request.headers.getall("prefer", []))


async def command_lane(request: Http, verb: str, lane: str, body: object) -> Response[bytes]:
    """Runs one of the commands on a lane."""
    service = service_of(request)
    row = service.row(lane)
    _, operation = operations.ON_LANES[verb]

    async def work(station: Station, asked: Asked) -> Answer:
        _require_version(station.yard, lane, asked)
        return cast("Answer", await cast("Any", operation)(station.yard, lane, body, asked))

    wanted = Wanted(body=body, repository=str(row["repository"]), lane=lane, work=work)
    return await run(request, wanted)


def _require_version(yard: Yard, lane: str, asked: Asked) -> None:
    """Looks at the version before anything else (RFC 9110, section 13.2.1). Raises VersionMismatch."""
    if asked.expected is None or yard.answered(asked) is not None:
        return
    row, expected = yard.reader.row(lane), yard.resumed(asked, lane).expected
    if row is not None and expected is not None and row["version"] != expected:
        raise VersionMismatch(expected, int(row["version"] or 0))


async def run(request: Http, wanted: Wanted) -> Response[bytes]:
    """Hands a command over, waits for it as long as the client prefers, and answers."""
    service, limits = service_of(request), service_of(request).settings.configuration.service
    waiting = preference(prefer_of(request), limits.wait, limits.longest_wait)
    asked = _asked(request, wanted)

    lane = wanted.lane or _begun_in(service, asked)

    async def job(station: Station) -> Answer:
        if lane is None:
            return await wanted.work(station, asked)
        await service.drive_on(station, lane, asked)
        with service.watching(station, lane):
            return await wanted.work(station, asked)

    def start() -> Job[Answer]:
        started = service.isolate(wanted.repository).submit(job, lane)
        started.on_end(partial(tell_end, started, asked.id, lane, wanted.repository))
        return started

    assert asked.digest is not None
    command = service.commands.submit(asked.id, asked.digest, lane, start, created=wanted.lane is None)
    await command.job.wait(waiting.seconds)
    applied = {"Preference-Applied": waiting.applied} if waiting.applied else {}
    return _answered(request, command, applied)


def _begun_in(service: Service, asked: Asked) -> str | None:
    """Returns the lane that the same request has begun in an earlier life of the service, if it has."""
    known = service.tables.reader.command(asked.id)
    return lane_of(known[1]) if known is not None and known[0] == asked.digest else None


def _asked(request: Http, wanted: Wanted) -> Asked:
    """Returns the request as the engine takes it: who asks, for what, and on which version."""
    peer = request.scope.get("state", {}).get("peer")
    return new_request(
        service_of(request).settings,
        command_id(request.headers.get("idempotency-key")) or str(uuid4()),
        digest_of(request.method, request.url.path, wanted.body),
        uid=os.getuid() if peer is None or peer.uid is None else peer.uid,
        pid=0 if peer is None or peer.pid is None else peer.pid,
        client=client_of(request.headers),
        expected=expected_version(request.headers.get("if-match")),
    )


def _answered(request: Http, command: commands.Command, headers: dict[str, str]) -> Response[bytes]:
    """Returns what the command has led to, what stopped it, or 202 with where to follow it."""
    shown = {"Idempotency-Key": command.id, **headers}
    if command.state in ("waiting", "running"):
        shown |= {"Location": f"/v1/commands/{quote(command.id, safe='')}/answer", "Retry-After": RETRY}
        standing = Answer(
            document=document(command),
            text=f"command {command.id} is {command.state}",
            outcome="unfinished",
        )
        return respond(request, standing, 202, shown)
    if (error := command.error) is not None:
        # Not raised: its traceback would keep this whole request for as long as the command is remembered.
        return refuse(request, told(error), beside(error))
    answer = cast("Answer", command.result())
    if command.created and isinstance(answer.document, ChangedLane):
        return respond(request, answer, 201, {**shown, "Location": f"/v1/lanes/{answer.document.id}"})
    return respond(request, answer, 200, shown)


def document(command: commands.Command) -> Command:
    """Returns a command as it stands."""
    state, error = command.state, command.error
    failure = told(error) if error is not None else None
    answer = command.job.result().document if state == "done" else None
    lane = command.lane or lane_of_end(command.job)
    position = getattr(answer, "position", None)
    return Command(id=command.id, state=state, lane=lane, position=position, answer=answer, problem=failure)


def weight(command: commands.Command) -> int:
    """Returns how much is remembered of a command that has ended, in bytes of JSON; of a bug too much."""
    try:
        return len(encoded(document(command)))
    except (TypeError, ValueError):  # whoever is to be answered with it meets the same
        return sys.maxsize


def lane_of_end(job: Job[Answer]) -> str | None:
    """Returns the lane that a command has led to, where it was about none yet: made, or begun and undone."""
    if job.state == "done":
        shown = job.result().document
        return shown.id if isinstance(shown, ChangedLane | GoneLane) else None
    found = job.error.details.get("lane") if isinstance(job.error, NotReached) else None
    return found if isinstance(found, str) else None


def tell_end(job: Job[Answer], command: str, lane: str | None, repository: str) -> None:
    """Writes into the service's own log how a command has ended; runs in the isolate's thread."""
    fields: dict[str, object] = {"cause": command, "lane": lane or lane_of_end(job), "repository": repository}
    if job.error is None:
        fields["position"] = getattr(job.result().document, "position", None)
        LOG.info("a command was done", extra={"fields": fields})
    elif (known := problem(job.error)) is not None:
        LOG.info("a command was not done", extra={"fields": fields | {"problem": known.code}})
    else:
        LOG.error("a command has met a bug", extra={"fields": fields | {"trace": job.trace}})


def told(error: Exception) -> Problem:
    """Returns the problem that an error is; what only a bug explains is an internal error."""
    return problem(error) or made(
        "internal_error",
        "the service has met a bug of its own. What was written down stays; the service's log names it.",
        {},
        "unavailable",
        500,
    )


async def follow(request: Http, command: str) -> Response[bytes]:
    """Tells how far a command is, also of one that only the log remembers. Raises NoSuchCommand."""
    service = service_of(request)
    known = service.commands.find(command)
    if known is not None:
        limits = service.settings.configuration.service
        await known.job.wait(preference(prefer_of(request), 0, limits.longest_wait).seconds)
        shown = document(known)
    else:
        shown = _recorded(service, command)
    return respond(request, Answer(document=shown, text=f"command {command} is {shown.state}"))


def _recorded(service: Service, command: str) -> Command:
    found = service.tables.reader.command(command)
    if found is None:
        raise NoSuchCommand(command)
    _, stream, position = found
    lane = lane_of(stream)
    row = service.tables.lane(lane) if lane else None
    owed = row is not None and row["owed"] is not None
    return Command(id=command, state="running" if owed else "done", lane=lane, position=position)


async def answer_of(request: Http, command: str) -> Response[bytes]:
    """Answers as the command's own request would have been. Raises NoSuchCommand, AnswerForgotten."""
    service, limits = service_of(request), service_of(request).settings.configuration.service
    known = service.commands.find(command)
    if known is None:
        _recorded(service, command)
        raise AnswerForgotten(command)
    waiting = preference(prefer_of(request), limits.wait, limits.longest_wait)
    await known.job.wait(waiting.seconds)
    applied = {"Preference-Applied": waiting.applied} if waiting.applied else {}
    return _answered(request, known, applied)
