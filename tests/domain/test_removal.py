"""How a lane is put away: nothing moves before all is written down, and nothing is deleted."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from domain.commands import RemoveLane
from domain.effects import FreeBranch, Freed, Locked, Moved
from domain.errors import (
    CannotHold,
    ChangedSinceSnapshot,
    EditProtected,
    EvidenceUnavailable,
    ForeignLock,
    IdentityChanged,
    NoSuchSnapshot,
    NotSnapshotted,
    NotTheLanesBranch,
    TooManyToName,
    UnknownIgnored,
    WrongState,
)
from domain.events import (
    Fact,
    LaneAdopted,
    LaneSnapshotted,
    RemovalAbandoned,
    RemovalPlanned,
)
from domain.evidence import CONSENT_LIMIT, Consent, Identity, Obstacle, Place, Seen, Summary, Unknown
from domain.lane import decide
from domain.removal import REBUILDABLE_LIMIT
from domain.states import Leaving
from tests.domain.facts import (
    BRANCH,
    CLEAN,
    COMMON,
    DATA,
    EDITION_LOCK,
    HEAD,
    HOME,
    LANE,
    MODULES,
    PLACE,
    RESTING,
    RESTING_PLACE,
    SECRET,
    SNAPSHOT,
    adopted,
    forced_planned,
    freed,
    let_go,
    locked,
    moved,
    quarantined,
    rebuildable_planned,
    restore_planned,
    snapshot_planned,
)
from tests.domain.lives import (
    CREATED,
    FAILED_AT_ONCE,
    IN_REVIEW,
    LEAVING,
    REAPED,
    REAPING,
    REMOVED,
    RETURNED,
    SNAPSHOTTED,
)
from tests.given import given

SOCKET = Obstacle("socket", "cache.sock")


def safe(seen: Seen, snapshot: str | None = "s-1", delete_branch: bool = False) -> RemoveLane:
    return RemoveLane(resting=RESTING, seen=seen, snapshot=snapshot, delete_branch=delete_branch)


def force(seen: Seen, snapshot: str | None = "s-1", delete_branch: bool = False) -> RemoveLane:
    return RemoveLane(
        resting=RESTING, seen=seen, mode="force", snapshot=snapshot, delete_branch=delete_branch
    )


def planned(asked: RemoveLane, *facts: Fact) -> RemovalPlanned:
    (fact,) = decide(given(*facts).lane, asked)
    assert isinstance(fact, RemovalPlanned)
    return fact


def test_a_safe_removal_writes_down_all_that_undoing_needs() -> None:
    given(*SNAPSHOTTED).when(safe(CLEAN)).then(
        RemovalPlanned(
            journal_format=4,
            edition=1,
            mode="safe",
            place=PLACE,
            resting=RESTING,
            head=HEAD,
            branch=BRANCH,
            snapshot_id="s-1",
            snapshot_ref="refs/laneyard/snapshots/s-1",
            snapshot_commit="c" * 40,
            snapshot_tree="d" * 40,
            provisioned_ignored=(),
            consent=None,
            evidence=Summary(at="2026-03-01T09:00:00Z", changed=0, untracked=0, ignored=0),
            delete_branch=False,
        )
    )


def test_a_clean_lane_needs_no_snapshot_to_rest() -> None:
    plan = planned(safe(CLEAN, snapshot=None), *CREATED)
    assert (plan.snapshot_id, plan.snapshot_ref, plan.snapshot_commit, plan.snapshot_tree) == (None,) * 4
    assert (plan.mode, plan.consent) == ("safe", None)


def test_an_adopted_lane_is_removed_like_any_other() -> None:
    assert planned(safe(CLEAN, snapshot=None), adopted).edition == 1


def test_a_detached_lane_has_no_branch_to_free_or_delete() -> None:
    plan = planned(safe(replace(CLEAN, branch=None)), *SNAPSHOTTED)
    assert (plan.branch, plan.delete_branch) == (None, False)


@pytest.mark.parametrize(("found", "shown"), [(None, "none"), ("refs/heads/other", "other")])
def test_only_the_lanes_own_branch_is_deleted(found: str | None, shown: str) -> None:
    seen = replace(CLEAN, branch=found)
    given(*SNAPSHOTTED).when(safe(seen, delete_branch=True)).refused(
        NotTheLanesBranch, branch=shown, own="fix-login"
    )


def test_the_head_and_branch_that_were_seen_are_the_ones_that_count() -> None:
    seen = replace(CLEAN, head="9" * 40, branch="refs/heads/other")
    plan = planned(safe(seen, snapshot=None), *SNAPSHOTTED)
    assert (plan.head, plan.branch) == ("9" * 40, "refs/heads/other")


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ((), "none"),
        (CREATED[:1], "opening"),
        (FAILED_AT_ONCE, "failed"),
        ((*CREATED, snapshot_planned), "snapshotting"),
        (LEAVING, "leaving"),
        (REMOVED, "quarantined"),
        ((*REMOVED, restore_planned), "returning"),
        (REAPING, "reaping"),
        (IN_REVIEW, "needs-review"),
        (REAPED, "reaped"),
    ],
)
def test_only_an_active_lane_is_removed(facts: tuple[Fact, ...], state: str) -> None:
    given(*facts).when(force(CLEAN)).refused(WrongState, command="removed", state=state)


def test_the_main_checkout_is_never_removed() -> None:
    primary = LaneAdopted(
        lane=LANE,
        repository=COMMON,
        name="shop",
        slug="shop",
        kind="primary",
        place=Place("/srv/shop", COMMON, Identity(64, 1001, 5)),
        branch="refs/heads/main",
        head=HEAD,
    )
    given(primary).when(force(CLEAN, snapshot=None)).refused(EditProtected, path="/srv/shop")


@pytest.mark.parametrize(
    "missing",
    ["identity", "head", "branch", "locked", "changed", "untracked", "ignored", "obstacles", "fingerprint"],
)
@pytest.mark.parametrize("ask", [safe, force])
def test_unknown_is_never_clean_and_force_does_not_override_it(
    missing: str, ask: Callable[[Seen], RemoveLane]
) -> None:
    seen = replace(CLEAN, **{missing: Unknown("git timed out")})
    given(*SNAPSHOTTED).when(ask(seen)).refused(EvidenceUnavailable, what=(missing,), why=("git timed out",))


def test_every_gap_is_named() -> None:
    seen = replace(CLEAN, head=Unknown("no HEAD"), ignored=Unknown("git timed out"))
    given(*SNAPSHOTTED).when(safe(seen)).refused(
        EvidenceUnavailable, what=("head", "ignored"), why=("no HEAD", "git timed out")
    )


@pytest.mark.parametrize("found", [Identity(64, 1002, 5), Identity(64, 1001, 6), Identity(64, 1001, None)])
def test_another_directory_in_its_place_is_left_alone(found: Identity) -> None:
    given(*SNAPSHOTTED).when(force(replace(CLEAN, identity=found))).refused(IdentityChanged, path=HOME)


def test_a_new_number_of_its_device_makes_no_other_directory() -> None:
    plan = planned(safe(replace(CLEAN, identity=Identity(65, 1001, 5))), *SNAPSHOTTED)
    assert plan.place == PLACE


@pytest.mark.parametrize("reason", ["", "on a stick", "laneyard: edition 2 of another"])
def test_a_foreign_lock_is_respected_even_by_force(reason: str) -> None:
    given(*SNAPSHOTTED).when(force(replace(CLEAN, locked=reason))).refused(ForeignLock, reason=reason)


@pytest.mark.parametrize("lock", [EDITION_LOCK, f"laneyard: returning {LANE}"])
def test_a_lock_that_a_chapter_of_the_lane_could_not_take_off_is_ours(lock: str) -> None:
    assert planned(safe(replace(CLEAN, locked=lock)), *SNAPSHOTTED).edition == 1


def test_a_snapshot_that_the_lane_does_not_have_is_refused() -> None:
    given(*SNAPSHOTTED).when(safe(CLEAN, snapshot="s-9")).refused(NoSuchSnapshot, snapshot="s-9")


@pytest.mark.parametrize(
    "seen",
    [replace(CLEAN, fingerprint="f-9"), replace(CLEAN, head="9" * 40), replace(CLEAN, fingerprint=None)],
)
@pytest.mark.parametrize("ask", [safe, force])
def test_a_lane_that_has_changed_since_its_snapshot_stays(
    seen: Seen, ask: Callable[[Seen], RemoveLane]
) -> None:
    given(*SNAPSHOTTED).when(ask(seen)).refused(ChangedSinceSnapshot, snapshot="s-1")


def test_work_in_no_snapshot_is_refused() -> None:
    seen = replace(CLEAN, changed=("a.py", "b.py"), untracked=("notes.txt",))
    given(*CREATED).when(safe(seen, snapshot=None)).refused(NotSnapshotted, changed=2, untracked=1)


def test_a_branch_is_not_deleted_where_no_snapshot_holds_its_commits() -> None:
    given(*CREATED).when(safe(CLEAN, snapshot=None, delete_branch=True)).refused(
        NotSnapshotted, changed=0, untracked=0
    )
    assert planned(force(CLEAN, snapshot=None, delete_branch=True), *CREATED).delete_branch is False


def test_ignored_files_are_refused_by_name_with_class_evidence_and_size() -> None:
    seen = replace(CLEAN, ignored=(SECRET, MODULES, replace(DATA, path="caf%E9")))
    given(*SNAPSHOTTED).when(safe(seen)).refused(
        UnknownIgnored,
        paths=(".env", "caf\ufffd"),
        ignored=(
            {"path": ".env", "class": "precious", "why": "named .env", "bytes": 12},
            {"path": "caf\ufffd", "class": "unknown", "why": "nothing says what it is", "bytes": 4096},
        ),
        count=2,
    )


def test_a_refusal_names_a_hundred_ignored_paths_and_counts_the_rest() -> None:
    many = tuple(replace(SECRET, path=f"{n}/.env") for n in range(250))
    with pytest.raises(UnknownIgnored) as caught:
        decide(given(*SNAPSHOTTED).lane, safe(replace(CLEAN, ignored=many)))
    assert (len(caught.value.paths), len(caught.value.ignored), caught.value.count) == (100, 100, 250)


def test_what_can_be_made_again_does_not_hold_and_is_named_in_the_log() -> None:
    (
        given(*CREATED)
        .when(safe(replace(CLEAN, ignored=(MODULES,)), snapshot=None))
        .then(rebuildable_planned, let_go)
        .learns(Locked(), locked)
        .learns(Moved(place=RESTING_PLACE), moved)
        .learns(Freed(), freed, quarantined)
        .rests("quarantined")
    )


def test_force_names_what_can_be_made_again_as_well() -> None:
    lane = given(*CREATED).lane
    plan, fact = decide(lane, force(replace(CLEAN, ignored=(SECRET, MODULES)), snapshot=None))
    assert fact == let_go
    assert getattr(plan, "consent", None) == Consent((".env", "node_modules"), "remove --force")


@pytest.mark.slow
def test_more_of_what_can_be_made_again_is_named_but_not_without_end() -> None:
    most = tuple(replace(MODULES, path=f"{n}/node_modules") for n in range(REBUILDABLE_LIMIT))
    plan, named = decide(given(*CREATED).lane, safe(replace(CLEAN, ignored=most), snapshot=None))
    assert named == replace(let_go, ignored=most)
    assert isinstance(plan, RemovalPlanned)
    assert plan.consent == Consent(tuple(each.path for each in most), "rebuildable")
    given(*CREATED).when(safe(replace(CLEAN, ignored=(*most, MODULES)), snapshot=None)).refused(
        TooManyToName, count=100_001, limit=100_000
    )
    given(*CREATED).when(force(replace(CLEAN, ignored=most), snapshot=None)).refused(
        TooManyToName, count=100_000, limit=10_000
    )


def test_ignored_files_in_the_snapshot_do_not_hold_and_are_not_let_go() -> None:
    inner = replace(DATA, path="data/raw.bin")
    kept = replace(SNAPSHOT, ignored=(".env", "data", "node_modules"))
    seen = replace(CLEAN, ignored=(SECRET, inner, MODULES))
    plan = planned(safe(seen), *CREATED, snapshot_planned, LaneSnapshotted(snapshot=kept))
    assert plan.consent is None


@pytest.mark.parametrize("path", ["data2", "dat", "data.db", "other/data"])
def test_only_what_lies_in_a_kept_path_is_kept(path: str) -> None:
    kept = replace(SNAPSHOT, ignored=("data",))
    seen = replace(CLEAN, ignored=(replace(DATA, path=path),))
    given(*CREATED, snapshot_planned, LaneSnapshotted(snapshot=kept)).when(safe(seen)).refused(
        UnknownIgnored, paths=(path,)
    )


@pytest.mark.parametrize("ask", [safe, force])
def test_what_is_to_be_kept_is_not_removed_before_a_snapshot_holds_it(
    ask: Callable[[Seen, None], RemoveLane],
) -> None:
    asked = replace(ask(replace(CLEAN, ignored=(SECRET, MODULES)), None), apart=(".env",))
    given(*CREATED).when(asked).refused(NotSnapshotted, changed=0, untracked=0)


def test_what_nobody_asked_to_keep_holds_before_anything_is_captured() -> None:
    asked = replace(safe(replace(CLEAN, ignored=(SECRET, DATA)), snapshot=None), apart=(".env",))
    given(*CREATED).when(asked).refused(UnknownIgnored, paths=("data",))


def test_a_lane_on_a_branch_without_a_commit_is_put_away_and_has_none_to_delete() -> None:
    taken = LaneSnapshotted(snapshot=replace(SNAPSHOT, head=""))
    asked = safe(replace(CLEAN, head=""), delete_branch=True)
    plan = planned(asked, *CREATED, snapshot_planned, taken)
    assert (plan.head, plan.branch, plan.delete_branch) == ("", BRANCH, False)
    after = given(*CREATED, plan).learns(Locked(), locked).learns(Moved(place=RESTING_PLACE), moved)
    after.owes(FreeBranch(repository=COMMON, admin=PLACE.admin, head="", branch=BRANCH))
    assert isinstance(after.lane, Leaving)
    assert after.lane.record.head is None


def test_what_a_snapshot_cannot_hold_is_refused_by_name() -> None:
    given(*SNAPSHOTTED).when(safe(replace(CLEAN, obstacles=(SOCKET,)))).refused(
        CannotHold, obstacles=("socket 'cache.sock'",)
    )


def test_force_records_a_consent_that_names_all_that_no_snapshot_holds() -> None:
    seen = replace(CLEAN, changed=("a.py",), ignored=(SECRET,), obstacles=(SOCKET,))
    given(*SNAPSHOTTED).when(force(seen, delete_branch=True)).then(forced_planned)


def test_force_without_a_snapshot_consents_to_lose_the_work_itself() -> None:
    seen = replace(CLEAN, changed=("a.py",), untracked=("notes.txt",), ignored=(SECRET,))
    plan = planned(force(seen, snapshot=None), *CREATED)
    assert plan.consent == Consent(("a.py", "notes.txt", ".env"), "remove --force")


def test_force_consents_to_what_the_snapshot_has_omitted_and_names_nothing_twice() -> None:
    partial = replace(SNAPSHOT, omitted=("cache.sock", "big.iso"))
    seen = replace(CLEAN, obstacles=(SOCKET,))
    plan = planned(force(seen), *CREATED, snapshot_planned, LaneSnapshotted(snapshot=partial))
    assert plan.consent == Consent(("cache.sock", "big.iso"), "remove --force")


def test_force_with_nothing_to_lose_records_no_consent() -> None:
    plan = planned(force(replace(CLEAN, changed=("a.py",))), *SNAPSHOTTED)
    assert (plan.mode, plan.consent) == ("force", None)


def test_a_consent_names_at_most_ten_thousand_paths() -> None:
    most = tuple(replace(SECRET, path=f"ignored/{n}") for n in range(CONSENT_LIMIT))
    assert planned(force(replace(CLEAN, ignored=most)), *SNAPSHOTTED).consent is not None
    given(*SNAPSHOTTED).when(force(replace(CLEAN, ignored=(*most, SECRET)))).refused(
        TooManyToName, count=10_001, limit=10_000
    )


def test_the_plan_holds_the_evidence_that_it_rests_on() -> None:
    seen = replace(CLEAN, changed=("a", "b"), untracked=("c",), ignored=(SECRET, DATA), obstacles=(SOCKET,))
    assert planned(force(seen), *SNAPSHOTTED).evidence == Summary(
        at="2026-03-01T09:00:00Z", changed=2, untracked=1, ignored=2, obstacles=(SOCKET,)
    )


def test_editions_count_up_and_an_abandoned_removal_takes_none() -> None:
    assert planned(safe(CLEAN), *RETURNED).edition == 2
    abandoned = RemovalAbandoned(edition=1, code="x", reason="y")
    assert planned(safe(CLEAN), *LEAVING, abandoned).edition == 1
