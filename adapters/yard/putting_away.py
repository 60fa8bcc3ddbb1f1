"""Removals: look, keep what must be kept, look again, and only then plan the move."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from adapters.yard.capturing import SnapshotNotMade, capture, place_of, snapshot, try_capture, wanted
from adapters.yard.reaping import begun, reap, reaped
from adapters.yard.yard import Concluded, Done, ended
from domain import lane as lanes
from domain.commands import RemoveLane
from domain.errors import ChangedSinceSnapshot, NotSnapshotted, Refusal, StateInside
from domain.events import RemovalAbandoned, RemovalPlanned, SnapshotPlanned
from domain.paths import display, pack, unpack
from domain.states import Quarantined

if TYPE_CHECKING:
    from adapters.engine import Request
    from adapters.ignored.wanted import Include, Wanted
    from adapters.repositories import Repository
    from adapters.store.journal import Committed
    from adapters.store.reader import Record
    from adapters.yard.yard import Yard
    from domain.events import Mode
    from domain.evidence import Place
    from domain.states import Lane

__all__ = ["ReapRefused", "SnapshotNotMade", "capture", "place_of", "remove", "snapshot"]

ATTEMPTS = 3  # snapshots of a lane that somebody keeps writing to


class ReapRefused(Exception):
    """The lane is in quarantine, as was asked for, and the reaping that was to follow is refused."""

    def __init__(self, slug: str, refusal: Refusal) -> None:
        super().__init__(f"{slug} is in quarantine, but was not reaped: {refusal}")
        self.slug, self.refusal = slug, refusal


async def remove(
    yard: Yard,
    repository: Repository,
    row: Record,
    request: Request,
    *,
    mode: Mode,
    delete_branch: bool,
    reap: bool = False,
    include: Include = False,
) -> Done:
    """Puts a lane into quarantine, with a snapshot first if there is work in it, and reaps it if asked to.

    The snapshot holds the ignored files that are to be included. Raises a Refusal, after which the lane is
    where it was, or ReapRefused.
    """
    concluded = yard.answered(request)
    if concluded is None:
        asked = wanted(yard, row, include)
        await _put_away(yard, repository, row, request, asked, mode=mode, delete_branch=delete_branch)
        concluded = yard.concluded(request, str(row["id"]))
    if reap and _still_rests(yard, concluded):
        await _reap_as_well(yard, concluded, request)
        concluded = yard.concluded(request, concluded.lane_id)
    return reaped(concluded) if begun(concluded) else _removed(concluded, delete_branch=delete_branch)


def _still_rests(yard: Yard, concluded: Concluded) -> bool:
    """Tells whether the lane rests as this request has put it away, and not as a later one has."""
    lane, _ = yard.reader.lane(concluded.lane_id)
    left = concluded.lane
    if not isinstance(lane, Quarantined) or not isinstance(left, Quarantined):
        return False
    return lane.record.edition == left.record.edition


async def _reap_as_well(yard: Yard, concluded: Concluded, request: Request) -> None:
    row = concluded.row
    assert row is not None
    try:
        await reap(yard, row, request.aside().at(concluded.version))
    except Refusal as error:
        raise ReapRefused(str(row["slug"]), error) from error


async def _put_away(
    yard: Yard,
    repository: Repository,
    row: Record,
    request: Request,
    asked: Wanted,
    *,
    mode: Mode,
    delete_branch: bool,
) -> None:
    lane_id = str(row["id"])
    request = yard.resumed(request, lane_id)
    lane, _ = yard.reader.lane(lane_id)
    place = place_of(lane, "removed")
    _require_outside(yard, place)
    resting = pack(repository.resting(f"{row['slug']}-{lane_id[:8]}-{int(row['edition'] or 0) + 1}"))
    seen = await yard.inspector.look(place, rules=asked.rules)
    base = RemoveLane(
        resting=resting, seen=seen, mode=mode, delete_branch=delete_branch, apart=asked.chosen(seen)
    )
    if not _needs_snapshot(lane, base):
        await yard.engine.handle(lane_id, base, request)
        return
    await _keep_and_put_away(yard, lane_id, place, base, request, asked)


async def _keep_and_put_away(
    yard: Yard, lane_id: str, place: Place, base: RemoveLane, request: Request, asked: Wanted
) -> None:
    """Removes the lane with a snapshot that is as the tree is, even if somebody writes there meanwhile."""
    for attempt in range(ATTEMPTS):
        if attempt:
            seen = await yard.inspector.look(place, rules=asked.rules)
            base = msgspec.structs.replace(base, seen=seen, apart=asked.chosen(seen))
        committed, command = await _with_snapshot(yard, lane_id, place, base, request.aside(), asked)
        request = request.after(committed)
        try:
            await yard.engine.handle(lane_id, command, request)
        except ChangedSinceSnapshot:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return


def _needs_snapshot(lane: Lane, command: RemoveLane) -> bool:
    """Asks the decision itself, without writing anything down; it refuses here what it would refuse later."""
    try:
        lanes.decide(lane, command)
    except NotSnapshotted:
        return True
    return command.mode == "force"  # only a capture finds all that a consent has to name


async def _with_snapshot(
    yard: Yard, lane_id: str, place: Place, base: RemoveLane, request: Request, asked: Wanted
) -> tuple[Committed, RemoveLane]:
    """Returns the command with a snapshot and a look taken after it; forced, also without one.

    Not where something was to be kept by it that is ignored: nobody has agreed to lose that.
    """
    tolerant = base.mode == "force"
    committed, taken = await try_capture(
        yard, lane_id, base.seen, request, tolerant=tolerant, apart=base.apart
    )
    if isinstance(taken, SnapshotNotMade):
        if not tolerant or base.apart:
            raise taken
        return committed, msgspec.structs.replace(base, delete_branch=False)
    again = await yard.inspector.look(place, omit=_left_out(committed), rules=asked.rules)
    return committed, msgspec.structs.replace(base, seen=again, snapshot=taken.id)


def _left_out(committed: Committed) -> tuple[str, ...]:
    """Returns the paths that the capture did not look into, as its fingerprint does not."""
    return next((fact.omit for fact in committed.facts if isinstance(fact, SnapshotPlanned)), ())


def _require_outside(yard: Yard, place: Place) -> None:
    """Refuses to move the log away from under our feet."""
    state = os.path.realpath(yard.settings.state_dir)
    if (state + b"/").startswith(unpack(place.path) + b"/"):
        raise StateInside(display(place.path), os.fsdecode(state))


def _removed(concluded: Concluded, *, delete_branch: bool) -> Done:
    for fact in concluded.facts:
        if isinstance(fact, RemovalAbandoned):
            return ended(concluded, (fact.code, fact.reason))
    lane = concluded.lane
    warnings = lane.warnings if isinstance(lane, Quarantined) else ()
    plans = [fact for fact in concluded.facts if isinstance(fact, RemovalPlanned)]
    if delete_branch and plans and plans[-1].snapshot_id is None:
        warnings = (*warnings, "the branch is kept, as no snapshot holds its commits")
    return ended(concluded, None, *warnings)
