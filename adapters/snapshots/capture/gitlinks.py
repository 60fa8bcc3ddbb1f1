"""The commits that submodules are at: a snapshot's commit tells of them, as `git diff HEAD` does."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import trio

from adapters.git.errors import RegistrationUnreadable
from adapters.git.heads import OID, read_head
from adapters.git.ref_files import from_files
from adapters.git.repository import repository_at
from adapters.snapshots.manifest import GITLINK, algorithm_of
from domain.paths import unpack

if TYPE_CHECKING:
    from adapters.snapshots.capture.beginning import Begun
    from adapters.snapshots.capture.survey import Survey

STAGED = re.compile(rb'^M 160000 ([0-9a-f]+) "(.*)"$', re.MULTILINE)
ESCAPED = re.compile(rb"\\(.)")


async def moved(root: bytes, begun: Begun, seen: Survey) -> dict[bytes, str]:
    """Returns the commit of every submodule that is not at the one that the lane's commit has.

    It is the one that its HEAD is at; where it is not checked out, or that cannot be read, the staged one.
    """
    held = {unpack(each.path): each.kind for each in seen.held}
    staged = {unquoted(path): oid.decode() for oid, path in STAGED.findall(begun.staged)}
    tree = begun.tree

    def known(path: bytes) -> str | None:
        return tree[path].oid if path in tree and tree[path].mode == GITLINK else None

    inside = [path[:-5] for path in held if path.endswith(b"/.git")]
    checked_out = [path for path in inside if path in staged or known(path)]
    there = {path for path in staged if held.get(path, "directory" if path in tree else "") == "directory"}
    links = {path: staged[path] for path in there}
    # Only what is a directory by itself: what the commit has below the path would be lost to the link.
    taken = [path for path in links if path not in tree and any(e.startswith(path + b"/") for e in tree)]
    if checked_out:
        links |= await trio.to_thread.run_sync(_heads, root, checked_out, begun.algorithm)
    return {path: oid for path, oid in links.items() if known(path) != oid and path not in taken}


def unquoted(path: bytes) -> bytes:
    """Returns a path that was written for fast-import as it is."""
    return ESCAPED.sub(lambda found: b"\n" if found[1] == b"n" else found[1], path)


def _heads(root: bytes, paths: list[bytes], algorithm: str) -> dict[bytes, str]:
    found = {path: _head_of(os.path.join(root, path)) for path in paths}
    return {path: oid for path, oid in found.items() if oid and algorithm_of(oid) == algorithm}


def _head_of(place: bytes) -> str | None:
    """Returns the commit that a repository's HEAD is at, or None where its files do not say it."""
    try:
        found = repository_at(place)
        head = read_head(found.git_dir) if found is not None else None
        if found is None or head is None:
            return None
        is_ref = head.startswith(b"ref:")
        oid = from_files(found.common_dir, head.removeprefix(b"ref:").strip()) if is_ref else head.decode()
    except (RegistrationUnreadable, OSError, ValueError):
        return None
    return oid if oid is not None and OID.fullmatch(oid) else None
