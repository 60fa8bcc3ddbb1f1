"""A world that answers every effect with anything that a performer may report, and askers of all commands."""

from collections.abc import Sequence

from msgspec.structs import replace

from domain import commands, effects
from domain.effects import Effect, NotDone, Outcome
from domain.evidence import Consent, Identity, Obstacle, Place, Seen
from domain.states import Active, Lane, NeedsReview, Nowhere, Quarantined
from tests.domain.facts import (
    ADMIN,
    BASE,
    BRANCH,
    CLEAN,
    COMMON,
    HEAD,
    HOME,
    LANE,
    MODULES,
    PLACE,
    RESTING,
    SECRET,
    SNAPSHOT,
)


def answers(effect: Effect) -> tuple[Outcome, ...]:
    """Returns all that the effect may lead to, the best first."""
    step = type(effect).__name__.lower()
    failures = (
        NotDone(step=step, code="busy", reason="busy", transient=True),
        NotDone(step=step, code="gone", reason="gone"),
        NotDone(step="elsewhere", code="bug", reason="an unknown step"),
    )
    return (*_taken(effect), *failures, *_left(effect))


def _taken(effect: Effect) -> tuple[Outcome, ...]:
    match effect:
        case effects.Checkout(path=path, commit=commit):
            return (effects.CheckedOut(place=Place(path, ADMIN, Identity(64, 3003, 3)), head=commit),)
        case effects.Lock():
            return (effects.Locked(),)
        case effects.Unlock():
            return (effects.Unlocked(),)
        case effects.Move(place=place, target=target):
            return (effects.Moved(place=replace(place, path=target)),)
        case effects.FreeBranch():
            return (effects.Freed(), effects.Freed(held="HEAD has moved"))
        case effects.Rejoin(branch=branch):
            return (effects.Joined(branch=branch), effects.Joined(branch=None, why="it has moved on"))
        case effects.DropBranch():
            return (effects.Dropped(), effects.Dropped(kept="it has moved"))
        case _:
            return _read_or_deleted(effect)


def _read_or_deleted(effect: Effect) -> tuple[Outcome, ...]:
    surprise = effects.Unexplained(cause="changed", reason="nowhere else", paths=("a",), count=1)
    match effect:
        case effects.Capture(snapshot=snapshot, head=head):
            return (effects.Captured(snapshot=replace(SNAPSHOT, id=snapshot, head=head or HEAD)),)
        case effects.Apply(snapshot=snapshot):
            return (effects.Applied(content=snapshot.content),)
        case effects.Explain():
            return (effects.Explained(digest="digest", entries=3, bytes=120), surprise)
        case effects.Destroy():
            return (effects.Destroyed(), effects.Resisted(reason="busy", left=("mnt",)), surprise)
        case effects.Deregister():
            return (effects.Deregistered(), surprise)
        case _:
            raise AssertionError(f"nothing is known of {effect}")


def _left(effect: Effect) -> tuple[Outcome, ...]:
    """Returns what a checkout may leave behind."""
    if not isinstance(effect, effects.Checkout):
        return ()
    place = Place(effect.path, ADMIN, Identity(64, 4004, 4))
    made = effect.branch is not None
    return tuple(
        NotDone(step="checkout", code="git_failed", reason="full", left=left, branch_made=made)
        for left in (place, None)
    )


def place_of(lane: Lane) -> Place:
    """Returns where the lane's tree can be looked at."""
    match lane:
        case Active(place=place) | Quarantined(place=place):
            return place
        case NeedsReview(demolition=doomed):
            return doomed.place
        case _:
            return PLACE


def requests(lane: Lane) -> Sequence[commands.AnyCommand]:
    """Returns commands of every kind that somebody may have for this lane."""
    clean = replace(CLEAN, identity=place_of(lane).identity)
    dirty = replace(clean, changed=("a",), ignored=(SECRET, MODULES), obstacles=(Obstacle("socket", "s"),))
    snapshots = () if isinstance(lane, Nowhere) else lane.record.snapshots
    names = (None, *(each.id for each in snapshots[-2:]))
    return (
        *_beginnings(),
        *(
            commands.SnapshotLane(snapshot=f"s-{len(snapshots) + 1}", seen=seen, tolerant=seen is dirty)
            for seen in (clean, dirty)
        ),
        *(each for name in names for each in _removals(clean, dirty, name)),
        *(
            commands.RestoreLane(slug="fix-login-2", path=f"{HOME}-2", edition=edition)
            for edition in (None, 1)
        ),
        *(commands.RestoreLane(slug="fix-login", path=HOME, snapshot=name) for name in names),
        *(commands.ReapLane(snapshot=name) for name in names),
        commands.DiscardLane(consent=Consent(("a",), "not needed")),
    )


def _beginnings() -> tuple[commands.AnyCommand, ...]:
    return (
        commands.CreateLane(
            lane=LANE,
            repository=COMMON,
            name="Fix login",
            slug="fix-login",
            path=HOME,
            branch=BRANCH,
            base_ref="refs/heads/main",
            base_commit=BASE,
        ),
        commands.AdoptLane(
            lane=LANE,
            repository=COMMON,
            name="fix login",
            slug="fix-login",
            kind="external",
            place=PLACE,
            branch=BRANCH,
            head=HEAD,
        ),
    )


def _removals(clean: Seen, dirty: Seen, snapshot: str | None) -> tuple[commands.RemoveLane, ...]:
    return (
        commands.RemoveLane(resting=RESTING, seen=clean, snapshot=snapshot),
        commands.RemoveLane(resting=RESTING, seen=clean, snapshot=snapshot, delete_branch=True),
        commands.RemoveLane(resting=RESTING, seen=dirty, snapshot=snapshot, mode="force"),
    )
