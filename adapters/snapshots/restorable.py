"""The proof that a tree can be rebuilt from a snapshot, before anybody relies on it. Touches nothing.

What is proved is of the very list of entries that a restore makes: each can be made, and together they are
the tree that was captured, byte for byte. A restore compares again, when the captured tree is long gone.
"""

from collections.abc import Iterable, Mapping

from adapters.files.scan import Entry, digest_of_facts
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import REGULAR, Expected, Held, ordinary, unpacked_attributes
from domain.paths import display, unpack


def require_restorable(expected: Expected, sizes: Mapping[str, int]) -> None:
    """Raises SnapshotDamaged unless what a restore would make is the tree that was captured.

    `sizes` has the bytes of every blob of the commit; the manifest has those of what it holds.
    """
    wanted = expected.wanted()
    require_consistent(wanted)
    facts = (
        (path, held.kind, held.mode, _size(held, sizes), held.oid, unpacked_attributes(held.xattrs))
        for path, held in wanted.items()
    )
    if digest_of_facts(facts) != expected.manifest.content:
        raise SnapshotDamaged("the tree that a restore would make is not the one that was captured")


def require_same(expected: Expected, entries: Iterable[Entry]) -> None:
    """Raises SnapshotDamaged unless a restore would make exactly these entries, which a capture has seen.

    Says the same as `require_restorable` of the tree that is still there, in a tenth of the time: each entry
    is what is wanted at its path, and nothing else is wanted.
    """
    holds, held, committed = expected.holds, expected.held, expected.tree.get
    modes = {mode: ordinary(mode, expected.manifest.file_mode) for mode in REGULAR}
    count = 0
    for entry in entries:  # nearly all are plain files: that is asked without a call
        count += 1
        known = committed(entry.path)
        if (
            known is not None
            and entry.oid == known.oid
            and entry.kind == "file"
            and entry.mode == modes.get(known.mode)
            and not entry.xattrs
            and entry.path not in held
        ):
            continue
        if not holds(entry):
            raise SnapshotDamaged(f"a restore would not make {entry.path!r} as it was captured")
    if count != expected.count():
        raise SnapshotDamaged("a restore would make more than what was captured")


def require_consistent(wanted: Mapping[bytes, Held]) -> None:
    """Raises SnapshotDamaged where an entry cannot be made: no directory leads to it."""
    for path, held in wanted.items():
        parent = path.rpartition(b"/")[0]
        if parent and (parent not in wanted or wanted[parent].kind != "directory"):
            raise SnapshotDamaged(f"{display(held.path)!r} has no directory to be in")
        if held.twin is not None and not _is_twin(held, wanted):
            raise SnapshotDamaged(f"{display(held.path)!r} is another name of what is not there")


def _is_twin(held: Held, wanted: Mapping[bytes, Held]) -> bool:
    first = wanted.get(unpack(held.twin or ""))
    facts = (held.kind, held.mode, held.oid, held.apart, held.xattrs, None)
    return first is not None and facts == (
        first.kind,
        first.mode,
        first.oid,
        first.apart,
        first.xattrs,
        first.twin,
    )


def _size(held: Held, sizes: Mapping[str, int]) -> int:
    return sizes.get(held.oid or "", -1) if held.size < 0 else held.size
