"""The lanes table: one row per lane, as it is now."""

import pytest

from domain.events import CreationUndone, Fact, LaneRestored, RestorePlanned, WorktreeReturned
from domain.evidence import Identity, Place
from projections import lanes
from tests.domain.facts import (
    ADMIN,
    BASE,
    BRANCH,
    COMMON,
    HEAD,
    HOME,
    LANE,
    RESTING,
    adopted,
    creation_failed,
    creation_planned,
    explained,
    locked,
    moved,
    rebuild_planned,
    rebuilt,
    registered,
    rejoined,
    restore_planned,
    returned,
    snapshot_planned,
)
from tests.domain.lives import (
    ABANDONED,
    CREATED,
    FAILED_AT_ONCE,
    IN_REVIEW,
    LEAVING,
    LIVES,
    REAPED,
    REAPING,
    REBUILD_IN_REVIEW,
    REMOVED,
    RESIDUAL,
    RETURNED,
    UNDOING,
    UNDONE,
)
from tests.projections.folded import row, rows, told


def test_a_created_lane_has_its_row() -> None:
    assert row(lanes.TABLE, LANE, CREATED) == {
        "id": LANE,
        "repository": COMMON,
        "slug": "fix-login",
        "name": "Fix login",
        "state": "active",
        "kind": "managed",
        "path": HOME,
        "branch": BRANCH,
        "head": BASE,
        "base_ref": "refs/heads/main",
        "base_commit": BASE,
        "parent": None,
        "owner": "manual",
        "edition": 0,
        "created_at": "2026-03-01T09:00:01Z",
        "since": "2026-03-01T09:00:03Z",
        "position": 3,
        "version": 3,
        "owed": None,
        "blocked": None,
        "detail": None,
    }


def test_an_adopted_lane_has_no_base() -> None:
    found = row(lanes.TABLE, LANE, (adopted,))
    assert (found["kind"], found["head"], found["base_ref"], found["base_commit"]) == (
        "external",
        HEAD,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("facts", "state", "path", "owed"),
    [
        ((creation_planned,), "opening", HOME, "Checkout"),
        (CREATED[:2], "opening", HOME, "Unlock"),
        (UNDOING, "opening", HOME, "Explain"),
        (UNDONE[:-1], "opening", HOME, "DropBranch"),
        ((*CREATED, snapshot_planned), "snapshotting", HOME, "Capture"),
        (LEAVING, "leaving", HOME, "Lock"),
        ((*LEAVING, locked), "leaving", HOME, "Move"),
        ((*LEAVING, locked, moved), "leaving", RESTING, "FreeBranch"),
        (ABANDONED, "active", HOME, None),
        (REMOVED, "quarantined", RESTING, None),
        ((*REMOVED, snapshot_planned), "snapshotting", RESTING, "Capture"),
        ((*REMOVED, restore_planned), "returning", RESTING, "Move"),
        ((*REMOVED, restore_planned, returned), "returning", HOME, "Rejoin"),
        (RETURNED, "active", HOME, None),
        (REAPING, "reaping", RESTING, "Explain"),
        ((*REAPING, explained), "reaping", RESTING, "Destroy"),
        (RESIDUAL, "reaping", RESTING, None),
        (IN_REVIEW, "needs-review", RESTING, None),
        (REAPED, "reaped", HOME, None),
        ((*REAPED, rebuild_planned), "returning", HOME, "Checkout"),
        ((*REAPED, rebuild_planned, rebuilt), "returning", HOME, "Apply"),
        (REBUILD_IN_REVIEW, "needs-review", HOME, None),
    ],
)
def test_a_row_says_the_state_where_the_tree_is_and_what_is_owed(
    facts: tuple[Fact, ...], state: str, path: str | None, owed: str | None
) -> None:
    found = row(lanes.TABLE, LANE, facts)
    assert (found["state"], found["path"], found["owed"]) == (state, path, owed)


def test_a_branch_alone_that_is_undone_is_nowhere() -> None:
    found = row(lanes.TABLE, LANE, (creation_planned, _without_a_tree()))
    assert (found["state"], found["path"], found["owed"]) == ("opening", None, "DropBranch")


def _without_a_tree() -> Fact:
    return type(creation_failed)(step="checkout", code="x", reason="y", left=None, branch_made=True)


def test_a_state_lasts_since_it_was_entered_and_a_lane_since_it_was_planned() -> None:
    found = row(lanes.TABLE, LANE, (*LEAVING, locked, moved))
    assert (found["created_at"], found["since"]) == ("2026-03-01T09:00:01Z", "2026-03-01T09:00:06Z")
    assert (found["position"], found["version"]) == (8, 8)


def test_a_restored_lane_has_the_slug_and_place_that_it_came_back_to() -> None:
    again = f"{HOME}-2"
    facts = (
        *REMOVED,
        RestorePlanned(
            journal_format=1,
            edition=1,
            source="quarantine",
            slug="fix-login-2",
            path=again,
            branch=BRANCH,
            head=HEAD,
            snapshot_id=None,
        ),
        WorktreeReturned(place=Place(again, ADMIN, Identity(64, 1001, 5))),
        rejoined,
        LaneRestored(edition=1, source="quarantine", path=again, branch=BRANCH, head=HEAD),
    )
    found = row(lanes.TABLE, LANE, facts)
    assert (found["slug"], found["path"], found["edition"]) == ("fix-login-2", again, 1)


@pytest.mark.parametrize("facts", LIVES.values(), ids=LIVES)
def test_every_life_has_one_row(facts: tuple[Fact, ...]) -> None:
    found = rows(lanes.TABLE, LANE, facts)
    never_was = isinstance(facts[-1], CreationUndone)
    assert len(found) == (0 if never_was else 1)


def test_a_repository_is_not_a_lane() -> None:
    assert told(("repository-/srv/shop/.git", (registered,))).table(lanes.TABLE) == []


@pytest.mark.parametrize("facts", [UNDONE, FAILED_AT_ONCE])
def test_a_creation_that_was_undone_leaves_no_row(facts: tuple[Fact, ...]) -> None:
    assert rows(lanes.TABLE, "a", facts) == []
