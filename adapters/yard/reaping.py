"""The irreversible step, and the exits of a review that lead to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.yard.capturing import capture, place_of
from adapters.yard.yard import Concluded, Done, ended
from domain.commands import DiscardLane, ReapLane
from domain.errors import WrongState
from domain.events import ReapingPlanned, TreeRetried
from domain.evidence import Consent
from domain.paths import display
from domain.states import NeedsReview, Quarantined, Reaped, Reaping, Returning, Undoing, name

if TYPE_CHECKING:
    from adapters.engine import Request
    from adapters.store.reader import Record
    from adapters.yard.yard import Yard


async def reap(yard: Yard, row: Record, request: Request) -> Done:
    """Deletes a quarantined tree once everything in it is explained; without a snapshot takes one."""
    if (earlier := yard.answered(request)) is not None:
        return reaped(earlier)
    lane_id = str(row["id"])
    request = yard.resumed(request, lane_id)
    lane, _ = yard.reader.lane(lane_id)
    if isinstance(lane, Quarantined) and lane.record.editions[-1].snapshot_id is None:
        seen = await yard.inspector.look(lane.place)
        committed, _ = await capture(yard, lane_id, seen, request.aside())
        request = request.after(committed)
    await yard.engine.handle(lane_id, ReapLane(), request)
    return reaped(yard.concluded(request, lane_id))


def begun(concluded: Concluded) -> bool:
    """Tells whether the request has come as far as a deletion."""
    return any(isinstance(fact, ReapingPlanned | TreeRetried) for fact in concluded.facts)


def reaped(concluded: Concluded) -> Done:
    """Returns how a deletion has ended."""
    lane = concluded.lane
    if isinstance(lane, NeedsReview):
        return ended(concluded, (lane.cause, lane.reason))
    if isinstance(lane, Reaping | Undoing | Returning):
        doomed = lane.demolition
        left = doomed.left if doomed else ()
        return ended(concluded, ("residual", f"{len(left)} entries could not be deleted"))
    given_up = [
        f"given up by consent: {display(path)}"
        for fact in concluded.facts
        if isinstance(fact, ReapingPlanned) and fact.consent is not None
        for path in fact.consent.paths
    ]
    return ended(concluded, None, *_beside(concluded), *given_up)


def _beside(concluded: Concluded) -> tuple[str, ...]:
    """Returns where the rest is of a tree that was captured again when a deletion of it had begun."""
    record = concluded.lane.record if isinstance(concluded.lane, Reaped) else None
    left = record.left_of(record.edition) if record else None
    if record is None or left is None or left == record.editions[-1].snapshot_id:
        return ()
    what = f"what was left when it was captured again is in snapshot {left}"
    return (f"{what}; laneyard restore {record.slug} --snapshot {left[:8]} brings that back",)


async def resnapshot(yard: Yard, row: Record, request: Request) -> Done:
    """Captures what a review has looked at as it is now, and reaps it from that."""
    if (earlier := yard.answered(request)) is not None:
        return reaped(earlier)
    lane_id = str(row["id"])
    request = yard.resumed(request, lane_id)
    lane, _ = yard.reader.lane(lane_id)
    if not isinstance(lane, NeedsReview):
        raise WrongState("reviewed", name(lane))
    seen = await yard.inspector.look(place_of(lane, "reviewed"))
    committed, taken = await capture(yard, lane_id, seen, request.aside())
    await yard.engine.handle(lane_id, ReapLane(snapshot=taken.id), request.after(committed))
    return reaped(yard.concluded(request, lane_id))


async def discard(yard: Yard, row: Record, request: Request) -> Done:
    """Deletes what a review has looked at, with a recorded consent that names it."""
    if (earlier := yard.answered(request)) is not None:
        return reaped(earlier)
    lane_id = str(row["id"])
    lane, _ = yard.reader.lane(lane_id)
    if not isinstance(lane, NeedsReview):
        raise WrongState("discarded", name(lane))
    paths = lane.paths if lane.paths and len(lane.paths) == lane.count else (".",)
    command = DiscardLane(consent=Consent(paths, "review --discard"))
    await yard.engine.handle(lane_id, command, request)
    return reaped(yard.concluded(request, lane_id))
