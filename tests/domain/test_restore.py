"""How a lane comes back: by a rename, or rebuilt and compared with its snapshot."""

import pytest
from msgspec.structs import replace

from domain.commands import RestoreLane
from domain.effects import (
    Joined,
    Move,
    Moved,
    Rejoin,
    Unlock,
    Unlocked,
)
from domain.errors import NoSuchEdition, WrongState
from domain.events import (
    BranchRejoined,
    Fact,
    LaneRestored,
    RestorePlanned,
    WorktreeReturned,
)
from domain.evidence import Identity, Place
from domain.states import Active
from tests.domain.facts import (
    ADMIN,
    BRANCH,
    COMMON,
    EDITION_LOCK,
    HEAD,
    HOME,
    PLACE,
    RESTING_PLACE,
    explained,
    rejoined,
    restore_planned,
    returned,
    unexplained,
)
from tests.domain.lives import (
    IN_REVIEW,
    REAPING,
    REMOVED,
)
from tests.given import given

BACK = RestoreLane(slug="fix-login", path=HOME)


@pytest.mark.parametrize("edition", [None, 1])
def test_a_quarantined_lane_comes_back_by_a_rename(edition: int | None) -> None:
    lane = (
        given(*REMOVED)
        .when(RestoreLane(slug="fix-login", path=HOME, edition=edition))
        .then(
            RestorePlanned(
                journal_format=1,
                edition=1,
                source="quarantine",
                slug="fix-login",
                path=HOME,
                branch=BRANCH,
                head=HEAD,
                snapshot_id=None,
            )
        )
        .owes(Move(repository=COMMON, place=RESTING_PLACE, target=HOME))
        .learns(Moved(place=PLACE), WorktreeReturned(place=PLACE))
        .owes(Rejoin(repository=COMMON, admin=ADMIN, branch=BRANCH, head=HEAD))
        .learns(Joined(branch=BRANCH), BranchRejoined(branch=BRANCH))
        .owes(Unlock(repository=COMMON, admin=ADMIN, reason=EDITION_LOCK))
        .learns(
            Unlocked(),
            LaneRestored(edition=1, source="quarantine", path=HOME, branch=BRANCH, head=HEAD),
        )
        .rests("active")
        .lane
    )
    assert isinstance(lane, Active)
    assert (lane.place, lane.record.branch, lane.record.head, lane.record.edition) == (PLACE, BRANCH, HEAD, 1)


def test_a_lane_that_comes_back_elsewhere_says_so_and_takes_the_new_slug() -> None:
    elsewhere = Place("/srv/shop/.laneyard/worktrees/fix-login-2", ADMIN, Identity(64, 1001, 5))
    lane = (
        given(*REMOVED, replace(restore_planned, slug="fix-login-2", path=elsewhere.path))
        .learns(Moved(place=elsewhere), WorktreeReturned(place=elsewhere))
        .learns(Joined(branch=BRANCH), rejoined)
        .learns(
            Unlocked(),
            LaneRestored(
                edition=1,
                source="quarantine",
                path="/srv/shop/.laneyard/worktrees/fix-login-2",
                branch=BRANCH,
                head=HEAD,
                differences=("the path is now /srv/shop/.laneyard/worktrees/fix-login-2",),
            ),
        )
        .lane
    )
    assert isinstance(lane, Active)
    assert (lane.record.slug, lane.place) == ("fix-login-2", elsewhere)


def test_a_branch_that_has_moved_on_leaves_the_lane_detached_and_says_why() -> None:
    lane = (
        given(*REMOVED, restore_planned, returned)
        .learns(
            Joined(branch=None, why="fix-login has moved on"),
            BranchRejoined(branch=None, why="fix-login has moved on"),
        )
        .learns(
            Unlocked(),
            LaneRestored(
                edition=1,
                source="quarantine",
                path=HOME,
                branch=None,
                head=HEAD,
                differences=("fix-login has moved on",),
            ),
        )
        .lane
    )
    assert isinstance(lane, Active)
    assert lane.record.branch is None


@pytest.mark.parametrize("facts", [REMOVED, IN_REVIEW])
@pytest.mark.parametrize("edition", [0, 2])
def test_only_the_edition_that_rests_can_be_moved_back(facts: tuple[Fact, ...], edition: int) -> None:
    given(*facts).when(RestoreLane(slug="fix-login", path=HOME, edition=edition)).refused(
        NoSuchEdition, edition=edition, known=(1,)
    )


@pytest.mark.parametrize(("facts", "state"), [(REMOVED, "quarantined"), (IN_REVIEW, "needs-review")])
def test_what_is_still_whole_is_not_rebuilt(facts: tuple[Fact, ...], state: str) -> None:
    given(*facts).when(RestoreLane(slug="fix-login", path=HOME, snapshot="s-1")).refused(
        WrongState, command="restored from a snapshot, as it is still whole", state=state
    )


def test_a_lane_in_review_is_put_back_from_where_it_rests() -> None:
    (
        given(*IN_REVIEW)
        .when(BACK)
        .then(restore_planned)
        .owes(Move(repository=COMMON, place=RESTING_PLACE, target=HOME))
        .learns(Moved(place=PLACE), returned)
        .learns(Joined(branch=BRANCH), rejoined)
        .learns(
            Unlocked(),
            LaneRestored(edition=1, source="quarantine", path=HOME, branch=BRANCH, head=HEAD),
        )
        .rests("active")
    )


def test_a_lane_whose_deletion_may_have_begun_is_not_said_to_be_as_it_was() -> None:
    given(*REAPING, explained, unexplained, restore_planned, returned, rejoined).learns(
        Unlocked(),
        LaneRestored(
            edition=1,
            source="quarantine",
            path=HOME,
            branch=BRANCH,
            head=HEAD,
            differences=("its deletion may have begun: compare it with snapshot s-1, which has all of it",),
        ),
    )
