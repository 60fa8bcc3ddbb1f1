"""What the log tells in a format that this program does not know: it blocks its lane, and no other.

A newer program may have done anything to the lane. So the lane keeps every name that it may hold, that nobody
takes its place, and owes the world nothing, that no recovery touches it. A program that knows the format
folds the same log to what the lane really is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec.structs import replace

from domain.errors import Refusal
from domain.events import (
    CREATION_FORMAT,
    REAPING_FORMAT,
    REMOVAL_FORMAT,
    RESTORE_FORMAT,
    CreationPlanned,
    Fact,
    ReapingPlanned,
    RemovalPlanned,
    RestorePlanned,
)
from domain.states import Blocked, Lane, Nowhere, Record

STRICT_FORMAT = 3  # of a removal that recorded nothing of what the tree holds
# By the fact that begins a journal: what it is called, and the formats that this program drives on.
JOURNALS: dict[type[Fact], tuple[str, tuple[int, ...]]] = {
    CreationPlanned: ("creation", (CREATION_FORMAT,)),
    RemovalPlanned: ("removal", (STRICT_FORMAT, REMOVAL_FORMAT)),
    RestorePlanned: ("restore", (RESTORE_FORMAT,)),
    ReapingPlanned: ("reaping", (REAPING_FORMAT,)),
}


class Foreign(Fact, frozen=True, kw_only=True):
    """A fact with a tag that this program does not know; `told` is its raw shape, and is never written."""

    tag: str
    why: str
    told: dict[str, Any]


@dataclass(eq=False)
class LaneBlocked(Refusal):
    """The log tells of the lane in a format that only a newer program knows; nothing of it is touched."""

    lane: str
    reason: str
    code = "lane_blocked"
    text = "{lane} is blocked: {reason}."
    remedy = "Update Laneyard."


def unknown(fact: Fact) -> str | None:
    """Returns why this program cannot go on after the fact, or None where it can."""
    if isinstance(fact, Foreign):
        return fact.why
    journal = JOURNALS.get(type(fact))
    if journal is None:
        return None
    found, (what, known) = getattr(fact, "journal_format", 0), journal
    if found in known:
        return None
    formats = " and ".join(map(str, known))
    return f"a {what} was planned in journal format {found}, and this program knows {formats}"


def block(lane: Lane, fact: Fact, why: str) -> Blocked:
    """Returns the lane after a fact that this program cannot go on from."""
    record = _named(fact) if isinstance(lane, Nowhere) else lane.record
    return _holding(Blocked(record=record, of=lane, reason=why), fact)


def evolve(lane: Lane, fact: Fact) -> Lane:
    """Returns a blocked lane after the fact: it stays so, and holds the names in the fact as well."""
    return _holding(lane, fact) if isinstance(lane, Blocked) else lane


def _holding(lane: Blocked, fact: Fact) -> Blocked:
    told = _told(fact)
    places = (told, *(each for each in told.values() if isinstance(each, dict)))
    branches = () if lane.record.kind == "primary" else _values(places, ("branch",))
    return replace(
        lane,
        slugs=_with(lane.slugs, _values(places, ("slug",))),
        paths=_with(lane.paths, _values(places, ("path", "resting"))),
        branches=_with(lane.branches, branches),
    )


def _with(held: tuple[str, ...], more: Iterator[str] | tuple[()]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*held, *more)))


def _values(shapes: tuple[dict[str, Any], ...], names: tuple[str, ...]) -> Iterator[str]:
    found = (shape.get(name) for shape in shapes for name in names)
    return (value for value in found if isinstance(value, str) and value)


def _told(fact: Fact) -> dict[str, Any]:
    if isinstance(fact, Foreign):
        return fact.told
    told = msgspec.to_builtins(fact)
    assert isinstance(told, dict)
    return told


def _named(fact: Fact) -> Record:
    """Returns what a lane's first fact says of it, as far as it uses the words of the facts that we know."""
    told = _told(fact)

    def word(name: str, otherwise: str = "") -> str:
        value = told.get(name)
        return value if isinstance(value, str) else otherwise

    return Record(
        lane=word("lane"),
        repository=word("repository"),
        name=word("name"),
        slug=word("slug"),
        kind="primary" if word("kind") == "primary" else "managed",
        branch=word("branch") or None,
        base_ref=word("base_ref") or None,
        base_commit=word("base_commit") or None,
        parent=word("parent") or None,
        owner=word("owner", "manual"),
        head=word("head") or word("base_commit") or None,
    )
