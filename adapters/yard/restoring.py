"""Bringing a lane back: to its place, or to the next free one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters.files.identity import identify
from adapters.snapshots.capture.capture import verify
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import snapshot_dir
from adapters.store.journal import ClaimTaken
from adapters.yard.yard import Concluded, Done, ended
from domain import lane as lanes
from domain.commands import RestoreLane
from domain.errors import SnapshotUnusable, WrongState
from domain.events import RestoreAbandoned, RestorePlanned
from domain.naming import numbered
from domain.paths import display, pack, unpack
from domain.restore import resting
from domain.snapshots import lies_in
from domain.states import Active, NeedsReview, Quarantined, Reaped, name

if TYPE_CHECKING:
    from adapters.engine import Request
    from adapters.repositories import Repository
    from adapters.store.reader import Record
    from adapters.yard.yard import Yard
    from domain.states import Lane

SUFFIXES = 10_000
NAMED = 5  # paths that a note names


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
            await yard.engine.handle(lane_id, command, request)
        except ClaimTaken as error:
            if error.kind == "branch":
                raise
            taken.add(slug)
            continue
        return _restored(yard.concluded(request, lane_id))


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


def _restored(concluded: Concluded) -> Done:
    for fact in concluded.facts:
        if isinstance(fact, RestoreAbandoned):
            return ended(concluded, (fact.code, _with_remedy(concluded.lane, fact.reason)))
    lane = concluded.lane
    if isinstance(lane, NeedsReview):
        return ended(concluded, (lane.detail, lane.reason))
    differences = getattr(concluded.facts[-1], "differences", ())
    more = _held_elsewhere(concluded)
    return ended(concluded, None, *((*differences, *more) if isinstance(lane, Active) else ()))


def _with_remedy(lane: Lane, reason: str) -> str:
    """Returns why a lane could not be put back; where its pointer was replaced, also what mends that."""
    if not isinstance(lane, NeedsReview) or ".git" not in lane.paths:
        return reason
    said = f"gitdir: {display(lane.demolition.place.admin)}"
    return f"{reason}; move the .git that is there away, make a file .git that says '{said}', and try again"


def _held_elsewhere(concluded: Concluded) -> tuple[str, ...]:
    """Returns which earlier snapshot of the same removal holds ignored files that the one used does not."""
    plan = next((fact for fact in concluded.facts if isinstance(fact, RestorePlanned)), None)
    record = concluded.lane.record if isinstance(concluded.lane, Active) else None
    used = record.snapshot(plan.snapshot_id) if record and plan else None
    if record is None or plan is None or used is None:
        return ()
    before = {each.snapshot_id for each in record.editions if each.number < plan.edition}
    held = frozenset(used.ignored)
    for each in reversed(record.snapshots[: record.snapshots.index(used)]):
        if each.id in before:
            break
        if more := [path for path in each.ignored if not lies_in(path, held)]:
            named = ", ".join(map(display, more[:NAMED])) + (" and others" if more[NAMED:] else "")
            out = f"laneyard snapshot extract {each.id[:8]} PATH --to DIRECTORY"
            return (f"the earlier snapshot {each.id[:8]} also holds {named}: {out}",)
    return ()


def _full_id(lane: Lane, wanted: str | None) -> str | None:
    """Returns the snapshot's whole id for its beginning; the decision refuses an unknown one."""
    if wanted is None or not hasattr(lane, "record"):
        return wanted
    found = [each.id for each in lane.record.snapshots if each.id.startswith(wanted)]
    return found[0] if len(found) == 1 else wanted


def _destination(repository: Repository, lane: Lane, slug: str, taken: set[str]) -> tuple[str, bytes]:
    """Returns the lane's own place if nothing is there, else the next free one in the managed root.

    A place is also free for the very tree that is there already: a restore was killed, or somebody moved it.
    """
    origin = _origin(lane)
    if origin is not None and slug not in taken and _is_free(origin, lane):
        return slug, origin
    for number in range(1, SUFFIXES):
        chosen = numbered(slug, number)
        path = repository.managed(chosen)
        if chosen not in taken and _is_free(path, lane):
            return chosen, path
    raise WrongState("restored: there is no free place", name(lane))


def _is_free(path: bytes, lane: Lane) -> bool:
    if not os.path.lexists(path):
        return True
    return isinstance(lane, Quarantined | NeedsReview) and resting(lane).identity.same(identify(path))


def _origin(lane: Lane) -> bytes | None:
    match lane:
        case Quarantined(origin=origin):
            return unpack(origin)
        case NeedsReview(record=record) | Reaped(record=record) if record.editions:
            return unpack(record.editions[-1].path)
        case _:
            return None
