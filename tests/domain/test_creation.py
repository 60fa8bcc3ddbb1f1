"""How a lane comes to be, and how nothing stays of one that does not."""

from collections.abc import Callable

import pytest

from domain.commands import CreateLane
from domain.effects import (
    CheckedOut,
    Checkout,
    DropBranch,
    Dropped,
    NotDone,
    Unlock,
    Unlocked,
)
from domain.errors import InvalidOwner, WrongState
from domain.events import (
    CreationFailed,
    CreationPlanned,
    CreationUndone,
    Fact,
    LaneCreated,
    StepFailed,
)
from domain.evidence import Place
from domain.states import Active, Failed, Opening
from tests.domain.facts import (
    ADMIN,
    BASE,
    BRANCH,
    COMMON,
    HOME,
    LANE,
    OPENING_LOCK,
    PLACE,
    checked_out,
    creation_planned,
)
from tests.domain.lives import (
    CREATED,
    FAILED_AT_ONCE,
    IN_REVIEW,
    LEAVING,
    REAPED,
    REMOVED,
    UNDOING,
)
from tests.given import given

CREATE = CreateLane(
    lane=LANE,
    repository=COMMON,
    name="Fix login",
    slug="fix-login",
    path=HOME,
    branch=BRANCH,
    base_ref="refs/heads/main",
    base_commit=BASE,
)
DROP = DropBranch(repository=COMMON, branch=BRANCH, at=BASE)


def test_a_creation_is_planned_with_all_its_names() -> None:
    given().when(CREATE).then(
        CreationPlanned(
            journal_format=1,
            lane=LANE,
            repository=COMMON,
            name="Fix login",
            slug="fix-login",
            path=HOME,
            branch=BRANCH,
            base_ref="refs/heads/main",
            base_commit=BASE,
            parent=None,
            owner="manual",
        )
    )


def test_a_session_may_own_a_lane() -> None:
    command = CreateLane(
        lane=LANE,
        repository=COMMON,
        name="x",
        slug="x",
        path=HOME,
        branch="refs/heads/x",
        base_ref="v1",
        base_commit=BASE,
        parent="another-lane",
        owner="session:7",
    )
    lane = (
        given()
        .when(command)
        .then(
            CreationPlanned(
                journal_format=1,
                lane=LANE,
                repository=COMMON,
                name="x",
                slug="x",
                path=HOME,
                branch="refs/heads/x",
                base_ref="v1",
                base_commit=BASE,
                parent="another-lane",
                owner="session:7",
            )
        )
        .lane
    )
    assert isinstance(lane, Opening)
    assert (lane.record.owner, lane.record.parent, lane.record.kind) == (
        "session:7",
        "another-lane",
        "managed",
    )


@pytest.mark.parametrize("owner", ["", "session", "session:", "manual:1", "root", ":1"])
def test_an_owner_is_manual_or_a_session(owner: str) -> None:
    command = CreateLane(
        lane=LANE,
        repository=COMMON,
        name="x",
        slug="x",
        path=HOME,
        branch="refs/heads/x",
        base_ref="v1",
        base_commit=BASE,
        owner=owner,
    )
    given().when(command).refused(InvalidOwner, owner=owner)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ((creation_planned,), "opening"),
        (UNDOING, "opening"),
        (FAILED_AT_ONCE, "failed"),
        (CREATED, "active"),
        (LEAVING, "leaving"),
        (REMOVED, "quarantined"),
        (IN_REVIEW, "needs-review"),
        (REAPED, "reaped"),
    ],
)
def test_a_lane_is_created_once(facts: tuple[Fact, ...], state: str) -> None:
    given(*facts).when(CREATE).refused(WrongState, command="created", state=state)


def test_a_creation_checks_out_then_takes_its_lock_away() -> None:
    (
        given(creation_planned)
        .owes(Checkout(repository=COMMON, path=HOME, branch=BRANCH, commit=BASE, reason=OPENING_LOCK))
        .learns(CheckedOut(place=PLACE, head=BASE), checked_out)
        .owes(Unlock(repository=COMMON, admin=ADMIN, reason=OPENING_LOCK))
        .learns(Unlocked(), LaneCreated(path=HOME, branch=BRANCH, head=BASE))
        .rests("active")
    )


def test_a_created_lane_stands_at_its_base() -> None:
    lane = given(*CREATED).lane
    assert isinstance(lane, Active)
    assert (lane.place, lane.record.head, lane.record.base_commit) == (PLACE, BASE, BASE)
    assert (lane.record.edition, lane.record.snapshots) == (0, ())


def again(step: str) -> Callable[[int], StepFailed]:
    return lambda attempt: StepFailed(step=step, attempt=attempt, code="branch_exists", reason="it exists")


@pytest.mark.parametrize("transient", [True, False])
def test_a_checkout_that_left_nothing_is_tried_again_only_if_it_may_pass(transient: bool) -> None:
    failed = NotDone(step="checkout", code="branch_exists", reason="it exists", transient=transient)
    planned = given(creation_planned)
    lane = (
        (planned.tries_again(failed, again("checkout")) if transient else planned)
        .learns(
            failed,
            CreationFailed(
                step="checkout", code="branch_exists", reason="it exists", left=None, branch_made=False
            ),
            CreationUndone(code="branch_exists", reason="it exists"),
        )
        .rests("failed")
        .lane
    )
    assert isinstance(lane, Failed)
    assert (lane.code, lane.reason) == ("branch_exists", "it exists")


def test_an_unlock_is_tried_again_and_then_undone() -> None:
    failed = NotDone(step="unlock", code="branch_exists", reason="it exists", transient=True)
    given(creation_planned, checked_out).tries_again(failed, again("unlock")).learns(
        failed,
        CreationFailed(step="unlock", code="branch_exists", reason="it exists", left=PLACE, branch_made=True),
    )


def test_a_step_of_a_creation_that_took_gives_the_next_its_own_patience() -> None:
    failed = NotDone(step="unlock", code="branch_exists", reason="it exists", transient=True)
    given(creation_planned, again("checkout")(3), checked_out).learns(failed, again("unlock")(1))


@pytest.mark.parametrize(("left", "made"), [(PLACE, False), (PLACE, True), (None, True)])
def test_a_half_made_checkout_is_undone_at_once(left: Place | None, made: bool) -> None:
    given(creation_planned).learns(
        NotDone(
            step="checkout", code="git_failed", reason="killed", transient=True, left=left, branch_made=made
        ),
        CreationFailed(step="checkout", code="git_failed", reason="killed", left=left, branch_made=made),
    )


def test_a_branch_that_a_failed_checkout_made_is_dropped() -> None:
    (
        given(creation_planned)
        .learns(
            NotDone(step="checkout", code="timeout", reason="git took too long", branch_made=True),
            CreationFailed(
                step="checkout", code="timeout", reason="git took too long", left=None, branch_made=True
            ),
        )
        .owes(DROP)
        .learns(Dropped(), CreationUndone(code="timeout", reason="git took too long"))
        .rests("failed")
    )
