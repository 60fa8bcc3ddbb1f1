"""Lanes told in full: all that is known of one, and what a sweep finds and does."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

from adapters.api.answers import Answer
from adapters.api.documents import (
    Candidate,
    LaneJournal,
    ShownLane,
    SnapshotDocument,
    SweptLane,
)
from adapters.api.events import event_document
from adapters.api.lanes import lane_fields
from adapters.api.reviewing import review, safety, waiting_fields
from adapters.api.text import STEPS, labelled, table
from adapters.api.words import clock, count, legible, several
from domain.envelope import stream_of
from domain.evidence import Unknown
from domain.lane import fold
from domain.naming import short_branch
from domain.paths import display, unpack
from domain.review import comes_back_from
from domain.states import Active, Blocked, Failed, NeedsReview, Nowhere, Quarantined, Reaped, name
from projections.history import sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adapters.store.reader import Reader, Record
    from adapters.yard import ending
    from domain.envelope import Envelope
    from domain.evidence import Obstacle, Place, Seen, Snapshot
    from domain.states import Lane

__all__ = ["candidates", "inspected_place", "next_step", "review", "show", "swept"]

LAST = 5  # events of the lane's journal that are shown
OBSERVED = ("head", "branch", "locked", "changed", "untracked", "ignored", "obstacles")


def inspected_place(lane: Lane) -> Place | None:
    """Returns what an inspector should look at, or None where there is no tree of ours."""
    match lane:
        case Active(record=record) if record.kind == "primary":
            return None
        case Active(place=place) | Quarantined(place=place):
            return place
        case NeedsReview(demolition=doomed):
            return doomed.place
        case _:
            return None


def show(reader: Reader, row: Record, observed: Seen | None) -> Answer:
    """Returns everything about a lane, with what an inspector saw of it just now, if it has looked."""
    events = list(reader.events(stream=stream_of(str(row["id"]))))
    lane = fold(each.fact for each in events)
    taken = () if isinstance(lane, Nowhere) else lane.record.snapshots
    following = next_step(lane, row, observed)
    document = ShownLane(
        **lane_fields(row, seen=observed),
        since=str(row["since"]),
        reason=getattr(lane, "reason", None),
        **waiting_fields(lane),
        snapshots=tuple(map(_snapshot_document, taken)),
        journal=_journal_document(row, events[-LAST:]),
        next=following,
    )
    lines = (
        *_state(row, lane, _parent(reader, row)),
        *_observed(observed),
        *_snapshots(lane),
        *_journal(row, events[-LAST:]),
        "next",
        f"  {following}",
    )
    return Answer(document=document, text="\n".join(lines))


def _parent(reader: Reader, row: Record) -> str | None:
    """Returns what people call the lane that this one was started from."""
    return next((str(each["slug"]) for each in reader.lanes() if each["id"] == row["parent"]), None)


def _snapshot_document(taken: Snapshot) -> SnapshotDocument:
    return SnapshotDocument(
        id=taken.id,
        ref=taken.ref,
        commit=taken.commit,
        entries=taken.entries,
        bytes=taken.bytes,
        omitted=taken.omitted,
    )


def _journal_document(row: Record, events: Sequence[Envelope]) -> LaneJournal:
    owed = None if row["owed"] is None else str(row["owed"])
    return LaneJournal(owed=owed, last=tuple(map(event_document, events)))


def next_step(lane: Lane, row: Record, observed: Seen | None) -> str:
    """Returns what to do next about a lane: a command that would not be refused, or what to mend first."""
    slug = row["slug"]
    match lane:
        case Blocked():
            return "update Laneyard: this program leaves the lane as it is"
        case _ if row["owed"] is not None:
            return "the next command finishes what was begun"
        case Active(record=record) if record.kind == "primary":
            return "nothing: the main checkout is never removed"
        case Active(place=place) | Quarantined(place=place) if not os.path.lexists(unpack(place.path)):
            return f"put its folder back: nothing is at {legible(display(place.path))}"
        case Active() if any(isinstance(value, Unknown) for _, value in _values(observed)):
            return f"mend what is unknown, then laneyard remove {slug}"
        case Active():
            return f"laneyard remove {slug}"
        case Quarantined():
            return f"laneyard restore {slug}, or laneyard reap {slug}"
        case NeedsReview() if comes_back_from(lane) is not None:
            out = f"laneyard review {slug}"
            return f"{out}; or {out} --discard, and then laneyard restore {slug}"
        case NeedsReview():
            return f"laneyard review {slug}"
        case Reaped(record=record) if record.snapshots:
            return f"laneyard restore {slug}"
        case Failed() | Nowhere() | Reaped():
            return "nothing: no tree, branch or directory of it is left"
        case _:  # a deletion that has given up: reaping, a creation or a restore that is being undone
            return "laneyard sweep --apply"


def _values(observed: Seen | None) -> Iterator[tuple[str, object]]:
    """Yields what was observed, each value with its name."""
    if observed is not None:
        yield from ((each, getattr(observed, each)) for each in OBSERVED)


def _state(row: Record, lane: Lane, parent: str | None) -> Iterator[str]:
    edition = f", edition {row['edition']}" if row["edition"] else ""
    yield f"{row['slug']} is {row['state']}{edition}, since {clock(str(row['since']))}"
    yield from labelled("reason", getattr(lane, "reason", None))
    yield from safety(lane)
    yield from labelled("name", row["name"])
    yield from labelled("id", row["id"])
    yield from labelled("kind", row["kind"])
    yield from labelled("path", display(str(row["path"])) if row["path"] else None)
    yield from labelled("branch", short_branch(None if row["branch"] is None else str(row["branch"])))
    yield from labelled("head", row["head"])
    yield from labelled("base", f"{row['base_ref']} at {row['base_commit']}" if row["base_commit"] else None)
    yield from labelled("parent", parent)
    yield from labelled("owner", row["owner"])
    yield from labelled("created", clock(str(row["created_at"])))


def _observed(observed: Seen | None) -> Iterator[str]:
    if observed is None:
        return
    values = dict(_values(observed))
    blind = all(isinstance(value, Unknown) for value in values.values())
    yield "seen now" if blind else f"seen now, at {clock(observed.at)}"
    for each, value in values.items():
        yield from labelled(each, _seen(each, value))


def _seen(what: str, value: object) -> str:
    match value:
        case Unknown(why=why):
            return f"unknown: {why}"
        case None if what == "branch":
            return "none: HEAD is detached"
        case str() if what == "branch":
            return short_branch(value) or ""
        case tuple():
            return several([_named(each) for each in value])
        case _:
            return "none" if value is None else str(value)


def _named(thing: str | Obstacle) -> str:
    """Returns a packed path, or what a snapshot could not hold, as people read it."""
    return display(thing) if isinstance(thing, str) else f"{thing.kind} {display(thing.path)}"


def _snapshots(lane: Lane) -> Iterator[str]:
    yield "snapshots"
    taken = () if isinstance(lane, Nowhere) else lane.record.snapshots
    for each in taken:
        size = f"{count(each.entries, 'entry')}, {count(each.bytes, 'byte')}"
        omitted = f", without {count(len(each.omitted), 'path')}" if each.omitted else ""
        remnant = not isinstance(lane, Nowhere) and lane.record.is_remnant(each.id)
        partly = ", of what was left" if remnant else ""
        yield f"  {each.id}  {size}{omitted}{partly}"
    if not taken:
        yield "  none"


def _journal(row: Record, events: Sequence[Envelope]) -> Iterator[str]:
    owed = row["owed"]
    yield "journal"
    yield f"  owed: {STEPS.get(str(owed), str(owed))} ({owed})" if owed else "  owed: nothing"
    for each in events:
        what = legible(sentence(each.fact))
        yield f"  {each.position:>5}  {clock(each.time)}  {each.type:<24} {what}"


def candidates(found: Sequence[ending.Candidate]) -> Answer:
    """Returns the lanes that a sweep would touch, now or later."""
    documents = [
        Candidate(
            lane=str(each.row["id"]),
            slug=str(each.row["slug"]),
            action=cast("Any", each.action),
            until=each.until,
            reason=each.reason,
        )
        for each in found
    ]
    if not found:
        nothing = "nothing to sweep: no lane is in quarantine, and no deletion is unfinished"
        return Answer(document=documents, text=nothing)
    text = table(("LANE", "WHAT", "WHEN", "WHY"), [_candidate(each) for each in found])
    if any(each.action != "wait" for each in found):
        text += "\nthis was a dry run: 'laneyard sweep --apply' does what is due"
    return Answer(document=documents, text=text)


def _candidate(each: ending.Candidate) -> tuple[object, ...]:
    what = {"reap": "would be reaped", "retry": "would be tried again"}.get(each.action, "rests")
    when = f"until {clock(each.until)}" if each.until and each.action == "wait" else "now"
    why = f"in quarantine since {clock(str(each.row['since']))}" if each.until else each.reason
    return each.row["slug"], what, when, why


def swept(done: Sequence[ending.Swept]) -> Answer:
    """Returns what a sweep has done, unfinished where one lane was in trouble."""
    documents = [_swept(each) for each in done]
    troubled = any(each.problem is not None for each in documents)
    lines = [
        f"{each.slug} is {each.state}" + (f": {each.problem[1]} [{each.problem[0]}]" if each.problem else "")
        for each in documents
    ]
    text = "\n".join(lines) or "nothing was due"
    return Answer(document=documents, text=text, outcome="unfinished" if troubled else "done")


def _swept(each: ending.Swept) -> SweptLane:
    row = each.candidate.row
    return SweptLane(
        lane=str(row["id"]),
        slug=str(row["slug"]),
        state=name(each.done.lane) if each.done else str(row["state"]),
        problem=each.refused or (each.done.problem if each.done else None),
    )
