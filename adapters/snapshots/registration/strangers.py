"""Whether somebody is at work in a worktree that we are making: what in its registration is not our doing."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from adapters.files.blob import blob_oid
from adapters.files.descriptors import owned
from adapters.files.durable import read_file
from adapters.git.errors import IndexUnreadable
from adapters.git.heads import OPERATIONS, operation_in_progress
from adapters.git.repository import common_directory
from adapters.snapshots.files import LIMIT, PIECE, SnapshotDamaged
from adapters.snapshots.manifest import algorithm_of, stand_in
from adapters.snapshots.registration.index_meaning import meaning_of
from adapters.snapshots.registration.naming_objects import staged
from adapters.snapshots.registration.registered import (
    is_shared_index,
    kept,
    lines_of,
    opened,
    present,
    said_of,
    target_of,
    walk,
)
from adapters.snapshots.registration.submodules import says_where, without_place
from domain.paths import unpack

if TYPE_CHECKING:
    from adapters.git.index import IndexEntry
    from adapters.git.parse import TreeEntry
    from adapters.snapshots.files import Files
    from adapters.snapshots.manifest import Manifest, Registered
    from adapters.snapshots.registration.registered import Found


def strange(
    files: Files | None, manifest: Manifest, admin: bytes, tree: dict[bytes, TreeEntry]
) -> str | None:
    """Returns what in the registration of a worktree that we are making is not our doing, or None.

    Our doing is what was captured, or a beginning of it, and what git makes with a new worktree: an index
    that says what the commit or the snapshot says, a log that says no more than that the worktree was made at
    its commit, and copies of the main worktree's own settings.
    Raises SnapshotDamaged, IndexUnreadable, RegistrationUnreadable, Unstable, OSError.
    """
    registered = manifest.registration if files is not None else ()
    captured = {unpack(each.name): each for each in registered}
    operation = operation_in_progress(admin)
    if operation is not None and not any(name in captured for name, _ in OPERATIONS):
        return f"there is a {operation} in progress"
    for found in walk(admin):
        known = captured.get(found.name)
        if is_left(found.name) or (files is not None and known and _is_ours(files, admin, found, known)):
            continue
        if not _is_fresh(files, manifest, admin, found):
            return "HEAD has moved" if found.name == b"logs/HEAD" else f"{said_of(found.name)} is not ours"
    return None if _is_our_index(files, manifest, admin, tree) else "something is staged"


def _is_ours(files: Files, admin: bytes, found: Found, known: Registered) -> bool:
    """Tells whether an entry holds nothing that was not captured under its name."""
    path = os.path.join(admin, found.name)
    if found.kind == stat.S_IFLNK:
        return known.link is not None and target_of(found, path) == unpack(known.link)
    if found.kind != stat.S_IFREG or not known.sha256:
        return found.kind == stat.S_IFDIR and not known.sha256 and known.link is None
    with opened(found, path) as descriptor, owned(files.open(known.sha256)) as before:
        if begins_with(before, descriptor):
            return True
    if not says_where(found.name):
        return False
    return without_place(read_file(path, LIMIT)) == without_place(files.read(known.sha256, LIMIT))


def _is_fresh(files: Files | None, manifest: Manifest, admin: bytes, found: Found) -> bool:
    """Tells whether git makes the entry with a worktree."""
    if found.kind == stat.S_IFDIR:
        return True
    heads = {manifest.head.encode() or manifest.commit.encode()}
    if found.kind != stat.S_IFREG or found.name not in FRESH:
        return False
    data = present(admin, found.name)
    if found.name == b"ORIG_HEAD":
        return data.strip() in heads
    if found.name == b"logs/HEAD":
        log = b"" if files is None else kept(files, manifest.registration, "logs/HEAD")
        news = lines_of(data) - lines_of(log)
        return all(line.split(b" ")[1:2] == [head] for line in news for head in heads)
    return set(data.splitlines()) <= set(present(common_directory(admin), found.name).splitlines())


# What `git worktree add` writes, and what it copies from the worktree that it was called in (since 2.36).
FRESH = frozenset((b"logs/HEAD", b"ORIG_HEAD", b"config.worktree", b"info/sparse-checkout"))


def _is_our_index(
    files: Files | None, manifest: Manifest, admin: bytes, tree: dict[bytes, TreeEntry]
) -> bool:
    """Tells whether the index is none, or the commit's, or the captured one, or that of the snapshot."""
    said = meaning_of(present(admin, b"index"), lambda name: present(admin, name))
    if not said.entries or _says(said.entries, {path: (e.mode, e.oid) for path, e in tree.items()}):
        return True
    if files is None:
        return False
    try:
        if said == staged(files, manifest.registration):
            return True
    except IndexUnreadable as error:
        raise SnapshotDamaged(f"the captured index cannot be read: {error}") from error
    return _says_no_more(said.entries, manifest, tree)


def _says(entries: tuple[IndexEntry, ...], tree: dict[bytes, tuple[int, str]]) -> bool:
    """Tells whether an index is exactly this tree."""
    plain = {each.path: (each.mode, each.oid) for each in entries if each.stage == 0}
    return len(plain) == len(entries) and plain == tree


def _says_no_more(entries: tuple[IndexEntry, ...], manifest: Manifest, tree: dict[bytes, TreeEntry]) -> bool:
    """Tells whether everything in an index is in the commit or the snapshot: a killed restore filled it."""
    held = {unpack(each.path): each for each in manifest.entries}
    algorithm = algorithm_of(manifest.commit)
    for each in entries:
        known, ours = tree.get(each.path), held.get(each.path)
        oids = {known.oid} if known else set[str]()
        oids |= {ours.oid or ""} if ours else set()
        if ours is not None and ours.apart is not None:
            oids.add(blob_oid(algorithm, stand_in(ours.apart, ours.size)))
        if each.stage or each.oid not in oids:
            return False
    return True


def begins_with(whole: int, beginning: int) -> bool:
    """Tells whether one open file begins with all of the other."""
    at = 0
    while piece := os.pread(beginning, PIECE, at):
        if os.pread(whole, len(piece), at) != piece:
            return False
        at += len(piece)
    return True


def is_left(name: bytes) -> bool:
    """Tells whether a file is git's own doing, or the index, which is looked at by what it says."""
    return name in (b"index", b"gc.log") or is_shared_index(name)
