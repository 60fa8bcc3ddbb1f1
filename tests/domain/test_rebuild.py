"""How a lane is rebuilt from a snapshot, and which snapshot that is."""

import pytest
from msgspec.structs import replace

from domain.commands import RestoreLane
from domain.effects import (
    Applied,
    Apply,
    CheckedOut,
    Checkout,
    Explain,
    Joined,
    Rejoin,
    Unlock,
    Unlocked,
)
from domain.errors import NoSuchEdition, NoSuchSnapshot, WrongState
from domain.events import (
    BranchRejoined,
    Fact,
    LaneQuarantined,
    LaneReaped,
    LaneRestored,
    LaneSnapshotted,
    ReapingPlanned,
    RestorePlanned,
    SnapshotApplied,
    SnapshotPlanned,
    WorktreeRebuilt,
)
from domain.states import Active, Basis
from tests.domain.facts import (
    ADMIN,
    BRANCH,
    COMMON,
    HEAD,
    HOME,
    LATER,
    REBUILT_PLACE,
    RETURNING_LOCK,
    SNAPSHOT,
    applied,
    destroyed,
    explained,
    freed,
    locked,
    moved,
    quarantined,
    rebuild_planned,
    rebuilt,
    removal_planned,
    restore_planned,
    restore_step_failed,
    snapshot_planned,
)
from tests.domain.lives import (
    CREATED,
    FAILED_AT_ONCE,
    LEAVING,
    REAPED,
    REAPING,
    REBUILD_IN_REVIEW,
    REBUILT,
    REMOVED,
    RETURNED,
    UNDOING_IN_REVIEW,
)
from tests.given import given

BACK = RestoreLane(slug="fix-login", path=HOME)
SECOND = replace(removal_planned, edition=2, snapshot_id="s-2")
REMOVED_AGAIN: tuple[Fact, ...] = (
    SnapshotPlanned(snapshot="s-2", tolerant=False),
    LaneSnapshotted(snapshot=LATER),
    SECOND,
    locked,
    moved,
    freed,
    LaneQuarantined(edition=2, path="/srv/shop/.laneyard/quarantine/fix-login-2"),
)
REAPED_TWICE = (
    *REBUILT,
    *REMOVED_AGAIN,
    ReapingPlanned(journal_format=1, edition=2, snapshot_id="s-2", consent=None),
    explained,
    destroyed,
    LaneReaped(edition=2, snapshot_id="s-2", entries=3, bytes=120, digest="digest-1"),
)


def test_a_reaped_lane_is_rebuilt_and_compared_with_its_snapshot() -> None:
    lane = (
        given(*REAPED)
        .when(BACK)
        .then(
            RestorePlanned(
                journal_format=1,
                edition=1,
                source="snapshot",
                slug="fix-login",
                path=HOME,
                branch=BRANCH,
                head=HEAD,
                snapshot_id="s-1",
            )
        )
        .owes(Checkout(repository=COMMON, path=HOME, branch=None, commit=HEAD, reason=RETURNING_LOCK))
        .learns(CheckedOut(place=REBUILT_PLACE, head=HEAD), WorktreeRebuilt(place=REBUILT_PLACE))
        .owes(Apply(repository=COMMON, place=REBUILT_PLACE, snapshot=SNAPSHOT))
        .learns(Applied(content="content-1"), SnapshotApplied(content="content-1"))
        .owes(Rejoin(repository=COMMON, admin=ADMIN, branch=BRANCH, head=HEAD))
        .learns(Joined(branch=BRANCH), BranchRejoined(branch=BRANCH))
        .owes(Unlock(repository=COMMON, admin=ADMIN, reason=RETURNING_LOCK))
        .learns(Unlocked(), LaneRestored(edition=1, source="snapshot", path=HOME, branch=BRANCH, head=HEAD))
        .rests("active")
        .lane
    )
    assert isinstance(lane, Active)
    assert (lane.place, lane.record.snapshots) == (REBUILT_PLACE, (SNAPSHOT,))


def test_what_could_not_be_set_as_it_was_is_said_at_the_end() -> None:
    found, moved_on = ("run.sh: its extended attributes could not be set",), "the branch has moved on"
    (
        given(*REAPED, rebuild_planned, rebuilt)
        .learns(
            Applied(content="content-1", differences=found),
            SnapshotApplied(content="content-1", differences=found),
        )
        .learns(Joined(branch=None, why=moved_on), BranchRejoined(branch=None, why=moved_on))
        .learns(
            Unlocked(),
            LaneRestored(
                edition=1,
                source="snapshot",
                path=HOME,
                branch=None,
                head=HEAD,
                differences=(*found, moved_on),
            ),
        )
    )


UNBORN = replace(SNAPSHOT, head="")
REAPED_UNBORN: tuple[Fact, ...] = (
    *(*CREATED, snapshot_planned, LaneSnapshotted(snapshot=UNBORN), replace(removal_planned, head="")),
    *(locked, moved, freed, quarantined),
    ReapingPlanned(journal_format=1, edition=1, snapshot_id="s-1", consent=None),
    *(explained, destroyed),
    LaneReaped(edition=1, snapshot_id="s-1", entries=3, bytes=120, digest="digest-1"),
)


def test_a_lane_on_a_branch_without_a_commit_is_rebuilt_from_the_snapshots_own() -> None:
    lane = (
        given(*REAPED_UNBORN)
        .when(BACK)
        .then(replace(rebuild_planned, head=""))
        .owes(Checkout(repository=COMMON, path=HOME, branch=None, commit="c" * 40, reason=RETURNING_LOCK))
        .learns(CheckedOut(place=REBUILT_PLACE, head="c" * 40), rebuilt)
        .learns(Applied(content="content-1"), applied)
        .owes(Rejoin(repository=COMMON, admin=ADMIN, branch=BRANCH, head=""))
        .learns(Joined(branch=BRANCH), BranchRejoined(branch=BRANCH))
        .learns(Unlocked(), LaneRestored(edition=1, source="snapshot", path=HOME, branch=BRANCH, head=""))
        .rests("active")
        .lane
    )
    assert isinstance(lane, Active)
    assert lane.record.head is None


def test_the_tree_of_a_branch_without_a_commit_is_explained_by_its_snapshot_alone() -> None:
    failed = replace(restore_step_failed, left=REBUILT_PLACE)
    effect = given(*REAPED_UNBORN, replace(rebuild_planned, head=""), rebuilt, failed).owed
    assert isinstance(effect, Explain)
    assert effect.basis == Basis(commit="", snapshot=UNBORN, partial=True)
    resting = [fact for fact in REAPED_UNBORN if not isinstance(fact, LaneReaped)]
    reaping = given(*resting[:-2]).owed
    assert isinstance(reaping, Explain)
    assert reaping.basis == Basis(commit="", snapshot=UNBORN)


def test_one_snapshot_brings_a_lane_back_twice() -> None:
    again = (
        replace(removal_planned, edition=2, place=REBUILT_PLACE),
        locked,
        moved,
        freed,
        LaneQuarantined(edition=2, path="/srv/shop/.laneyard/quarantine/fix-login-2"),
        ReapingPlanned(journal_format=1, edition=2, snapshot_id="s-1", consent=None),
        explained,
        destroyed,
        LaneReaped(edition=2, snapshot_id="s-1", entries=3, bytes=120, digest="digest-1"),
    )
    for edition in (1, 2):
        given(*REBUILT, *again).when(RestoreLane(slug="fix-login", path=HOME, edition=edition)).then(
            replace(rebuild_planned, edition=edition)
        )


def test_the_last_edition_comes_back_unless_another_is_named() -> None:
    lane = given(*REAPED_TWICE)
    lane.when(BACK).then(replace(rebuild_planned, edition=2, snapshot_id="s-2"))
    for edition, snapshot in ((1, "s-1"), (2, "s-2")):
        lane.when(RestoreLane(slug="fix-login", path=HOME, edition=edition)).then(
            replace(rebuild_planned, edition=edition, snapshot_id=snapshot)
        )
    lane.when(RestoreLane(slug="fix-login", path=HOME, snapshot="s-1")).then(
        replace(rebuild_planned, edition=2, snapshot_id="s-1")
    )


def test_a_snapshot_brings_back_the_head_and_branch_that_it_holds() -> None:
    other = replace(LATER, head="9" * 40, branch=None)
    facts = (*CREATED, snapshot_planned, LaneSnapshotted(snapshot=other))
    given(
        *facts,
        removal_planned,
        locked,
        moved,
        freed,
        LaneQuarantined(edition=1, path="/q"),
        ReapingPlanned(journal_format=1, edition=1, snapshot_id="s-2", consent=None),
        explained,
        destroyed,
        LaneReaped(edition=1, snapshot_id="s-2", entries=0, bytes=0, digest="digest-1"),
    ).when(BACK).then(replace(rebuild_planned, head="9" * 40, branch=None, snapshot_id="s-2"))


@pytest.mark.parametrize("edition", [0, 3, -1])
def test_an_edition_that_never_was_is_refused(edition: int) -> None:
    given(*REAPED_TWICE).when(RestoreLane(slug="x", path=HOME, edition=edition)).refused(
        NoSuchEdition, edition=edition, known=(1, 2)
    )


def test_a_snapshot_that_the_lane_does_not_have_is_refused() -> None:
    given(*REAPED).when(RestoreLane(slug="x", path=HOME, snapshot="s-9")).refused(
        NoSuchSnapshot, snapshot="s-9"
    )


def test_a_lane_that_was_discarded_without_a_snapshot_has_none_to_come_back_from() -> None:
    given(
        *REAPING,
        explained,
        destroyed,
        LaneReaped(edition=1, snapshot_id=None, entries=3, bytes=1, digest="d"),
    ).when(BACK).refused(NoSuchSnapshot, snapshot="none")


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ((), "none"),
        (CREATED[:1], "opening"),
        (FAILED_AT_ONCE, "failed"),
        (CREATED, "active"),
        ((*CREATED, snapshot_planned), "snapshotting"),
        (LEAVING, "leaving"),
        (RETURNED, "active"),
        ((*REMOVED, restore_planned), "returning"),
        ((*REAPED, rebuild_planned, rebuilt, applied), "returning"),
        (REAPING, "reaping"),
        (REBUILD_IN_REVIEW, "needs-review"),
        (UNDOING_IN_REVIEW, "needs-review"),
    ],
)
def test_only_a_lane_that_is_away_comes_back(facts: tuple[Fact, ...], state: str) -> None:
    given(*facts).when(BACK).refused(WrongState, command="restored", state=state)
