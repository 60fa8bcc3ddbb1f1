"""What we keep, as it is answered: the repositories under our care, and the snapshots of their lanes."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

from adapters.api.answers import Answer
from adapters.api.documents import KeptSnapshot, RepositoryDocument
from adapters.api.text import table
from adapters.lookup import GONE
from domain.envelope import lane_of
from domain.events import LaneSnapshotted
from domain.lane import INITIAL, evolve
from domain.paths import display
from domain.states import Nowhere

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adapters.store.reader import Reader, Record
    from domain.states import Lane


class Kept(Protocol):
    """Anything that has the small tables."""

    def lanes(self) -> list[Record]:
        """Returns the lanes table."""

    def repositories(self) -> list[Record]:
        """Returns the repositories under our care."""


def repositories(reader: Kept) -> Answer:
    """Returns the repositories under our care, with packed paths, in the order of those."""
    held = Counter(row["repository"] for row in reader.lanes() if row["state"] not in GONE)
    found = [
        RepositoryDocument(
            common=str(row["common"]),
            root=str(row["root"]),
            object_format=str(row["object_format"]),
            lanes=held[row["common"]],
        )
        for row in reader.repositories()
    ]
    if not found:
        return Answer(
            document=found, text="no repository is under our care; 'laneyard create NAME' takes one"
        )
    rows = [(display(each.root), each.lanes, each.object_format) for each in found]
    return Answer(document=found, text=table(("REPOSITORY", "LANES", "OBJECTS"), rows))


def snapshots(reader: Reader) -> Answer:
    """Returns every snapshot that is kept, in the order in which they were taken."""
    lanes, taken_at = _folded(reader)
    kept = [each for lane in lanes.values() for each in _kept(lane, taken_at)]
    kept.sort(key=attrgetter("position"))
    if not kept:
        return Answer(document=kept, text="no snapshot is kept")
    rows = [(each.id, each.slug, each.edition, each.entries, each.bytes) for each in kept]
    return Answer(document=kept, text=table(("SNAPSHOT", "LANE", "EDITION", "ENTRIES", "BYTES"), rows))


def _folded(reader: Reader) -> tuple[dict[str, Lane], dict[str, int]]:
    """Returns every lane, and the position at which each snapshot was taken.

    From the log: the table of snapshots follows behind, and may not have the last ones yet.
    """
    lanes: dict[str, Lane] = {}
    taken_at: dict[str, int] = {}
    for event in reader.events():
        if (lane_id := lane_of(event.stream)) is not None:
            lanes[lane_id] = evolve(lanes.get(lane_id, INITIAL), event.fact)
            if isinstance(event.fact, LaneSnapshotted):
                taken_at[event.fact.snapshot.id] = event.position
    return lanes, taken_at


def _kept(lane: Lane, taken_at: Mapping[str, int]) -> Iterator[KeptSnapshot]:
    if isinstance(lane, Nowhere):
        return
    record = lane.record
    editions = {each.snapshot_id: each.number for each in record.editions}
    for taken in record.snapshots:
        yield KeptSnapshot(
            id=taken.id,
            lane=record.lane,
            slug=record.slug,
            repository=record.repository,
            edition=editions.get(taken.id),
            ref=taken.ref,
            commit=taken.commit,
            entries=taken.entries,
            bytes=taken.bytes,
            position=taken_at[taken.id],
        )
