"""What a lane and an event look like as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from domain.envelope import lane_of
from domain.evidence import Seen, Unknown
from domain.paths import display, is_text

if TYPE_CHECKING:
    from adapters.store.reader import Record
    from domain.envelope import Envelope

PLAIN = ("id", "slug", "name", "state", "kind")
LATER = ("branch", "head", "base_ref", "base_commit", "parent", "owner", "edition", "created_at", "position")
OBSERVED = ("head", "branch", "locked", "changed", "untracked", "ignored", "obstacles")


def lane(row: Record, observations: dict[str, Any] | None = None) -> dict[str, Any]:
    """Returns a lane of the table, then what was observed just now."""
    shape: dict[str, Any] = {name: row[name] for name in PLAIN}
    shape |= path(row["path"])
    shape |= {name: row[name] for name in LATER}
    return shape | (observations or {})


def path(packed: object) -> dict[str, Any]:
    """Returns a path to read and, where it is not UTF-8, percent-encoded beside it."""
    if packed is None:
        return {"path": None}
    shape = {"path": display(str(packed))}
    return shape if is_text(str(packed)) else shape | {"path_encoded": packed}


def observations(seen: Seen) -> dict[str, Any]:
    """Returns what an inspector saw, each value with its time or why it is unknown."""
    shape = {}
    for name in OBSERVED:
        value = getattr(seen, name)
        known = not isinstance(value, Unknown)
        shape[f"{name}_now"] = (
            {"value": msgspec.to_builtins(value), "at": seen.at} if known else {"unknown": value.why}
        )
    return shape


def event(envelope: Envelope) -> dict[str, Any]:
    """Returns one event of the log."""
    return {
        "position": envelope.position,
        "type": envelope.type,
        "lane": lane_of(envelope.stream),
        "stream": envelope.stream,
        "version": envelope.version,
        "time": envelope.time,
        "actor": msgspec.to_builtins(envelope.actor),
        "cause": envelope.cause,
        "fact": msgspec.to_builtins(envelope.fact),
    }


def encoded(value: object) -> str:
    """Returns a value as one line of JSON."""
    return msgspec.json.encode(value).decode()
