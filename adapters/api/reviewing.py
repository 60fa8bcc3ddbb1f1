"""Why a lane waits for a person, and the ways out that may lead out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.api.answers import Answer
from adapters.api.documents import ReviewedLane
from adapters.api.lanes import lane_fields
from adapters.api.words import legible
from domain.errors import WrongState
from domain.paths import display
from domain.states import NeedsReview, Quarantined, name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapters.store.reader import Reader, Record

MISSING, DAMAGED = "tree_missing", "snapshot_damaged"  # causes that leave fewer ways out
SHOWN = 20  # paths of a review that are named
WAYS_OUT = {
    "--put-back": "restore it from the quarantine",
    "--resnapshot": "capture it as it is now, and reap it",
    "--discard": "delete it, with a recorded consent",
}
LEFT = {
    "--resnapshot": "capture what is left of it, and reap that",
    "--discard": "delete what is left of it, with a recorded consent",
}


def review(reader: Reader, row: Record) -> Answer:
    """Returns why a lane waits for a person, and the ways out. Raises WrongState if it does not."""
    waiting, _ = reader.lane(str(row["id"]))
    if not isinstance(waiting, NeedsReview):
        raise WrongState("reviewed", name(waiting))
    exits = _exits(waiting)
    document = ReviewedLane(
        **lane_fields(row),
        cause=waiting.cause,
        reason=waiting.reason,
        paths=waiting.paths,
        count=waiting.count,
        exits=exits,
    )
    return Answer(document=document, text="\n".join(_reviewed(str(row["slug"]), waiting, exits)))


def _exits(waiting: NeedsReview) -> tuple[str, ...]:
    """Returns the ways out that may lead out, as far as the log knows."""
    if not isinstance(waiting.home, Quarantined) or waiting.cause == MISSING:
        return ("--discard",)
    if waiting.demolition.begun:
        return ("--resnapshot", "--discard")
    return tuple(WAYS_OUT)


def comes_back_from(waiting: NeedsReview) -> str | None:
    """Returns the snapshot of a lane that cannot come back as it rests, for it is gone or may be in part."""
    unfit = waiting.demolition.begun or waiting.cause == MISSING
    if not unfit or waiting.cause == DAMAGED or not isinstance(waiting.home, Quarantined):
        return None
    return waiting.record.editions[-1].snapshot_id


def _reviewed(slug: str, waiting: NeedsReview, exits: Sequence[str]) -> Iterator[str]:
    yield f"{slug} waits for a person: {waiting.reason} [{waiting.cause}]"
    for path in waiting.paths[:SHOWN]:
        yield f"  {legible(display(path))}"
    if waiting.count > SHOWN:
        yield f"  and {waiting.count - SHOWN} more"
    yield "nothing more was deleted; the ways out:"
    words = WAYS_OUT | LEFT if waiting.demolition.begun else WAYS_OUT
    for each in exits:
        yield f"  laneyard review {slug} {each:<12}  {words[each]}"
    taken = comes_back_from(waiting)
    if taken is not None:
        yield f"after --discard, 'laneyard restore {slug}' brings it back from snapshot {taken[:8]}"
