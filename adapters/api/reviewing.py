"""Why a lane waits for a person, and the ways out that may lead out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapters.api.answers import Answer
from adapters.api.documents import ReviewedLane
from adapters.api.lanes import lane_fields
from adapters.api.text import labelled
from adapters.api.words import legible
from adapters.lookup import require_understood
from domain.errors import WrongState
from domain.paths import display
from domain.review import CAUSES, cause, comes_back_from, safe, ways
from domain.states import NeedsReview, name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapters.store.reader import Reader, Record
    from domain.states import Lane

SHOWN = 20  # paths of a review that are named


def review(reader: Reader, row: Record) -> Answer:
    """Returns why a lane waits for a person, and the ways out. Raises WrongState, LaneBlocked."""
    require_understood(row)
    waiting, _ = reader.lane(str(row["id"]))
    if not isinstance(waiting, NeedsReview):
        raise WrongState("reviewed", name(waiting))
    found, remedy = CAUSES[cause(waiting.detail)]
    document = ReviewedLane(
        **lane_fields(row),
        reason=waiting.reason,
        found=found,
        remedy=remedy,
        paths=waiting.paths,
        count=waiting.count,
        **waiting_fields(waiting),
    )
    return Answer(document=document, text="\n".join(_reviewed(str(row["slug"]), waiting)))


def waiting_fields(lane: Lane) -> dict[str, Any]:
    """Returns the fields that every document of a lane has that tells of its review, if it waits for one."""
    if not isinstance(lane, NeedsReview):
        return {}
    return {"safe": safe(lane), "exits": tuple(way.exit for way in ways(lane))}


def safety(lane: Lane) -> Iterator[str]:
    """Yields what of a lane that waits for a person still exists and where, and its cause."""
    if isinstance(lane, NeedsReview):
        yield from labelled("cause", f"{CAUSES[cause(lane.detail)][0]} [{cause(lane.detail)}]")
        yield from labelled("safe", safe(lane))


def _reviewed(slug: str, waiting: NeedsReview) -> Iterator[str]:
    found, remedy = CAUSES[cause(waiting.detail)]
    yield f"{slug} waits for a person: {legible(waiting.reason)} [{waiting.detail}]"
    for path in waiting.paths[:SHOWN]:
        yield f"  {legible(display(path))}"
    if waiting.count > SHOWN:
        yield f"  and {waiting.count - SHOWN} more"
    yield f"{found} [{cause(waiting.detail)}]: {remedy}"
    yield f"{legible(safe(waiting))}; the ways out:"
    for way in ways(waiting):
        yield f"  laneyard review {slug} {way.exit:<12}  {way.does}"
    taken = comes_back_from(waiting)
    if taken is not None:
        yield f"after --discard, 'laneyard restore {slug}' brings it back from snapshot {taken[:8]}"
