"""The four functions of a lane. Each chapter has its own; here they are joined."""

from collections.abc import Callable, Iterable
from functools import reduce
from typing import assert_never

from domain import adoption, commands, creation, formats, reaping, removal, restore, snapshots
from domain.effects import Effect, Outcome
from domain.events import Fact
from domain.states import (
    Active,
    Blocked,
    Failed,
    Lane,
    Leaving,
    NeedsReview,
    Nowhere,
    Opening,
    Quarantined,
    Reaped,
    Reaping,
    Returning,
    Snapshotting,
    Undoing,
)

INITIAL: Lane = Nowhere()


def decide(lane: Lane, command: commands.AnyCommand) -> tuple[Fact, ...]:
    """Returns the facts that the command causes, or raises a Refusal."""
    if isinstance(lane, Blocked):
        raise formats.LaneBlocked(lane.record.slug, lane.reason)
    match command:
        case commands.AdoptLane():
            return adoption.decide(lane, command)
        case commands.CreateLane():
            return creation.decide(lane, command)
        case commands.SnapshotLane():
            return snapshots.decide(lane, command)
        case commands.RemoveLane():
            return removal.decide(lane, command)
        case commands.RestoreLane():
            return restore.decide(lane, command)
        case commands.ReapLane() | commands.DiscardLane():
            return reaping.decide(lane, command)
        case _:
            assert_never(command)


_Evolve = Callable[[Lane, Fact], Lane]

# The chapters that a state can go on with; in any other chapter no fact changes it.
_CHAPTERS: dict[type[Lane], tuple[_Evolve, ...]] = {
    Nowhere: (adoption.evolve, creation.evolve),
    Opening: (creation.evolve,),
    Undoing: (creation.evolve,),
    Failed: (),
    Active: (snapshots.evolve, removal.evolve),
    Snapshotting: (snapshots.evolve,),
    Leaving: (removal.evolve,),
    Quarantined: (snapshots.evolve, restore.evolve, reaping.evolve),
    Returning: (restore.evolve,),
    Reaping: (reaping.evolve,),
    Reaped: (restore.evolve,),
    NeedsReview: (snapshots.evolve, restore.evolve, reaping.evolve),
    Blocked: (formats.evolve,),
}
_JUDGED = frozenset({formats.Foreign, *formats.JOURNALS})  # the facts that this program may not know


def evolve(lane: Lane, fact: Fact) -> Lane:
    """Returns the lane after the fact: total, and never arguing with history."""
    if type(fact) in _JUDGED and type(lane) is not Blocked and (why := formats.unknown(fact)) is not None:
        return formats.block(lane, fact, why)
    for evolve_chapter in _CHAPTERS[type(lane)]:
        after = evolve_chapter(lane, fact)
        if after is not lane:
            return after
    return lane


def fold(facts: Iterable[Fact], lane: Lane = INITIAL) -> Lane:
    """Returns the lane after all the facts."""
    return reduce(evolve, facts, lane)


def pending(lane: Lane) -> Effect | None:
    """Returns what the world still owes the lane, or None when it is at rest."""
    match lane:
        case Opening() | Undoing():
            return creation.pending(lane)
        case Snapshotting():
            return snapshots.pending(lane)
        case Leaving():
            return removal.pending(lane)
        case Returning():
            return restore.pending(lane)
        case Reaping():
            return reaping.pending(lane)
        case Nowhere() | Failed() | Active() | Quarantined() | Reaped() | NeedsReview() | Blocked():
            return None
        case _:
            assert_never(lane)


def learn(lane: Lane, outcome: Outcome) -> tuple[Fact, ...]:
    """Returns the facts that an outcome amounts to. A failure is a fact, never raised."""
    match lane:
        case Opening() | Undoing():
            return creation.learn(lane, outcome)
        case Snapshotting():
            return snapshots.learn(lane, outcome)
        case Leaving():
            return removal.learn(lane, outcome)
        case Returning():
            return restore.learn(lane, outcome)
        case Reaping():
            return reaping.learn(lane, outcome)
        case Nowhere() | Failed() | Active() | Quarantined() | Reaped() | NeedsReview() | Blocked():
            return ()
        case _:
            assert_never(lane)
