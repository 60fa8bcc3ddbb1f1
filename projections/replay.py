"""A lane's log told step by step: what was owed, what ran, what became of it, and what is owed then.

The same four functions that have made the log explain it; nothing but its events is looked at.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Literal

import msgspec

from domain import events as e
from domain.effects import Effect
from domain.envelope import Envelope
from domain.formats import Foreign
from domain.lane import INITIAL, evolve, pending
from domain.retries import failures
from domain.states import Lane
from projections.differences import Change, changes

By = Literal["command", "outcome", "unknown"]

DECIDED: tuple[type[e.Fact], ...] = (  # by a command; every other fact was learnt from an outcome
    *(e.LaneAdopted, e.CreationPlanned, e.SnapshotPlanned, e.RemovalPlanned, e.IgnoredLetGo),
    *(e.RestorePlanned, e.ReapingPlanned, e.TreeRetried),
)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a lane, and what it has made of the lane.

    `ran` is the effect whose outcome it tells, in its how-manieth `attempt`. With `joined` it was written
    together with the event before it, with `joining` the next one was with it: in between nothing was owed
    to anybody. `resumed` says that somebody else went on with what was begun, as after a crash.
    """

    event: Envelope
    by: By
    before: Lane
    after: Lane
    changes: tuple[Change, ...]
    owed: Effect | None
    ran: Effect | None
    attempt: int
    owes: Effect | None
    joined: bool
    joining: bool
    resumed: bool


def replay(events: Iterable[Envelope]) -> Iterator[Step]:
    """Yields a step for each event of one lane, in order; two events are held at a time."""
    lane: Lane = INITIAL
    start, last = lane, None  # the lane before what was written together, and the event before
    rest = iter(events)
    event = next(rest, None)
    for following in chain(rest, (None,)):
        if event is None:
            return
        joined = last is not None and together(last, event)
        start = start if joined else lane
        after, by = evolve(lane, event.fact), _by(event.fact)
        joining = following is not None and together(event, following)
        ran = pending(start) if by == "outcome" else None
        yield Step(
            event=event,
            by=by,
            before=lane,
            after=after,
            changes=changes(lane, after),
            owed=pending(start),
            ran=ran,
            attempt=failures(start) + 1 if ran else 0,
            owes=None if joining else pending(after),
            joined=joined,
            joining=joining,
            resumed=by == "outcome" and last is not None and last.actor != event.actor,
        )
        lane, last, event = after, event, following


def together(one: Envelope, other: Envelope) -> bool:
    """Tells whether two events of one stream are of one append: these have one time, and no others do."""
    return (one.time, one.cause, one.actor) == (other.time, other.cause, other.actor)


def _by(fact: e.Fact) -> By:
    if isinstance(fact, Foreign):
        return "unknown"
    return "command" if isinstance(fact, DECIDED) else "outcome"
