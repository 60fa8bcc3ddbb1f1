"""The irreversible step, and the exit of a review that captures the tree again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.yard.capturing import SnapshotNotMade, capture, held_before, place_of, wanted
from adapters.yard.yard import Concluded, Done, ended
from domain.commands import ReapLane
from domain.envelope import stream_of
from domain.errors import CannotHold, WrongState
from domain.events import IgnoredLetGo, ReapingPlanned, RemovalPlanned, TreeResisted, TreeRetried
from domain.evidence import Unknown
from domain.paths import display
from domain.reaping import held_back
from domain.snapshots import unknown_ignored
from domain.states import NeedsReview, Quarantined, Reaped, Reaping, Returning, Undoing, name

if TYPE_CHECKING:
    from adapters.engine import Request
    from adapters.store.journal import Committed
    from adapters.store.reader import Record
    from adapters.yard.yard import Yard
    from domain.evidence import Ignored, Seen, Snapshot


async def reap(yard: Yard, row: Record, request: Request) -> Done:
    """Deletes a quarantined tree once everything in it is explained; without a snapshot takes one."""
    if (earlier := yard.answered(request)) is not None:
        return reaped(earlier)
    lane_id = str(row["id"])
    request = yard.resumed(request, lane_id)
    lane, _ = yard.reader.lane(lane_id)
    if isinstance(lane, Quarantined) and lane.record.editions[-1].snapshot_id is None:
        seen, held = await look_at_rest(yard, row, lane)
        if held:
            raise _not_agreed(held, _way_out(row))
        request = request.after((await _captured(yard, row, seen, request))[0])
    await yard.engine.handle(lane_id, ReapLane(), request)
    return reaped(yard.concluded(request, lane_id))


async def look_at_rest(yard: Yard, row: Record, lane: Quarantined) -> tuple[Seen, tuple[Ignored, ...]]:
    """Looks at a lane that has no snapshot, and returns which ignored paths nobody has agreed to lose."""
    seen = await yard.inspector.look(lane.place, rules=wanted(yard, row).rules)
    if isinstance(seen.ignored, Unknown):
        return seen, ()
    let_go: tuple[Ignored, ...] = ()
    for event in yard.reader.events(stream=stream_of(str(row["id"]))):
        if isinstance(event.fact, RemovalPlanned | IgnoredLetGo):
            let_go = getattr(event.fact, "ignored", ())
    paths = tuple(each.path for each in let_go)
    return seen, held_back(seen.ignored, lane.consent.paths if lane.consent else (), paths)


def _not_agreed(held: tuple[Ignored, ...], remedy: str) -> SnapshotNotMade:
    refused = unknown_ignored(held)
    return SnapshotNotMade(refused.code, refused.cause, remedy, refused.details)


async def _captured(
    yard: Yard, row: Record, seen: Seen, request: Request, apart: tuple[str, ...] = ()
) -> tuple[Committed, Snapshot]:
    """Takes a snapshot of a tree at rest; where it cannot hold something, says what can be done about it."""
    try:
        return await capture(yard, str(row["id"]), seen, request.aside(), apart=apart)
    except CannotHold as error:
        raise SnapshotNotMade(error.code, error.cause, _way_out(row), error.details) from error
    except SnapshotNotMade as error:
        if error.code != CannotHold.code:
            raise
        raise SnapshotNotMade(error.code, error.reason, _way_out(row)) from error


def _way_out(row: Record) -> str:
    slug = row["slug"]
    discard = f"'laneyard review {slug} --discard' deletes the lane with a consent that names this"
    return f"{discard}; 'laneyard restore {slug}' brings it back as it is."


def begun(concluded: Concluded) -> bool:
    """Tells whether the request has come as far as a deletion."""
    return any(isinstance(fact, ReapingPlanned | TreeRetried) for fact in concluded.facts)


def reaped(concluded: Concluded) -> Done:
    """Returns how a deletion has ended."""
    lane = concluded.lane
    if isinstance(lane, NeedsReview):
        return ended(concluded, (lane.detail, lane.reason))
    if isinstance(lane, Reaping | Undoing | Returning):
        told = [fact.reason for fact in concluded.facts if isinstance(fact, TreeResisted)]
        return ended(concluded, ("residual", told[-1] if told else "entries could not be deleted"))
    named = [
        path
        for fact in concluded.facts
        if isinstance(fact, ReapingPlanned) and fact.consent is not None
        for path in fact.consent.named
    ]
    made = [path for path in named if path in concluded.let_go]
    again = [f"{_AGAIN}: {display(path)}" for path in made[:MOST]]
    if len(made) > MOST:
        again.append(f"{_AGAIN}: {len(made) - MOST} more, which the log names")
    given_up = [f"given up by consent: {display(path)}" for path in named if path not in concluded.let_go]
    return ended(concluded, None, *_beside(concluded), *again, *given_up)


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
    seen = await yard.inspector.look(place_of(lane, "reviewed"), rules=wanted(yard, row).rules)
    committed, taken = await _captured(yard, row, seen, request, held_before(lane, seen))
    await yard.engine.handle(lane_id, ReapLane(snapshot=taken.id), request.after(committed))
    return reaped(yard.concluded(request, lane_id))


_AGAIN = "not kept, as it can be made again"
MOST = 20  # paths of what can be made again that are named before they are only counted
