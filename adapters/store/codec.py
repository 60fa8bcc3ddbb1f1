"""Facts to bytes and back: the only place that knows what `state` looks like in the log.

`state` is JSON: `{"time", "actor", "cause", "fact"}`. Current tags are decoded straight into their struct and
validated; older ones go through their upcasters first. An unknown or newer one is a `Foreign` fact of its
lane; in a stream of no lane, which is everybody's, it is refused.
"""

from typing import Generic, TypeVar

import msgspec

from adapters.store.errors import StoreError
from domain.envelope import Actor, Envelope, lane_of
from domain.events import BY_TAG, Fact
from domain.formats import Foreign
from domain.upcast import UPCASTERS, UnknownFact, refusal, upcast

F = TypeVar("F")


class State(msgspec.Struct, Generic[F], frozen=True):
    """What is kept of an event beside its place in the order."""

    time: str
    actor: Actor
    cause: str
    fact: F


class StoreUnreadable(StoreError):
    """An event cannot be decoded: it is damaged, or of a kind that this program does not know."""

    def __init__(self, position: int, why: str) -> None:
        super().__init__(f"event {position} cannot be read: {why}")
        self.position = position
        self.why = why


class StoreNewer(StoreUnreadable):
    """An event is of a kind that this program does not know yet."""


_DECODERS = {tag: msgspec.json.Decoder(State[fact]) for tag, fact in BY_TAG.items()}  # type: ignore[valid-type]
_RAW = msgspec.json.Decoder(State[dict[str, object]])
_ENCODE = msgspec.json.Encoder().encode

KNOWN = frozenset({*BY_TAG, *UPCASTERS})

Row = tuple[int, str, int, str, bytes]  # position, stream, version, type, state


def encode(fact: Fact, time: str, actor: Actor, cause: str) -> bytes:
    """Returns the bytes that the log keeps of a fact."""
    return _ENCODE(State(time, actor, cause, fact))


def decode(row: Row) -> Envelope:
    """Returns an event of the log.

    Raises:
        StoreNewer: its tag is unknown or newer than this program, and it is no lane's.
        StoreUnreadable: its state does not have the shape that its tag promises.
    """
    position, stream, version, tag, data = row
    try:
        decoder = _DECODERS.get(tag)
        state = decoder.decode(data) if decoder else _from_other(tag, data, lane_of(stream))
    except UnknownFact as error:
        raise StoreNewer(position, str(error)) from error
    except (msgspec.DecodeError, ValueError, LookupError, TypeError) as error:  # or an upcaster stumbles
        raise StoreUnreadable(position, f"{tag}: {error}") from error
    return Envelope(
        position=position,
        stream=stream,
        version=version,
        type=tag,
        time=state.time,
        actor=state.actor,
        cause=state.cause,
        fact=state.fact,
    )


def require_known(tag: str, position: int) -> None:
    """Raises StoreNewer if this program cannot read facts with the tag, for a stream of no lane."""
    if tag not in KNOWN:
        raise StoreNewer(position, str(refusal(tag)))


def _from_other(tag: str, data: bytes, lane: str | None) -> State[Fact]:
    """Returns a state with an older tag, or with one that is not known."""
    if tag not in KNOWN:
        return _foreign(refusal(tag), data, lane)
    raw = _RAW.decode(data)
    current, shape = upcast(tag, raw.fact)
    return State(raw.time, raw.actor, raw.cause, msgspec.convert(shape, BY_TAG[current]))


def _foreign(unknown: UnknownFact, data: bytes, lane: str | None) -> State[Fact]:
    if lane is None:
        raise unknown
    try:
        raw = _RAW.decode(data)
    except msgspec.DecodeError as error:  # not even the envelope is known
        raise unknown from error
    return State(raw.time, raw.actor, raw.cause, Foreign(tag=unknown.tag, why=unknown.why, told=raw.fact))
