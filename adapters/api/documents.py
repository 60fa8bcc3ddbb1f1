"""The documents of the interface: what is encoded as JSON, and described in `docs/openapi.json`.

Field order is part of the command line's promise. What is unset is left out.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from adapters.api.observed import ObservedIgnored, ObservedObstacles, ObservedPaths
from adapters.api.observed import Time as Time
from domain.events import Kind
from domain.review import Cause, Exit

State = Literal[
    "opening",
    "active",
    "snapshotting",
    "leaving",
    "quarantined",
    "returning",
    "reaping",
    "reaped",
    "needs-review",
    "blocked",
    "failed",
]
Outcome = Literal["done", "unfinished", "refused", "unavailable"]


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is encoded as one JSON object."""


class ObservedFlag(Document, frozen=True, kw_only=True):
    """What was seen and when, or why it is unknown."""

    value: bool | UnsetType = UNSET
    at: Time | UnsetType = UNSET
    unknown: str | UnsetType = UNSET


class ObservedText(Document, frozen=True, kw_only=True):
    """What was seen and when, or why it is unknown."""

    value: str | UnsetType | None = UNSET
    at: Time | UnsetType = UNSET
    unknown: str | UnsetType = UNSET


class Lane(Document, frozen=True, kw_only=True):
    """A lane as the log has it, then what was observed just now.

    `path` is for reading; where it is not UTF-8, `path_encoded` is exact. `If-Match` compares `version`.
    `blocked` says why only a newer program may touch it. `cause` and, finer, `detail` say why it waits for a
    person.
    """

    id: str
    slug: str
    name: str
    state: State
    kind: Kind
    path: str | None
    path_encoded: str | UnsetType = UNSET
    branch: str | None
    head: str | None
    base_ref: str | None
    base_commit: str | None
    parent: str | None
    owner: str
    edition: int
    created_at: Time
    position: int
    repository: str
    version: int
    blocked: str | UnsetType = UNSET
    cause: Cause | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    present: ObservedFlag | UnsetType = UNSET
    branch_now: ObservedText | UnsetType = UNSET
    head_now: ObservedText | UnsetType = UNSET
    locked_now: ObservedText | UnsetType = UNSET
    changed_now: ObservedPaths | UnsetType = UNSET
    untracked_now: ObservedPaths | UnsetType = UNSET
    ignored_now: ObservedIgnored | UnsetType = UNSET
    obstacles_now: ObservedObstacles | UnsetType = UNSET


class ChangedLane(Lane, frozen=True, kw_only=True):
    """A lane after a command, with what is worth a note."""

    warnings: tuple[str, ...]
    outcome: Outcome


class GoneLane(Document, frozen=True, kw_only=True):
    """What a failed creation had left behind and is deleted now: it is no lane."""

    id: str
    state: str
    warnings: tuple[str, ...]
    outcome: Outcome


class SnapshotDocument(Document, frozen=True, kw_only=True):
    """A snapshot of a lane: where it is kept, and what it does not hold."""

    id: str
    ref: str
    commit: str
    entries: int
    bytes: int
    omitted: tuple[str, ...]


class Actor(Document, frozen=True, kw_only=True):
    """Who asked: the user, the process, and the name that it gives itself."""

    uid: int
    pid: int
    client: str


class Event(Document, frozen=True, kw_only=True):
    """One event of the log."""

    position: int
    type: str
    lane: str | None
    stream: str
    version: int
    time: Time
    actor: Actor
    cause: str
    fact: dict[str, Any]


class Events(Document, frozen=True, kw_only=True):
    """A page of the log; `next` is the position to go on after, or null at the end."""

    events: tuple[Event, ...]
    next: int | None


class LaneJournal(Document, frozen=True, kw_only=True):
    """What the world still owes the lane, and its last events."""

    owed: str | None
    last: tuple[Event, ...]


class ShownLane(Lane, frozen=True, kw_only=True):
    """Everything about a lane; of one that waits for a person also what is `safe`, and the ways out."""

    since: Time
    reason: str | None
    safe: str | UnsetType = UNSET
    exits: tuple[Exit, ...] | UnsetType = UNSET
    snapshots: tuple[SnapshotDocument, ...]
    journal: LaneJournal
    next: str


class ReviewedLane(Lane, frozen=True, kw_only=True):
    """Why a lane waits for a person, and the ways out.

    `found` says what its cause means, `reason` what was met, `safe` what still exists and where.
    """

    reason: str
    found: str
    safe: str
    remedy: str
    paths: tuple[str, ...]
    count: int
    exits: tuple[Exit, ...]


class Candidate(Document, frozen=True, kw_only=True):
    """A lane that a sweep has looked at."""

    lane: str
    slug: str
    action: Literal["reap", "retry", "wait"]
    until: Time | None
    reason: str


class SweptLane(Document, frozen=True, kw_only=True):
    """What a sweep did with one lane; `problem` is a code and words."""

    lane: str
    slug: str
    state: str
    problem: tuple[str, str] | None


class ChangedFields(Document, frozen=True, kw_only=True):
    """What differs in one lane: by field, before and after."""

    id: str
    slug: str
    changed: dict[str, tuple[str | int | None, str | int | None]]


class Diff(Document, frozen=True, kw_only=True, rename={"before": "from", "after": "to"}):
    """What differs between two positions of the log."""

    before: int
    after: int
    lanes: tuple[ChangedFields, ...]


class Registered(Document, frozen=True, kw_only=True):
    """A repository that came under our care; both paths are packed."""

    common: str
    root: str
    object_format: str


class RepositoryDocument(Registered, frozen=True, kw_only=True):
    """A repository under our care: its key, its main checkout, and how many lanes it has."""

    lanes: int


class KeptSnapshot(Document, frozen=True, kw_only=True):
    """A snapshot, and whose it is."""

    id: str
    lane: str
    slug: str
    repository: str
    edition: int | None
    ref: str
    commit: str
    entries: int
    bytes: int
    position: int


class Rebuilt(Document, frozen=True, kw_only=True):
    """Every table is made anew from the log."""

    rebuilt: bool = True


class Problem(Document, frozen=True, kw_only=True):
    """Why something was not done, or not to its end (RFC 9457).

    `code` is stable and listed in `docs/errors.md`; `outcome` says whether anything has changed.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    outcome: Outcome
    details: dict[str, Any]


class Command(Document, frozen=True, kw_only=True):
    """A command on its way, and its answer or its problem once it has ended.

    After a restart of the service only what the log has is known: the lane and the last position.
    """

    id: str
    state: Literal["waiting", "running", "done", "failed"]
    lane: str | None
    position: int | None
    answer: Any = None
    problem: Problem | None = None


class Health(Document, frozen=True, kw_only=True):
    """Whether the service is ready, up to where the log is, and what is not as it should be.

    `recovering` are lanes that are driven on, `stopped` why a lane could not be, and `silent` repositories
    in which something hangs.
    """

    status: Literal["recovering", "ready", "stopping"]
    version: str
    pid: int
    position: int
    commands: int
    subscribers: int
    recovering: tuple[str, ...]
    stopped: dict[str, str]
    silent: tuple[str, ...]
