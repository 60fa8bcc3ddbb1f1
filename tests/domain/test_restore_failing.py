"""What a restore does when a step does not take: it leads back before the tree is home, and goes on after."""

import pytest
from msgspec.structs import replace

from domain.effects import (
    Deregister,
    Deregistered,
    Destroy,
    Destroyed,
    Explain,
    Explained,
    NotDone,
    Resisted,
    Unexplained,
)
from domain.events import (
    BranchRejoined,
    Fact,
    LaneRestored,
    RestoreAbandoned,
    RestoreStepFailed,
    TreeResisted,
    TreeUnexplained,
)
from domain.retries import ATTEMPTS
from domain.review import cause
from domain.states import Basis, NeedsReview, Reaped, Returning
from tests.domain.facts import (
    BRANCH,
    COMMON,
    HEAD,
    HOME,
    REBUILT_PLACE,
    RETURNING_LOCK,
    SNAPSHOT,
    applied,
    destroyed,
    explained,
    rebuild_planned,
    rebuilt,
    rejoined,
    restore_planned,
    retried,
    returned,
    unexplained,
)
from tests.domain.lives import IN_REVIEW, REAPED, REBUILD_FAILED, REMOVED
from tests.given import given

MOVING = (*REMOVED, restore_planned)
REBUILDING = (*REAPED, rebuild_planned)
BASIS = Basis(commit=HEAD, snapshot=SNAPSHOT, partial=True)
ABANDONED = RestoreAbandoned(code="busy", reason="busy")


def failing(step: str, transient: bool) -> NotDone:
    return NotDone(step=step, code="busy", reason="busy", transient=transient)


def failed(step: str, attempt: int, final: bool) -> RestoreStepFailed:
    return RestoreStepFailed(step=step, attempt=attempt, code="busy", reason="busy", final=final)


@pytest.mark.parametrize(
    ("before", "plan", "step"),
    [
        (REMOVED, restore_planned, "move"),
        (IN_REVIEW, restore_planned, "move"),
        (REAPED, rebuild_planned, "checkout"),
    ],
)
def test_a_tree_that_cannot_be_brought_is_where_it_was(
    before: tuple[Fact, ...], plan: Fact, step: str
) -> None:
    home = given(*before).lane
    planned = given(*before, plan)
    planned.learns(failing(step, False), failed(step, 1, True), ABANDONED).is_now(home)
    (
        planned.tries_again(failing(step, True), lambda attempt: failed(step, attempt, False))
        .learns(failing(step, True), failed(step, ATTEMPTS, True), ABANDONED)
        .is_now(home)
    )


@pytest.mark.parametrize("facts", [(*MOVING, returned), (*REBUILDING, rebuilt, applied)])
def test_a_branch_that_cannot_be_rejoined_leaves_the_lane_detached(facts: tuple[Fact, ...]) -> None:
    given(*facts).learns(failing("rejoin", False), BranchRejoined(branch=None, why="busy"))
    (
        given(*facts)
        .tries_again(failing("rejoin", True), lambda attempt: failed("rejoin", attempt, False))
        .learns(failing("rejoin", True), BranchRejoined(branch=None, why="busy"))
    )


def test_a_lock_that_stays_does_not_undo_a_good_restore() -> None:
    given(*MOVING, returned, rejoined).learns(failing("unlock", True), failed("unlock", 1, False))
    given(*MOVING, returned, rejoined).learns(
        failing("unlock", False),
        LaneRestored(
            edition=1,
            source="quarantine",
            path=HOME,
            branch=BRANCH,
            head=HEAD,
            differences=("still locked: busy",),
        ),
    ).rests("active")


def test_a_snapshot_that_cannot_be_applied_is_undone_by_way_of_an_explanation() -> None:
    home = given(*REAPED).lane
    (
        given(*REBUILDING, rebuilt)
        .learns(failing("apply", False), failed("apply", 1, True))
        .owes(Explain(repository=COMMON, place=REBUILT_PLACE, basis=BASIS))
        .learns(Explained(digest="digest-1", entries=3, bytes=120), explained)
        .owes(Destroy(repository=COMMON, place=REBUILT_PLACE, basis=BASIS, digest="digest-1"))
        .learns(Destroyed(), destroyed)
        .owes(Deregister(repository=COMMON, place=REBUILT_PLACE, reason=RETURNING_LOCK))
        .learns(Deregistered(), ABANDONED)
        .is_now(home)
    )


def test_applying_is_tried_again() -> None:
    rebuilding = given(*REBUILDING, rebuilt)
    (
        rebuilding.tries_again(failing("apply", True), lambda attempt: failed("apply", attempt, False))
        .learns(failing("apply", True), failed("apply", ATTEMPTS, True))
        .owes(Explain(repository=COMMON, place=REBUILT_PLACE, basis=BASIS))
    )


def test_what_a_failed_checkout_left_is_undone() -> None:
    left = NotDone(step="checkout", code="busy", reason="busy", left=REBUILT_PLACE)
    given(*REBUILDING).learns(left, replace(failed("checkout", 1, True), left=REBUILT_PLACE)).owes(
        Explain(repository=COMMON, place=REBUILT_PLACE, basis=BASIS)
    )


def test_a_checkout_that_is_tried_again_undoes_nothing_yet() -> None:
    left = NotDone(step="checkout", code="busy", reason="busy", transient=True, left=REBUILT_PLACE)
    given(*REBUILDING).learns(left, replace(failed("checkout", 1, False), left=REBUILT_PLACE)).owes(
        given(*REBUILDING).owed
    )


def test_what_a_failed_rebuild_cannot_explain_goes_to_review() -> None:
    lane = (
        given(*REBUILD_FAILED)
        .learns(
            Unexplained(cause="changed", reason="1 entry is nowhere else", paths=("notes.txt",), count=1),
            unexplained,
        )
        .rests("needs-review")
        .lane
    )
    assert isinstance(lane, NeedsReview)
    assert isinstance(lane.home, Reaped)
    assert lane.demolition.place == REBUILT_PLACE


def test_an_undoing_that_resists_is_a_residual_until_it_is_retried() -> None:
    def resisted(attempt: int) -> TreeResisted:
        final = attempt == ATTEMPTS
        return TreeResisted(
            path=HOME, step="destroy", attempt=attempt, reason="busy", left=("a",), final=final
        )

    outcome = Resisted(reason="busy", left=("a",))
    lane = (
        given(*REBUILD_FAILED, explained)
        .tries_again(outcome, resisted)
        .learns(outcome, resisted(ATTEMPTS))
        .rests("returning")
        .lane
    )
    assert isinstance(lane, Returning)
    given(*REBUILD_FAILED, explained, resisted(ATTEMPTS), retried).owes(
        Destroy(repository=COMMON, place=REBUILT_PLACE, basis=BASIS, digest="digest-1")
    )


def test_an_undoing_that_cannot_be_explained_is_tried_again_or_waits_for_a_person() -> None:
    given(*REBUILD_FAILED).learns(
        failing("explain", True),
        TreeResisted(path=HOME, step="explain", attempt=1, reason="busy", left=(), final=False),
    )
    lane = (
        given(*REBUILD_FAILED)
        .learns(failing("explain", False), TreeUnexplained(cause="busy", reason="busy", paths=(), count=0))
        .rests("needs-review")
        .lane
    )
    assert isinstance(lane, NeedsReview)
    assert cause(lane.detail) == "evidence_unavailable"


@pytest.mark.parametrize(("transient", "final"), [(True, False), (False, True)])
def test_a_step_of_the_undoing_that_fails_is_a_resistance(transient: bool, final: bool) -> None:
    given(*REBUILD_FAILED, explained, destroyed).learns(
        failing("deregister", transient),
        TreeResisted(path=HOME, step="deregister", attempt=1, reason="busy", left=(), final=final),
    )
