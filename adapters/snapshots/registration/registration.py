"""A worktree's registration as part of a snapshot, and what has happened in it since it was captured.

The entries are kept by `registered` and put back by `reinstating`; submodules are pointed at by `submodules`.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from adapters.files.durable import read_file
from adapters.git.heads import operation_in_progress
from adapters.snapshots.files import LIMIT as LIMIT
from adapters.snapshots.files import PIECE
from adapters.snapshots.registration.index_meaning import meaning_of
from adapters.snapshots.registration.naming_objects import object_names as object_names
from adapters.snapshots.registration.naming_objects import private_tags as private_tags
from adapters.snapshots.registration.naming_objects import shared_of
from adapters.snapshots.registration.naming_objects import staged as staged
from adapters.snapshots.registration.registered import fingerprint as fingerprint
from adapters.snapshots.registration.registered import index_files as index_files
from adapters.snapshots.registration.registered import inside as inside
from adapters.snapshots.registration.registered import (
    is_shared_index,
    is_top,
    lines_of,
    opened,
    present,
    said_of,
    target_of,
    walk,
)
from adapters.snapshots.registration.registered import keep as keep
from adapters.snapshots.registration.registered import kept as kept
from adapters.snapshots.registration.registered import obstacles as obstacles
from adapters.snapshots.registration.reinstating import put_back as put_back
from adapters.snapshots.registration.strangers import strange as strange
from adapters.snapshots.registration.submodules import repoint_modules as repoint_modules
from domain.paths import display, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from adapters.snapshots.files import Files
    from adapters.snapshots.manifest import Manifest, Registered
    from adapters.snapshots.registration.index_meaning import Meaning
    from adapters.snapshots.registration.registered import Found


class Change(NamedTuple):
    """What has happened to one entry of a registration, and the path by which a consent lets it go."""

    path: str
    why: str


def changes(
    files: Files, manifest: Manifest, admin: bytes, head: str, agreed: Container[str]
) -> Iterator[Change]:
    """Yields what has happened in a registration since it was captured.

    Somebody may go on working in a tree that was moved away under him: stage, commit, begin a merge. None of
    it shows in the tree. An index that was only refreshed says the same as before. `head` is the commit that
    HEAD is at, and `agreed` names what a consent covers, with all below it; of HEAD that is one commit.
    Raises SnapshotDamaged, IndexUnreadable, RegistrationUnreadable, Unstable, OSError.
    """
    if head != manifest.head and (at := inside(f"HEAD at {head or 'no commit'}")) not in agreed:
        yield Change(at, _moved(head, manifest.head))
    for each in obstacles(admin):
        if not _is_agreed(each.path, agreed):
            yield Change(each.path, f"there is a new {each.kind}: {display(each.path)}")
    captured = {unpack(each.name): each for each in manifest.registration}
    for name, why in _difference(files, captured, admin, _agreement(manifest, admin, agreed)):
        if not _is_agreed(path := inside(pack(name)), agreed):
            yield Change(path, why)


def _moved(head: str, before: str) -> str:
    if not head:
        return f"HEAD is on a branch without a commit, and was at {before}"
    return f"HEAD is at {head}, and was at {before}; 'git branch NAME {head}' keeps what is new"


def _agreement(manifest: Manifest, admin: bytes, agreed: Container[str]) -> Container[str]:
    """Returns what a consent covers: with format 1, one to lose an operation covers all of its files."""
    operation = operation_in_progress(admin) if manifest.format == 1 else None
    return _ALL if operation is not None and inside(operation) in agreed else agreed


class _Everything:
    def __contains__(self, name: object) -> bool:
        return True


_ALL = _Everything()


def _is_agreed(path: str, agreed: Container[str]) -> bool:
    while path not in agreed:
        path, _, last = path.rpartition("/")
        if not last or not path:
            return False
    return True


def _difference(
    files: Files, captured: dict[bytes, Registered], admin: bytes, agreed: Container[str]
) -> Iterator[tuple[bytes, str]]:
    present = set()
    for found in walk(admin):
        present.add(found.name)
        known = captured.get(found.name)
        why = _changed(files, captured, admin, found, known) if known else _new(admin, found, agreed)
        if why is not None:
            yield found.name, why
    missing = (name for name, each in captured.items() if name not in present and not _is_directory(each))
    for name in missing:
        if not _is_of_no_meaning(admin, name):
            yield name, f"{said_of(name)} is missing, and was captured"


def _new(admin: bytes, found: Found, agreed: Container[str]) -> str | None:
    """Returns that an entry is new, unless it says nothing: a directory says only what is in it."""
    if found.kind == stat.S_IFDIR or _is_agreed(inside(pack(found.name)), agreed):
        return None
    if found.name == b"index":
        return None if not _entries_of(admin, found.name) else "something is staged, and nothing was"
    return None if _is_of_no_meaning(admin, found.name) else f"{said_of(found.name)} is new"


def _entries_of(admin: bytes, name: bytes) -> bool:
    said = _present_meaning(admin, name)
    return bool(said.entries or said.resolved)


def _changed(
    files: Files, captured: dict[bytes, Registered], admin: bytes, found: Found, known: Registered
) -> str | None:
    if (found.kind == stat.S_IFDIR) != _is_directory(known) or (found.kind == stat.S_IFLNK) != (
        known.link is not None
    ):
        return f"{said_of(found.name)} is not as it was captured"
    if found.kind == stat.S_IFDIR:
        return None
    path = os.path.join(admin, found.name)
    if known.link is not None:
        same = target_of(found, path) == unpack(known.link)
        return None if same else f"{said_of(found.name)} is not as it was captured"
    if _digest(found, path) == known.sha256:
        same = stat.S_IMODE(found.status.st_mode) == known.mode or _is_index(admin, found.name)
        return None if same else f"{said_of(found.name)} has another mode than was captured"
    if _is_index(admin, found.name):
        return _restaged(files, tuple(captured.values()), admin, found.name)
    if found.name.startswith(b"logs/") and _says_no_more(files, known, path):
        return None
    return (
        None if _is_of_no_meaning(admin, found.name) else f"{said_of(found.name)} is not as it was captured"
    )


def _restaged(files: Files, registered: tuple[Registered, ...], admin: bytes, name: bytes) -> str | None:
    """Returns that an index says something else than before."""
    before = meaning_of(kept(files, registered, pack(name)), shared_of(files, registered, name))
    if _present_meaning(admin, name) == before:
        return None
    where = os.path.dirname(name)
    return f"what is staged{' in ' + said_of(where) if where else ''} is not as it was captured"


def _present_meaning(admin: bytes, name: bytes) -> Meaning:
    directory = os.path.join(admin, os.path.dirname(name))
    return meaning_of(present(admin, name), lambda shared: present(directory, shared))


def _digest(found: Found, path: bytes) -> str:
    total = hashlib.sha256()
    with opened(found, path) as descriptor:
        while piece := os.read(descriptor, PIECE):
            total.update(piece)
    return total.hexdigest()


def _says_no_more(files: Files, known: Registered, path: bytes) -> bool:
    """Tells whether a log has only lines that were captured: git's gc lets old ones expire."""
    return lines_of(read_file(path, LIMIT)) <= lines_of(files.read(known.sha256, LIMIT))


def _is_index(admin: bytes, name: bytes) -> bool:
    return os.path.basename(name) == b"index" and is_top(admin, name)


def _is_of_no_meaning(admin: bytes, name: bytes) -> bool:
    """Tells whether git writes and removes a file by itself: its index says what a shared one has to."""
    last = os.path.basename(name)
    return (last == b"gc.log" or is_shared_index(last)) and is_top(admin, name)


def _is_directory(each: Registered) -> bool:
    return not each.sha256 and each.link is None
