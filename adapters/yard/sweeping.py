"""Sweeps: what has rested long enough is reaped, and what could not be deleted is tried again.

A sweep is told in a stream of its own: which lanes were due, then how each has ended. Between the two, each
lane tells of itself, under the sweep's id as the cause; so a sweep that was interrupted can be gone on with.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import trio

from adapters.clock import now
from adapters.config import repository_configuration, retention
from adapters.snapshots.files import clear_pool
from adapters.store.reader import Record
from adapters.yard.concluded import row_after
from adapters.yard.reaping import begun, reap, reaped
from adapters.yard.yard import Done
from domain.envelope import stream_of, sweep_stream
from domain.errors import CommandReused, Refusal, VersionMismatch, WrongState
from domain.events import SweepFinished, SweepPlanned, SweptLane
from domain.lane import pending
from domain.paths import unpack
from domain.states import Failed, Reaped, name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapters.engine import Request
    from adapters.yard.yard import Yard


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A lane that a sweep has looked at: `action` is reap, retry or wait."""

    row: Record
    action: str
    until: str | None
    reason: str


def candidates(yard: Yard, repository: str | None) -> list[Candidate]:
    """Returns every lane, of one repository or of all, that a sweep would touch now or later."""
    here = [row for row in yard.reader.lanes() if repository is None or row["repository"] == repository]
    found = (_candidate(yard, row) for row in here)
    return [each for each in found if each is not None]


def _candidate(yard: Yard, row: Record) -> Candidate | None:
    if row["state"] == "quarantined":
        until = _until(yard, row)
        action = "reap" if until <= now() else "wait"
        return Candidate(row=row, action=action, until=until, reason=_reason(row))
    if row["state"] in ("reaping", "opening", "returning") and row["owed"] is None:
        return Candidate(row=row, action="retry", until=None, reason=_reason(row))
    return None


def _reason(row: Record) -> str:
    if row["state"] == "quarantined":
        return f"in quarantine since {row['since']}"
    return "a deletion could not be finished"


def _until(yard: Yard, row: Record) -> str:
    """Returns when the lane's retention ends."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(unpack(str(row["path"])))))
    rest = retention(yard.settings.configuration, repository_configuration(root))
    since = datetime.fromisoformat(str(row["since"])).astimezone(UTC)
    end = since + timedelta(seconds=rest)
    return end.isoformat(timespec="microseconds").replace("+00:00", "Z")


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep did with one lane: its row is that of the plan, in the state that it was left in."""

    candidate: Candidate
    done: Done | None = None
    refused: tuple[str, str] | None = None


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """A sweep as the log tells it; an empty one may be in no log, and has position 0 then."""

    lanes: tuple[str, ...]
    position: int = 0
    results: tuple[SweptLane, ...] | None = None


async def sweep(yard: Yard, repository: str | None, request: Request) -> list[Swept]:
    """Reaps what has rested long enough and retries residuals; one lane's trouble is no other's.

    The same request goes on with what it had planned, and is answered with what it had recorded.
    """
    planned = await plan_sweep(yard, repository, request)
    results = await sweep_lanes(yard, planned.lanes, request) if planned.results is None else ()
    return await finish_sweep(yard, planned, results, request)


async def plan_sweep(
    yard: Yard, repository: str | None, request: Request, due: Iterable[Candidate] | None = None
) -> Sweep:
    """Writes down which lanes are due, by default those that are now, unless the request has planned before.

    Nothing due is written down only for a request that may come again. What killed captures have kept in vain
    goes at once. Raises CommandReused.
    """
    await trio.to_thread.run_sync(clear_pool, yard.settings.state_dir)
    if (known := planned_before(yard, request)) is not None:
        return known
    found = candidates(yard, repository) if due is None else due
    chosen = tuple(str(each.row["id"]) for each in found if each.action != "wait")
    if not chosen and request.digest is None:
        return Sweep(lanes=())
    fact = SweepPlanned(repository=repository, lanes=chosen)
    await yard.engine.note(sweep_stream(request.id), (fact,), msgspec.structs.replace(request, expected=None))
    return _recorded(yard, request)


def planned_before(yard: Yard, request: Request) -> Sweep | None:
    """Returns what the log has of the sweep that was asked for by this request. Raises CommandReused."""
    stream = yard.asked(request)
    if stream not in (None, sweep_stream(request.id)):
        raise CommandReused(request.id)
    return _recorded(yard, request) if stream else None


def _recorded(yard: Yard, request: Request) -> Sweep:
    told = Sweep(lanes=())
    for event in yard.reader.events(stream=sweep_stream(request.id)):
        if isinstance(event.fact, SweepPlanned):
            told = Sweep(lanes=event.fact.lanes, position=event.position)
        elif isinstance(event.fact, SweepFinished):
            told = msgspec.structs.replace(told, results=event.fact.results)
    return told


async def sweep_lanes(yard: Yard, lanes: Iterable[str], request: Request) -> list[SweptLane]:
    """Sweeps planned lanes one by one."""
    return [await sweep_lane(yard, lane_id, request) for lane_id in lanes]


async def sweep_lane(yard: Yard, lane_id: str, request: Request) -> SweptLane:
    """Reaps a planned lane, or goes on with it; what is refused is said in the result, not raised.

    No other command may be at work in the lane.
    """
    lane, _ = yard.reader.lane(lane_id)
    concluded = yard.concluded(request, lane_id)
    try:
        if begun(concluded):
            if pending(concluded.lane) is not None:
                await yard.drive_on(lane_id, request)
                concluded = yard.concluded(request, lane_id)
            return _result(reaped(concluded))
        if isinstance(lane, Reaped | Failed):  # somebody else was quicker
            return SweptLane(lane=lane_id, state=name(lane))
        return _result(await reap(yard, _due(yard, lane_id), request.beside()))
    except Refusal as error:
        lane, _ = yard.reader.lane(lane_id)
        return SweptLane(lane=lane_id, state=name(lane), code=error.code, reason=str(error))


def _due(yard: Yard, lane_id: str) -> Record:
    """Returns the row of a lane that is due still: since the plan it may have come back, and gone anew."""
    row = row_after(yard.reader.events(stream=stream_of(lane_id)), lane_id)
    candidate = _candidate(yard, row) if row else None
    if row is None or candidate is None or candidate.action == "wait":
        raise WrongState("swept, as it is not due", str(row["state"]) if row else "none")
    return row


def _result(done: Done) -> SweptLane:
    code, reason = done.problem or (None, None)
    return SweptLane(lane=done.lane_id, state=name(done.lane), code=code, reason=reason)


async def finish_sweep(
    yard: Yard, planned: Sweep, results: Sequence[SweptLane], request: Request
) -> list[Swept]:
    """Writes down how every planned lane has ended, in any order, and returns it in the order of the plan.

    If it was written down before, that is what is returned.
    """
    if planned.results is None and planned.position:
        by_lane = {each.lane: each for each in results}
        fact = SweepFinished(results=tuple(by_lane[lane_id] for lane_id in planned.lanes))
        once = msgspec.structs.replace(request, digest=None, expected=1)
        with suppress(VersionMismatch):  # the same request has finished meanwhile: what it wrote down counts
            await yard.engine.note(sweep_stream(request.id), (fact,), once)
        planned = _recorded(yard, request)
    return [_swept(yard, each, planned.position) for each in planned.results or ()]


def _swept(yard: Yard, result: SweptLane, position: int) -> Swept:
    row = row_after(yard.reader.events(to=position, stream=stream_of(result.lane)), result.lane)
    assert row is not None
    action = "reap" if row["state"] == "quarantined" else "retry"
    left = Candidate(row=row | {"state": result.state}, action=action, until=None, reason=_reason(row))
    refused = None if result.code is None else (result.code, result.reason or "")
    return Swept(candidate=left, refused=refused)
