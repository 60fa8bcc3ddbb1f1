"""What the journal adds to a fact: its place in the order, when, by whom, and because of what."""

import msgspec

from domain.events import Fact


class Actor(msgspec.Struct, frozen=True):
    """Who asked: the user, the process, and the client's name for itself."""

    uid: int
    pid: int
    client: str


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A fact in its place. `time` is UTC in ISO 8601; `cause` is the id of the command that led to it."""

    position: int
    stream: str
    version: int
    type: str
    time: str
    actor: Actor
    cause: str
    fact: Fact


LANE_STREAM = "lane-"
REPOSITORY_STREAM = "repository-"
SWEEP_STREAM = "sweep-"


def lane_of(stream: str) -> str | None:
    """Returns the lane that a stream tells of, or None for another kind of stream."""
    return stream.removeprefix(LANE_STREAM) if stream.startswith(LANE_STREAM) else None


def stream_of(lane: str) -> str:
    """Returns the stream that tells of a lane."""
    return LANE_STREAM + lane


def sweep_stream(command: str) -> str:
    """Returns the stream that tells of the sweep that a command asked for."""
    return SWEEP_STREAM + command
