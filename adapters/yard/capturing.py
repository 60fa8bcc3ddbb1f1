"""Taking a snapshot: on its own, and on the way to what may not go on without one."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from adapters.ignored.wanted import Wanted
from adapters.yard.yard import Concluded, Done, ended, known_repository
from domain.commands import SnapshotLane
from domain.errors import CannotHold, Refusal, WrongState
from domain.events import LaneSnapshotted, SnapshotFailed
from domain.evidence import Unknown
from domain.paths import is_inside, unpack
from domain.snapshots import lies_in
from domain.states import Active, NeedsReview, Quarantined, name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapters.engine import Request
    from adapters.ignored.wanted import Include
    from adapters.store.journal import Committed
    from adapters.store.reader import Record
    from adapters.yard.yard import Yard
    from domain.events import Fact
    from domain.evidence import Place, Seen, Snapshot
    from domain.states import Lane


class SnapshotNotMade(Refusal):
    """A capture has failed, or would not hold enough, and nothing was changed. The code says which."""

    def __init__(
        self, code: str, reason: str, remedy: str = "", evidence: dict[str, object] | None = None
    ) -> None:
        super().__init__()
        self.code, self.reason = code, reason  # type: ignore[misc]
        self.remedy = remedy  # type: ignore[misc]
        self._evidence = evidence or {}

    @property
    def details(self) -> dict[str, object]:
        """Returns why, and what it is about."""
        return {"reason": self.reason, **self._evidence}

    def __str__(self) -> str:
        return f"no snapshot was made: {self.reason}.{' ' if self.remedy else ''}{self.remedy}"


def wanted(yard: Yard, row: Record, include: Include = False) -> Wanted:
    """Returns what of a lane's ignored files is asked for, and the rules by which they are classed."""
    known = known_repository(yard.reader, unpack(str(row["repository"])))
    assert known is not None
    return Wanted(yard.settings.configuration, known.root, include)


async def snapshot(
    yard: Yard, row: Record, request: Request, *, tolerant: bool = False, include: Include = False
) -> Done:
    """Captures a lane without removing it, with the ignored files that are asked for. Raises a Refusal."""
    if (earlier := yard.answered(request)) is not None:
        return _snapshotted(earlier)
    lane_id = str(row["id"])
    lane, _ = yard.reader.lane(lane_id)
    asked = wanted(yard, row, include)
    seen = await yard.inspector.look(place_of(lane, "snapshotted"), rules=asked.rules)
    apart = tuple(dict.fromkeys((*asked.chosen(seen), *held_before(lane, seen))))
    await try_capture(yard, lane_id, seen, request, tolerant=tolerant, apart=apart)
    return _snapshotted(yard.concluded(request, lane_id))


def held_before(lane: Lane, seen: Seen) -> tuple[str, ...]:
    """Returns the ignored paths of which a resting lane's snapshot holds something: so is the next one to.

    The lane comes back from the newest, which must not hold less than the one that it takes the place of.
    """
    home = lane.home if isinstance(lane, NeedsReview) else lane
    if not isinstance(home, Quarantined) or isinstance(seen.ignored, Unknown):
        return ()
    assert isinstance(lane, NeedsReview | Quarantined)
    taken = lane.record.snapshot(lane.record.editions[-1].snapshot_id)
    held = frozenset(taken.ignored if taken else ())
    paths = (each.path for each in seen.ignored)
    return tuple(path for path in paths if lies_in(path, held) or any(is_inside(each, path) for each in held))


def _snapshotted(concluded: Concluded) -> Done:
    taken = _taken(concluded.facts)
    if isinstance(taken, SnapshotNotMade):
        raise taken
    return ended(concluded)


async def capture(
    yard: Yard,
    lane_id: str,
    seen: Seen,
    request: Request,
    *,
    tolerant: bool = False,
    apart: tuple[str, ...] = (),
) -> tuple[Committed, Snapshot]:
    """Takes a snapshot of what was seen. Raises a Refusal, or SnapshotNotMade."""
    committed, taken = await try_capture(yard, lane_id, seen, request, tolerant=tolerant, apart=apart)
    if isinstance(taken, SnapshotNotMade):
        raise taken
    return committed, taken


async def try_capture(
    yard: Yard,
    lane_id: str,
    seen: Seen,
    request: Request,
    *,
    tolerant: bool = False,
    apart: tuple[str, ...] = (),
) -> tuple[Committed, Snapshot | SnapshotNotMade]:
    """Returns a snapshot of what was seen, or why none was made. Raises a Refusal before it is tried."""
    command = SnapshotLane(snapshot=str(uuid4()), seen=seen, tolerant=tolerant, apart=apart)
    committed = await yard.engine.handle(lane_id, command, request)
    return committed, _taken(committed.facts)


def _taken(facts: Iterable[Fact]) -> Snapshot | SnapshotNotMade:
    for fact in facts:
        if isinstance(fact, SnapshotFailed):
            remedy = CannotHold.remedy if fact.code == CannotHold.code else ""
            return SnapshotNotMade(fact.code, fact.reason, remedy)
        if isinstance(fact, LaneSnapshotted):
            return fact.snapshot
    return SnapshotNotMade("interrupted", "the capture ended without an answer")


def place_of(lane: Lane, verb: str) -> Place:
    """Returns where the lane's tree is. Raises WrongState where it has none to look at."""
    match lane:
        case Active(place=place) | Quarantined(place=place):
            return place
        case NeedsReview(demolition=doomed):
            return doomed.place
        case _:
            raise WrongState(verb, name(lane))
