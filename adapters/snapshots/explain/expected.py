"""What a restore makes, and whether all of it that comes from the commit is there and whole."""

from __future__ import annotations

import hashlib
from array import array
from contextlib import aclosing
from typing import TYPE_CHECKING

from adapters.files.scan import digest
from adapters.git.door import Location
from adapters.snapshots.capture.survey import current_umask
from adapters.snapshots.files import SnapshotDamaged
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
    """Reads every blob and hashes it again, and returns their sizes. Raises SnapshotDamaged, GitFailed.

    That an object is there says little: the good copy of a damaged one may be the file that is to be deleted.
    """
    sizes = array("Q")
    if not oids:
        return sizes
    pending, total = iter(oids), None
    make = hashlib.sha1 if algorithm == "sha1" else hashlib.sha256
    arguments = (b"cat-file", b"--batch", b"--buffer")
    async with git.converse(*arguments, repository=Location(common)) as conversation:
        async with aclosing(conversation.objects(oids)) as found:
            async for head, data, left in found:
                if not head.startswith(b"blob "):
                    raise SnapshotDamaged(f"the blob {next(pending)} is missing")
                total = total or make(head + b"\0", usedforsecurity=False)
                total.update(data)
                if not left:
                    oid, whole, total = next(pending), total.hexdigest(), None
                    if whole != oid:
                        raise SnapshotDamaged(f"the blob {oid} is damaged")
                    sizes.append(int(head[5:]))
        await conversation.finish()
    return sizes
