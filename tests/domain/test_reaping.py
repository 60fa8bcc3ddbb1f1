"""The only irreversible step: everything is explained first, or nothing is deleted."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from domain.commands import DiscardLane, ReapLane
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
from domain.errors import NoSuchSnapshot, NotSnapshotted, TooManyToName, WrongState
from domain.events import (
    Fact,
    LaneQuarantined,
    LaneReaped,
    LaneSnapshotted,
    ReapingPlanned,
    SnapshotPlanned,
    TreeDestroyed,
    TreeExplained,
    TreeResisted,
    TreeRetried,
    TreeUnexplained,
)
from domain.evidence import CONSENT_LIMIT, Consent, Ignored
from domain.reaping import held_back
from domain.retries import ATTEMPTS
from domain.states import Basis, Edition, NeedsReview, Quarantined, Reaped, Reaping
from tests.domain.facts import (
    BRANCH,
    COMMON,
    EDITION_LOCK,
    HEAD,
    HOME,
    LATER,
    RESTING,
    RESTING_PLACE,
    SNAPSHOT,
    destroyed,
    explained,
    freed,
    locked,
    moved,
    reaped,
    removal_planned,
    resisted,
    restore_planned,
    retried,
    snapshot_planned,
    unexplained,
)
from tests.domain.lives import (
    CREATED,
    FAILED_AT_ONCE,
    FORCED,
    IN_REVIEW,
    LEAVING,
    REAPED,
    REAPING,
    REBUILD_FAILED,
    REBUILD_IN_REVIEW,
    REMOVED,
    RESIDUAL,
    SNAPSHOTTED,
    UNDOING,
    UNDOING_IN_REVIEW,
)
from tests.given import given

BASIS = Basis(commit=HEAD, snapshot=SNAPSHOT)
UNHELD: tuple[Fact, ...] = (
    *CREATED,
    replace(removal_planned, snapshot_id=None, snapshot_ref=None, snapshot_commit=None, snapshot_tree=None),
    locked,
    moved,
    freed,
    LaneQuarantined(edition=1, path=RESTING),
)
NOTES = Consent(("notes.txt",), "not needed")


def plan(snapshot_id: str | None, consent: Consent | None = None) -> ReapingPlanned:
    return ReapingPlanned(journal_format=1, edition=1, snapshot_id=snapshot_id, consent=consent)


def test_a_tree_is_explained_destroyed_and_deregistered() -> None:
    lane = (
        given(*REMOVED)
        .when(ReapLane())
        .then(plan("s-1"))
        .owes(Explain(repository=COMMON, place=RESTING_PLACE, basis=BASIS))
        .learns(
            Explained(digest="digest-1", entries=3, bytes=120),
            TreeExplained(digest="digest-1", entries=3, bytes=120),
        )
        .owes(Destroy(repository=COMMON, place=RESTING_PLACE, basis=BASIS, digest="digest-1"))
        .learns(Destroyed(), TreeDestroyed(entries=3, bytes=120))
        .owes(Deregister(repository=COMMON, place=RESTING_PLACE, reason=EDITION_LOCK))
        .learns(
            Deregistered(),
            LaneReaped(edition=1, snapshot_id="s-1", entries=3, bytes=120, digest="digest-1"),
        )
        .rests("reaped")
        .lane
    )
    assert isinstance(lane, Reaped)
    assert lane.record.editions == (Edition(1, "s-1", BRANCH, HEAD, HOME),)


def test_without_a_snapshot_nothing_is_reaped() -> None:
    given(*UNHELD).when(ReapLane()).refused(NotSnapshotted)


def test_a_snapshot_taken_at_rest_makes_a_lane_ready_to_be_reaped() -> None:
    given(*UNHELD, SnapshotPlanned(snapshot="s-1", tolerant=False), LaneSnapshotted(snapshot=SNAPSHOT)).when(
        ReapLane()
    ).then(plan("s-1"))


def test_a_snapshot_that_the_lane_does_not_have_is_refused() -> None:
    given(*REMOVED).when(ReapLane(snapshot="s-9")).refused(NoSuchSnapshot, snapshot="s-9")


def test_a_lane_comes_back_from_the_snapshot_that_explained_its_tree() -> None:
    lane = (
        given(*REMOVED, SnapshotPlanned(snapshot="s-2", tolerant=False), LaneSnapshotted(snapshot=LATER))
        .when(ReapLane(snapshot="s-1"))
        .then(plan("s-1"))
        .learns(Explained(digest="digest-1", entries=3, bytes=120), explained)
        .learns(Destroyed(), destroyed)
        .learns(Deregistered(), reaped)
        .lane
    )
    assert isinstance(lane, Reaped)
    assert [edition.snapshot_id for edition in lane.record.editions] == ["s-1"]


def test_what_a_forced_removal_consented_to_is_part_of_the_explanation() -> None:
    consent = Consent((".env", "cache.sock"), "remove --force")
    given(*FORCED).when(ReapLane()).then(plan("s-1", consent)).owes(
        Explain(
            repository=COMMON,
            place=RESTING_PLACE,
            basis=Basis(commit=HEAD, snapshot=SNAPSHOT, consent=consent),
        )
    )


def test_what_nothing_explains_goes_to_review_and_stays() -> None:
    lane = (
        given(*REAPING)
        .learns(
            Unexplained(cause="changed", reason="2 entries are nowhere else", paths=("a", "b"), count=2),
            TreeUnexplained(cause="changed", reason="2 entries are nowhere else", paths=("a", "b"), count=2),
        )
        .rests("needs-review")
        .lane
    )
    assert isinstance(lane, NeedsReview)
    assert (lane.detail, lane.paths, lane.count) == ("changed", ("a", "b"), 2)
    assert isinstance(lane.home, Quarantined)


def test_a_tree_that_changes_between_explanation_and_deletion_goes_to_review() -> None:
    given(*REAPING, explained).learns(
        Unexplained(cause="changed", reason="1 entry is nowhere else", paths=("notes.txt",), count=1),
        unexplained,
    ).rests("needs-review")


def test_a_tree_that_cannot_be_walked_goes_to_review() -> None:
    given(*REAPING).learns(
        NotDone(step="explain", code="identity_changed", reason="another directory"),
        TreeUnexplained(cause="identity_changed", reason="another directory", paths=(), count=0),
    ).rests("needs-review")


def busy(step: str) -> NotDone:
    return NotDone(step=step, code="busy", reason="busy", transient=True)


def resisting(step: str) -> Callable[[int], TreeResisted]:
    return lambda attempt: TreeResisted(
        path=RESTING, step=step, attempt=attempt, reason="busy", left=(), final=attempt == ATTEMPTS
    )


@pytest.mark.parametrize(
    ("facts", "step"),
    [((*REAPING, explained), "destroy"), ((*REAPING, explained, destroyed), "deregister")],
)
def test_what_may_pass_is_tried_again_and_is_a_residual_then(facts: tuple[Fact, ...], step: str) -> None:
    owed = given(*facts).owed
    lane = given(*facts).tries_again(busy(step), resisting(step))
    lane = lane.learns(busy(step), resisting(step)(ATTEMPTS)).rests("reaping")
    lane.when(ReapLane()).then(TreeRetried()).owes(owed)


def test_a_tree_that_could_not_be_looked_at_however_often_waits_for_a_person() -> None:
    lane = given(*REAPING).tries_again(busy("explain"), resisting("explain"))
    reason = f"explain failed {ATTEMPTS} times: busy"
    told = TreeUnexplained(cause="repeated_failure", reason=reason, paths=(), count=0)
    lane.learns(busy("explain"), told).rests("needs-review")


@pytest.mark.parametrize("code", ["snapshot_damaged", "tree_present"])
def test_what_no_later_try_can_mend_waits_for_a_person(code: str) -> None:
    told = TreeUnexplained(cause=code, reason="git was used in it", paths=(), count=0)
    failed = NotDone(step="deregister", code=code, reason="git was used in it")
    lane = given(*REAPING, explained, destroyed).learns(failed, told).rests("needs-review")
    everything = Consent((".",), "not needed")
    lane.when(DiscardLane(consent=everything)).then(
        ReapingPlanned(
            journal_format=1,
            edition=1,
            snapshot_id=None if code == "snapshot_damaged" else "s-1",
            consent=everything,
        )
    )


def test_a_tree_that_is_deleted_is_not_explained_again_when_the_rest_is_discarded() -> None:
    met = TreeUnexplained(cause="tree_present", reason="the tree is still there", paths=(), count=0)
    given(*REAPING, explained, destroyed, met).when(DiscardLane(consent=Consent((), "seen"))).then(
        ReapingPlanned(journal_format=1, edition=1, snapshot_id="s-1", consent=None)
    ).owes(Deregister(repository=COMMON, place=RESTING_PLACE, reason=EDITION_LOCK)).learns(
        Deregistered(), LaneReaped(edition=1, snapshot_id="s-1", entries=3, bytes=120, digest="digest-1")
    )


def test_what_of_a_deletion_will_not_pass_is_not_tried_again() -> None:
    given(*REAPING, explained).learns(
        Resisted(reason="EPERM", left=("kept",), transient=False),
        TreeResisted(path=RESTING, step="destroy", attempt=1, reason="EPERM", left=("kept",), final=True),
    ).rests("reaping")


@pytest.mark.parametrize(
    ("facts", "step"),
    [((*REAPING, explained), "destroy"), ((*REAPING, explained, destroyed), "deregister")],
)
def test_what_will_not_pass_is_a_residual_at_once(facts: tuple[Fact, ...], step: str) -> None:
    given(*facts).learns(
        NotDone(step=step, code="foreign_lock", reason="locked"),
        TreeResisted(path=RESTING, step=step, attempt=1, reason="locked", left=(), final=True),
    ).rests("reaping")


def test_what_resists_is_named_and_forgotten_when_it_has_gone() -> None:
    lane = (
        given(*REAPING, explained)
        .learns(
            Resisted(reason="busy", left=("mnt",)),
            TreeResisted(path=RESTING, step="destroy", attempt=1, reason="busy", left=("mnt",), final=False),
        )
        .lane
    )
    assert isinstance(lane, Reaping)
    assert lane.demolition.left == ("mnt",)
    after = given(*REAPING, explained, resisted, destroyed).lane
    assert isinstance(after, Reaping)
    assert (after.demolition.left, after.demolition.attempt) == ((), 0)


def test_a_residual_that_was_retried_ends_as_reaped() -> None:
    given(*RESIDUAL).rests("reaping")
    given(*RESIDUAL, retried).learns(Destroyed(), destroyed).learns(Deregistered(), reaped).rests("reaped")


@pytest.mark.parametrize(
    ("facts", "path"),
    [
        ((*UNDOING, explained), HOME),
        ((*REBUILD_FAILED, explained), HOME),
        ((*REAPING, explained), RESTING),
    ],
)
def test_a_deletion_is_retried_only_after_it_has_given_up(facts: tuple[Fact, ...], path: str) -> None:
    once = TreeResisted(path=path, step="destroy", attempt=1, reason="busy", left=(), final=False)
    given(*facts, once).when(ReapLane()).refused(WrongState, command="reaped")
    given(*facts, replace(once, final=True)).when(ReapLane()).then(TreeRetried())


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ((), "none"),
        (CREATED[:1], "opening"),
        (FAILED_AT_ONCE, "failed"),
        (SNAPSHOTTED, "active"),
        ((*SNAPSHOTTED, snapshot_planned), "snapshotting"),
        (LEAVING, "leaving"),
        ((*REMOVED, restore_planned), "returning"),
        (REAPED, "reaped"),
    ],
)
def test_only_a_lane_at_rest_is_reaped_or_discarded(facts: tuple[Fact, ...], state: str) -> None:
    given(*facts).when(ReapLane()).refused(WrongState, command="reaped", state=state)
    given(*facts).when(DiscardLane(consent=NOTES)).refused(WrongState, command="discarded", state=state)


@pytest.mark.parametrize("facts", [IN_REVIEW, REBUILD_IN_REVIEW, UNDOING_IN_REVIEW])
def test_a_lane_in_review_is_not_reaped_as_if_nothing_were_wrong(facts: tuple[Fact, ...]) -> None:
    given(*facts).when(ReapLane()).refused(WrongState, command="reaped", state="needs-review")


@pytest.mark.parametrize("facts", [REBUILD_IN_REVIEW, UNDOING_IN_REVIEW])
def test_a_half_made_checkout_is_not_reaped_by_a_snapshot_of_something_else(facts: tuple[Fact, ...]) -> None:
    given(*facts).when(ReapLane(snapshot="s-1")).refused(WrongState, command="reaped", state="needs-review")


def test_a_retry_is_given_the_whole_patience_again() -> None:
    gave_up = TreeResisted(path=RESTING, step="destroy", attempt=3, reason="busy", left=("mnt",), final=True)
    given(*REAPING, explained, gave_up, retried).learns(
        Resisted(reason="busy", left=("mnt",)),
        TreeResisted(path=RESTING, step="destroy", attempt=1, reason="busy", left=("mnt",), final=False),
    )


@pytest.mark.parametrize(
    ("path", "kind", "agreed", "let_go", "holds"),
    [
        ("build", "rebuildable", (), (), False),
        (".env", "precious", (), (), True),
        ("scratch", "unknown", (), (), True),
        (".env", "precious", (".env",), (), False),
        ("scratch", "unknown", ("scratch",), (), False),
        ("scratch/new", "unknown", ("scratch",), (), False),
        ("scratch/.env", "precious", ("scratch",), (), True),
        ("build", "unknown", ("build",), ("build",), True),
        ("build/inner", "unknown", ("build",), ("build",), True),
    ],
)
def test_ignored_paths_hold_a_reap_unless_a_consent_was_about_just_that(
    path: str, kind: str, agreed: tuple[str, ...], let_go: tuple[str, ...], holds: bool
) -> None:
    seen = Ignored(path, kind, "why", 1, 1)  # type: ignore[arg-type]
    assert held_back((seen,), agreed, let_go) == ((seen,) if holds else ())


def test_a_consent_names_no_more_than_people_can_be_asked_to_read() -> None:
    most = tuple(f"f{number}" for number in range(CONSENT_LIMIT))
    given(*IN_REVIEW).when(DiscardLane(consent=Consent((), "seen", most))).then(
        plan("s-1", Consent((), "seen", most))
    )
    given(*IN_REVIEW).when(DiscardLane(consent=Consent(("one",), "seen", most))).refused(
        TooManyToName, count=10_001, limit=10_000
    )
