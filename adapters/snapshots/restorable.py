"""The proof that a tree can be rebuilt from a snapshot, before anybody relies on it. Touches nothing.

What is proved is of the very list of entries that a restore makes: each can be made, and together they are
the tree that was captured, byte for byte. A restore compares again, when the captured tree is long gone.
"""

import os
from collections.abc import Mapping

from adapters.files.scan import Entry, digest
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import Expected, Held
from domain.paths import display

LONGEST = 4095  # bytes of a path that the kernel takes, here one that begins at the lane


def require_restorable(expected: Expected, sizes: Mapping[str, int]) -> None:
    """Raises SnapshotDamaged unless what a restore would make is the tree that was captured.

    `sizes` has the bytes of every blob of the commit; the manifest has those of what it holds.
    """
    wanted = expected.wanted()
    require_consistent(wanted)
    entries = (_entry(path, held, sizes) for path, held in wanted.items())
    if digest(entries) != expected.manifest.content:
        raise SnapshotDamaged("the tree that a restore would make is not the one that was captured")


def require_consistent(wanted: Mapping[bytes, Held]) -> None:
    """Raises SnapshotDamaged where an entry cannot be made: no directory leads to it, or it is too long."""
    for path in wanted:
        if len(path) > LONGEST:
            raise SnapshotDamaged(f"the path {display(wanted[path].path)[:100]!r}… is too long to be made")
        parent = os.path.dirname(path)
        if parent and (parent not in wanted or wanted[parent].kind != "directory"):
            raise SnapshotDamaged(f"{display(wanted[path].path)!r} has no directory to be in")


def _entry(path: bytes, held: Held, sizes: Mapping[str, int]) -> Entry:
    size = sizes.get(held.oid or "", -1) if held.size < 0 else held.size
    return Entry(path, held.kind, held.mode, size, 0, 0, 0, 0, 0, held.oid)
