"""What git ignores, as it is encoded where a lane was looked at."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType


class IgnoredPath(msgspec.Struct, frozen=True, kw_only=True, rename={"kind": "class"}):
    """A packed path that git ignores, with all below it: its class, the evidence for that, how much it is."""

    path: str
    kind: Literal["rebuildable", "precious", "unknown"]
    why: str
    bytes: int
    entries: int


class ObservedIgnored(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen and when, or why it is unknown."""

    value: tuple[IgnoredPath, ...] | UnsetType = UNSET
    at: Annotated[str, Meta(extra_json_schema={"extra": {"format": "date-time"}})] | UnsetType = UNSET
    unknown: str | UnsetType = UNSET
