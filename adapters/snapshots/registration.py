"""A worktree's registration as part of a snapshot: its index, HEAD and HEAD's log; and what else it has.

What git keeps there it keeps nowhere else: staged content, commits that only the log names, the state of a
merge. So it is captured, compared before a tree is deleted, and put back.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters.files.durable import TEMPORARY, make_directories, read_file, replace, write_locked
from adapters.git.heads import operation_in_progress
from adapters.git.index import read_index
from adapters.snapshots.manifest import Registered, keep_file, kept_file
from domain.evidence import Obstacle
from domain.paths import pack

if TYPE_CHECKING:
    from collections.abc import Container

    from adapters.git.index import Index
    from adapters.snapshots.manifest import Manifest

LIMIT = 1 << 30  # bytes of one file of the registration
CAPTURED = (b"index", b"logs/HEAD", b"ORIG_HEAD", b"FETCH_HEAD", b"COMMIT_EDITMSG")
# What every registration has, or a snapshot holds; anything else is in the way.
ORDINARY = frozenset(
    (
        b"HEAD",
        b"ORIG_HEAD",
        b"FETCH_HEAD",
        b"COMMIT_EDITMSG",
        b"index",
        b"logs",
        b"refs",
        b"commondir",
        b"gitdir",
        b"locked",
    )
)


def obstacles(admin: bytes) -> tuple[Obstacle, ...]:
    """Returns what a snapshot cannot hold of a registration. Raises RegistrationUnreadable, OSError."""
    operation = operation_in_progress(admin)
    if operation is not None:
        return (Obstacle("operation", inside(operation)),)
    names = sorted(name for name in os.listdir(admin) if not _is_ordinary(name))
    logs = os.path.join(admin, b"logs")
    if os.path.isdir(logs):
        names += [b"logs/" + name for name in sorted(os.listdir(logs)) if name != b"HEAD"]
    names += [b"refs/" + name for name in _own_refs(os.path.join(admin, b"refs"))]
    return tuple(Obstacle("registration-file", inside(pack(name))) for name in names)


def inside(name: str) -> str:
    """Returns how something of the registration is named: never as a path of the tree could be.

    A consent to lose a merge in progress must not be one to lose a directory that is called `merge`.
    """
    return f".git/{name}"


def _is_ordinary(name: bytes) -> bool:
    return name in ORDINARY or name.startswith(TEMPORARY)


def _own_refs(refs: bytes) -> list[bytes]:
    """Returns the refs that only this worktree has; git makes the empty directory with each worktree."""
    found = []
    for directory, _, files in os.walk(refs, followlinks=False):
        found += [os.path.relpath(os.path.join(directory, name), refs) for name in files]
    return sorted(found)


def keep(directory: bytes, admin: bytes) -> tuple[Registered, ...]:
    """Copies the registration's files into the snapshot's own, durably."""
    kept = []
    for name in CAPTURED:
        path = os.path.join(admin, name)
        if os.path.lexists(path):
            mode = os.lstat(path).st_mode & 0o7777
            digest = keep_file(directory, read_file(path, LIMIT))
            kept.append(Registered(name.decode("ascii"), digest, mode))
    return tuple(kept)


def kept(directory: bytes, registered: tuple[Registered, ...], name: str) -> bytes:
    """Returns what was kept of one file, or nothing. Raises SnapshotDamaged."""
    return next((kept_file(directory, each.sha256) for each in registered if each.name == name), b"")


def put_back(directory: bytes, manifest: Manifest, admin: bytes) -> None:
    """Puts the files back; HEAD itself is put on its branch by another step."""
    for each in manifest.registration:
        path = os.path.join(admin, each.name.encode("ascii"))
        data = kept_file(directory, each.sha256)
        if each.name == "index":
            write_locked(path, data)
        else:
            make_directories(os.path.dirname(path), 0o755)
            replace(path, data, each.mode)


def change(
    directory: bytes, manifest: Manifest, admin: bytes, head: str, agreed: Container[str]
) -> str | None:
    """Returns what has happened in a registration since it was captured, or None.

    Somebody may go on working in a tree that was moved away under him: stage, commit, begin a merge. None of
    it shows in the tree. An index that was only refreshed says the same as before. `head` is the commit that
    HEAD is at, and `agreed` names obstacles that a consent covers.
    """
    if head != manifest.head:
        return f"HEAD is at {head}, and was captured at {manifest.head}"
    for each in obstacles(admin):
        if each.path not in agreed:
            return f"there is a new {each.kind}: {each.path}"
    for name in ("logs/HEAD", "ORIG_HEAD"):
        path = os.path.join(admin, name.encode())
        now = read_file(path, LIMIT) if os.path.lexists(path) else b""
        if now != kept(directory, manifest.registration, name):
            return f"{name} is not as it was captured"
    before = _index(kept(directory, manifest.registration, "index"), manifest.head)
    path = os.path.join(admin, b"index")
    now = read_file(path, LIMIT) if os.path.lexists(path) else b""
    return None if _index(now, manifest.head) == before else "what is staged is not as it was captured"


def _index(data: bytes, head: str) -> tuple[object, ...]:
    if not data:
        return ()
    index: Index = read_index(data, len(head) // 2)
    return index.entries
