"""Restoring, reaping, reviewing, sweeping: what becomes of a lane that was put away."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from adapters.clock import now
from adapters.config import repository_configuration, retention
from adapters.snapshots.capture import verify
from adapters.snapshots.manifest import SnapshotDamaged, snapshot_dir
from adapters.store.journal import ClaimTaken
from adapters.store.reader import Record
from adapters.yard.putting_away import capture, place_of
from adapters.yard.yard import Done, ended
from domain import lane as lanes
from domain.commands import DiscardLane, ReapLane, RestoreLane
from domain.errors import Refusal, SnapshotUnusable, WrongState
from domain.events import ReapingPlanned, RestoreAbandoned
from domain.evidence import Consent
from domain.naming import numbered
from domain.paths import display, pack, unpack
from domain.states import Active, NeedsReview, Quarantined, Reaped, Reaping, Returning, Undoing, name

if TYPE_CHECKING:
    from adapters.engine import Request
    from adapters.repositories import Repository
    from adapters.store.journal import Committed
    from adapters.yard.yard import Yard
    from domain.states import Lane

SUFFIXES = 10_000


async def restore(
    yard: Yard,
    repository: Repository,
    row: Record,
    request: Request,
    *,
    edition: int | None = None,
    snapshot: str | None = None,
) -> Done:
    """Brings a lane back to its place, or to the next free one. Raises a Refusal."""
    if (earlier := yard.answered(request)) is not None:
        return _restored(earlier)
    lane_id, taken = str(row["id"]), set[str]()
    lane, _ = yard.reader.lane(lane_id)
    snapshot = _full_id(lane, snapshot)
    while True:
        slug, path = _destination(repository, lane, str(row["slug"]), taken)
        command = RestoreLane(slug=slug, path=pack(path), edition=edition, snapshot=snapshot)
        if not taken:
            await _require_readable(yard, repository, lane, command)
        try:
            committed = await yard.engine.handle(lane_id, command, request)
        except ClaimTaken as error:
            if error.kind == "branch":
                raise
            taken.add(slug)
            continue
        return _restored(committed)


async def _require_readable(yard: Yard, repository: Repository, lane: Lane, command: RestoreLane) -> None:
    """Reads the snapshot back before anything is made from it. Raises a Refusal."""
    for fact in lanes.decide(lane, command):
        chosen = getattr(fact, "snapshot_id", None)
        taken = lane.record.snapshot(chosen) if isinstance(lane, Reaped) else None
        if taken is not None:
            directory = snapshot_dir(yard.settings.state_dir, taken.id)
            try:
                await verify(yard.git, directory, repository.common, taken)
            except SnapshotDamaged as error:
                raise SnapshotUnusable(taken.id, str(error)) from error


def _restored(committed: Committed) -> Done:
    for fact in committed.facts:
        if isinstance(fact, RestoreAbandoned):
            return ended(committed, (fact.code, fact.reason))
    lane = committed.lane
    if isinstance(lane, NeedsReview):
        return ended(committed, (lane.cause, lane.reason))
    differences = getattr(committed.facts[-1], "differences", ())
    return ended(committed, None, *(differences if isinstance(lane, Active) else ()))


def _full_id(lane: Lane, wanted: str | None) -> str | None:
    """Returns the snapshot's whole id for its beginning; the decision refuses an unknown one."""
    if wanted is None or not hasattr(lane, "record"):
        return wanted
    found = [each.id for each in lane.record.snapshots if each.id.startswith(wanted)]
    return found[0] if len(found) == 1 else wanted


def _destination(repository: Repository, lane: Lane, slug: str, taken: set[str]) -> tuple[str, bytes]:
    """Returns the lane's own place if nothing is there, else the next free one in the managed root."""
    origin = _origin(lane)
    if origin is not None and slug not in taken and not os.path.lexists(origin):
        return slug, origin
    for number in range(1, SUFFIXES):
        chosen = numbered(slug, number)
        path = repository.managed(chosen)
        if chosen not in taken and not os.path.lexists(path):
            return chosen, path
    raise WrongState("restored: there is no free place", name(lane))


def _origin(lane: Lane) -> bytes | None:
    match lane:
        case Quarantined(origin=origin):
            return unpack(origin)
        case NeedsReview(record=record) | Reaped(record=record) if record.editions:
            return unpack(record.editions[-1].path)
        case _:
            return None


async def reap(yard: Yard, row: Record, request: Request) -> Done:
    """Deletes a quarantined tree once everything in it is explained; without a snapshot takes one."""
    if (earlier := yard.answered(request)) is not None:
        return _reaped(earlier)
    lane_id = str(row["id"])
    lane, _ = yard.reader.lane(lane_id)
    if isinstance(lane, Quarantined) and lane.record.editions[-1].snapshot_id is None:
        seen = await yard.inspector.look(lane.place)
        await capture(yard, lane_id, seen, request.aside())
    return _reaped(await yard.engine.handle(lane_id, ReapLane(), request))


def _reaped(committed: Committed) -> Done:
    lane = committed.lane
    if isinstance(lane, NeedsReview):
        return ended(committed, (lane.cause, lane.reason))
    if isinstance(lane, Reaping | Undoing | Returning):
        doomed = lane.demolition
        left = doomed.left if doomed else ()
        return ended(committed, ("residual", f"{len(left)} entries could not be deleted"))
    given_up = [
        f"given up by consent: {display(path)}"
        for fact in committed.facts
        if isinstance(fact, ReapingPlanned) and fact.consent is not None
        for path in fact.consent.paths
    ]
    return ended(committed, None, *given_up)


async def resnapshot(yard: Yard, row: Record, request: Request) -> Done:
    """Captures what a review has looked at as it is now, and reaps it from that."""
    if (earlier := yard.answered(request)) is not None:
        return _reaped(earlier)
    lane_id = str(row["id"])
    lane, _ = yard.reader.lane(lane_id)
    if not isinstance(lane, NeedsReview):
        raise WrongState("reviewed", name(lane))
    seen = await yard.inspector.look(place_of(lane, "reviewed"))
    _, taken = await capture(yard, lane_id, seen, request.aside())
    return _reaped(await yard.engine.handle(lane_id, ReapLane(snapshot=taken.id), request))


async def discard(yard: Yard, row: Record, request: Request) -> Done:
    """Deletes what a review has looked at, with a recorded consent that names it."""
    if (earlier := yard.answered(request)) is not None:
        return _reaped(earlier)
    lane_id = str(row["id"])
    lane, _ = yard.reader.lane(lane_id)
    if not isinstance(lane, NeedsReview):
        raise WrongState("discarded", name(lane))
    paths = lane.paths if lane.paths and len(lane.paths) == lane.count else (".",)
    command = DiscardLane(consent=Consent(paths, "review --discard"))
    return _reaped(await yard.engine.handle(lane_id, command, request))


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A lane that a sweep has looked at: `action` is reap, retry or wait."""

    row: Record
    action: str
    until: str | None
    reason: str


def candidates(yard: Yard, repository: str | None) -> list[Candidate]:
    """Returns every lane, of one repository or of all, that a sweep would touch now or later."""
    found, at = [], now()
    for row in yard.reader.lanes():
        if repository is not None and row["repository"] != repository:
            continue
        if row["state"] == "quarantined":
            until = _until(yard, row)
            action = "reap" if until <= at else "wait"
            reason = f"in quarantine since {row['since']}"
            found.append(Candidate(row=row, action=action, until=until, reason=reason))
        elif row["state"] in ("reaping", "opening", "returning") and row["owed"] is None:
            reason = "a deletion could not be finished"
            found.append(Candidate(row=row, action="retry", until=None, reason=reason))
    return found


def _until(yard: Yard, row: Record) -> str:
    """Returns when the lane's retention ends."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(unpack(str(row["path"])))))
    rest = retention(yard.settings.configuration, repository_configuration(root))
    since = datetime.fromisoformat(str(row["since"])).astimezone(UTC)
    end = since + timedelta(seconds=rest)
    return end.isoformat(timespec="microseconds").replace("+00:00", "Z")


class Swept(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep did with one lane."""

    candidate: Candidate
    done: Done | None = None
    refused: tuple[str, str] | None = None


async def sweep(yard: Yard, repository: str | None, request: Request) -> list[Swept]:
    """Reaps what has rested long enough and retries residuals; one lane's trouble is no other's."""
    swept = []
    for each in candidates(yard, repository):
        if each.action == "wait":
            continue
        try:
            swept.append(Swept(candidate=each, done=await reap(yard, each.row, request)))
        except Refusal as error:
            swept.append(Swept(candidate=each, refused=(error.code, str(error))))
    return swept
