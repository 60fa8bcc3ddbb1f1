"""What a capture knows before it looks at the tree: HEAD, the registration, the index, earlier looks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import trio

from adapters.files.durable import read_file
from adapters.git.parse import TreeEntry
from adapters.git.stats import IndexStats, mode_of, oid_of, stats
from adapters.snapshots import objects
from adapters.snapshots.capture import looks, trusting
from adapters.snapshots.capture.keeping_alive import named_in_log
from adapters.snapshots.capture.trusting import Trust
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import Registered, parents
from adapters.snapshots.position import CannotCapture, Head, algorithm_here, position_of, tree_of
from adapters.snapshots.registration import registration
from adapters.snapshots.together import together
from domain.evidence import Obstacle
from domain.paths import unpack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.git.conversation import Conversation
    from adapters.git.door import Git
    from adapters.git.index import IndexEntry
    from adapters.snapshots.capture.looks import Looks
    from adapters.snapshots.files import Files
    from domain.effects import Capture


class Kept(msgspec.Struct, frozen=True):
    """The registration as it was kept; `fingerprint` is from before, `names` of objects that it may name.

    `obstacles` are what cannot be kept of it.
    """

    fingerprint: str
    registered: tuple[Registered, ...]
    names: frozenset[bytes]
    obstacles: tuple[Obstacle, ...]


class Begun(msgspec.Struct, frozen=True):
    """Everything that is known before the tree is looked at; `head_tree` is the commit's own tree.

    `staged` turns that into the index's, as fast-import reads it. Attributes that are not `asked` for may
    still make files differ from what the index says.
    """

    head: Head
    algorithm: str
    kept: Kept
    trust: Trust
    asked: bool
    head_tree: str
    tree: dict[bytes, TreeEntry]
    staged: bytes


async def begin(git: Git, asking: Conversation, files: Files, effect: Capture, looked: bytes | None) -> Begun:
    """Keeps the registration and returns what is known; `looked` is where earlier looks are remembered.

    Raises CannotCapture, Unstable, GitError, FilesError, OSError.
    """
    common, admin = unpack(effect.repository), unpack(effect.place.admin)
    head = await position_of(git, common, admin)
    algorithm = await algorithm_here(git, common, head.oid)
    branch = head.branch or effect.branch
    (kept, index, earlier), raw, head_tree = await together(
        lambda: trio.to_thread.run_sync(_keep, files, (common, admin), branch, algorithm, looked),
        lambda: trusting.keeps_line_ends(git, admin),
        lambda: _tree_id(asking, head),
    )
    if index is None and head.oid:
        raise CannotCapture("the worktree has no index")
    written = {each.name: each.mtime_ns for each in kept.registered}.get("index", 0)
    trust = Trust(index, written, earlier, raw=raw and not effect.thorough)
    early = trust.raw and trusting.may_name_attributes(index, common)
    if early:
        trust.distrust(await trusting.converted(git, admin, unpack(effect.place.path), index))
    tree = trust.tree(head_tree) if head.oid else {}
    if tree is None:
        tree = await tree_of(git, common, head.oid)
    staged = b""
    if not (head.oid and trust.says(head_tree)):
        entries = await trio.to_thread.run_sync(_entries, files, kept, index)
        staged = objects.staged_changes(entries, tree)
    return Begun(head, algorithm, kept, trust, early or not trust.raw, head_tree, tree, staged)


async def _tree_id(asking: Conversation, head: Head) -> str:
    try:
        return (await objects.commit_at(asking, head.oid))[0] if head.oid else ""
    except SnapshotDamaged as error:
        raise CannotCapture(f"HEAD is at {head.oid}, which is missing") from error


def _keep(
    files: Files, place: tuple[bytes, bytes], branch: str | None, algorithm: str, looked: bytes | None
) -> tuple[Kept, IndexStats | None, Looks]:
    common, admin = place
    fingerprint = registration.fingerprint(admin)
    registered = registration.keep(files, admin)
    data = registration.kept(files, registered, "index")
    width = 20 if algorithm == "sha1" else 32
    index = stats(data, width) if data else None
    names = _names(files, registered, index) | named_in_log(_log_of(common, branch), 2 * width)
    if index is not None:  # git reads the empty blob that stands for what is only intended to be added
        names |= {oid_of(index.entries[path]).encode() for path in index.intents}
    earlier = looks.load(looked, algorithm) if looked is not None else {}
    return Kept(fingerprint, registered, names, registration.obstacles(admin)), index, earlier


def _names(files: Files, registered: tuple[Registered, ...], index: IndexStats | None) -> frozenset[bytes]:
    """Returns the objects that a registration names; an index mostly has none of its own, and is long."""
    if index is not None and not (index.unmerged or {b"REUC", b"link"} & index.sections.keys()):
        registered = tuple(each for each in registered if each.name != "index")
    return registration.object_names(files, registered)


def _log_of(common: bytes, branch: str | None) -> bytes:
    """Returns a branch's own log, which git deletes with the branch, and which may name commits alone."""
    if branch is None:
        return b""
    path = os.path.join(common, b"logs", branch.encode())
    return read_file(path, registration.LIMIT) if os.path.isfile(path) else b""


def _entries(files: Files, kept: Kept, index: IndexStats | None) -> dict[bytes, tuple[int, str]]:
    """Returns mode and object of every path of the index; what is only intended to be added has none yet."""
    if index is None:
        return {}
    if index.unmerged or b"link" in index.sections:
        return _merged(registration.staged(files, kept.registered).entries)
    # A sparse index has whole directories, whose names end in a slash.
    return {
        path.rstrip(b"/"): (mode_of(fixed), oid_of(fixed))
        for path, fixed in index.entries.items()
        if path not in index.intents
    }


def _merged(entries: Sequence[IndexEntry]) -> dict[bytes, tuple[int, str]]:
    """Returns what each path has; one in conflict has our side, where there is none theirs, else the base."""
    found = {e.path.rstrip(b"/"): (e.mode, e.oid) for e in entries if not (e.stage or e.intent_to_add)}
    sides = {e.path: (e.mode, e.oid) for stage in (1, 3, 2) for e in entries if e.stage == stage}
    directories = parents([*found, *sides])
    # A tree cannot have a file where it has a directory, as a conflict of the two may.
    free = (path for path in sides if path not in directories and found.keys().isdisjoint(parents([path])))
    return found | {path: sides[path] for path in free}
