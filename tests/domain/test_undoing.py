"""How what a failed creation has made is undone, or left for a person to judge."""

import pytest

from domain.effects import (
    Deregister,
    Deregistered,
    Destroy,
    Destroyed,
    DropBranch,
    Dropped,
    Explain,
    Explained,
    NotDone,
    Resisted,
    Unexplained,
)
from domain.events import CreationFailed, CreationUndone, Fact, StepFailed, TreeResisted, TreeUnexplained
from domain.retries import ATTEMPTS
from domain.states import Basis, Demolition, Failed, NeedsReview, Undoing
from tests.domain.facts import (
    BASE,
    BRANCH,
    COMMON,
    HOME,
    OPENING_LOCK,
    PLACE,
    checked_out,
    creation_planned,
    creation_undone,
    deregistered,
    destroyed,
    explained,
    retried,
    unexplained,
)
from tests.domain.lives import (
    FAILED_TO_UNLOCK,
    UNDOING,
    UNDONE,
)
from tests.given import given

DROP = DropBranch(repository=COMMON, branch=BRANCH, at=BASE)


def test_what_a_failed_checkout_left_is_explained_destroyed_deregistered_and_its_branch_dropped() -> None:
    basis = Basis(commit=BASE, partial=True)
    failure = NotDone(
        step="checkout", code="git_failed", reason="no space left", left=PLACE, branch_made=True
    )
    (
        given(creation_planned)
        .learns(failure, *UNDOING[1:])
        .owes(Explain(repository=COMMON, place=PLACE, basis=basis))
        .learns(Explained(digest="digest-1", entries=3, bytes=120), explained)
        .owes(Destroy(repository=COMMON, place=PLACE, basis=basis, digest="digest-1"))
        .learns(Destroyed(), destroyed)
        .owes(Deregister(repository=COMMON, place=PLACE, reason=OPENING_LOCK))
        .learns(Deregistered(), deregistered)
        .owes(DROP)
        .learns(Dropped(), CreationUndone(code="git_failed", reason="no space left"))
        .rests("failed")
    )


def test_a_branch_that_was_there_before_is_left_alone() -> None:
    failed = CreationFailed(step="checkout", code="x", reason="y", left=PLACE, branch_made=False)
    (
        given(creation_planned, failed, explained, destroyed)
        .learns(Deregistered(), CreationUndone(code="x", reason="y"))
        .rests("failed")
    )


def test_a_lane_that_cannot_be_unlocked_is_undone_with_its_branch() -> None:
    given(creation_planned, checked_out).learns(
        NotDone(step="unlock", code="io_failed", reason="read only"),
        CreationFailed(step="unlock", code="io_failed", reason="read only", left=PLACE, branch_made=True),
    ).owes(Explain(repository=COMMON, place=PLACE, basis=Basis(commit=BASE, partial=True)))
    given(*FAILED_TO_UNLOCK).rests("failed")


@pytest.mark.parametrize(
    "outcome",
    [
        Dropped(kept="it has moved"),
        NotDone(step="drop-branch", code="x", reason="it has moved"),
    ],
)
@pytest.mark.parametrize("steps", [4, 1])
def test_a_branch_that_stays_behind_is_named(outcome: Dropped | NotDone, steps: int) -> None:
    no_tree = CreationFailed(step="checkout", code="git_failed", reason="full", left=None, branch_made=True)
    facts = (creation_planned, no_tree) if steps == 1 else UNDONE[:-1]
    reason = "full" if steps == 1 else "no space left"
    given(*facts).owes(DROP).learns(
        outcome, CreationUndone(code="git_failed", reason=f"{reason}; the branch stays: it has moved")
    ).rests("failed")


def test_what_a_failed_checkout_cannot_explain_goes_to_review() -> None:
    lane = (
        given(*UNDOING)
        .learns(
            Unexplained(cause="changed", reason="1 entry is nowhere else", paths=("notes.txt",), count=1),
            unexplained,
        )
        .rests("needs-review")
        .lane
    )
    assert isinstance(lane, NeedsReview)
    assert isinstance(lane.home, Failed)
    assert (lane.home.code, lane.paths, lane.count) == ("git_failed", ("notes.txt",), 1)


STEPS: list[tuple[tuple[Fact, ...], str]] = [
    ((*UNDOING, explained), "destroy"),
    ((*UNDOING, explained, destroyed), "deregister"),
]


@pytest.mark.parametrize(("facts", "step"), STEPS)
def test_each_step_of_an_undoing_is_tried_again_and_once_more_when_asked(
    facts: tuple[Fact, ...], step: str
) -> None:
    def resisted(attempt: int) -> TreeResisted:
        final = attempt == ATTEMPTS
        return TreeResisted(path=HOME, step=step, attempt=attempt, reason="busy", left=(), final=final)

    busy = NotDone(step=step, code="busy", reason="busy", transient=True)
    given(*facts).tries_again(busy, resisted).learns(busy, resisted(ATTEMPTS)).rests("opening")
    given(*facts).learns(
        NotDone(step=step, code="gone", reason="gone"),
        TreeResisted(path=HOME, step=step, attempt=1, reason="gone", left=(), final=True),
    ).rests("opening")


def test_what_of_an_undoing_cannot_be_looked_at_waits_for_a_person() -> None:
    given(*UNDOING).learns(
        NotDone(step="explain", code="gone", reason="gone"),
        TreeUnexplained(cause="gone", reason="gone", paths=(), count=0),
    ).rests("needs-review")


def test_a_branch_that_may_go_by_and_by_is_tried_again() -> None:
    busy = NotDone(step="drop-branch", code="locked", reason="held", transient=True)

    def again(attempt: int) -> StepFailed:
        return StepFailed(step="drop-branch", attempt=attempt, code="locked", reason="held")

    given(*UNDONE[:-1]).owes(DROP).tries_again(busy, again).learns(
        busy, CreationUndone(code="git_failed", reason="no space left; the branch stays: held")
    )


def test_a_step_that_took_gives_the_next_its_own_patience() -> None:
    twice = TreeResisted(path=HOME, step="explain", attempt=2, reason="busy", left=(), final=False)
    given(*UNDOING, twice, explained).learns(
        Resisted(reason="busy", left=("a",)),
        TreeResisted(path=HOME, step="destroy", attempt=1, reason="busy", left=("a",), final=False),
    )


def test_an_undoing_that_gave_up_owes_again_once_retried() -> None:
    final = TreeResisted(path=HOME, step="explain", attempt=3, reason="busy", left=(), final=True)
    given(*UNDOING, final).rests("opening")
    given(*UNDOING, final, retried).owes(
        Explain(repository=COMMON, place=PLACE, basis=Basis(commit=BASE, partial=True))
    )


def test_an_undone_creation_ends_as_failed() -> None:
    lane = given(*UNDONE).rests("failed").lane
    assert isinstance(lane, Failed)
    assert (lane.code, lane.reason) == (creation_undone.code, creation_undone.reason)


def test_a_demolition_remembers_the_digest_before_it_destroys() -> None:
    lane = given(*UNDOING, explained).lane
    assert isinstance(lane, Undoing)
    assert lane.demolition == Demolition(
        place=PLACE, basis=Basis(commit=BASE, partial=True), digest="digest-1", entries=3, bytes=120
    )
