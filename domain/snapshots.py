"""The snapshot chapter: a verified copy is taken, and the lane stays what it was."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec.structs import replace

from domain import retries
from domain.commands import SnapshotLane
from domain.effects import Capture, Captured, Effect, NotDone, Outcome
from domain.errors import CannotHold, EvidenceUnavailable, IdentityChanged, UnknownIgnored, WrongState
from domain.events import Fact, LaneSnapshotted, SnapshotFailed, SnapshotPlanned, StepFailed
from domain.evidence import Consent, Ignored, Obstacle, Place, Seen, Unknown
from domain.paths import display, is_inside
from domain.states import Active, Lane, NeedsReview, Quarantined, Record, Snapshotting, name

NAMED = 100  # ignored paths that a refusal names before it only counts them

T = TypeVar("T")


def decide(lane: Lane, command: SnapshotLane) -> tuple[Fact, ...]:
    """Returns the facts of a capture, or raises a Refusal."""
    match lane:
        case Active(record=record) if record.kind == "primary":
            raise WrongState("snapshotted", "the main checkout")
        case Active(place=place):
            agreed: tuple[str, ...] = ()
        case Quarantined(place=place, consent=consent):
            agreed = _agreed(consent)
        case NeedsReview(demolition=doomed):
            place, agreed = doomed.place, _agreed(doomed.basis.consent)
        case _:
            raise WrongState("snapshotted", name(lane))
    seen = command.seen
    require_known(seen)
    require_same(place, seen)
    obstacles = known(seen.obstacles)
    refused = uncovered(obstacles, agreed)
    if refused and not command.tolerant:
        raise CannotHold(described(refused))
    omit = (*_left_out(known(seen.ignored), command.apart, agreed), *(each.path for each in obstacles))
    return (
        SnapshotPlanned(snapshot=command.snapshot, tolerant=command.tolerant, omit=omit, apart=command.apart),
    )


def evolve(lane: Lane, fact: Fact) -> Lane:
    """Returns the lane after the fact."""
    match lane, fact:
        case ((Active() | Quarantined() | NeedsReview()), SnapshotPlanned()):
            return Snapshotting(
                of=lane, snapshot=fact.snapshot, tolerant=fact.tolerant, omit=fact.omit, apart=fact.apart
            )
        case Snapshotting(of=of), LaneSnapshotted():
            return replace(of, record=_with(of, fact))
        case Snapshotting(of=of), SnapshotFailed():
            return of
        case Snapshotting(), StepFailed(attempt=attempt):
            return replace(lane, attempt=attempt)
        case _:
            return lane


def pending(lane: Snapshotting) -> Effect:
    """Returns the capture that is owed."""
    of = lane.of
    editions = of.record.editions
    resting = _rests(of)
    return Capture(
        repository=of.record.repository,
        lane=of.record.lane,
        snapshot=lane.snapshot,
        place=of.demolition.place if isinstance(of, NeedsReview) else of.place,
        head=editions[-1].head if resting else None,
        branch=editions[-1].branch if resting else None,
        tolerant=lane.tolerant,
        omit=lane.omit,
        apart=lane.apart,
        thorough=not isinstance(of, Active),  # what is at rest is captured to be deleted
    )


def learn(lane: Snapshotting, outcome: Outcome) -> tuple[Fact, ...]:
    """Returns the facts an outcome amounts to. A capture that has failed is asked for again by a person."""
    match outcome:
        case Captured(snapshot=snapshot):
            return (LaneSnapshotted(snapshot=snapshot),)
        case NotDone(step=step, code=code, reason=reason):
            attempt = lane.attempt + 1
            if retries.is_final(attempt, transient=outcome.transient):
                return (SnapshotFailed(snapshot=lane.snapshot, code=code, reason=reason),)
            return (StepFailed(step=step, attempt=attempt, code=code, reason=reason),)
        case _:
            return ()


def require_known(seen: Seen) -> None:
    """Raises EvidenceUnavailable if anything could not be observed."""
    gaps = seen.gaps()
    if gaps:
        raise EvidenceUnavailable(tuple(what for what, _ in gaps), tuple(why for _, why in gaps))


def require_same(place: Place, seen: Seen) -> None:
    """Raises IdentityChanged if another directory stands where the lane was."""
    if not place.identity.same(seen.identity):
        raise IdentityChanged(display(place.path))


def known(value: tuple[T, ...] | Unknown) -> tuple[T, ...]:
    """Returns an observation that `require_known` has found to be there."""
    assert not isinstance(value, Unknown)
    return value


def uncovered(obstacles: tuple[Obstacle, ...], agreed: tuple[str, ...]) -> tuple[Obstacle, ...]:
    """Returns the obstacles that no consented path covers."""
    return tuple(each for each in obstacles if not any(is_inside(each.path, path) for path in agreed))


def lies_in(path: str, roots: frozenset[str]) -> bool:
    """Tells whether a packed path is one of the roots or lies below one."""
    return any(each in roots for each in _upwards(path))


def _upwards(path: str) -> Iterator[str]:
    """Yields a path and every directory that leads to it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _left_out(ignored: Iterable[Ignored], apart: tuple[str, ...], agreed: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the ignored paths that need not be held: of one that was agreed to in part, that part."""
    asked, whole, seen = frozenset(apart), frozenset(agreed), [each.path for each in ignored]
    parts: dict[str, list[str]] = defaultdict(list)
    for path in agreed:
        for above in _upwards(path.rpartition("/")[0]):
            parts[above].append(path)
    wanted = (path for path in seen if not lies_in(path, asked))
    left = ((path,) if lies_in(path, whole) else parts.get(path, (path,)) for path in wanted)
    return tuple(dict.fromkeys(path for paths in left for path in paths))


def described(obstacles: tuple[Obstacle, ...]) -> tuple[str, ...]:
    """Returns obstacles as people read them."""
    return tuple(f"{each.kind} {display(each.path)!r}" for each in obstacles)


def unknown_ignored(held: Sequence[Ignored]) -> UnknownIgnored:
    """Returns the refusal to lose ignored paths that nobody has agreed to lose."""
    first = held[:NAMED]
    return UnknownIgnored(
        tuple(display(each.path) for each in first), tuple(map(_named_ignored, first)), len(held)
    )


def _named_ignored(ignored: Ignored) -> dict[str, object]:
    shown = {"path": display(ignored.path), "class": ignored.kind, "why": ignored.why}
    return {**shown, "bytes": ignored.bytes}


def _agreed(consent: Consent | None) -> tuple[str, ...]:
    return consent.named if consent else ()


def _with(of: Active | Quarantined | NeedsReview, fact: LaneSnapshotted) -> Record:
    """Returns the record with the snapshot; a lane at rest comes back from its newest of the whole tree."""
    record, taken = of.record, fact.snapshot.id
    editions, remnants = record.editions, record.remnants
    if not _is_whole(of):
        remnants = (*remnants, (record.edition, taken))
    if _rests(of) and (_is_whole(of) or editions[-1].snapshot_id is None):
        editions = (*editions[:-1], replace(editions[-1], snapshot_id=taken))
    snapshots = (*record.snapshots, fact.snapshot)
    return replace(record, snapshots=snapshots, editions=editions, remnants=remnants)


def _is_whole(of: Active | Quarantined | NeedsReview) -> bool:
    """Tells whether the tree is a lane's and no deletion of it can have begun."""
    return not isinstance(of, NeedsReview) or (_rests(of) and not of.demolition.begun)


def _rests(of: Active | Quarantined | NeedsReview) -> bool:
    """Tells whether the tree is that of the last removal, and not what a failed creation or restore left."""
    return isinstance(of, Quarantined) or (isinstance(of, NeedsReview) and isinstance(of.home, Quarantined))
