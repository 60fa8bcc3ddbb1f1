"""`replay`: a lane's log explained event by event, and what a recovery would do next without doing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import UNSET

from adapters.api import effects, outcomes
from adapters.api.answers import Answer, encoded
from adapters.api.events import event_document
from adapters.api.replay_documents import DryDrive, FieldChange, ReplayedEvent, ShownEffect
from adapters.api.text import labelled
from adapters.api.words import MANY, clock, count, legible
from domain import retries
from domain.envelope import stream_of
from domain.errors import NoSuchLane, NoSuchPosition, Refusal
from domain.lane import INITIAL, evolve, pending
from domain.states import Blocked, NeedsReview, Nowhere, name
from projections.history import sentence
from projections.replay import replay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapters.store.reader import Reader
    from domain.effects import Effect
    from domain.envelope import Envelope
    from domain.states import Lane
    from projections.differences import Change
    from projections.replay import Step

WIDTH = 10  # of what stands before the words of a step


@dataclass(eq=False)
class BeforeTheLane(Refusal):
    """The lane did not exist at that position yet."""

    position: int
    first: int
    code = "before_the_lane"
    text = "there was no such lane at position {position}; its first event is at {first}."
    status = 404


def steps(reader: Reader, lane: str, end: int) -> Iterator[Step]:
    """Yields what each event of a lane has made of it, up to the position of one, as `last` has found it."""
    return replay(reader.events(stream=stream_of(lane), to=end))


def last(reader: Reader, lane: str, to: int | None) -> tuple[Lane, Envelope]:
    """Returns a lane as of a position, by default as it is, with its last event; all until then can be read.

    Raises NoSuchLane, NoSuchPosition, BeforeTheLane, StoreUnreadable.
    """
    stream = stream_of(lane)
    first = next(reader.events(stream=stream, limit=1), None)
    if first is None:
        raise NoSuchLane(lane)
    if to is not None and to > (end := reader.head().position):
        raise NoSuchPosition(to, end)
    if to is not None and to < first.position:
        raise BeforeTheLane(to, first.position)
    found, event = INITIAL, first
    for event in reader.events(stream=stream, to=to):
        found = evolve(found, event.fact)
    return found, event


def step_json(step: Step) -> bytes:
    """Returns one line of JSON."""
    return encoded(step_document(step)) + b"\n"


def step_document(step: Step) -> ReplayedEvent:
    """Returns a step as a document."""
    event = event_document(step.event)
    told = {field: getattr(event, field) for field in event.__struct_fields__}
    return ReplayedEvent(
        **told,
        told=sentence(step.event.fact),
        by=step.by,
        pending_before=_effect(step.owed),
        ran=type(step.ran).__name__ if step.ran else None,
        attempt=step.attempt or None,
        saw=outcomes.seen(step.event.fact) if step.by == "outcome" else None,
        joined=step.joined,
        resumed=step.resumed,
        state_before=cast("Any", name(step.before)),
        state=cast("Any", name(step.after)),
        changes=tuple(map(_change, step.changes)),
        pending_after=_effect(step.owes),
    )


def _effect(effect: Effect | None) -> ShownEffect | None:
    if effect is None:
        return None
    arguments = msgspec.to_builtins(effect)
    return ShownEffect(step=type(effect).__name__, words=effects.words(effect), arguments=arguments)


def _change(change: Change) -> FieldChange:
    if change.added:
        return FieldChange(field=change.field, added=change.added)
    after = UNSET if change.gone else change.after
    return FieldChange(field=change.field, before=change.before, after=after)


def step_text(step: Step) -> str:
    """Returns the paragraph that people read, with an empty line at its end."""
    event = step.event
    kind = {"unknown": "of a newer program"}.get(step.by, step.by)
    when = event.time[:26].replace("T", " ")
    lines = [f"{event.position:>5}  {when} UTC  {event.type}  {kind}"]
    labels = {"command": "decided", "outcome": "learned", "unknown": "told"}
    if step.by == "outcome":
        lines += _line("ran", _ran(step))
        lines += _line("saw", outcomes.seen(event.fact))
    else:
        lines += _line("was owed", "told with the event before" if step.joined else _owed(step.owed))
    lines += _line(labels[step.by], sentence(event.fact))
    was, now = name(step.before), name(step.after)
    lines += _line("state", now if was == now else f"{was} -> {now}")
    lines += _changed(step.changes)
    lines += _line("owes now", "told with the next event" if step.joining else _owed(step.owes, step.after))
    who = f"uid {event.actor.uid}, pid {event.actor.pid}, {event.actor.client}, for command {event.cause}"
    lines += _line("who", f"{who}; another process went on here" if step.resumed else who)
    return "".join(f"{line}\n" for line in (*lines, ""))


def _line(label: str, words: str) -> tuple[str]:
    return (f"       {label:<{WIDTH}}{legible(words)}",)


def _owed(effect: Effect | None, lane: Lane | None = None) -> str:
    """Returns what is owed; where it has just failed, also how often that was and when it is tried again."""
    if effect is None:
        return "nothing" if lane is None else f"nothing: {_idle(lane)}"
    words = f"{type(effect).__name__}: {effects.words(effect)}"
    failed = 0 if lane is None else retries.failures(lane)
    if lane is None or not failed:
        return words
    again = f"attempt {failed + 1} of {retries.ATTEMPTS}, after {retries.pause(lane):g} s"
    return f"{words} ({again})"


def _ran(step: Step) -> str:
    """Returns the effect that ran, which is what was owed."""
    if step.ran is None:
        return "nothing that was owed"
    if step.joined:
        return f"{type(step.ran).__name__}, as told with the event before"
    again = f" (attempt {step.attempt} of {retries.ATTEMPTS})" if step.attempt > 1 else ""
    return f"{type(step.ran).__name__}: {effects.words(step.ran)}{again}"


def _changed(changes: tuple[Change, ...]) -> Iterator[str]:
    """Yields a line for each field; of what is over with its journal the names are enough."""
    label = "changed"
    for change in changes:
        if not change.gone:
            yield from _line(label, f"{change.field}: {_difference(change)}")
            label = ""
    gone = dict.fromkeys(each.field.partition(".")[0] for each in changes if each.gone)
    if gone:
        yield from _line("over", ", ".join(gone))


def _difference(change: Change) -> str:
    if change.added:
        return f"+ {_value(change.added)}"
    new = _value(change.after)
    return new if change.before in (None, "", ()) else f"{_value(change.before)} -> {new}"


def _value(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case None | "" | ():
            return "none"
        case tuple():
            more = f" and {len(value) - MANY} more" if len(value) > MANY else ""
            return f"{', '.join(value[:MANY])}{more}"
        case _:
            return str(value)


def dry_drive(reader: Reader, lane: str, to: int | None = None) -> Answer:
    """Returns what a recovery would do next for a lane, as it is or was; nothing is done, locked or written.

    Raises NoSuchLane, NoSuchPosition, BeforeTheLane, StoreUnreadable.
    """
    found, event = last(reader, lane, to)
    owed = pending(found)
    failed = retries.failures(found)
    document = DryDrive(
        lane=lane,
        slug=lane[:8] if isinstance(found, Nowhere) else found.record.slug or lane[:8],
        position=event.position,
        time=event.time,
        state=cast("Any", name(found)),
        pending=_effect(owed),
        looks_first=effects.first_look(owed) if owed else None,
        attempt=failed + 1 if owed else None,
        attempts=retries.ATTEMPTS if owed else None,
        pause=retries.pause(found) if owed and failed else None,
        why=None if owed else _idle(found),
    )
    return Answer(document=document, text="\n".join(_forecast(document)))


def _idle(lane: Lane) -> str:
    """Returns why nothing is owed."""
    doomed = getattr(lane, "demolition", None)
    match lane:
        case Blocked(reason=reason):
            return f"the lane is blocked until Laneyard is updated ({reason})"
        case NeedsReview(reason=reason):
            return f"it waits for a person ({reason})"
        case _ if doomed is not None and doomed.gave_up:
            times = count(doomed.attempt, "attempt")
            return f"the deletion was given up after {times}; 'laneyard sweep --apply' tries it again"
        case _:
            return "it is at rest"


def _forecast(found: DryDrive) -> Iterator[str]:
    yield legible(f"{found.slug} is {found.state}, at position {found.position} ({clock(found.time)})")
    if found.pending is None:
        yield legible(f"owes nothing: {found.why}")
        return
    lines = {
        "owes": f"{found.pending.step}: {found.pending.words}",
        "looks": f"first {found.looks_first}",
        "tries": _tries(found),
        "when": "at once, when a command that drives on, or a service, starts",
    }
    for label, words in lines.items():
        yield from labelled(label, words)
    yield "nothing was done: this was a dry drive"


def _tries(found: DryDrive) -> str:
    which = f"attempt {found.attempt} of {found.attempts}"
    if found.attempt == found.attempts:
        return f"{which}: if it fails, it is not tried again"
    return f"{which}: what fails and may pass by itself is tried again, anything else is not"
