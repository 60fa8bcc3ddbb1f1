"""Paths of a lane that was looked at, as they are encoded."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from domain.evidence import Obstacle

Time = Annotated[str, Meta(extra_json_schema={"extra": {"format": "date-time"}})]


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
    at: Time | UnsetType = UNSET
    unknown: str | UnsetType = UNSET


class ObservedPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Packed paths that were seen and when, or why they are unknown."""

    value: tuple[str, ...] | UnsetType = UNSET
    at: Time | UnsetType = UNSET
    unknown: str | UnsetType = UNSET


class ObservedObstacles(msgspec.Struct, frozen=True, kw_only=True):
    """What a snapshot could not hold, as it was seen and when, or why that is unknown."""

    value: tuple[Obstacle, ...] | UnsetType = UNSET
    at: Time | UnsetType = UNSET
    unknown: str | UnsetType = UNSET
