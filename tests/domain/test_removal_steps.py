"""What a removal does to the world, step by step, and what it does when a step does not take."""

import pytest
from msgspec.structs import replace

from domain.effects import (
    DropBranch,
    Dropped,
    FreeBranch,
    Freed,
    Lock,
    Locked,
    Move,
    Moved,
    NotDone,
    Unlock,
    Unlocked,
)
from domain.events import (
    BranchDropped,
    BranchFreed,
    Fact,
    LaneQuarantined,
    LaneSnapshotted,
    RemovalAbandoned,
    RemovalPlanned,
    RemovalStepFailed,
    SnapshotPlanned,
    WorktreeLocked,
    WorktreeMoved,
)
from domain.evidence import Consent, Identity, Place
from domain.retries import ATTEMPTS
from domain.states import Active, Edition, Leaving, Quarantined
from tests.domain.facts import (
    ADMIN,
    BRANCH,
    COMMON,
    EDITION_LOCK,
    HEAD,
    HOME,
    LATER,
    PLACE,
    RESTING,
    forced_planned,
    freed,
    locked,
    moved,
    removal_planned,
)
from tests.domain.lives import CREATED, FORCED, LEAVING, RETURNED, SNAPSHOTTED
from tests.given import Given, given

LOCK = Lock(repository=COMMON, admin=ADMIN, reason=EDITION_LOCK, idle=True)
UNLOCK = Unlock(repository=COMMON, admin=ADMIN, reason=EDITION_LOCK)
MOVE = Move(repository=COMMON, place=PLACE, target=RESTING, leaving=True)
FREE = FreeBranch(repository=COMMON, admin=ADMIN, head=HEAD, branch=BRANCH)
DROP = DropBranch(repository=COMMON, branch=BRANCH, at=HEAD)


def test_a_removal_locks_moves_and_frees_the_branch() -> None:
    lane = (
        given(*LEAVING)
        .owes(LOCK)
        .learns(Locked(), WorktreeLocked())
        .owes(MOVE)
        .learns(Moved(place=Place(RESTING, ADMIN, Identity(64, 1001, 5))), WorktreeMoved(path=RESTING))
        .owes(FREE)
        .learns(Freed(), BranchFreed(), LaneQuarantined(edition=1, path=RESTING))
        .rests("quarantined")
        .lane
    )
    assert isinstance(lane, Quarantined)
    assert (lane.place, lane.origin) == (Place(RESTING, ADMIN, Identity(64, 1001, 5)), HOME)
    assert lane.record.editions == (Edition(1, "s-1", BRANCH, HEAD, HOME),)
    assert lane.record.edition == 1


def test_a_branch_is_dropped_last_and_only_if_asked_for() -> None:
    lane = (
        given(*SNAPSHOTTED, forced_planned, locked, moved)
        .learns(Freed(), BranchFreed())
        .owes(DROP)
        .learns(Dropped(), BranchDropped(branch=BRANCH, at=HEAD), LaneQuarantined(edition=1, path=RESTING))
        .rests("quarantined")
        .lane
    )
    assert isinstance(lane, Quarantined)
    assert lane.consent == Consent((".env", "cache.sock"), "remove --force")


def test_a_branch_that_could_not_be_dropped_is_kept_with_a_warning() -> None:
    given(*SNAPSHOTTED, forced_planned, locked, moved, freed).owes(DROP).learns(
        Dropped(kept="it has moved"),
        BranchDropped(branch=BRANCH, at=HEAD, kept="it has moved"),
        LaneQuarantined(edition=1, path=RESTING, warnings=("it has moved",)),
    ).rests("quarantined")


def test_a_branch_that_is_still_held_is_not_dropped() -> None:
    lane = (
        given(*SNAPSHOTTED, forced_planned, locked, moved)
        .learns(
            Freed(held="HEAD has moved"),
            BranchFreed(held="HEAD has moved"),
            LaneQuarantined(edition=1, path=RESTING, warnings=("HEAD has moved",)),
        )
        .rests("quarantined")
        .lane
    )
    assert isinstance(lane, Quarantined)
    assert lane.warnings == ("HEAD has moved",)


@pytest.mark.parametrize("after", [freed, BranchFreed(held="HEAD has moved")])
@pytest.mark.parametrize("plan", [removal_planned, forced_planned])
def test_a_branch_is_owed_to_be_dropped_only_if_asked_for_and_free(plan: Fact, after: BranchFreed) -> None:
    wanted = plan is forced_planned and after is freed
    given(*SNAPSHOTTED, plan, locked, moved, after).owes(DROP if wanted else FREE)


def test_a_plan_of_format_3_is_driven_as_a_strict_safe_removal() -> None:
    old = RemovalPlanned(
        journal_format=3,
        edition=1,
        mode="safe",
        place=PLACE,
        resting=RESTING,
        head=HEAD,
        branch=BRANCH,
        snapshot_id=None,
        snapshot_ref=None,
        snapshot_commit=None,
        snapshot_tree=None,
        provisioned_ignored=(),
        consent=None,
        evidence=None,
        delete_branch=False,
    )
    (
        given(*CREATED, old)
        .owes(LOCK)
        .learns(Locked(), WorktreeLocked())
        .owes(replace(MOVE, strict=True))
        .learns(Moved(place=Place(RESTING, ADMIN, Identity(64, 1001, 5))), WorktreeMoved(path=RESTING))
        .owes(FREE)
        .learns(Freed(), BranchFreed(), LaneQuarantined(edition=1, path=RESTING))
        .rests("quarantined")
    )


# Failing --------------------------------------------------------------------------------------------------


def failing(step: str, transient: bool) -> NotDone:
    return NotDone(step=step, code="busy", reason="busy", transient=transient)


def failed(step: str, attempt: int, final: bool) -> RemovalStepFailed:
    return RemovalStepFailed(step=step, attempt=attempt, code="busy", reason="busy", final=final)


ABANDONED = RemovalAbandoned(edition=1, code="busy", reason="busy")
STILL_LOCKED = RemovalAbandoned(edition=1, code="busy", reason="busy; it is still locked, as unlock: busy")


@pytest.mark.parametrize(("facts", "step"), [(LEAVING, "lock"), ((*LEAVING, locked), "move")])
def test_before_the_move_a_step_that_has_used_up_its_attempts_leads_back(
    facts: tuple[Fact, ...], step: str
) -> None:
    lane = (
        given(*facts)
        .tries_again(failing(step, True), lambda attempt: failed(step, attempt, False))
        .learns(failing(step, True), failed(step, ATTEMPTS, True))
        .owes(UNLOCK)
        .learns(Unlocked(), ABANDONED)
        .rests("active")
        .lane
    )
    assert isinstance(lane, Active)
    assert (lane.place, lane.record.editions) == (PLACE, ())


@pytest.mark.parametrize(("facts", "step"), [(LEAVING, "lock"), ((*LEAVING, locked), "move")])
def test_before_the_move_a_failure_that_will_not_pass_leads_back_at_once(
    facts: tuple[Fact, ...], step: str
) -> None:
    given(*facts).learns(failing(step, False), failed(step, 1, True)).owes(UNLOCK)


@pytest.mark.parametrize("step", ["lock", "move"])
def test_the_way_back_is_not_forgotten_when_the_unlock_has_to_be_tried_again(step: str) -> None:
    lane: Given = given(*LEAVING).learns(failing(step, False), failed(step, 1, True))
    lane = lane.owes(UNLOCK).tries_again(
        failing("unlock", True), lambda attempt: failed("unlock", attempt, False)
    )
    lane.learns(failing("unlock", True), STILL_LOCKED).rests("active")


def test_a_lock_that_stays_behind_does_not_keep_a_removal_from_ending_and_is_told() -> None:
    given(*LEAVING).learns(failing("lock", False), failed("lock", 1, True)).learns(
        failing("unlock", False), STILL_LOCKED
    ).rests("active")


def test_after_the_move_a_branch_that_cannot_be_freed_is_a_warning() -> None:
    held = "free-branch: busy"
    end = (BranchFreed(held=held), LaneQuarantined(edition=1, path=RESTING, warnings=(held,)))
    resting = given(*LEAVING, locked, moved)
    resting.learns(failing("free-branch", False), *end).rests("quarantined")
    (
        resting.owes(FREE)
        .tries_again(failing("free-branch", True), lambda attempt: failed("free-branch", attempt, False))
        .learns(failing("free-branch", True), *end)
        .rests("quarantined")
    )


def test_after_the_move_a_branch_that_cannot_be_dropped_is_a_warning() -> None:
    kept = "drop-branch: busy"
    end = (
        BranchDropped(branch=BRANCH, at=HEAD, kept=kept),
        LaneQuarantined(edition=1, path=RESTING, warnings=(kept,)),
    )
    resting = given(*SNAPSHOTTED, forced_planned, locked, moved, freed)
    resting.learns(failing("drop-branch", False), *end).rests("quarantined")
    resting.learns(failing("drop-branch", True), failed("drop-branch", 1, False)).owes(DROP)


def test_a_step_that_took_gives_the_next_its_own_patience() -> None:
    lane = given(*LEAVING, failed("lock", 1, False), failed("lock", 2, False), locked).lane
    assert isinstance(lane, Leaving)
    assert lane.attempt == 0


def test_a_removed_lane_rests_at_the_head_that_was_seen() -> None:
    lane = given(*SNAPSHOTTED, replace(removal_planned, head="9" * 40)).lane
    assert isinstance(lane, Leaving)
    assert lane.record.head == "9" * 40


def test_a_second_removal_keeps_the_first_edition() -> None:
    second = replace(removal_planned, edition=2, snapshot_id="s-2")
    lane = given(
        *RETURNED,
        SnapshotPlanned(snapshot="s-2", tolerant=False),
        LaneSnapshotted(snapshot=LATER),
        second,
        locked,
        moved,
        freed,
        LaneQuarantined(edition=2, path=RESTING),
    ).lane
    assert isinstance(lane, Quarantined)
    assert [(each.number, each.snapshot_id) for each in lane.record.editions] == [(1, "s-1"), (2, "s-2")]


def test_a_forced_removal_ends_like_any_other() -> None:
    given(*FORCED).rests("quarantined")
