"""Deleting with a consent that a person gives: it names what was seen and stands in the way, and no more."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters.yard.capturing import capture
from adapters.yard.reaping import look_at_rest, reaped
from domain.commands import DiscardLane
from domain.envelope import stream_of
from domain.errors import TooManyToName, WrongState
from domain.evidence import CONSENT_LIMIT, Consent, Ignored
from domain.paths import unpack
from domain.snapshots import lies_in
from domain.states import NeedsReview, Quarantined, name

if TYPE_CHECKING:
    from adapters.engine import Request
    from adapters.store.reader import Record
    from adapters.yard.yard import Done, Yard

WHY = "review --discard"
WHOLE = ("registration_changed", "unreadable")  # causes that name what is agreed to with all that is in it
EVERYTHING = ("tree_missing", "snapshot_damaged", "registration_changed")  # where nothing can be named


async def discard(yard: Yard, row: Record, request: Request) -> Done:
    """Deletes a lane in review, or one whose reaping is refused, with a recorded consent that names why.

    Of what comes after the look that has named it nothing is agreed to. Raises a Refusal.
    """
    if (earlier := yard.answered(request)) is not None:
        return reaped(earlier)
    lane_id = str(row["id"])
    request = yard.resumed(request, lane_id)
    lane, _ = yard.reader.lane(lane_id)
    match lane:
        case NeedsReview():
            return await _discard_reviewed(yard, lane_id, lane, request)
        case Quarantined():
            return await _discard_resting(yard, row, lane, request)
        case _:
            raise WrongState("discarded", name(lane))


async def _discard_reviewed(yard: Yard, lane_id: str, lane: NeedsReview, request: Request) -> Done:
    if not _is_named(lane):
        looked = DiscardLane(consent=Consent((), WHY))
        request = request.after(await yard.engine.handle(lane_id, looked, request.aside()))
        again, _ = yard.reader.lane(lane_id)
        if not isinstance(again, NeedsReview) or not _is_same(lane, again):
            await yard.engine.note(stream_of(lane_id), (), request)
            return reaped(yard.concluded(request, lane_id))
        lane = again
    if lane.count > len(lane.paths):
        raise TooManyToName(lane.count, CONSENT_LIMIT)
    await yard.engine.handle(lane_id, DiscardLane(consent=_consent(lane)), request)
    return reaped(yard.concluded(request, lane_id))


def _is_named(lane: NeedsReview) -> bool:
    """Tells whether the review names all that stands in the way, or there is nothing that it could name."""
    if lane.paths or lane.count:
        return lane.count <= len(lane.paths)
    return lane.detail == "tree_missing" and not os.path.lexists(unpack(lane.demolition.place.path))


def _is_same(lane: NeedsReview, again: NeedsReview) -> bool:
    """Tells whether a new look has found what the review was about, so that it may be agreed to."""
    if not again.paths and again.detail not in EVERYTHING:
        return False
    if lane.detail != "changed_while_reaping" or again.detail == lane.detail:
        return again.detail == lane.detail
    if again.detail == "registration_changed":
        return not lane.paths
    return again.detail == "unexplained_entries"


def _consent(lane: NeedsReview) -> Consent:
    if not lane.paths:
        return Consent((".",), WHY)
    return Consent(lane.paths, WHY) if lane.detail in WHOLE else Consent((), WHY, lane.paths)


async def _discard_resting(yard: Yard, row: Record, lane: Quarantined, request: Request) -> Done:
    """Agrees to lose what a snapshot cannot hold, or nobody has agreed to lose, and deletes the rest."""
    lane_id, last = str(row["id"]), lane.record.editions[-1]
    taken, held = lane.record.snapshot(last.snapshot_id), tuple[Ignored, ...]()
    if taken is None:
        seen, held = await look_at_rest(yard, row, lane)
        committed, taken = await capture(yard, lane_id, seen, request.aside(), tolerant=True)
        request = request.after(committed)
    agreed = frozenset(lane.consent.named if lane.consent else ())
    omitted = (path for path in taken.omitted if not lies_in(path, agreed))
    named = tuple(dict.fromkeys((*(each.path for each in held), *omitted)))
    if not named:
        raise WrongState("discarded", name(lane))
    await yard.engine.handle(lane_id, DiscardLane(consent=Consent(named, WHY)), request)
    return reaped(yard.concluded(request, lane_id))
