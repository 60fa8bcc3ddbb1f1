"""A slug, a path and a branch belong to one lane of a repository at a time."""

import pytest
from msgspec.structs import replace

from domain.envelope import stream_of
from domain.events import CreationPlanned, Fact, LaneAdopted, LaneCheckedOut, LaneCreated
from domain.evidence import Identity, Place
from domain.lane import INITIAL, evolve, fold
from projections import claims
from projections.table import Happening, Key
from tests.domain.facts import (
    ADMIN,
    BASE,
    BRANCH,
    COMMON,
    HEAD,
    HOME,
    LANE,
    PLACE,
    RESTING,
    adopted,
    creation_planned,
    locked,
    moved,
    rebuild_planned,
    restore_planned,
    returned,
    snapshot_planned,
)
from tests.domain.lives import (
    CREATED,
    IN_REVIEW,
    LEAVING,
    LIVES,
    REAPED,
    REAPING,
    REBUILD_FAILED,
    REMOVED,
    RETURNED,
    UNDOING,
    UNDONE,
)
from tests.projections.folded import event, rows, told

MINE, OTHERS = stream_of(LANE), stream_of("another-lane")
OTHER = replace(
    creation_planned,
    lane="another-lane",
    slug="other",
    path="/srv/shop/.laneyard/worktrees/other",
    branch="refs/heads/other",
)


def held(*facts: Fact) -> set[tuple[object, object]]:
    """Returns (kind, value) of what the lane holds after these facts."""
    return {(kind, value) for _, kind, value in claims.claims(fold(facts))}


SLUG, AT_HOME, AT_REST, ON_BRANCH = (
    ("slug", "fix-login"),
    ("path", HOME),
    ("path", RESTING),
    ("branch", BRANCH),
)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((), set()),
        ((creation_planned,), {SLUG, AT_HOME, ON_BRANCH}),
        (CREATED, {SLUG, AT_HOME, ON_BRANCH}),
        ((adopted,), {SLUG, AT_HOME, ON_BRANCH}),
        ((*CREATED, snapshot_planned), {SLUG, AT_HOME, ON_BRANCH}),
        (LEAVING, {SLUG, AT_HOME, AT_REST, ON_BRANCH}),
        ((*LEAVING, locked, moved), {SLUG, AT_HOME, AT_REST, ON_BRANCH}),
        (REMOVED, {SLUG, AT_HOME, AT_REST}),
        ((*REMOVED, snapshot_planned), {SLUG, AT_HOME, AT_REST}),
        ((*REMOVED, restore_planned), {SLUG, AT_HOME, AT_REST}),
        ((*REMOVED, restore_planned, returned), {SLUG, AT_HOME, AT_REST}),
        (RETURNED, {SLUG, AT_HOME, ON_BRANCH}),
        (REAPING, {SLUG, AT_HOME, AT_REST}),
        (IN_REVIEW, {SLUG, AT_HOME, AT_REST}),
        ((*IN_REVIEW, restore_planned), {SLUG, AT_HOME, AT_REST}),
        (REAPED, set()),
        ((*REAPED, rebuild_planned), {SLUG, AT_HOME}),
        (REBUILD_FAILED, {SLUG, AT_HOME}),
        (UNDOING, {SLUG, AT_HOME}),
        (UNDONE, set()),
    ],
)
def test_a_lane_holds_what_its_state_needs(facts: tuple[Fact, ...], expected: set[tuple[str, str]]) -> None:
    assert held(*facts) == expected


def test_a_lane_that_returns_elsewhere_holds_both_slugs_and_all_paths() -> None:
    planned = replace(restore_planned, slug="fix-login-2", path=f"{HOME}-2")
    assert held(*REMOVED, planned) == {
        SLUG,
        ("slug", "fix-login-2"),
        AT_HOME,
        AT_REST,
        ("path", f"{HOME}-2"),
    }


def test_a_detached_lane_holds_no_branch() -> None:
    assert held(replace(adopted, branch=None)) == {SLUG, AT_HOME}


def test_the_main_checkout_does_not_keep_its_branch_from_others() -> None:
    assert held(replace(adopted, kind="primary")) == {SLUG, AT_HOME}


def conflicts(before: tuple[tuple[str, tuple[Fact, ...]], ...], stream: str, fact: Fact) -> set[object]:
    """Returns the kinds of what the fact would claim and another stream holds."""
    log = told(*before)
    lane = log.lanes.get(stream, INITIAL)
    happening = Happening(event(99, stream, 1, fact), lane, evolve(lane, fact))
    return {kind for _, kind, _ in claims.conflicts(happening, log.rows[claims.TABLE.name].get)}


@pytest.mark.parametrize(
    ("fact", "kind"),
    [
        (replace(OTHER, slug="fix-login"), "slug"),
        (replace(OTHER, path=HOME), "path"),
        (replace(OTHER, branch=BRANCH), "branch"),
    ],
)
def test_two_lanes_cannot_hold_one_thing_of_a_repository(fact: CreationPlanned, kind: str) -> None:
    assert conflicts(((MINE, CREATED),), OTHERS, fact) == {kind}
    assert conflicts(((MINE, CREATED),), OTHERS, OTHER) == set()


def test_two_repositories_can() -> None:
    elsewhere = replace(creation_planned, lane="another-lane", repository="/srv/blog/.git")
    assert conflicts(((MINE, CREATED),), OTHERS, elsewhere) == set()


def test_a_quarantined_lane_keeps_slug_and_path_but_frees_its_branch() -> None:
    twin = replace(creation_planned, lane="another-lane")
    assert conflicts(((MINE, CREATED),), OTHERS, twin) == {"slug", "path", "branch"}
    assert conflicts(((MINE, REMOVED),), OTHERS, twin) == {"slug", "path"}


@pytest.mark.parametrize("life", [REAPED, UNDONE])
def test_a_lane_that_is_gone_frees_all(life: tuple[Fact, ...]) -> None:
    assert conflicts(((MINE, life),), OTHERS, replace(creation_planned, lane="another-lane")) == set()
    assert rows(claims.TABLE, LANE, life) == []


def test_a_reaped_lane_does_not_come_back_over_another() -> None:
    twin = (replace(creation_planned, lane="another-lane"),)
    assert conflicts(((MINE, REAPED), (OTHERS, twin)), MINE, rebuild_planned) == {"slug", "path"}


def test_what_a_lane_holds_itself_is_no_conflict() -> None:
    assert conflicts(((MINE, REMOVED),), MINE, restore_planned) == set()


# An adoption is an outcome of what others did: it is written down, and the first holder keeps its claims.
FOUND = LaneAdopted(
    lane="another-lane",
    repository=COMMON,
    name="found",
    slug="found",
    kind="external",
    place=Place(HOME, ADMIN, Identity(64, 9, 9)),
    branch=BRANCH,
    head=HEAD,
)


def holders(*lives: tuple[str, tuple[Fact, ...]]) -> dict[Key, object]:
    return {row[1:3]: row[3] for row in told(*lives).table(claims.TABLE)}


def test_the_first_holder_keeps_the_claim() -> None:
    assert holders((MINE, CREATED), (OTHERS, (FOUND,))) == {
        ("branch", BRANCH): MINE,
        ("path", HOME): MINE,
        ("slug", "fix-login"): MINE,
        ("slug", "found"): OTHERS,
    }


def test_who_never_held_a_claim_does_not_let_it_go() -> None:
    second = (
        CreationPlanned(
            journal_format=1,
            lane="another-lane",
            repository=COMMON,
            name="x",
            slug="x",
            path=HOME,
            branch=BRANCH,
            base_ref="main",
            base_commit=BASE,
            parent=None,
            owner="manual",
        ),
        LaneCheckedOut(place=PLACE, head=BASE),
        LaneCreated(path=HOME, branch=BRANCH, head=BASE),
    )
    after = holders((MINE, CREATED), (OTHERS, (*second, *REAPED[3:])))
    assert after == {("branch", BRANCH): MINE, ("path", HOME): MINE, ("slug", "fix-login"): MINE}


@pytest.mark.parametrize("facts", LIVES.values(), ids=LIVES)
def test_the_rows_of_one_lane_are_what_it_holds(facts: tuple[Fact, ...]) -> None:
    found = {(kind, value) for _, kind, value, _ in rows(claims.TABLE, LANE, facts)}
    assert found == held(*facts)
