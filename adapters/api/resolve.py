"""Which lane is meant by what people call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.api.documents import Document
from adapters.lookup import find_lane
from domain.envelope import stream_of
from domain.states import Nowhere

if TYPE_CHECKING:
    from adapters.store.reader import Reader


class Resolved(Document, frozen=True, kw_only=True):
    """The lane that is meant: its id, its slug, and the key of its repository."""

    id: str
    slug: str
    repository: str


def find(
    reader: Reader, wanted: str, key: str | None, near: bytes | None, *, undone: bool = False
) -> Resolved:
    """Returns the lane that is meant: a slug, an id or its beginning, or a path inside the lane.

    A path is looked up on the disk, a relative one from `near`; without it only absolute paths are meant.
    With `undone` also the whole id of a lane that never came to be. Raises NoSuchLane, AmbiguousLane.
    """
    rows = reader.lanes()
    if undone and all(row["id"] != wanted for row in rows) and (tried := _tried(reader, wanted)) is not None:
        return tried
    row = find_lane(rows, key, wanted, near)
    return Resolved(id=str(row["id"]), slug=str(row["slug"]), repository=str(row["repository"]))


def _tried(reader: Reader, wanted: str) -> Resolved | None:
    """Returns what the log knows of a lane that has no row."""
    if not wanted.isascii() or next(reader.events(stream=stream_of(wanted)), None) is None:
        return None
    lane, _ = reader.lane(wanted)
    if isinstance(lane, Nowhere):
        return None
    return Resolved(id=wanted, slug=lane.record.slug, repository=lane.record.repository)
