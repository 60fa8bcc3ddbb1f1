"""The creation chapter: a lane is ready to be worked in, or nothing of it exists."""

from msgspec.structs import replace

from domain import demolition, retries, review
from domain.commands import CreateLane
from domain.effects import (
    CheckedOut,
    Checkout,
    Deregistered,
    DropBranch,
    Dropped,
    Effect,
    NotDone,
    Outcome,
    Unexplained,
    Unlock,
    Unlocked,
)
from domain.errors import InvalidOwner, WrongState
from domain.events import (
    CREATION_FORMAT,
    CreationFailed,
    CreationPlanned,
    CreationUndone,
    Fact,
    LaneCheckedOut,
    LaneCreated,
    StepFailed,
    TreeDeregistered,
    TreeUnexplained,
)
from domain.evidence import Place
from domain.states import (
    Active,
    Basis,
    Demolition,
    Failed,
    Lane,
    Nowhere,
    Opening,
    Record,
    Undoing,
    name,
)

KEPT = "; the branch stays: "  # what an undone creation is said to have left, and before the reason why


def lock_reason(record: Record) -> str:
    """Returns the lock that a worktree of ours carries while it is being made."""
    return f"laneyard: opening {record.lane}"


def decide(lane: Lane, command: CreateLane) -> tuple[Fact, ...]:
    """Returns the facts of a creation, or raises a Refusal."""
    if not isinstance(lane, Nowhere):
        raise WrongState("created", name(lane))
    kind, _, session = command.owner.partition(":")
    if command.owner != "manual" and not (kind == "session" and session):
        raise InvalidOwner(command.owner)
    return (
        CreationPlanned(
            journal_format=CREATION_FORMAT,
            lane=command.lane,
            repository=command.repository,
            name=command.name,
            slug=command.slug,
            path=command.path,
            branch=command.branch,
            base_ref=command.base_ref,
            base_commit=command.base_commit,
            parent=command.parent,
            owner=command.owner,
        ),
    )


def evolve(lane: Lane, fact: Fact) -> Lane:
    """Returns the lane after the fact. History is never argued with."""
    match lane, fact:
        case Nowhere(), CreationPlanned():
            return Opening(record=_record(fact), path=fact.path)
        case Opening(), LaneCheckedOut(place=place):
            return replace(lane, place=place, attempt=0)
        case ((Opening() | Undoing()), StepFailed(attempt=attempt)):
            return replace(lane, attempt=attempt)
        case Opening(record=record, place=place), LaneCreated() if place is not None:
            return Active(record=record, place=place)
        case Opening(record=record), CreationFailed():
            return _undoing(record, fact)
        case Undoing(), TreeDeregistered():
            return replace(lane, deregistered=True)
        case Undoing(record=record), CreationUndone(code=code, reason=reason):
            return Failed(record=record, code=code, reason=reason)
        case Undoing(demolition=doomed), TreeUnexplained() if doomed is not None:
            home = Failed(record=lane.record, code=lane.code, reason=lane.reason)
            return review.waiting(lane.record, fact, doomed, home)
        case Undoing(demolition=doomed), _ if doomed is not None:
            return replace(lane, demolition=demolition.evolve(doomed, fact))
        case _:
            return lane


def pending(lane: Opening | Undoing) -> Effect | None:
    """Returns what the world still owes this creation, or its undoing."""
    record = lane.record
    match lane:
        case Opening(place=None):
            return Checkout(
                repository=record.repository,
                path=lane.path,
                branch=record.branch,
                commit=record.base_commit or "",
                reason=lock_reason(record),
            )
        case Opening(place=place):
            assert place is not None
            return Unlock(repository=record.repository, admin=place.admin, reason=lock_reason(record))
        case Undoing(demolition=doomed, deregistered=False) if doomed is not None:
            return demolition.pending(record.repository, doomed, lock_reason(record))
        case Undoing():
            return DropBranch(
                repository=record.repository, branch=record.branch or "", at=record.base_commit or ""
            )


def learn(lane: Opening | Undoing, outcome: Outcome) -> tuple[Fact, ...]:
    """Returns the facts an outcome amounts to."""
    match lane, outcome:
        case Opening(), CheckedOut(place=place, head=head):
            return (LaneCheckedOut(place=place, head=head),)
        case Opening(record=record), Unlocked():
            return (LaneCreated(path=lane.path, branch=record.branch or "", head=record.base_commit or ""),)
        case Opening(), NotDone():
            return _not_done(lane, outcome)
        case Undoing(), Deregistered() if lane.branch_made:
            return (TreeDeregistered(),)
        case Undoing(), Deregistered() | Dropped(kept=None):
            return (_undone(lane),)
        case Undoing(), Dropped(kept=why):
            return (_undone(lane, f"{KEPT}{why}"),)
        case ((Undoing(demolition=None) | Undoing(deregistered=True)), NotDone(reason=why)):
            return (_again(lane, outcome) or _undone(lane, KEPT + why),)
        case Undoing(), Unexplained():
            return (demolition.unexplained(outcome),)
        case Undoing(demolition=doomed), NotDone() if doomed is not None:
            return (demolition.not_done(doomed, outcome),)
        case Undoing(demolition=doomed), _ if doomed is not None:
            return demolition.learn(doomed, outcome)
        case _:
            return ()


def _undone(lane: Undoing, more: str = "") -> CreationUndone:
    return CreationUndone(code=lane.code, reason=lane.reason + more)


def _record(fact: CreationPlanned) -> Record:
    return Record(
        lane=fact.lane,
        repository=fact.repository,
        name=fact.name,
        slug=fact.slug,
        kind="managed",
        branch=fact.branch,
        base_ref=fact.base_ref,
        base_commit=fact.base_commit,
        parent=fact.parent,
        owner=fact.owner,
        head=fact.base_commit,
    )


def _again(lane: Opening | Undoing, outcome: NotDone) -> StepFailed | None:
    """Returns that the step is tried again, if it is."""
    attempt = lane.attempt + 1
    if retries.is_final(attempt, transient=outcome.transient):
        return None
    return StepFailed(step=outcome.step, attempt=attempt, code=outcome.code, reason=outcome.reason)


def _not_done(lane: Opening, outcome: NotDone) -> tuple[Fact, ...]:
    """Tries again what has made nothing yet; what is half made is undone, which is certain to end."""
    made = outcome.left is not None or outcome.branch_made
    again = None if made else _again(lane, outcome)
    return (again,) if again else _failed(outcome, lane.place)


def _failed(outcome: NotDone, place: Place | None) -> tuple[Fact, ...]:
    """Returns the failure, and at once its end where nothing was left behind."""
    left = outcome.left or place
    failed = CreationFailed(
        step=outcome.step,
        code=outcome.code,
        reason=outcome.reason,
        left=left,
        branch_made=outcome.branch_made or place is not None,
    )
    if left is None and not failed.branch_made:
        return (failed, CreationUndone(code=outcome.code, reason=outcome.reason))
    return (failed,)


def _undoing(record: Record, fact: CreationFailed) -> Undoing:
    doomed = None
    if fact.left is not None:
        basis = Basis(commit=record.base_commit or "", partial=True)
        doomed = Demolition(place=fact.left, basis=basis)
    return Undoing(
        record=record,
        code=fact.code,
        reason=fact.reason,
        demolition=doomed,
        branch_made=fact.branch_made,
    )
