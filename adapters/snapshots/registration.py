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
from adapters.snapshots.files import Files, SnapshotDamaged
from adapters.snapshots.manifest import Registered
from domain.evidence import Obstacle
from domain.paths import pack

if TYPE_CHECKING:
    from collections.abc import Container

    from adapters.git.index import IndexEntry
    from adapters.git.parse import TreeEntry
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
        names += [b"logs/" + name for name in sorted(os.listdir(logs)) if not _is_log(name)]
    names += [b"refs/" + name for name in _own_refs(os.path.join(admin, b"refs"))]
    return tuple(Obstacle("registration-file", inside(pack(name))) for name in names)


def inside(name: str) -> str:
    """Returns how something of the registration is named: never as a path of the tree could be.

    A consent to lose a merge in progress must not be one to lose a directory that is called `merge`.
    """
    return f".git/{name}"


def _is_ordinary(name: bytes) -> bool:
    return name in ORDINARY or name.startswith(TEMPORARY)


def _is_log(name: bytes) -> bool:
    return name == b"HEAD" or name.startswith(TEMPORARY)


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
            digest = Files(directory).keep(read_file(path, LIMIT))
            kept.append(Registered(name.decode("ascii"), digest, mode))
    return tuple(kept)


def kept(directory: bytes, registered: tuple[Registered, ...], name: str) -> bytes:
    """Returns what was kept of one file, or nothing. Raises SnapshotDamaged."""
    return next((Files(directory).read(each.sha256) for each in registered if each.name == name), b"")


def put_back(directory: bytes, manifest: Manifest, admin: bytes, tree: dict[bytes, TreeEntry]) -> None:
    """Puts the files back; HEAD itself is put on its branch by another step.

    Raises SnapshotDamaged where somebody has used git here since we began, and overwrites nothing of his.
    """
    why = strange(directory, manifest, admin, tree)
    if why is not None:
        raise SnapshotDamaged(f"somebody is working here already: {why}")
    for each in manifest.registration:
        path = os.path.join(admin, each.name.encode("ascii"))
        data = Files(directory).read(each.sha256)
        if each.name == "index":
            write_locked(path, data)
        elif each.name == "logs/HEAD" or not os.path.lexists(path):  # the others may be somebody's by now
            make_directories(os.path.dirname(path), 0o755)
            replace(path, data, each.mode)


def strange(
    directory: bytes | None, manifest: Manifest, admin: bytes, tree: dict[bytes, TreeEntry]
) -> str | None:
    """Returns what in the registration of a worktree that we are making is not our doing, or None.

    Our doing is an index that says what the commit or the snapshot says, and a log that says no more than
    that the worktree was made at its commit, and what the snapshot's said.
    """
    operation = operation_in_progress(admin)
    if operation is not None:
        return f"there is a {operation} in progress"
    saved = b"" if directory is None else kept(directory, manifest.registration, "index")
    found = _index(_present(admin, b"index"), manifest.head)
    if found and found != _index(saved, manifest.head) and not _says(found, tree):
        return "something is staged"
    log = b"" if directory is None else kept(directory, manifest.registration, "logs/HEAD")
    news = set(_present(admin, b"logs/HEAD").splitlines()) - set(log.splitlines())
    head = manifest.head.encode()
    return "HEAD has moved" if any(line.split(b" ")[1:2] != [head] for line in news) else None


def _says(entries: tuple[IndexEntry, ...], tree: dict[bytes, TreeEntry]) -> bool:
    """Tells whether an index is exactly a commit's."""
    plain = {each.path: (each.mode, each.oid) for each in entries if each.stage == 0}
    return len(plain) == len(entries) and plain == {path: (e.mode, e.oid) for path, e in tree.items()}


def _present(admin: bytes, name: bytes) -> bytes:
    path = os.path.join(admin, name)
    return read_file(path, LIMIT) if os.path.lexists(path) else b""


def change(
    directory: bytes, manifest: Manifest, admin: bytes, head: str, agreed: Container[str]
) -> str | None:
    """Returns what has happened in a registration since it was captured, or None.

    Somebody may go on working in a tree that was moved away under him: stage, commit, begin a merge. None of
    it shows in the tree. An index that was only refreshed says the same as before. `head` is the commit that
    HEAD is at, and `agreed` names obstacles that a consent covers.
    """
    if head != manifest.head:
        return f"HEAD is at {head}, and was at {manifest.head}; 'git branch NAME {head}' keeps what is new"
    for each in obstacles(admin):
        if each.path not in agreed:
            return f"there is a new {each.kind}: {each.path}"
    for name in ("logs/HEAD", "ORIG_HEAD"):
        if _present(admin, name.encode()) != kept(directory, manifest.registration, name):
            return f"{name} is not as it was captured"
    before = _index(kept(directory, manifest.registration, "index"), manifest.head)
    now = _index(_present(admin, b"index"), manifest.head)
    return None if now == before else "what is staged is not as it was captured"


def _index(data: bytes, head: str) -> tuple[IndexEntry, ...]:
    return read_index(data, len(head) // 2).entries if data else ()
