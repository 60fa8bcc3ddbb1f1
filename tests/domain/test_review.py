"""How a lane leaves review: with a new snapshot, or with a recorded consent."""

import pytest
from msgspec.structs import replace

from domain.commands import DiscardLane, ReapLane
from domain.effects import (
    Deregister,
    Deregistered,
    Destroyed,
    Explain,
    Explained,
)
from domain.errors import NoSuchSnapshot
from domain.events import (
    CreationUndone,
    Fact,
    LaneQuarantined,
    LaneReaped,
    LaneSnapshotted,
    ReapingPlanned,
    RestoreAbandoned,
    SnapshotPlanned,
)
from domain.evidence import Consent
from domain.states import Basis, Failed, Reaped
from tests.domain.facts import (
    BASE,
    COMMON,
    HEAD,
    LATER,
    OPENING_LOCK,
    PLACE,
    REBUILT_PLACE,
    RESTING,
    RESTING_PLACE,
    RETURNING_LOCK,
    SNAPSHOT,
    destroyed,
    explained,
    freed,
    locked,
    moved,
    reaping_planned,
    removal_planned,
    snapshot_planned,
    unexplained,
)
from tests.domain.lives import (
    CREATED,
    FORCED,
    IN_REVIEW,
    REAPED,
    REAPING,
    REBUILD_IN_REVIEW,
    REMOVED,
    RESNAPSHOTTED,
    UNDOING_IN_REVIEW,
)
from tests.given import given

UNHELD: tuple[Fact, ...] = (
    *CREATED,
    replace(removal_planned, snapshot_id=None, snapshot_ref=None, snapshot_commit=None, snapshot_tree=None),
    locked,
    moved,
    freed,
    LaneQuarantined(edition=1, path=RESTING),
)
NOTES = Consent(("notes.txt",), "not needed")


def plan(snapshot_id: str | None, consent: Consent | None = None) -> ReapingPlanned:
    return ReapingPlanned(journal_format=1, edition=1, snapshot_id=snapshot_id, consent=consent)


def test_a_new_snapshot_leads_out_of_review() -> None:
    (
        given(*RESNAPSHOTTED)
        .when(ReapLane(snapshot="s-2"))
        .then(plan("s-2"))
        .owes(Explain(repository=COMMON, place=RESTING_PLACE, basis=Basis(commit=HEAD, snapshot=LATER)))
    )


def test_a_snapshot_that_is_not_there_does_not_lead_out_of_review() -> None:
    given(*IN_REVIEW).when(ReapLane(snapshot="s-9")).refused(NoSuchSnapshot, snapshot="s-9")


def test_a_consent_leads_out_of_review_and_is_recorded() -> None:
    (
        given(*IN_REVIEW)
        .when(DiscardLane(consent=NOTES))
        .then(plan("s-1", NOTES))
        .owes(
            Explain(
                repository=COMMON,
                place=RESTING_PLACE,
                basis=Basis(commit=HEAD, snapshot=SNAPSHOT, consent=NOTES),
            )
        )
    )


def test_consents_are_joined_and_name_nothing_twice() -> None:
    forced = Consent((".env", "cache.sock"), "remove --force")
    reviewed = (*FORCED, plan("s-1", forced), unexplained)
    given(*reviewed).when(DiscardLane(consent=Consent(("notes.txt", ".env"), "seen"))).then(
        plan("s-1", Consent((".env", "cache.sock", "notes.txt"), "seen"))
    )


def test_a_consent_that_was_not_enough_counts_the_next_time() -> None:
    given(*IN_REVIEW, plan("s-1", NOTES), unexplained).when(
        DiscardLane(consent=Consent(("b",), "seen"))
    ).then(plan("s-1", Consent(("notes.txt", "b"), "seen")))


def test_what_is_discarded_after_a_new_snapshot_comes_back_from_that() -> None:
    given(*RESNAPSHOTTED).when(DiscardLane(consent=NOTES)).then(plan("s-2", NOTES))


def test_a_quarantined_lane_is_discarded_with_its_snapshot_or_without() -> None:
    given(*REMOVED).when(DiscardLane(consent=NOTES)).then(plan("s-1", NOTES))
    lane = (
        given(*UNHELD)
        .when(DiscardLane(consent=NOTES))
        .then(plan(None, NOTES))
        .owes(Explain(repository=COMMON, place=RESTING_PLACE, basis=Basis(commit=HEAD, consent=NOTES)))
        .learns(Explained(digest="digest-1", entries=3, bytes=120), explained)
        .learns(Destroyed(), destroyed)
        .learns(
            Deregistered(), LaneReaped(edition=1, snapshot_id=None, entries=3, bytes=120, digest="digest-1")
        )
        .lane
    )
    assert isinstance(lane, Reaped)
    assert lane.record.editions[-1].snapshot_id is None


def test_what_a_failed_rebuild_left_is_discarded_and_the_lane_is_reaped_as_before() -> None:
    lane = (
        given(*REBUILD_IN_REVIEW)
        .when(DiscardLane(consent=NOTES))
        .then(plan("s-1", NOTES))
        .owes(
            Explain(
                repository=COMMON,
                place=REBUILT_PLACE,
                basis=Basis(commit=HEAD, snapshot=SNAPSHOT, consent=NOTES, partial=True),
            )
        )
        .learns(Explained(digest="digest-1", entries=3, bytes=120), explained)
        .learns(Destroyed(), destroyed)
        .owes(Deregister(repository=COMMON, place=REBUILT_PLACE, reason=RETURNING_LOCK, consent=NOTES))
        .learns(
            Deregistered(),
            RestoreAbandoned(code="discarded", reason="what a failed restore left was discarded"),
        )
        .rests("reaped")
    )
    lane.is_now(given(*REAPED).lane)


def test_what_a_failed_creation_left_is_discarded_and_the_creation_has_failed() -> None:
    lane = (
        given(*UNDOING_IN_REVIEW)
        .when(DiscardLane(consent=NOTES))
        .then(ReapingPlanned(journal_format=1, edition=0, snapshot_id=None, consent=NOTES))
        .owes(
            Explain(
                repository=COMMON,
                place=PLACE,
                basis=Basis(commit=BASE, consent=NOTES, partial=True),
            )
        )
        .learns(Explained(digest="digest-1", entries=3, bytes=120), explained)
        .learns(Destroyed(), destroyed)
        .owes(Deregister(repository=COMMON, place=PLACE, reason=OPENING_LOCK, consent=NOTES))
        .learns(Deregistered(), CreationUndone(code="git_failed", reason="no space left"))
        .rests("failed")
        .lane
    )
    assert isinstance(lane, Failed)


@pytest.mark.parametrize(
    ("facts", "end"),
    [
        (REBUILD_IN_REVIEW, RestoreAbandoned(code="discarded", reason="seen")),
        (UNDOING_IN_REVIEW, CreationUndone(code="git_failed", reason="no space left")),
    ],
)
def test_a_snapshot_taken_in_review_is_not_forgotten_when_the_tree_is_discarded(
    facts: tuple[Fact, ...], end: Fact
) -> None:
    taken = (SnapshotPlanned(snapshot="s-2", tolerant=False), LaneSnapshotted(snapshot=LATER))
    lane = given(*facts, *taken, plan(None, NOTES), explained, destroyed, end).lane
    assert isinstance(lane, Reaped | Failed)
    assert lane.record.snapshot("s-2") == LATER


def test_reaping_rests_on_the_head_of_the_snapshot_that_explains() -> None:
    older = replace(LATER, head="9" * 40)
    given(
        *CREATED,
        snapshot_planned,
        LaneSnapshotted(snapshot=older),
        removal_planned,
        locked,
        moved,
        freed,
        LaneQuarantined(edition=1, path=RESTING),
    ).when(ReapLane(snapshot="s-2")).then(plan("s-2")).owes(
        Explain(repository=COMMON, place=RESTING_PLACE, basis=Basis(commit="9" * 40, snapshot=older))
    )


def test_a_plan_is_what_a_reaping_begins_with() -> None:
    assert given(*REMOVED).when(ReapLane()).then(reaping_planned).lane == given(*REAPING).lane
