"""Why a lane waits for a person, what is safe, and which ways lead out."""

from typing import get_args

import pytest

from domain.commands import ReapLane
from domain.events import (
    Fact,
    LaneSnapshotted,
    ReapingPlanned,
    RestoreAbandoned,
    SnapshotPlanned,
    TreeUnexplained,
)
from domain.lane import fold
from domain.review import CAUSES, DETAILS, EXITS, Cause, Exit, cause, comes_back_from, safe, ways
from domain.states import NeedsReview, Reaped
from tests.domain.facts import HOME, LATER, RESTING, destroyed, explained, unexplained
from tests.domain.lives import (
    IN_REVIEW,
    LIVES,
    REAPING,
    REBUILD_FAILED,
    REBUILD_IN_REVIEW,
    UNDOING_IN_REVIEW,
    WORN,
)
from tests.given import given

KEPT = "; snapshot s-1 has the lane"
UNTOLD = ["git_failed", "git_timed_out", "io_failed", "changed", "of a later program"]


def met(detail: str) -> TreeUnexplained:
    return TreeUnexplained(cause=detail, reason="it is so", paths=(), count=0)


def waiting(*facts: Fact) -> NeedsReview:
    lane = fold(facts)
    assert isinstance(lane, NeedsReview)
    return lane


def test_every_cause_and_way_is_told_and_every_detail_is_of_a_cause() -> None:
    assert set(CAUSES) == set(get_args(Cause)) == {of for of, _ in DETAILS.values()}
    assert set(EXITS) == set(get_args(Exit))
    assert all(DETAILS[each][0] == each for each in CAUSES if each in DETAILS)


@pytest.mark.parametrize(
    "detail", ["git_failed", "git_timed_out", "io_failed", "changed", "of a later program"]
)
def test_what_is_in_no_table_has_kept_the_tree_from_being_looked_at(detail: str) -> None:
    assert cause(detail) == "evidence_unavailable"


@pytest.mark.parametrize(
    ("facts", "exits", "told"),
    [
        (
            IN_REVIEW,
            ("--put-back", "--resnapshot", "--discard"),
            f"nothing was deleted, and the lane rests whole at {RESTING}{KEPT}",
        ),
        (
            WORN,
            ("--resnapshot", "--discard"),
            f"nothing more is deleted, and what is left of the lane is at {RESTING}{KEPT}",
        ),
        (
            (*REAPING, met("tree_missing")),
            ("--discard",),
            f"nothing is at {RESTING}, and its registration stays{KEPT}",
        ),
        (
            (*REAPING, explained, destroyed, met("registration_changed")),
            ("--discard",),
            f"nothing is at {RESTING}, and its registration stays{KEPT}",
        ),
        (
            (*REAPING, met("snapshot_damaged")),
            ("--put-back", "--resnapshot", "--discard"),
            f"nothing was deleted, and the lane rests whole at {RESTING}",
        ),
        (
            REBUILD_IN_REVIEW,
            ("--resnapshot", "--discard"),
            f"nothing was deleted, and what a failed restore has left is at {HOME}{KEPT}",
        ),
        (
            (*REBUILD_FAILED, explained, unexplained),
            ("--resnapshot", "--discard"),
            f"nothing more is deleted, and what a failed restore has left is at {HOME}{KEPT}",
        ),
        (
            UNDOING_IN_REVIEW,
            ("--discard",),
            f"nothing was deleted, and what a failed creation has left is at {HOME}",
        ),
    ],
)
def test_the_ways_out_are_those_that_may_lead_out(
    facts: tuple[Fact, ...], exits: tuple[Exit, ...], told: str
) -> None:
    lane = waiting(*facts)
    assert tuple(way.exit for way in ways(lane)) == exits
    assert safe(lane) == told


def test_a_lane_in_review_always_has_a_way_out() -> None:
    lanes = [fold(facts[:length]) for facts in LIVES.values() for length in range(len(facts) + 1)]
    reviewed = [lane for lane in lanes if isinstance(lane, NeedsReview)]
    assert reviewed
    assert all(ways(lane)[-1].exit == "--discard" for lane in reviewed)


def test_what_was_deleted_comes_back_from_the_snapshot_and_what_is_whole_as_it_is() -> None:
    assert comes_back_from(waiting(*IN_REVIEW)) is None
    assert comes_back_from(waiting(*REBUILD_IN_REVIEW)) is None
    assert comes_back_from(waiting(*WORN)) == "s-1"
    assert comes_back_from(waiting(*REAPING, explained, destroyed, met("tree_present"))) == "s-1"
    assert comes_back_from(waiting(*REAPING, explained, met("snapshot_damaged"))) is None


def test_what_a_failed_restore_left_is_kept_by_a_snapshot_of_it_and_the_lane_is_reaped_as_before() -> None:
    taken = (SnapshotPlanned(snapshot="s-2", tolerant=False), LaneSnapshotted(snapshot=LATER))
    lane = (
        given(*REBUILD_IN_REVIEW, *taken)
        .when(ReapLane(snapshot="s-2"))
        .then(ReapingPlanned(journal_format=1, edition=1, snapshot_id="s-2", consent=None))
        .lane
    )
    after = fold((explained, destroyed, RestoreAbandoned(code="discarded", reason="kept")), lane)
    record = waiting(*REBUILD_IN_REVIEW).record
    assert isinstance(after, Reaped)
    assert after.record.snapshots == (*record.snapshots, LATER)
    assert after.record.editions == record.editions
    assert after.record.is_remnant("s-2")
