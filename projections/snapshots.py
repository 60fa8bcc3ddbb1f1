"""The snapshots: what can be brought back after a tree has gone."""

from collections.abc import Iterable

from domain.envelope import Envelope, lane_of
from domain.events import LaneSnapshotted
from projections.table import Change, Get, Table

TABLE = Table(
    "snapshot",
    (
        ("id", "TEXT"),
        ("lane", "TEXT"),
        ("ref", "TEXT"),
        ("commit_id", "TEXT"),
        ("tree", "TEXT"),
        ("head", "TEXT"),
        ("branch", "TEXT"),
        ("entries", "INTEGER"),
        ("bytes", "INTEGER"),
        ("omitted", "INTEGER"),
        ("taken_at", "TEXT"),
        ("position", "INTEGER"),
    ),
    keys=1,
)
VERSION = 1


def apply(event: Envelope, get: Get) -> Iterable[Change]:
    """Returns the snapshot's row."""
    if not isinstance(event.fact, LaneSnapshotted):
        return ()
    taken = event.fact.snapshot
    row = (taken.id, lane_of(event.stream), taken.ref, taken.commit, taken.tree, taken.head, taken.branch)
    rest = (taken.entries, taken.bytes, len(taken.omitted), event.time, event.position)
    return (((taken.id,), (*row, *rest)),)
