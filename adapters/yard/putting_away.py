"""Snapshots and removals: look, keep what must be kept, look again, and only then plan the move."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from uuid import uuid4

from adapters.yard.yard import Done, ended
from domain import lane as lanes
from domain.commands import RemoveLane, SnapshotLane
from domain.errors import ChangedSinceSnapshot, NotSnapshotted, Refusal, StateInside, WrongState
from domain.events import LaneSnapshotted, RemovalAbandoned, SnapshotFailed, SnapshotPlanned
from domain.paths import display, pack, unpack
from domain.states import Active, NeedsReview, Quarantined, name

if TYPE_CHECKING:
    from adapters.engine import Request
    from adapters.repositories import Repository
    from adapters.store.journal import Committed
    from adapters.store.reader import Record
    from adapters.yard.yard import Yard
    from domain.events import Mode
    from domain.evidence import Place, Seen, Snapshot
    from domain.states import Lane

ATTEMPTS = 3  # snapshots of a lane that somebody keeps writing to


class SnapshotNotMade(Refusal):
    """A capture has failed, and nothing was changed. The code is the capture's."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__()
        self.code, self.reason = code, reason  # type: ignore[misc]

    @property
    def details(self) -> dict[str, object]:
        """Returns why."""
        return {"reason": self.reason}

    def __str__(self) -> str:
        return f"no snapshot was made: {self.reason}."


async def snapshot(yard: Yard, row: Record, request: Request, *, tolerant: bool = False) -> Done:
    """Captures a lane without removing it. Raises a Refusal."""
    if (earlier := yard.answered(request)) is not None:
        return ended(earlier)
    lane, _ = yard.reader.lane(str(row["id"]))
    seen = await yard.inspector.look(place_of(lane, "snapshotted"))
    committed, _ = await capture(yard, str(row["id"]), seen, request, tolerant=tolerant)
    return ended(committed)


async def capture(
    yard: Yard, lane_id: str, seen: Seen, request: Request, *, tolerant: bool = False
) -> tuple[Committed, Snapshot]:
    """Takes a snapshot of what was seen. Raises a Refusal, or SnapshotNotMade."""
    command = SnapshotLane(snapshot=str(uuid4()), seen=seen, tolerant=tolerant)
    committed = await yard.engine.handle(lane_id, command, request)
    for fact in committed.facts:
        if isinstance(fact, SnapshotFailed):
            raise SnapshotNotMade(fact.code, fact.reason)
        if isinstance(fact, LaneSnapshotted):
            return committed, fact.snapshot
    raise SnapshotNotMade("interrupted", "the capture ended without an answer")


async def remove(
    yard: Yard, repository: Repository, row: Record, request: Request, *, mode: Mode, delete_branch: bool
) -> Done:
    """Puts a lane into quarantine, with a snapshot first if there is work in it. Raises a Refusal."""
    if (earlier := yard.answered(request)) is not None:
        return _removed(earlier)
    lane_id = str(row["id"])
    lane, _ = yard.reader.lane(lane_id)
    place = place_of(lane, "removed")
    _require_outside(yard, place)
    resting = pack(repository.resting(f"{row['slug']}-{lane_id[:8]}-{int(row['edition'] or 0) + 1}"))
    seen = await yard.inspector.look(place)
    base = RemoveLane(resting=resting, seen=seen, mode=mode, delete_branch=delete_branch)
    if not _needs_snapshot(lane, base):
        return _removed(await yard.engine.handle(lane_id, base, request))
    for attempt in range(ATTEMPTS):
        seen = await yard.inspector.look(place) if attempt else seen
        command = await _with_snapshot(yard, lane_id, place, base, seen, request)
        try:
            kept = delete_branch and not command.delete_branch
            return _removed(await yard.engine.handle(lane_id, command, request), branch_kept=kept)
        except ChangedSinceSnapshot:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def _needs_snapshot(lane: Lane, command: RemoveLane) -> bool:
    """Asks the decision itself, without writing anything down; it refuses here what it would refuse later."""
    try:
        facts = lanes.decide(lane, command)
    except NotSnapshotted:
        return True
    planned = facts[0]
    consent = getattr(planned, "consent", None)
    return command.mode == "force" and (consent is not None or command.delete_branch)


async def _with_snapshot(
    yard: Yard, lane_id: str, place: Place, base: RemoveLane, seen: Seen, request: Request
) -> RemoveLane:
    """Returns the command with a snapshot and a look taken after it; forced, also without one."""
    tolerant = base.mode == "force"
    try:
        committed, taken = await capture(yard, lane_id, seen, request.aside(), tolerant=tolerant)
    except SnapshotNotMade:
        if not tolerant:
            raise
        return _replace(base, seen, None)
    again = await yard.inspector.look(place, omit=_left_out(committed))
    return _replace(base, again, taken.id)


def _left_out(committed: Committed) -> tuple[str, ...]:
    """Returns the paths that the capture did not look into, as its fingerprint does not."""
    return next((fact.omit for fact in committed.facts if isinstance(fact, SnapshotPlanned)), ())


def _require_outside(yard: Yard, place: Place) -> None:
    """Refuses to move the log away from under our feet."""
    state = os.path.realpath(yard.settings.state_dir)
    if (state + b"/").startswith(unpack(place.path) + b"/"):
        raise StateInside(display(place.path), os.fsdecode(state))


def _replace(base: RemoveLane, seen: Seen, taken: str | None) -> RemoveLane:
    return RemoveLane(
        resting=base.resting,
        seen=seen,
        mode=base.mode,
        snapshot=taken,
        delete_branch=base.delete_branch and taken is not None,
    )


def _removed(committed: Committed, *, branch_kept: bool = False) -> Done:
    for fact in committed.facts:
        if isinstance(fact, RemovalAbandoned):
            return ended(committed, (fact.code, fact.reason))
    lane = committed.lane
    warnings = lane.warnings if isinstance(lane, Quarantined) else ()
    if branch_kept:
        warnings = (*warnings, "the branch is kept, as no snapshot holds its commits")
    return ended(committed, None, *warnings)


def place_of(lane: Lane, verb: str) -> Place:
    """Returns where the lane's tree is. Raises WrongState where it has none to look at."""
    match lane:
        case Active(place=place) | Quarantined(place=place):
            return place
        case NeedsReview(demolition=doomed):
            return doomed.place
        case _:
            raise WrongState(verb, name(lane))
