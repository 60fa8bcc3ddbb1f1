"""A tree whose deletion may have begun is not known to be whole: what was captured before counts."""

import pytest
from msgspec.structs import replace

from domain.commands import DiscardLane, ReapLane, RestoreLane
from domain.effects import Deregistered, Destroyed, Explain, Explained, Unlocked
from domain.errors import WrongState
from domain.events import Fact, LaneReaped, LaneRestored, ReapingPlanned, RestorePlanned
from domain.evidence import Consent
from domain.states import Basis, Lane, NeedsReview, Reaped, Record
from tests.domain.facts import (
    BRANCH,
    COMMON,
    HEAD,
    HOME,
    LATER,
    RESTING_PLACE,
    applied,
    destroyed,
    explained,
    rebuild_planned,
    rebuilt,
    rejoined,
    returned,
    unexplained,
)
from tests.domain.lives import (
    IN_REVIEW,
    REBUILD_IN_REVIEW,
    REMNANT_REAPED,
    RESNAPSHOTTED,
    WORN,
    WORN_RESNAPSHOTTED,
)
from tests.given import given

NOTES = Consent(("notes.txt",), "not needed")


def plan(snapshot_id: str | None, consent: Consent | None = None) -> ReapingPlanned:
    return ReapingPlanned(journal_format=1, edition=1, snapshot_id=snapshot_id, consent=consent)


def record_of(lane: Lane) -> Record:
    assert isinstance(lane, NeedsReview | Reaped)
    return lane.record


@pytest.mark.parametrize(
    ("facts", "begun"),
    [(IN_REVIEW, False), (WORN, True), ((*WORN, plan("s-1"), unexplained), True)],
)
def test_a_deletion_may_have_begun_once_the_tree_was_explained(facts: tuple[Fact, ...], begun: bool) -> None:
    lane = given(*facts).lane
    assert isinstance(lane, NeedsReview)
    assert lane.demolition.begun is begun


def test_a_copy_of_what_is_left_never_stands_for_the_whole() -> None:
    record = record_of(given(*WORN_RESNAPSHOTTED).lane)
    assert record.editions[-1].snapshot_id == "s-1"
    assert (record.left_of(1), record.is_remnant("s-1"), record.is_remnant("s-2")) == ("s-2", False, True)


def test_a_copy_of_a_tree_that_is_whole_is_no_remnant() -> None:
    record = record_of(given(*RESNAPSHOTTED).lane)
    assert (record.editions[-1].snapshot_id, record.remnants) == ("s-2", ())


def test_what_is_left_is_explained_by_its_own_copy_and_the_lane_comes_back_whole() -> None:
    basis = Basis(commit=HEAD, snapshot=LATER, worn=True)
    lane = (
        given(*WORN_RESNAPSHOTTED)
        .when(ReapLane(snapshot="s-2"))
        .then(plan("s-2"))
        .owes(Explain(repository=COMMON, place=RESTING_PLACE, basis=basis))
        .learns(Explained(digest="digest-1", entries=3, bytes=120), explained)
        .learns(Destroyed(), destroyed)
        .learns(
            Deregistered(),
            LaneReaped(edition=1, snapshot_id="s-1", entries=3, bytes=120, digest="digest-1"),
        )
        .rests("reaped")
        .lane
    )
    assert record_of(lane).editions[-1].snapshot_id == "s-1"


def test_what_is_left_is_discarded_by_the_snapshot_that_explained_it_last() -> None:
    given(*WORN).when(DiscardLane(consent=NOTES)).then(plan("s-1", NOTES))
    given(*WORN_RESNAPSHOTTED, plan("s-2"), unexplained).when(DiscardLane(consent=NOTES)).then(
        plan("s-2", NOTES)
    ).learns(Explained(digest="digest-1", entries=3, bytes=120), explained).learns(
        Destroyed(), destroyed
    ).learns(
        Deregistered(), LaneReaped(edition=1, snapshot_id="s-1", entries=3, bytes=120, digest="digest-1")
    )


def test_a_snapshot_that_is_damaged_does_not_keep_a_tree_from_being_discarded() -> None:
    damaged = replace(unexplained, cause="snapshot_damaged")
    everything = Consent((".",), "seen")
    given(*IN_REVIEW[:-1], damaged).when(DiscardLane(consent=everything)).then(plan(None, everything))


def test_a_snapshot_that_was_damaged_is_read_again_while_nothing_is_agreed_to() -> None:
    damaged = replace(unexplained, cause="snapshot_damaged")
    given(*IN_REVIEW[:-1], damaged).when(DiscardLane(consent=Consent((), "seen"))).then(plan("s-1", None))


def test_the_lane_comes_back_from_the_snapshot_that_explained_what_was_deleted() -> None:
    record = record_of(given(*RESNAPSHOTTED, plan("s-1"), explained, unexplained).lane)
    assert record.editions[-1].snapshot_id == "s-1"


def restored(*differences: str) -> LaneRestored:
    return LaneRestored(
        edition=1, source="snapshot", path=HOME, branch=BRANCH, head=HEAD, differences=differences
    )


def test_a_restore_of_the_whole_tells_where_the_rest_is() -> None:
    given(*REMNANT_REAPED).when(RestoreLane(slug="fix-login", path=HOME)).then(rebuild_planned)
    given(*REMNANT_REAPED, rebuild_planned, rebuilt, applied, rejoined).learns(
        Unlocked(), restored("what was left when it was captured again is in snapshot s-2")
    )


def test_a_restore_of_what_was_left_says_that_it_is_not_the_whole() -> None:
    chosen = replace(rebuild_planned, snapshot_id="s-2")
    given(*REMNANT_REAPED).when(RestoreLane(slug="fix-login", path=HOME, snapshot="s-2")).then(chosen)
    given(*REMNANT_REAPED, chosen, rebuilt, applied, rejoined).learns(
        Unlocked(),
        restored("snapshot s-2 was taken of a tree that was not whole; snapshot s-1 has all of it"),
    )


def test_an_older_log_that_reaped_to_a_copy_of_what_was_left_is_not_silent_about_it() -> None:
    older = LaneReaped(edition=1, snapshot_id="s-2", entries=3, bytes=120, digest="digest-1")
    facts = (*REMNANT_REAPED[:-1], older)
    assert record_of(given(*facts).lane).editions[-1].snapshot_id == "s-2"
    chosen = replace(rebuild_planned, snapshot_id="s-2")
    given(*facts, chosen, rebuilt, applied, rejoined).learns(
        Unlocked(), restored("snapshot s-2 was taken of a tree that was not whole")
    )


def test_a_copy_of_a_half_made_rebuild_is_a_remnant() -> None:
    record = record_of(given(*REBUILD_IN_REVIEW, *RESNAPSHOTTED[-2:]).lane)
    assert (record.editions[-1].snapshot_id, record.is_remnant("s-2")) == ("s-1", True)


@pytest.mark.parametrize(
    ("facts", "why"),
    [(IN_REVIEW, "as it is still whole"), (WORN, "before what is left of it is discarded")],
)
def test_a_tree_that_is_still_there_is_not_restored_from_a_snapshot(
    facts: tuple[Fact, ...], why: str
) -> None:
    given(*facts).when(RestoreLane(slug="fix-login", path=HOME, snapshot="s-1")).refused(
        WrongState, command=f"restored from a snapshot, {why}"
    )


def test_a_worn_tree_can_still_be_put_back_and_says_so() -> None:
    planned = RestorePlanned(
        journal_format=1,
        edition=1,
        source="quarantine",
        slug="fix-login",
        path=HOME,
        branch=BRANCH,
        head=HEAD,
        snapshot_id=None,
    )
    said = "its deletion may have begun: compare it with snapshot s-1, which has all of it"
    given(*WORN).when(RestoreLane(slug="fix-login", path=HOME)).then(planned)
    given(*WORN, planned, returned, rejoined).learns(Unlocked(), replace(restored(said), source="quarantine"))
