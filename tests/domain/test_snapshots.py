"""How a verified copy is taken while the lane stays what it is."""

import pytest
from msgspec.structs import replace

from domain.commands import SnapshotLane
from domain.effects import Capture, Captured, NotDone
from domain.errors import CannotHold, EvidenceUnavailable, IdentityChanged, WrongState
from domain.events import Fact, LaneSnapshotted, SnapshotFailed, SnapshotPlanned, StepFailed
from domain.evidence import Consent, Identity, Obstacle, Unknown
from domain.states import Active, NeedsReview, Quarantined
from tests.domain.facts import (
    BRANCH,
    CLEAN,
    COMMON,
    DATA,
    HEAD,
    HOME,
    LANE,
    LATER,
    MODULES,
    PLACE,
    REBUILT_PLACE,
    RESTING_PLACE,
    SECRET,
    SNAPSHOT,
    explained,
    freed,
    let_go,
    locked,
    moved,
    quarantined,
    rebuild_planned,
    rebuildable_planned,
    restore_planned,
    snapshot_planned,
    snapshotted,
)
from tests.domain.lives import (
    CREATED,
    FAILED_AT_ONCE,
    FORCED,
    IN_REVIEW,
    LEAVING,
    REAPED,
    REAPING,
    REBUILD_IN_REVIEW,
    REMOVED,
    RETURNED,
    SNAPSHOTTED,
    UNDOING_IN_REVIEW,
)
from tests.given import given

SOCKET = Obstacle("socket", "run/dev.sock")
PIPE = Obstacle("fifo", "cache.sock/pipe")


def test_a_capture_is_planned_performed_and_the_lane_stays_active() -> None:
    lane = (
        given(*CREATED)
        .when(SnapshotLane(snapshot="s-1", seen=CLEAN))
        .then(SnapshotPlanned(snapshot="s-1", tolerant=False, omit=()))
        .owes(
            Capture(
                repository=COMMON,
                lane=LANE,
                snapshot="s-1",
                place=PLACE,
                head=None,
                branch=None,
                tolerant=False,
                omit=(),
            )
        )
        .learns(Captured(snapshot=SNAPSHOT), LaneSnapshotted(snapshot=SNAPSHOT))
        .rests("active")
        .lane
    )
    assert isinstance(lane, Active)
    assert lane.record.snapshots == (SNAPSHOT,)
    assert lane.record.editions == ()


@pytest.mark.parametrize(
    ("facts", "thorough"),
    [(CREATED, False), (RETURNED, False), (REMOVED, True), (IN_REVIEW, True), (REBUILD_IN_REVIEW, True)],
)
def test_what_is_at_rest_is_captured_without_trusting_what_was_seen_before(
    facts: tuple[Fact, ...], thorough: bool
) -> None:
    effect = given(*facts, snapshot_planned).owed
    assert isinstance(effect, Capture)
    assert effect.thorough is thorough


def test_snapshots_are_kept_in_the_order_in_which_they_were_taken() -> None:
    lane = given(*SNAPSHOTTED, snapshot_planned, LaneSnapshotted(snapshot=LATER)).lane
    assert isinstance(lane, Active)
    assert lane.record.snapshots == (SNAPSHOT, LATER)


@pytest.mark.parametrize("transient", [True, False])
@pytest.mark.parametrize("facts", [CREATED, REMOVED, IN_REVIEW])
def test_a_capture_that_failed_leaves_the_lane_as_it_was(facts: tuple[Fact, ...], transient: bool) -> None:
    before, planned = given(*facts).lane, given(*facts, snapshot_planned)
    failed = NotDone(step="capture", code="io_failed", reason="no space left", transient=transient)

    def again(attempt: int) -> StepFailed:
        return StepFailed(step="capture", attempt=attempt, code="io_failed", reason="no space left")

    (planned.tries_again(failed, again) if transient else planned).learns(
        failed,
        SnapshotFailed(snapshot="s-1", code="io_failed", reason="no space left"),
    ).is_now(before)


@pytest.mark.parametrize(
    "missing", ["identity", "head", "branch", "locked", "changed", "untracked", "ignored", "obstacles"]
)
def test_what_could_not_be_observed_is_never_clean(missing: str) -> None:
    seen = replace(CLEAN, **{missing: Unknown("git timed out")})
    given(*CREATED).when(SnapshotLane(snapshot="s-1", seen=seen, tolerant=True)).refused(
        EvidenceUnavailable, what=(missing,), why=("git timed out",)
    )


def test_another_directory_in_its_place_is_not_captured() -> None:
    seen = replace(CLEAN, identity=Identity(64, 1001, 6))
    given(*CREATED).when(SnapshotLane(snapshot="s-1", seen=seen)).refused(IdentityChanged, path=HOME)


def test_what_a_snapshot_cannot_hold_is_refused_by_name() -> None:
    seen = replace(CLEAN, obstacles=(SOCKET,))
    given(*CREATED).when(SnapshotLane(snapshot="s-1", seen=seen)).refused(
        CannotHold, obstacles=("socket 'run/dev.sock'",)
    )


def test_a_tolerant_capture_omits_what_it_cannot_hold_and_what_is_ignored() -> None:
    seen = replace(CLEAN, ignored=(SECRET,), obstacles=(SOCKET,))
    (
        given(*CREATED)
        .when(SnapshotLane(snapshot="s-1", seen=seen, tolerant=True))
        .then(SnapshotPlanned(snapshot="s-1", tolerant=True, omit=(".env", "run/dev.sock")))
        .owes(
            Capture(
                repository=COMMON,
                lane=LANE,
                snapshot="s-1",
                place=PLACE,
                head=None,
                branch=None,
                tolerant=True,
                omit=(".env", "run/dev.sock"),
            )
        )
    )


def test_what_is_asked_for_is_held_apart_and_the_rest_of_what_is_ignored_omitted() -> None:
    inner = replace(DATA, path="data/raw.bin")
    seen = replace(CLEAN, ignored=(SECRET, inner, MODULES))
    effect = (
        given(*CREATED)
        .when(SnapshotLane(snapshot="s-1", seen=seen, apart=(".env", "data")))
        .then(SnapshotPlanned(snapshot="s-1", tolerant=False, omit=("node_modules",), apart=(".env", "data")))
        .owed
    )
    assert isinstance(effect, Capture)
    assert (effect.omit, effect.apart) == (("node_modules",), (".env", "data"))


@pytest.mark.parametrize(
    ("agreed", "omit"),
    [
        (("data",), ("data",)),
        (("data/x", "data/y/z"), ("data/x", "data/y/z")),  # the rest of it nobody has agreed to lose
        (("data", "data/x"), ("data",)),
        ((".",), ("data",)),
        (("dat", "data2"), ("data",)),
    ],
)
def test_of_what_a_removal_has_agreed_to_lose_in_part_that_part_is_omitted(
    agreed: tuple[str, ...], omit: tuple[str, ...]
) -> None:
    plan = replace(rebuildable_planned, consent=Consent(agreed, "rebuildable"))
    seen = replace(CLEAN, ignored=(DATA,))
    given(*CREATED, plan, let_go, locked, moved, freed, quarantined).when(
        SnapshotLane(snapshot="s-1", seen=seen)
    ).then(SnapshotPlanned(snapshot="s-1", tolerant=False, omit=omit))


def test_a_consent_covers_an_obstacle_of_a_lane_at_rest_and_all_below_a_named_path() -> None:
    seen = replace(CLEAN, obstacles=(PIPE,))
    given(*FORCED).when(SnapshotLane(snapshot="s-2", seen=seen)).then(
        SnapshotPlanned(snapshot="s-2", tolerant=False, omit=("cache.sock/pipe",))
    )
    beside = replace(CLEAN, obstacles=(Obstacle("fifo", "cache.socket"),))
    given(*FORCED).when(SnapshotLane(snapshot="s-2", seen=beside)).refused(
        CannotHold, obstacles=("fifo 'cache.socket'",)
    )


def test_a_quarantined_lane_is_captured_with_the_head_and_branch_of_its_edition() -> None:
    lane = (
        given(*REMOVED)
        .when(SnapshotLane(snapshot="s-2", seen=CLEAN))
        .then(SnapshotPlanned(snapshot="s-2", tolerant=False))
        .owes(
            Capture(
                repository=COMMON,
                lane=LANE,
                snapshot="s-2",
                place=RESTING_PLACE,
                head=HEAD,
                branch=BRANCH,
                tolerant=False,
                omit=(),
                thorough=True,
            )
        )
        .learns(Captured(snapshot=LATER), LaneSnapshotted(snapshot=LATER))
        .rests("quarantined")
        .lane
    )
    assert isinstance(lane, Quarantined)
    assert [edition.snapshot_id for edition in lane.record.editions] == ["s-2"]


def test_a_snapshot_taken_while_active_leaves_older_editions_alone() -> None:
    lane = given(*RETURNED, snapshot_planned, LaneSnapshotted(snapshot=LATER)).lane
    assert isinstance(lane, Active)
    assert [edition.snapshot_id for edition in lane.record.editions] == ["s-1"]


def test_a_lane_in_review_is_captured_where_it_rests_and_comes_back_from_that() -> None:
    lane = (
        given(*IN_REVIEW)
        .when(SnapshotLane(snapshot="s-2", seen=CLEAN))
        .then(SnapshotPlanned(snapshot="s-2", tolerant=False))
        .owes(
            Capture(
                repository=COMMON,
                lane=LANE,
                snapshot="s-2",
                place=RESTING_PLACE,
                head=HEAD,
                branch=BRANCH,
                tolerant=False,
                omit=(),
                thorough=True,
            )
        )
        .learns(Captured(snapshot=LATER), LaneSnapshotted(snapshot=LATER))
        .rests("needs-review")
        .lane
    )
    assert isinstance(lane, NeedsReview)
    assert [edition.snapshot_id for edition in lane.record.editions] == ["s-2"]


def test_a_copy_of_what_a_failed_rebuild_left_never_stands_for_the_edition() -> None:
    seen = replace(CLEAN, identity=Identity(64, 2002, 9))
    lane = (
        given(*REBUILD_IN_REVIEW)
        .when(SnapshotLane(snapshot="s-2", seen=seen))
        .then(SnapshotPlanned(snapshot="s-2", tolerant=False))
        .owes(
            Capture(
                repository=COMMON,
                lane=LANE,
                snapshot="s-2",
                place=REBUILT_PLACE,
                head=None,
                branch=None,
                tolerant=False,
                omit=(),
                thorough=True,
            )
        )
        .learns(Captured(snapshot=LATER), LaneSnapshotted(snapshot=LATER))
        .lane
    )
    assert isinstance(lane, NeedsReview)
    assert [edition.snapshot_id for edition in lane.record.editions] == ["s-1"]
    assert lane.record.snapshots == (SNAPSHOT, LATER)


def test_what_a_failed_creation_left_can_be_captured() -> None:
    given(*UNDOING_IN_REVIEW).when(SnapshotLane(snapshot="s-1", seen=CLEAN)).then(
        SnapshotPlanned(snapshot="s-1", tolerant=False)
    ).learns(Captured(snapshot=SNAPSHOT), snapshotted).rests("needs-review")


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ((), "none"),
        (CREATED[:1], "opening"),
        (FAILED_AT_ONCE, "failed"),
        ((*CREATED, snapshot_planned), "snapshotting"),
        (LEAVING, "leaving"),
        ((*REMOVED, restore_planned), "returning"),
        (REAPING, "reaping"),
        ((*REAPING, explained), "reaping"),
        (REAPED, "reaped"),
        ((*REAPED, rebuild_planned), "returning"),
    ],
)
def test_only_a_tree_that_is_whole_and_at_rest_is_captured(facts: tuple[Fact, ...], state: str) -> None:
    given(*facts).when(SnapshotLane(snapshot="s-9", seen=CLEAN)).refused(
        WrongState, command="snapshotted", state=state
    )
