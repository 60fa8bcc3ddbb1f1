"""How a lane is found by what people call it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from domain.errors import AmbiguousLane, NoSuchLane
from domain.formats import LaneBlocked
from domain.paths import unpack

if TYPE_CHECKING:
    from adapters.store.reader import Record

PREFIX = 4  # characters of an id that are enough to name a lane
GONE = ("reaped",)
HERE = b"."  # the process's own directory


def find_lane(rows: list[Record], repository: str | None, wanted: str, near: bytes | None = HERE) -> Record:
    """Returns the lane that people call so: a slug, an id or its beginning, or a path inside the lane.

    A relative path is taken from `near`; without it only absolute paths are meant. Lanes that still have a
    tree go before those that are gone, and of those the last one counts. Raises NoSuchLane, AmbiguousLane.
    """
    here = [row for row in rows if repository is None or row["repository"] == repository]
    exact = [row for row in rows if row["id"] == wanted]
    named = exact or [row for row in here if row["slug"] == wanted]
    if not named and len(wanted) >= PREFIX:
        named = [row for row in here if str(row["id"]).startswith(wanted)]
    if not named:
        named = _around(here, wanted, near)
    living = [row for row in named if row["state"] not in GONE]
    if len(living) == 1:
        return living[0]
    if living:
        raise AmbiguousLane(wanted, tuple(f"{row['slug']} ({str(row['id'])[:8]})" for row in living))
    if not named:
        raise NoSuchLane(wanted)
    return max(named, key=lambda row: (row["state"] == "reaped", row["position"]))


def require_understood(row: Record) -> None:
    """Raises LaneBlocked if only a newer program knows what has become of the lane."""
    if row["blocked"] is not None:
        raise LaneBlocked(str(row["slug"]), str(row["blocked"]))


def _around(rows: list[Record], wanted: str, near: bytes | None) -> list[Record]:
    """Returns the lanes whose tree is, or holds, the path; the innermost only."""
    place = _place(wanted, near)
    if place is None:
        return []
    around = []
    for row in rows:
        path = unpack(str(row["path"])) if row["path"] else None
        if path and row["state"] not in GONE and (place == path or place.startswith(path + b"/")):
            around.append((len(path), row))
    longest = max((length for length, _ in around), default=0)
    return [row for length, row in around if length == longest]


def _place(wanted: str, near: bytes | None) -> bytes | None:
    """Returns where a path leads, or None where none is meant: a word is a path if a directory is there."""
    try:
        path = os.fsencode(wanted)
    except UnicodeEncodeError:
        return None
    if not path or (near is None and not path.startswith(b"/")):
        return None
    path = os.path.join(near or b"", path)
    if b"\0" in path:
        return None
    return os.path.realpath(path) if "/" in wanted or os.path.isdir(path) else None
