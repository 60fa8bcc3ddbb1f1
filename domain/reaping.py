"""The reaping chapter: the only irreversible step. Everything is explained first, or nothing is deleted."""

from collections.abc import Iterable

from msgspec.structs import replace

from domain import creation, demolition, removal, restore, review
from domain.commands import DiscardLane, ReapLane
from domain.effects import Deregistered, Effect, NotDone, Outcome, Unexplained
from domain.errors import NoSuchSnapshot, NotSnapshotted, TooManyToName, WrongState
from domain.events import (
    REAPING_FORMAT,
    CreationUndone,
    Fact,
    LaneReaped,
    ReapingPlanned,
    RestoreAbandoned,
    TreeExplained,
    TreeRetried,
    TreeUnexplained,
)
from domain.evidence import CONSENT_LIMIT, Consent, Ignored, Snapshot
from domain.snapshots import lies_in
from domain.states import (
    Basis,
    Demolition,
    Failed,
    Lane,
    NeedsReview,
    Quarantined,
    Reaped,
    Reaping,
    Record,
    Returning,
    Undoing,
    name,
)


def decide(lane: Lane, command: ReapLane | DiscardLane) -> tuple[Fact, ...]:
    """Returns the facts of a reaping, or raises a Refusal."""
    if isinstance(command, DiscardLane):
        return _discard(lane, command.consent)
    match lane:
        case Quarantined(record=record, consent=consent):
            return (_plan(record, _snapshot(record, command.snapshot), consent),)
        case NeedsReview(record=record, home=Quarantined(consent=consent)) if command.snapshot is not None:
            return (_plan(record, _snapshot(record, command.snapshot), consent),)
        case NeedsReview(record=record, home=Reaped()) if record.is_remnant(command.snapshot):
            return (_plan(record, _snapshot(record, command.snapshot), lane.demolition.basis.consent),)
        case Reaping(demolition=doomed) | Undoing(demolition=doomed) | Returning(demolition=doomed) if (
            doomed is not None and doomed.gave_up
        ):
            return (TreeRetried(),)
        case _:
            raise WrongState("reaped", name(lane))


def _discard(lane: Lane, consent: Consent) -> tuple[Fact, ...]:
    match lane:
        case NeedsReview(record=record, demolition=doomed):
            snapshot = doomed.basis.snapshot
            if isinstance(lane.home, Quarantined) and not doomed.begun:
                snapshot = record.snapshot(record.editions[-1].snapshot_id) or snapshot
            if lane.detail == review.DAMAGED and consent.named:  # it explains nothing: that has to do
                snapshot = None
            return (_plan(record, snapshot, _joined(doomed.basis.consent, consent)),)
        case Quarantined(record=record, consent=before):
            snapshot = record.snapshot(record.editions[-1].snapshot_id)
            return (_plan(record, snapshot, _joined(before, consent)),)
        case _:
            raise WrongState("discarded", name(lane))


def _joined(before: Consent | None, now: Consent) -> Consent | None:
    """Returns both consents in one, if anything is named. Raises TooManyToName for what is named now."""
    if len(now.named) > CONSENT_LIMIT:
        raise TooManyToName(len(now.named), CONSENT_LIMIT)
    if not now.named:
        return before
    paths, exact = (before.paths, before.exact) if before else ((), ())
    whole, alone = dict.fromkeys((*paths, *now.paths)), dict.fromkeys((*exact, *now.exact))
    return Consent(tuple(whole), now.reason, tuple(alone))


def _snapshot(record: Record, wanted: str | None) -> Snapshot:
    """Returns the snapshot that a reaped lane will come back from; without one nothing is reaped."""
    snapshot_id = wanted or record.editions[-1].snapshot_id
    snapshot = record.snapshot(snapshot_id)
    if snapshot is None and wanted is not None:
        raise NoSuchSnapshot(wanted)
    if snapshot is None:
        raise NotSnapshotted(0, 0)
    return snapshot


def _plan(record: Record, snapshot: Snapshot | None, consent: Consent | None) -> ReapingPlanned:
    return ReapingPlanned(
        journal_format=REAPING_FORMAT,
        edition=record.edition,
        snapshot_id=snapshot.id if snapshot else None,
        consent=consent,
    )


def held_back(
    ignored: Iterable[Ignored], agreed: Iterable[str], let_go: Iterable[str]
) -> tuple[Ignored, ...]:
    """Returns the ignored paths that no consent covers, or that are other than what was let go.

    What can be made again does not hold. Something precious, or a repository, may have come into a directory
    while it rested: where a consent was about what could be made again, it was not about that.
    """
    whole, rebuildable = frozenset(agreed), frozenset(let_go)

    def holds(each: Ignored) -> bool:
        if each.kind == "rebuildable":
            return False
        if not lies_in(each.path, whole) or lies_in(each.path, rebuildable):
            return True
        return each.kind == "precious" and each.path not in whole

    return tuple(filter(holds, ignored))


def evolve(lane: Lane, fact: Fact) -> Lane:
    """Returns the lane after the fact. History is never argued with."""
    match lane, fact:
        case Quarantined(record=record), ReapingPlanned():
            basis = _basis(record, fact, record.head or "")
            return Reaping(record=record, home=lane, demolition=Demolition(place=lane.place, basis=basis))
        case NeedsReview(record=record, demolition=doomed), ReapingPlanned():
            basis = _basis(record, fact, doomed.basis.commit)
            basis = replace(basis, partial=doomed.basis.partial, worn=doomed.begun)
            # What is deleted stays so: whatever has come to its place is nobody's to explain.
            fresh = Demolition(place=doomed.place, basis=basis)
            going = replace(doomed, basis=basis, attempt=0) if doomed.destroyed else fresh
            return Reaping(record=record, home=lane.home, demolition=going)
        case Reaping(record=record, home=Quarantined()), LaneReaped(snapshot_id=snapshot_id):
            *before, last = record.editions
            return Reaped(record=replace(record, editions=(*before, replace(last, snapshot_id=snapshot_id))))
        case Reaping(record=record, home=Reaped()), RestoreAbandoned():
            return Reaped(record=record)
        case Reaping(record=record, home=Failed() as home), CreationUndone():
            return replace(home, record=record)
        case Reaping(record=record, home=home), TreeUnexplained():
            return review.waiting(record, fact, lane.demolition, home)
        case Reaping(), _:
            after = replace(lane, demolition=demolition.evolve(lane.demolition, fact))
            return replace(after, record=_bound(after)) if isinstance(fact, TreeExplained) else after
        case _:
            return lane


def _bound(lane: Reaping) -> Record:
    """Returns the record with the edition bound to the snapshot that explains its tree while it is whole."""
    basis, record = lane.demolition.basis, lane.record
    if basis.worn or basis.snapshot is None or not isinstance(lane.home, Quarantined):
        return record
    *before, last = record.editions
    return replace(record, editions=(*before, replace(last, snapshot_id=basis.snapshot.id)))


def _basis(record: Record, fact: ReapingPlanned, commit: str) -> Basis:
    snapshot = record.snapshot(fact.snapshot_id)
    head = snapshot.head if snapshot else commit
    return Basis(commit=head, snapshot=snapshot, consent=fact.consent)


def lock_reason(lane: Reaping) -> str:
    """Returns the lock that the doomed worktree carries: that of the chapter that it comes from."""
    match lane.home:
        case Quarantined():
            return removal.lock_reason(lane.record.lane, lane.record.edition)
        case Reaped():
            return restore.rebuild_lock(lane.record.lane)
        case Failed():
            return creation.lock_reason(lane.record)


def pending(lane: Reaping) -> Effect | None:
    """Returns what the world still owes this reaping."""
    return demolition.pending(lane.record.repository, lane.demolition, lock_reason(lane))


def learn(lane: Reaping, outcome: Outcome) -> tuple[Fact, ...]:
    """Returns the facts an outcome amounts to."""
    match outcome:
        case Deregistered():
            return (_ended(lane),)
        case Unexplained():
            return (demolition.unexplained(outcome),)
        case NotDone():
            return (demolition.not_done(lane.demolition, outcome),)
        case _:
            return demolition.learn(lane.demolition, outcome)


def _ended(lane: Reaping) -> Fact:
    """Returns the last fact, which depends on what the tree was."""
    doomed = lane.demolition
    match lane.home:
        case Quarantined():
            return LaneReaped(
                edition=lane.record.edition,
                snapshot_id=_keeper(lane),
                entries=doomed.entries,
                bytes=doomed.bytes,
                digest=doomed.digest or "",
            )
        case Reaped():
            return RestoreAbandoned(code="discarded", reason="what a failed restore left was discarded")
        case Failed(code=code, reason=reason):
            return CreationUndone(code=code, reason=reason)


def _keeper(lane: Reaping) -> str | None:
    """Returns the snapshot that the lane comes back from: once a deletion had begun, that of the whole."""
    basis = lane.demolition.basis
    explaining = basis.snapshot.id if basis.snapshot else None
    return lane.record.editions[-1].snapshot_id or explaining if basis.worn else explaining
