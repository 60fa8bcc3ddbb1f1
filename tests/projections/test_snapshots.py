"""The snapshots: what can be brought back after a tree has gone."""

from msgspec.structs import replace

from domain.events import LaneSnapshotted
from projections import snapshots
from tests.domain.facts import BRANCH, HEAD, LANE, LATER, SNAPSHOT, snapshot_failed, snapshot_planned
from tests.domain.lives import CREATED, DISCARDED, REAPED, RESNAPSHOTTED, SNAPSHOTTED
from tests.projections.folded import rows, told


def test_a_verified_snapshot_has_its_row() -> None:
    omitting = LaneSnapshotted(snapshot=replace(SNAPSHOT, omitted=("a", "b")))
    assert rows(snapshots.TABLE, LANE, (*CREATED, snapshot_planned, omitting)) == [
        (
            "s-1",
            LANE,
            "refs/laneyard/snapshots/s-1",
            "c" * 40,
            "d" * 40,
            HEAD,
            BRANCH,
            3,
            120,
            2,
            "2026-03-01T09:00:05Z",
            5,
        )
    ]


def test_a_snapshot_that_was_not_made_has_none() -> None:
    assert rows(snapshots.TABLE, LANE, (*CREATED, snapshot_planned, snapshot_failed)) == []


def test_snapshots_outlive_the_tree() -> None:
    for life in (SNAPSHOTTED, REAPED, DISCARDED):
        assert [row[0] for row in rows(snapshots.TABLE, LANE, life)] == ["s-1"]


def test_a_lane_may_have_many_and_each_names_its_lane() -> None:
    other = (snapshot_planned, LaneSnapshotted(snapshot=replace(LATER, id="s-9")))
    log = told((f"lane-{LANE}", RESNAPSHOTTED), ("lane-b", (*CREATED, *other)))
    assert [row[:2] for row in log.table(snapshots.TABLE)] == [("s-1", LANE), ("s-2", LANE), ("s-9", "b")]
