"""The documents of a replay: what is encoded as JSON, and described in `docs/openapi.json`."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, UnsetType

from adapters.api.documents import Document, Event, State, Time

Shown = str | int | bool | tuple[str, ...] | None


class ShownEffect(Document, frozen=True, kw_only=True):
    """Something that is owed to the world: which step, in words, and its arguments."""

    step: str
    words: str
    arguments: dict[str, Any]


class FieldChange(Document, frozen=True, kw_only=True):
    """One field of the lane's state: what it was and is, or what has come to it. Paths are packed."""

    field: str
    before: Shown | UnsetType = UNSET
    after: Shown | UnsetType = UNSET
    added: tuple[str, ...] | UnsetType = UNSET


class ReplayedEvent(Event, frozen=True, kw_only=True):
    """An event, and what it has made of the lane.

    `by` is `command` for what was decided and `outcome` for what was learnt from an effect; of `unknown` only
    a newer program knows. `ran`, `attempt` and `saw` are of the effect. What is `joined` was written together
    with the event before it; `resumed` says that another process than that of the event before went on.
    """

    told: str
    by: Literal["command", "outcome", "unknown"]
    pending_before: ShownEffect | None
    ran: str | None
    attempt: int | None
    saw: str | None
    joined: bool
    resumed: bool
    state_before: State | Literal["none"]
    state: State | Literal["none"]
    changes: tuple[FieldChange, ...]
    pending_after: ShownEffect | None


class DryDrive(Document, frozen=True, kw_only=True):
    """What a recovery would do next for a lane, as it is after `position`: nothing of it was done.

    `attempt` of `attempts` is the try that `pending` has next; `pause` are the seconds after which a process
    that has seen it fail tries it again, null where it has not failed. `why` says why nothing is owed.
    """

    lane: str
    slug: str
    position: int
    time: Time
    state: State | Literal["none"]
    pending: ShownEffect | None
    looks_first: str | None
    attempt: int | None
    attempts: int | None
    pause: float | None
    why: str | None
