"""Requests, in the imperative. A command holds what was seen, never the means of seeing."""

import msgspec

from domain.events import Kind, Mode
from domain.evidence import Consent, Place, Seen


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that somebody asks for."""


class AdoptLane(Command, frozen=True, kw_only=True):
    """Take a checkout that others made under our care."""

    lane: str
    repository: str
    name: str
    slug: str
    kind: Kind
    place: Place
    branch: str | None
    head: str | None


class CreateLane(Command, frozen=True, kw_only=True):
    """Make a new lane; the base is resolved and the names are chosen."""

    lane: str
    repository: str
    name: str
    slug: str
    path: str
    branch: str
    base_ref: str
    base_commit: str
    parent: str | None = None
    owner: str = "manual"


class SnapshotLane(Command, frozen=True, kw_only=True):
    """Capture the lane without removing it. `tolerant` names omissions instead of refusing them.

    `apart` names the ignored paths that are to be held as well.
    """

    snapshot: str
    seen: Seen
    tolerant: bool = False
    apart: tuple[str, ...] = ()


class RemoveLane(Command, frozen=True, kw_only=True):
    """Put the lane into quarantine. `apart` names the ignored paths that a snapshot is to hold first."""

    resting: str
    seen: Seen
    mode: Mode = "safe"
    snapshot: str | None = None
    delete_branch: bool = False
    apart: tuple[str, ...] = ()


class RestoreLane(Command, frozen=True, kw_only=True):
    """Bring an edition back, to a place that was seen to be free."""

    slug: str
    path: str
    edition: int | None = None
    snapshot: str | None = None


class ReapLane(Command, frozen=True, kw_only=True):
    """Delete the quarantined tree, or try a deletion again that could not be finished."""

    snapshot: str | None = None


class DiscardLane(Command, frozen=True, kw_only=True):
    """Delete what a review has looked at, with a recorded consent."""

    consent: Consent


AnyCommand = AdoptLane | CreateLane | SnapshotLane | RemoveLane | RestoreLane | ReapLane | DiscardLane
