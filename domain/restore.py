"""The restore chapter: a lane comes back, by a rename from the quarantine or rebuilt from its snapshot.

It never overwrites. What could not be as it was (the branch has moved on, the path is taken) is said in
a fact.
"""

from msgspec.structs import replace

from domain import demolition, retries, review
from domain.commands import RestoreLane
from domain.effects import (
    Applied,
    Apply,
    CheckedOut,
    Checkout,
    Deregistered,
    Effect,
    Joined,
    Move,
    Moved,
    NotDone,
    Outcome,
    Rejoin,
    Unexplained,
    Unlock,
    Unlocked,
)
from domain.errors import NoSuchEdition, NoSuchSnapshot, WrongState
from domain.events import (
    RESTORE_FORMAT,
    BranchRejoined,
    Fact,
    LaneRestored,
    RestoreAbandoned,
    RestorePlanned,
    RestoreStepFailed,
    SnapshotApplied,
    TreeUnexplained,
    WorktreeRebuilt,
    WorktreeReturned,
)
from domain.evidence import Place, Snapshot
from domain.removal import lock_reason as edition_lock
from domain.states import (
    Active,
    Basis,
    Demolition,
    Edition,
    Lane,
    NeedsReview,
    Quarantined,
    Reaped,
    Record,
    Returning,
    name,
)


def rebuild_lock(lane: str) -> str:
    """Returns the lock that a worktree carries while it is being rebuilt from a snapshot."""
    return f"laneyard: returning {lane}"


def decide(lane: Lane, command: RestoreLane) -> tuple[Fact, ...]:
    """Returns the facts of a restore, or raises a Refusal."""
    match lane:
        case Quarantined(record=record) | NeedsReview(record=record, home=Quarantined()):
            edition = record.editions[-1]
            if command.snapshot is not None:
                why = (
                    "before what is left of it is discarded" if _was_doomed(lane) else "as it is still whole"
                )
                raise WrongState(f"restored from a snapshot, {why}", name(lane))
            if command.edition not in (None, edition.number):
                raise NoSuchEdition(command.edition or 0, (edition.number,))
            return (_plan(command, edition, None),)
        case Reaped(record=record):
            edition, snapshot = _choose(record, command)
            return (_plan(command, edition, snapshot),)
        case _:
            raise WrongState("restored", name(lane))


def _choose(record: Record, command: RestoreLane) -> tuple[Edition, Snapshot]:
    """Returns the edition and the snapshot that are asked for: by default the last."""
    number = record.edition if command.edition is None else command.edition
    edition = next((each for each in record.editions if each.number == number), None)
    if edition is None:
        raise NoSuchEdition(number, tuple(each.number for each in record.editions))
    wanted = command.snapshot or edition.snapshot_id
    snapshot = record.snapshot(wanted)
    if snapshot is None:
        raise NoSuchSnapshot(wanted or "none")
    return edition, snapshot


def _plan(command: RestoreLane, edition: Edition, snapshot: Snapshot | None) -> RestorePlanned:
    return RestorePlanned(
        journal_format=RESTORE_FORMAT,
        edition=edition.number,
        source="snapshot" if snapshot else "quarantine",
        slug=command.slug,
        path=command.path,
        branch=snapshot.branch if snapshot else edition.branch,
        head=snapshot.head if snapshot else edition.head,
        snapshot_id=snapshot.id if snapshot else None,
    )


def evolve(lane: Lane, fact: Fact) -> Lane:
    """Returns the lane after the fact. History is never argued with."""
    match lane, fact:
        case ((Quarantined() | Reaped() | NeedsReview()), RestorePlanned()):
            return Returning(record=lane.record, plan=fact, home=lane)
        case Returning(), WorktreeReturned(place=place):
            return replace(lane, place=place, applied=True, attempt=0)
        case Returning(), WorktreeRebuilt(place=place):
            return replace(lane, place=place, attempt=0)
        case Returning(), SnapshotApplied(differences=found):
            return replace(lane, applied=True, differences=(*lane.differences, *found), attempt=0)
        case Returning(record=record), BranchRejoined(branch=branch, why=why):
            differences = lane.differences if why is None else (*lane.differences, why)
            joined = replace(record, branch=branch, head=lane.plan.head or None)
            return replace(lane, record=joined, rejoined=True, differences=differences, attempt=0)
        case Returning(), RestoreStepFailed():
            return _failed(lane, fact)
        case Returning(home=home), RestoreAbandoned():
            return home
        case Returning(record=record, place=place), LaneRestored() if place is not None:
            return Active(record=replace(record, slug=lane.plan.slug), place=place)
        case Returning(demolition=doomed, home=Reaped() as home), TreeUnexplained() if doomed is not None:
            return review.waiting(lane.record, fact, doomed, home)
        case Returning(demolition=doomed), _ if doomed is not None:
            return replace(lane, demolition=demolition.evolve(doomed, fact))
        case _:
            return lane


def _failed(lane: Returning, fact: RestoreStepFailed) -> Returning:
    failure = (fact.code, fact.reason) if fact.final else None
    left = fact.left or lane.place
    doomed = None
    if failure is not None and lane.plan.source == "snapshot" and left is not None:
        snapshot = lane.record.snapshot(lane.plan.snapshot_id)
        basis = Basis(commit=lane.plan.head, snapshot=snapshot, partial=True)
        doomed = Demolition(place=left, basis=basis)
    return replace(lane, attempt=fact.attempt, failure=failure, demolition=doomed)


def pending(lane: Returning) -> Effect | None:
    """Returns what the world still owes this restore, or the undoing of a failed rebuild."""
    plan, record, repository = lane.plan, lane.record, lane.record.repository
    if lane.demolition is not None:
        return demolition.pending(repository, lane.demolition, rebuild_lock(record.lane))
    if lane.place is None:
        return _bring(lane)
    if not lane.applied:
        snapshot = record.snapshot(plan.snapshot_id)
        assert snapshot is not None
        return Apply(repository=repository, place=lane.place, snapshot=snapshot)
    if not lane.rejoined:
        return Rejoin(repository=repository, admin=lane.place.admin, branch=plan.branch, head=plan.head)
    return Unlock(repository=repository, admin=lane.place.admin, reason=_lock(lane))


def _bring(lane: Returning) -> Effect:
    plan, repository = lane.plan, lane.record.repository
    if plan.source == "quarantine":
        return Move(repository=repository, place=resting(lane.home), target=plan.path)
    snapshot = lane.record.snapshot(plan.snapshot_id)
    commit = plan.head or (snapshot.commit if snapshot else "")  # HEAD may have been on an unborn branch
    return Checkout(repository=repository, path=plan.path, branch=None, commit=commit, reason=_lock(lane))


def resting(home: Quarantined | Reaped | NeedsReview) -> Place:
    """Returns where a lane that is still whole rests."""
    match home:
        case Quarantined(place=place):
            return place
        case NeedsReview(demolition=doomed):
            return doomed.place
        case Reaped():
            raise AssertionError("a reaped lane rests nowhere")


def _lock(lane: Returning) -> str:
    if lane.plan.source == "quarantine":
        return edition_lock(lane.record.lane, lane.plan.edition)
    return rebuild_lock(lane.record.lane)


def learn(lane: Returning, outcome: Outcome) -> tuple[Fact, ...]:
    """Returns the facts an outcome amounts to."""
    match outcome:
        case Moved(place=place):
            return (WorktreeReturned(place=place),)
        case CheckedOut(place=place):
            return (WorktreeRebuilt(place=place),)
        case Applied(content=content, differences=found):
            return (SnapshotApplied(content=content, differences=found),)
        case Joined(branch=branch, why=why):
            return (BranchRejoined(branch=branch, why=why),)
        case Unlocked():
            return (_restored(lane),)
        case Deregistered():
            return (_abandoned(lane),)
        case Unexplained():
            return (demolition.unexplained(outcome),)
        case NotDone():
            return _not_done(lane, outcome)
        case _ if lane.demolition is not None:
            return demolition.learn(lane.demolition, outcome)
        case _:
            return ()


def _not_done(lane: Returning, outcome: NotDone) -> tuple[Fact, ...]:
    if lane.demolition is not None:
        return (demolition.not_done(lane.demolition, outcome),)
    attempt = lane.attempt + 1
    final = retries.is_final(attempt, transient=outcome.transient)
    if final and lane.rejoined:  # all is back but the lock: say so, rather than undo a good restore
        return (_restored(lane, f"still locked: {outcome.reason}"),)
    if final and lane.applied:
        return (BranchRejoined(branch=None, why=outcome.reason),)
    failed = RestoreStepFailed(
        step=outcome.step,
        attempt=attempt,
        code=outcome.code,
        reason=outcome.reason,
        final=final,
        left=outcome.left,
    )
    after = evolve(lane, failed)
    assert isinstance(after, Returning)
    return (failed, _abandoned(after)) if final and after.demolition is None else (failed,)


def _restored(lane: Returning, *more: str) -> LaneRestored:
    assert lane.place is not None
    moved = () if lane.place.path == _origin(lane) else (f"the path is now {lane.place.path}",)
    begun = (*_worn(lane), *_remnants(lane))
    return LaneRestored(
        edition=lane.plan.edition,
        source=lane.plan.source,
        path=lane.place.path,
        branch=lane.record.branch,
        head=lane.plan.head,
        differences=(*moved, *begun, *lane.differences, *more),
    )


def _was_doomed(home: Quarantined | Reaped | NeedsReview) -> bool:
    return isinstance(home, NeedsReview) and home.demolition.begun


def _worn(lane: Returning) -> tuple[str, ...]:
    """Returns what is to be said of a tree that may be whole no more."""
    if not _was_doomed(lane.home):
        return ()
    record, taken = lane.record, lane.record.editions[-1].snapshot_id
    has_all = taken is not None and not record.is_remnant(taken)
    whole = f"snapshot {taken}, which has all of it" if has_all else "its commit"
    return (f"its deletion may have begun: compare it with {whole}",)


def _remnants(lane: Returning) -> tuple[str, ...]:
    """Returns what is to be said where a snapshot was taken of a tree that was not whole."""
    record, chosen = lane.record, lane.plan.snapshot_id
    left = record.left_of(lane.plan.edition)
    if record.is_remnant(chosen):
        whole = next(each.snapshot_id for each in record.editions if each.number == lane.plan.edition)
        better = "" if whole is None or record.is_remnant(whole) else f"; snapshot {whole} has all of it"
        return (f"snapshot {chosen} was taken of a tree that was not whole{better}",)
    if left is not None and chosen is not None:
        return (f"what was left when it was captured again is in snapshot {left}",)
    return ()


def _origin(lane: Returning) -> str:
    editions = lane.record.editions
    return next(each.path for each in editions if each.number == lane.plan.edition)


def _abandoned(lane: Returning) -> RestoreAbandoned:
    code, reason = lane.failure or ("abandoned", "the restore was given up")
    return RestoreAbandoned(code=code, reason=reason)
