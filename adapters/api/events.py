"""Events as tools and people get them, and which of them somebody wants."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from adapters.api.documents import Actor, Event
from adapters.api.words import clock, legible
from domain.envelope import lane_of, stream_of
from domain.errors import NoSuchLane, Refusal
from domain.formats import Foreign
from projections.history import sentence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adapters.store.reader import Reader
    from domain.envelope import Envelope
    from domain.events import Fact


@dataclass(eq=False)
class InvalidPosition(Refusal):
    """What was given is no position of the log."""

    position: str
    code = "invalid_position"
    text = "{position!r} is no position of the log."
    remedy = "Give the position of an event that you have seen, or 0 for the beginning."
    status = 400


class Filter(msgspec.Struct, frozen=True):
    """Which events are wanted: those of one stream, those of a type that the glob matches, or all."""

    stream: str | None = None
    type: str | None = None

    def matches(self, event: Envelope) -> bool:
        """Tells whether the event is wanted."""
        return (self.stream is None or event.stream == self.stream) and (
            self.type is None or fnmatchcase(event.type, self.type)
        )


EVERYTHING = Filter()


def about(reader: Reader, lane: str | None, type_: str | None) -> Filter:
    """Returns which events are wanted; a lane is named by its whole id, also one that never came to be.

    Raises NoSuchLane.
    """
    if lane is None:
        return Filter(None, type_)
    stream = stream_of(lane)
    if next(reader.events(stream=stream, limit=1), None) is None:
        raise NoSuchLane(lane)
    return Filter(stream, type_)


_ENCODE = msgspec.json.Encoder().encode


def event_document(envelope: Envelope) -> Event:
    """Returns one event of the log as a document."""
    actor = envelope.actor
    return Event(
        position=envelope.position,
        type=envelope.type,
        lane=lane_of(envelope.stream),
        stream=envelope.stream,
        version=envelope.version,
        time=envelope.time,
        actor=Actor(uid=actor.uid, pid=actor.pid, client=actor.client),
        cause=envelope.cause,
        fact=msgspec.to_builtins(_told(envelope.fact)),
    )


def _told(fact: Fact) -> object:
    """Returns what the log says, also where this program does not know what it means."""
    return fact.told if isinstance(fact, Foreign) else fact


def event_json(envelope: Envelope) -> bytes:
    """Returns one line of JSON, the same as of the document, in less time."""
    return _ENCODE(
        {
            "position": envelope.position,
            "type": envelope.type,
            "lane": lane_of(envelope.stream),
            "stream": envelope.stream,
            "version": envelope.version,
            "time": envelope.time,
            "actor": envelope.actor,
            "cause": envelope.cause,
            "fact": _told(envelope.fact),
        }
    )


def event_text(envelope: Envelope, slugs: Mapping[str, str]) -> str:
    """Returns the line that the log shows; `slugs` are by lane, and a lane without one is told by its id."""
    lane = lane_of(envelope.stream)
    who = slugs.get(lane, lane[:8]) if lane else "-"
    what = legible(sentence(envelope.fact))
    return f"{envelope.position:>5}  {clock(envelope.time)}  {who:<16} {envelope.type:<24} {what}"
