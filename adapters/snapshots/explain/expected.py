"""What a restore makes, and whether all of it that comes from the commit is there and whole."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import trio

from adapters.files.scan import digest
from adapters.git.door import Location
from adapters.snapshots import objects
from adapters.snapshots.capture.survey import current_umask
from adapters.snapshots.explain.packs import Memory, look
from adapters.snapshots.manifest import FORMAT, GITLINK, Expected, Manifest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.files.scan import Entry
    from adapters.git.door import Git


def bare(commit: str) -> Manifest:
    """Returns the manifest of a tree that is exactly its commit."""
    mask = current_umask()
    return Manifest(
        format=FORMAT,
        id="",
        lane="",
        repository="",
        head=commit,
        branch=None,
        commit=commit,
        tree="",
        file_mode=0o666 & ~mask,
        directory_mode=0o777 & ~mask,
        entries=(),
        registration=(),
        omitted=(),
        content="",
    )


def is_captured_tree(reproducible: list[Entry], expected: Expected) -> bool:
    """Tells whether what the snapshot or the commit explains is all that a restore makes, and was captured.

    Each of these entries is what belongs at its path. If there are as many as a restore makes, they are the
    same, and their digest is that of the tree that a restore makes.
    """
    return len(reproducible) == expected.count() and digest(reproducible) == expected.manifest.content


def needed(expected: Expected) -> list[str]:
    """Returns the blobs of the commit that a restore takes from it."""
    held = expected.held
    plain = {each.oid for path, each in expected.tree.items() if each.mode != GITLINK and path not in held}
    return sorted(plain)


async def require_whole(git: Git, common: bytes, oids: Sequence[str], algorithm: str) -> array[int]:
    """Makes sure that every blob is there and has its bytes, and returns their sizes.

    All of them are read and hashed again; or, where this process has done that before, all bytes of the pack
    that they came out of, which then has them still. That an object is there says little: the good copy of a
    damaged one may be the file that is to be deleted. Raises SnapshotDamaged, GitFailed.
    """
    packs = await trio.to_thread.run_sync(look, common, oids)
    sizes = await trio.to_thread.run_sync(MEMORY.sizes, packs)
    left = [oid for oid in oids if oid not in sizes] if sizes else oids
    if left:
        quiet = await _read_all(git, common, left, sizes)
        if quiet:  # or git may have found another copy of what is damaged in a pack
            await trio.to_thread.run_sync(MEMORY.add, packs, sizes)
    return array("Q", (sizes[oid] for oid in oids))


async def _read_all(git: Git, common: bytes, oids: Sequence[str], sizes: dict[str, int]) -> bool:
    """Reads and hashes the blobs, notes their sizes, and tells whether git had nothing to complain of."""
    async with git.converse(
        b"cat-file", b"--batch", b"--buffer", repository=Location(common)
    ) as conversation:
        sizes.update(await objects.require_whole(conversation, oids))
        _, said = await conversation.finish()
    return not said


MEMORY = Memory()  # what this process has read
