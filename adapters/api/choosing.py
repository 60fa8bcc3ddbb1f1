"""Which snapshot is meant by what people call it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from adapters.api.snapshot_documents import FoundSnapshot
from adapters.lookup import PREFIX, find_lane
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import lane_in, snapshot_dir
from domain.envelope import lane_of
from domain.errors import AmbiguousSnapshot, NoSuchEdition, NoSuchLane, NoSuchSnapshot
from domain.events import LaneSnapshotted
from domain.evidence import Snapshot
from domain.states import Nowhere, Record

if TYPE_CHECKING:
    from adapters.store.reader import Reader
    from adapters.store.reader import Record as Row

WHOLE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
BEGINNING = re.compile(rf"[0-9a-f][0-9a-f-]{{{PREFIX - 1},35}}")
EDITION = re.compile(r"(.+)@([0-9]{1,9})", re.DOTALL)


class UnknownSnapshot(NoSuchSnapshot):
    """Neither a snapshot nor a lane that has one is called so."""

    text = "no snapshot, and no lane that has one, is called {snapshot!r} here."
    remedy = "'laneyard snapshot list' shows every snapshot."


class Chosen(msgspec.Struct, frozen=True):
    """A snapshot, and what is true of its lane."""

    taken: Snapshot
    lane: Record

    @property
    def document(self) -> FoundSnapshot:
        """Returns which one it is."""
        lane = self.lane
        return FoundSnapshot(id=self.taken.id, lane=lane.lane, slug=lane.slug, repository=lane.repository)


def find(reader: Reader, state_dir: bytes, wanted: str, key: str | None, near: bytes | None) -> Chosen:
    """Returns the snapshot that is meant: an id or its beginning, LANE for its last, LANE@N for an edition's.

    Beginnings and lanes are those of the repository with that key, or of any. Raises NoSuchSnapshot,
    AmbiguousSnapshot, NoSuchEdition, AmbiguousLane.
    """
    rows = reader.lanes()
    named = any(row["id"] == wanted or _is_called(row, wanted, key) for row in rows)
    if not named and WHOLE.fullmatch(wanted):
        return by_id(reader, state_dir, wanted)
    if not named and BEGINNING.fullmatch(wanted):
        begun = _beginning(reader, wanted, key)
        if len(begun) > 1:
            raise AmbiguousSnapshot(wanted, tuple(begun))
        if begun:
            return _of_lane(reader, *begun.popitem())
    word, edition = _edition(wanted)
    try:
        row = find_lane(rows, key, word, near)
    except NoSuchLane:
        raise UnknownSnapshot(wanted) from None
    return _last(reader, str(row["id"]), edition, wanted)


def by_id(reader: Reader, state_dir: bytes, snapshot: str) -> Chosen:
    """Returns the snapshot with that whole id. Raises NoSuchSnapshot."""
    if not WHOLE.fullmatch(snapshot):
        raise UnknownSnapshot(snapshot)
    try:
        # The manifest says whose it is, and the log whether that is so: no need to look through all of it.
        return _of_lane(reader, snapshot, lane_in(snapshot_dir(state_dir, snapshot)))
    except (SnapshotDamaged, NoSuchSnapshot):
        found = _beginning(reader, snapshot, None)
    if not found:
        raise UnknownSnapshot(snapshot)
    return _of_lane(reader, *found.popitem())


def _is_called(row: Row, wanted: str, key: str | None) -> bool:
    return row["slug"] == wanted and key in (None, row["repository"])


def _edition(wanted: str) -> tuple[str, int | None]:
    found = EDITION.fullmatch(wanted)
    return (found[1], int(found[2])) if found else (wanted, None)


def _beginning(reader: Reader, beginning: str, key: str | None) -> dict[str, str]:
    """Returns the lane of every snapshot whose id begins so."""
    lanes = {str(row["id"]) for row in reader.lanes() if key in (None, row["repository"])}
    found: dict[str, str] = {}
    for event in reader.events():
        lane = lane_of(event.stream)
        taken = event.fact.snapshot.id if isinstance(event.fact, LaneSnapshotted) else ""
        if lane is not None and lane in lanes and taken and taken.startswith(beginning):
            found[taken] = lane
    return found


def _of_lane(reader: Reader, snapshot: str, lane_id: str) -> Chosen:
    lane, _ = reader.lane(lane_id)
    taken = None if isinstance(lane, Nowhere) else lane.record.snapshot(snapshot)
    if taken is None or isinstance(lane, Nowhere):
        raise UnknownSnapshot(snapshot)
    return Chosen(taken, lane.record)


def _last(reader: Reader, lane_id: str, edition: int | None, wanted: str) -> Chosen:
    """Returns the last snapshot of a lane, or the one that an edition comes back from."""
    lane, _ = reader.lane(lane_id)
    if isinstance(lane, Nowhere) or not lane.record.snapshots:
        raise UnknownSnapshot(wanted)
    record = lane.record
    if edition is None:
        return Chosen(record.snapshots[-1], record)
    known = {each.number: each.snapshot_id for each in record.editions}
    if edition not in known:
        raise NoSuchEdition(edition, tuple(known))
    taken = record.snapshot(known[edition])
    if taken is None:
        raise UnknownSnapshot(wanted)
    return Chosen(taken, record)
