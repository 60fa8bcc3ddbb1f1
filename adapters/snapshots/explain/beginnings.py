"""What an interrupted filling of ours leaves in a tree: beginnings of files, and the directories on the way.

Git may have been writing the snapshot's content, or the line that stands for what is kept beside git, or what
attributes make of either. All of it can be made again from what we have.
"""

from __future__ import annotations

import os
import re
from contextlib import aclosing
from typing import TYPE_CHECKING

import trio

from adapters.files.descriptors import READ, owned
from adapters.git.door import Location
from adapters.snapshots import objects
from adapters.snapshots.beneath import Beneath
from adapters.snapshots.files import PIECE
from adapters.snapshots.manifest import GITLINK
from adapters.snapshots.position import tree_of
from adapters.snapshots.restore.filling import converted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adapters.files.scan import Entry
    from adapters.git.door import Git
    from adapters.git.parse import TreeEntry
    from adapters.snapshots.explain.reasons import Explanation

ALONE = re.compile(rb"(?<!\r)\n")  # what `eol=crlf` puts another byte before
NAMED = re.compile(rb"\$Id(?::[^$\n]*)?\$")  # what `ident` writes the blob's id into
ASKED = 1_000  # paths for which git is asked what it makes of them: a process for each


async def find_beginnings(
    git: Git, common: bytes, place: tuple[bytes, bytes], entries: Sequence[Entry], explanation: Explanation
) -> None:
    """Notes what an interrupted checkout of ours was making: beginnings of files, and its directories.

    `place` is the tree and its registration.
    """
    root, _ = place
    found = explanation.beginnings
    found.update((entry.path, "") for entry in entries if explanation.is_way(entry))
    begun = [each for each in entries if each.kind == "file" and explanation.reason(each) is None]
    if not begun:
        return
    # Where the content is apart, the snapshot's commit has a line of text, and git fills from that.
    commit = explanation.expected.manifest.commit
    filled = await tree_of(git, common, commit) if explanation.files else {}
    wanted = _wanted(begun, explanation, filled)
    async with aclosing(objects.contents(git, common, sorted(wanted))) as contents:
        async for oid, data in contents:
            found.update(await trio.to_thread.run_sync(_begun_of, root, wanted[oid], oid, data))
    for entry in begun:
        if await trio.to_thread.run_sync(_is_of_files, root, entry, explanation):
            found.add((entry.path, entry.oid or ""))
    await _ask_git(git, place, [each for each in begun if each.path in filled], explanation)


def _wanted(
    begun: Sequence[Entry], explanation: Explanation, filled: Mapping[bytes, TreeEntry]
) -> dict[str, list[Entry]]:
    """Returns which blobs a checkout may have been writing, and where: the last content, or git's before."""
    wanted: dict[str, list[Entry]] = {}
    expected = explanation.expected
    for entry in begun:
        held, first = expected.held.get(entry.path), filled.get(entry.path)
        oids = {first.oid} if first is not None and first.mode != GITLINK else set()
        last = expected.wanted_at(entry.path)
        if last is not None and (held is None or held.apart is None):
            oids.add(last)
        for oid in oids:
            wanted.setdefault(oid, []).append(entry)
    return wanted


def _begun_of(root: bytes, entries: Sequence[Entry], oid: str, data: bytes) -> list[tuple[bytes, str]]:
    """Returns those of the entries that are a beginning of the blob, or of what git may make of it."""
    found = []
    for entry in entries:
        there = _read(root, entry)
        if any(made.startswith(there) for made in _forms(data, oid)):
            found.append((entry.path, entry.oid or ""))
    return found


def _forms(data: bytes, oid: str) -> Iterator[bytes]:
    """Yields the blob's content and what git makes of it by attributes, other encodings aside."""
    yield data
    if b"\0" not in data:
        yield ALONE.sub(b"\r\n", data)
        named = NAMED.sub(b"$Id: %b $" % oid.encode("ascii"), data)
        if named != data:
            yield from (named, ALONE.sub(b"\r\n", named))


async def _ask_git(
    git: Git, place: tuple[bytes, bytes], begun: Sequence[Entry], explanation: Explanation
) -> None:
    """Notes the beginnings of what git itself says that it makes of a path."""
    root, admin = place
    lane, commit = Location(admin, root), explanation.expected.manifest.commit
    left = [each for each in begun if explanation.reason(each) is None] if os.path.isdir(admin) else []
    for entry in left[:ASKED]:
        made = await converted(git, lane, commit, entry.path)
        if made is not None and made.startswith(await trio.to_thread.run_sync(_read, root, entry)):
            explanation.beginnings.add((entry.path, entry.oid or ""))


def _is_of_files(root: bytes, entry: Entry, explanation: Explanation) -> bool:
    """Tells whether a file is the beginning of what the snapshot keeps beside git for its path."""
    held = explanation.expected.held.get(entry.path)
    if explanation.files is None or held is None or held.apart is None:
        return False
    with owned(_open(root, entry.path)) as found, owned(explanation.files.open(held.apart)) as kept:
        while piece := os.read(found, PIECE):
            if os.read(kept, len(piece)) != piece:
                return False
    return True


def _read(root: bytes, entry: Entry) -> bytes:
    with os.fdopen(_open(root, entry.path), "rb") as file:
        return file.read(entry.size + 1)


def _open(root: bytes, path: bytes) -> int:
    with Beneath(root) as beneath, beneath.parent(path) as (parent, name):
        return os.open(name, READ, dir_fd=parent)
