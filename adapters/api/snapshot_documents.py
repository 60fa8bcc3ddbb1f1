"""The documents that tell of snapshots, as JSON has them and `docs/openapi.json` describes them."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from adapters.api.documents import Actor, Document, KeptSnapshot, Time

Sort = Literal[
    "changed",
    "untracked",
    "deleted",
    "staged",
    "apart",
    "directories",
    "empty",
    "linked",
    "attributed",
    "registration",
]


class FoundSnapshot(Document, frozen=True, kw_only=True):
    """The snapshot that is meant: its id, and whose it is."""

    id: str
    lane: str
    slug: str
    repository: str


class ListedSnapshot(KeptSnapshot, frozen=True, kw_only=True):
    """A snapshot, whose it is, and when it was taken."""

    taken_at: Time


class SnapshotPart(Document, frozen=True, kw_only=True):
    """One class of what a snapshot holds: how many paths and bytes, and the first paths or all, packed."""

    name: Sort
    count: int
    bytes: int
    paths: tuple[str, ...]


class ShownSnapshot(ListedSnapshot, frozen=True, kw_only=True):
    """Everything about a snapshot.

    `head` is null where the branch had no commit yet. `remnant` tells that the tree was not whole any more,
    `verified` that everything was read back just now. `omitted` are packed paths that it does not hold.
    """

    actor: Actor
    cause: str
    why: Literal["asked", "removal", "reaping"]
    format: int
    head: str | None
    branch: str | None
    operation: str | None
    remnant: bool
    verified: bool
    parts: tuple[SnapshotPart, ...]
    omitted: tuple[str, ...]


class SnapshotEntry(Document, frozen=True, kw_only=True):
    """One path as a restore would make it.

    `mode` is octal, `mtime_ns` a decimal number of nanoseconds since 1970, or null where it was not captured.
    `sha256` is of content that is kept apart from git; `committed` tells that it is as the commit has it.
    """

    path: str
    path_encoded: str | UnsetType = UNSET
    kind: Literal["file", "link", "directory"]
    mode: str
    size: int
    oid: str | None
    sha256: str | None
    mtime_ns: str | None
    committed: bool


class SnapshotEntries(Document, frozen=True, kw_only=True):
    """A page of a snapshot's entries; `next` is the packed path to go on after, or null at the end."""

    entries: tuple[SnapshotEntry, ...]
    next: str | None


class Extracted(Document, frozen=True, kw_only=True):
    """What was written of a snapshot: the paths that were asked for, packed, and how much is in them.

    `left_out` are `.git` files of submodules, packed: their git directories are in no tree.
    """

    snapshot: str
    to: str
    paths: tuple[str, ...]
    left_out: tuple[str, ...]
    entries: int
    bytes: int
