"""The removal chapter: how a lane is put away. A removal is a move; nothing is deleted here.

Lock, so that no prune takes the registration; move, which is the pivot: before it a failure leads back,
after it the removal goes forward; free the branch; and, if asked, drop it.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from domain import retries
from domain.commands import RemoveLane
from domain.effects import (
    DropBranch,
    Dropped,
    Effect,
    FreeBranch,
    Freed,
    Lock,
    Locked,
    Move,
    Moved,
    NotDone,
    Outcome,
    Unlock,
    Unlocked,
)
from domain.errors import (
    CannotHold,
    ChangedSinceSnapshot,
    EditProtected,
    ForeignLock,
    NoSuchSnapshot,
    NotSnapshotted,
    NotTheLanesBranch,
    TooManyToName,
    WrongState,
)
from domain.events import (
    REMOVAL_FORMAT,
    BranchDropped,
    BranchFreed,
    Fact,
    IgnoredLetGo,
    LaneQuarantined,
    RemovalAbandoned,
    RemovalPlanned,
    RemovalStepFailed,
    WorktreeLocked,
    WorktreeMoved,
)
from domain.evidence import CONSENT_LIMIT, Consent, Ignored, Place, Seen, Snapshot, Summary
from domain.formats import STRICT_FORMAT
from domain.naming import short_branch
from domain.paths import display
from domain.snapshots import described, known, lies_in, require_known, require_same, unknown_ignored
from domain.states import Active, Edition, Lane, Leaving, Quarantined, Record, name

# Paths that a consent may name where all of them can be made again: git may list every file by itself.
REBUILDABLE_LIMIT = 100_000


def lock_reason(lane: str, edition: int) -> str:
    """Returns the lock by which the world itself points back to the journal."""
    return f"laneyard: edition {edition} of {lane}"


def is_own_lock(reason: str, lane: str) -> bool:
    """Tells whether a lock is one that a chapter of this lane has set, and could not take off again."""
    return reason.startswith("laneyard: ") and reason.endswith(f" {lane}")


def decide(lane: Lane, command: RemoveLane) -> tuple[Fact, ...]:
    """Returns the facts of a removal, or raises a Refusal."""
    if not isinstance(lane, Active):
        raise WrongState("removed", name(lane))
    if lane.record.kind == "primary":
        raise EditProtected(display(lane.place.path))
    seen, edition = command.seen, lane.record.edition + 1
    require_known(seen)
    require_same(lane.place, seen)
    if isinstance(seen.locked, str) and not is_own_lock(seen.locked, lane.record.lane):
        raise ForeignLock(seen.locked)
    if command.delete_branch and seen.branch != lane.record.branch:
        raise NotTheLanesBranch(_named(seen.branch), _named(lane.record.branch))
    snapshot = _snapshot(lane.record, command)
    lost = _lost(command, snapshot)
    plan = _plan(lane, command, edition, snapshot, _consent(command, snapshot, lost))
    let_go = tuple(each for each in lost if each.kind == "rebuildable")
    return (plan, IgnoredLetGo(ignored=let_go)) if let_go else (plan,)


def _named(branch: object) -> str:
    return short_branch(branch) or "none" if isinstance(branch, str) else "none"


def _snapshot(record: Record, command: RemoveLane) -> Snapshot | None:
    """Returns the snapshot that the removal rests on, and holds it against the tree."""
    if command.snapshot is None:
        return None
    snapshot = record.snapshot(command.snapshot)
    if snapshot is None:
        raise NoSuchSnapshot(command.snapshot)
    if snapshot.fingerprint != command.seen.fingerprint or snapshot.head != command.seen.head:
        raise ChangedSinceSnapshot(snapshot.id)
    return snapshot


def _lost(command: RemoveLane, snapshot: Snapshot | None) -> tuple[Ignored, ...]:
    """Returns the ignored paths that no snapshot holds, nor is to hold before the removal."""
    held = frozenset(snapshot.ignored if snapshot else command.apart)
    return tuple(each for each in known(command.seen.ignored) if not lies_in(each.path, held))


def _consent(command: RemoveLane, snapshot: Snapshot | None, lost: tuple[Ignored, ...]) -> Consent | None:
    """Returns what the removal may lose: by force all that is named; else only what can be made again."""
    seen = command.seen
    changed, untracked, obstacles = known(seen.changed), known(seen.untracked), known(seen.obstacles)
    if command.mode == "safe":
        _require_nothing_lost(command, snapshot, lost)
    if command.apart and snapshot is None:
        raise NotSnapshotted(len(changed), len(untracked))
    if command.mode == "safe":
        return _agreed((each.path for each in lost), "rebuildable", REBUILDABLE_LIMIT)
    work = () if snapshot else (*changed, *untracked)
    omitted = snapshot.omitted if snapshot else ()
    ignored, others = (each.path for each in lost), (each.path for each in obstacles)
    return _agreed((*work, *ignored, *others, *omitted), "remove --force")


def _require_nothing_lost(command: RemoveLane, snapshot: Snapshot | None, lost: tuple[Ignored, ...]) -> None:
    """Refuses whatever would be lost and is not certain to be made again."""
    seen = command.seen
    changed, untracked, obstacles = known(seen.changed), known(seen.untracked), known(seen.obstacles)
    if obstacles:
        raise CannotHold(described(obstacles))
    if held := [each for each in lost if each.kind != "rebuildable"]:
        raise unknown_ignored(held)
    if snapshot is None and (changed or untracked or command.delete_branch):
        raise NotSnapshotted(len(changed), len(untracked))


def _agreed(paths: Iterable[str], reason: str, most: int = CONSENT_LIMIT) -> Consent | None:
    """Returns a consent that names each path once, if there are any. Raises TooManyToName."""
    named = tuple(dict.fromkeys(paths))
    if len(named) > most:
        raise TooManyToName(len(named), most)
    return Consent(named, reason) if named else None


def _plan(
    lane: Active, command: RemoveLane, edition: int, snapshot: Snapshot | None, consent: Consent | None
) -> RemovalPlanned:
    seen = command.seen
    assert isinstance(seen.head, str)
    assert seen.branch is None or isinstance(seen.branch, str)
    return RemovalPlanned(
        journal_format=REMOVAL_FORMAT,
        edition=edition,
        mode=command.mode,
        place=lane.place,
        resting=command.resting,
        head=seen.head,
        branch=seen.branch,
        snapshot_id=snapshot.id if snapshot else None,
        snapshot_ref=snapshot.ref if snapshot else None,
        snapshot_commit=snapshot.commit if snapshot else None,
        snapshot_tree=snapshot.tree if snapshot else None,
        provisioned_ignored=(),
        consent=consent,
        evidence=_summary(seen),
        delete_branch=command.delete_branch and all((snapshot, seen.head, seen.branch)),
    )


def _summary(seen: Seen) -> Summary:
    return Summary(
        at=seen.at,
        changed=len(known(seen.changed)),
        untracked=len(known(seen.untracked)),
        ignored=len(known(seen.ignored)),
        obstacles=known(seen.obstacles),
    )


def evolve(lane: Lane, fact: Fact) -> Lane:
    """Returns the lane after the fact. History is never argued with."""
    match lane, fact:
        case Active(record=record), RemovalPlanned():
            return Leaving(record=replace(record, head=fact.head or None), plan=fact)
        case Leaving(), IgnoredLetGo(ignored=ignored):
            return replace(lane, let_go=ignored)
        case Leaving(), WorktreeLocked():
            return replace(lane, locked=True, attempt=0)
        case Leaving(), WorktreeMoved():
            return replace(lane, moved=True, attempt=0, failure=None)
        case Leaving(), BranchFreed(held=held):
            warnings = lane.warnings if held is None else (*lane.warnings, held)
            return replace(lane, freed=True, warnings=warnings, attempt=0)
        case Leaving(), BranchDropped(kept=kept):
            warnings = lane.warnings if kept is None else (*lane.warnings, kept)
            return replace(lane, warnings=warnings, plan=replace(lane.plan, delete_branch=False))
        case Leaving(), RemovalStepFailed():
            failure = (fact.code, fact.reason) if fact.final else lane.failure
            return replace(lane, attempt=0 if fact.final else fact.attempt, failure=failure)
        case Leaving(record=record, plan=plan), RemovalAbandoned():
            return Active(record=record, place=plan.place)
        case Leaving(), LaneQuarantined():
            return _quarantined(lane, fact)
        case _:
            return lane


def _quarantined(lane: Leaving, fact: LaneQuarantined) -> Quarantined:
    plan = lane.plan
    edition = Edition(plan.edition, plan.snapshot_id, plan.branch, plan.head, plan.place.path)
    return Quarantined(
        record=replace(lane.record, editions=(*lane.record.editions, edition)),
        place=Place(fact.path, plan.place.admin, plan.place.identity),
        origin=plan.place.path,
        consent=plan.consent,
        warnings=fact.warnings,
    )


def pending(lane: Leaving) -> Effect:
    """Returns what the world still owes this removal; after a failure before the move, how to lead back."""
    plan, repository = lane.plan, lane.record.repository
    reason = lock_reason(lane.record.lane, plan.edition)
    admin = plan.place.admin
    if lane.failure is not None and not lane.moved:
        return Unlock(repository=repository, admin=admin, reason=reason)
    if not lane.locked:
        return Lock(repository=repository, admin=admin, reason=reason, idle=plan.mode == "safe")
    if not lane.moved:
        strict = plan.journal_format <= STRICT_FORMAT
        return Move(repository=repository, place=plan.place, target=plan.resting, strict=strict, leaving=True)
    if lane.freed and plan.delete_branch and not lane.warnings:
        return DropBranch(repository=repository, branch=plan.branch or "", at=plan.head)
    return FreeBranch(repository=repository, admin=admin, head=plan.head, branch=plan.branch)


def learn(lane: Leaving, outcome: Outcome) -> tuple[Fact, ...]:
    """Returns the facts an outcome amounts to."""
    plan = lane.plan
    match outcome:
        case Locked():
            return (WorktreeLocked(),)
        case Moved(place=place):
            return (WorktreeMoved(path=place.path),)
        case Freed(held=held):
            return _rested(lane, BranchFreed(held=held))
        case Dropped(kept=kept):
            return _rested(lane, BranchDropped(branch=plan.branch or "", at=plan.head, kept=kept))
        case Unlocked():
            return (_abandoned(lane),)
        case NotDone():
            return _not_done(lane, outcome)
        case _:
            return ()


def _rested(lane: Leaving, fact: BranchFreed | BranchDropped) -> tuple[Fact, ...]:
    """Returns the fact, and the milestone if it was the last step."""
    after = evolve(lane, fact)
    assert isinstance(after, Leaving)
    plan = after.plan
    if plan.delete_branch and not after.warnings:
        return (fact,)
    milestone = LaneQuarantined(edition=plan.edition, path=plan.resting, warnings=after.warnings)
    return (fact, milestone)


def _not_done(lane: Leaving, outcome: NotDone) -> tuple[Fact, ...]:
    attempt = lane.attempt + 1
    final = retries.is_final(attempt, transient=outcome.transient)
    why = f"{outcome.step}: {outcome.reason}"
    if final and lane.failure is not None:  # the next removal takes our lock over
        return (_abandoned(lane, f"; it is still locked, as {why}"),)
    if final and lane.moved:
        return _rested(lane, BranchFreed(held=why) if not lane.freed else _kept(lane, why))
    failed = RemovalStepFailed(
        step=outcome.step, attempt=attempt, code=outcome.code, reason=outcome.reason, final=final
    )
    return (failed,)


def _kept(lane: Leaving, why: str) -> BranchDropped:
    return BranchDropped(branch=lane.plan.branch or "", at=lane.plan.head, kept=why)


def _abandoned(lane: Leaving, more: str = "") -> RemovalAbandoned:
    code, reason = lane.failure or ("abandoned", "the removal was given up")
    return RemovalAbandoned(edition=lane.plan.edition, code=code, reason=reason + more)
