"""What a request has led to: a pure function of the log, the same whenever and however often it is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from adapters.store.reader import Record
from domain.events import Fact, IgnoredLetGo, RemovalPlanned
from domain.lane import INITIAL, evolve
from domain.states import Lane
from projections import lanes
from projections.table import Happening, Key, Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from domain.envelope import Envelope


class Concluded(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a request has caused in one lane, and the lane after the last of them.

    `row` is the lane's row of the lanes table at that position, none where there was none. `let_go` are the
    packed paths that did not hold the last removal, as they can be made again.
    """

    lane_id: str
    lane: Lane = INITIAL
    row: Record | None = None
    version: int = 0
    position: int = 0
    facts: tuple[Fact, ...] = ()
    let_go: frozenset[str] = frozenset()


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """What a request has led to. `problem` is a stable code and words where it ended before its goal."""

    lane_id: str
    lane: Lane
    position: int
    problem: tuple[str, str] | None = None
    warnings: tuple[str, ...] = ()
    row: Record | None = None
    facts: tuple[Fact, ...] = ()


def conclude(events: Iterable[Envelope], lane_id: str, cause: str) -> Concluded:
    """Returns what one cause has led to in a lane, given the lane's events in order."""
    facts, concluded, let_go = list[Fact](), Concluded(lane_id=lane_id), frozenset[str]()
    for event, lane, row in _told(events, lane_id):
        if isinstance(event.fact, RemovalPlanned | IgnoredLetGo):
            let_go = frozenset(each.path for each in getattr(event.fact, "ignored", ()))
        if event.cause == cause:
            facts.append(event.fact)
            concluded = Concluded(
                lane_id=lane_id,
                lane=lane,
                row=_record(row),
                version=event.version,
                position=event.position,
                let_go=let_go,
            )
    return msgspec.structs.replace(concluded, facts=tuple(facts))


def row_after(events: Iterable[Envelope], lane_id: str) -> Record | None:
    """Returns the lane's row of the lanes table after its events."""
    last = None
    for _, _, row in _told(events, lane_id):
        last = row
    return _record(last)


def ended(concluded: Concluded, problem: tuple[str, str] | None = None, *warnings: str) -> Done:
    """Returns what a request has led to as it is told."""
    return Done(
        lane_id=concluded.lane_id,
        lane=concluded.lane,
        position=concluded.position,
        problem=problem,
        warnings=warnings,
        row=concluded.row,
        facts=concluded.facts,
    )


def _told(events: Iterable[Envelope], lane_id: str) -> Iterator[tuple[Envelope, Lane, Row | None]]:
    """Yields every event with the lane and its row after it."""
    lane, rows = INITIAL, dict[Key, Row | None]()
    for event in events:
        before, lane = lane, evolve(lane, event.fact)
        rows.update(lanes.apply(Happening(event, before, lane), rows.get))
        yield event, lane, rows.get((lane_id,))


def _record(row: Row | None) -> Record | None:
    return None if row is None else dict(zip(lanes.TABLE.names, row, strict=True))
