"""Comparing the commit of a snapshot with what was captured: its differences to the head, path by path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.files.blob import blob_oid
from adapters.git.door import Location
from adapters.git.errors import GitOutputUnreadable
from adapters.git.parse import TreeEntry
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import GITLINK, LINK, algorithm_of, parents, stand_in
from domain.paths import display, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adapters.git.door import Git
    from adapters.snapshots.manifest import Held

Change = tuple[TreeEntry | None, TreeEntry | None]  # before and after; None: there is nothing

EMPTY_TREE = {  # the tree that git knows in every repository
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
RAW = (b"diff-tree", b"-r", b"-z", b"--raw", b"--no-renames", b"--no-abbrev", b"--end-of-options")


async def differences(git: Git, common: bytes, head: str, commit: str) -> dict[bytes, Change]:
    """Returns every path at which the commit is not as the head, or as nothing. Raises GitError."""
    before = head or EMPTY_TREE[algorithm_of(commit)]
    ran = await git.run(*RAW, before.encode(), commit.encode(), repository=Location(common))
    return parse_raw(ran.out)


def parse_raw(data: bytes) -> dict[bytes, Change]:
    """Reads `diff-tree -z --raw --no-abbrev`. Raises GitOutputUnreadable."""
    words = data.split(b"\0")
    if words.pop() or len(words) % 2:
        raise GitOutputUnreadable("diff-tree", data)
    found: dict[bytes, Change] = {}
    for said, path in zip(words[::2], words[1::2], strict=True):
        fields = said.split(b" ")
        if len(fields) != 5 or not said.startswith(b":") or not path:
            raise GitOutputUnreadable("diff-tree", said)
        modes = int(fields[0][1:], 8), int(fields[1], 8)
        sides = [
            TreeEntry(m, o.decode("ascii")) if m else None for m, o in zip(modes, fields[2:4], strict=True)
        ]
        found[path] = sides[0], sides[1]
    return found


def require_captured(
    held: Iterable[Held], found: Mapping[bytes, Change], tree: Mapping[bytes, TreeEntry], algorithm: str
) -> None:
    """Raises SnapshotDamaged unless the commit differs from the head, whose tree this is, as was captured.

    Of what is held apart the commit has nothing, or a line that says so; of twins what it can have.
    """
    named = set()
    for each in held:
        path = unpack(each.path)
        named.add(path)
        before = tree.get(path)
        after = found[path][1] if path in found else before
        if not _is_right(each, after, algorithm):
            raise SnapshotDamaged(f"the snapshot's commit does not have {display(each.path)!r} as captured")
    leading: set[bytes] | None = None
    for path, (before, after) in found.items():
        if path in named:
            continue
        if leading is None:
            leading = parents(named)
        # A submodule's commit is told beside what is held of it, and no restore needs it.
        is_there = path in leading if before is None else before.mode == GITLINK
        if after is None or after.mode != GITLINK or not is_there:
            raise SnapshotDamaged(f"the snapshot's commit has another {path!r} than was captured")


def _is_right(held: Held, after: TreeEntry | None, algorithm: str) -> bool:
    """Tells whether this is what the commit may have at the path of what is held."""
    if held.oid is None:
        # Of a submodule that is not checked out the commit keeps the entry, whatever mode its directory has.
        return after is None or (held.kind == "directory" and after.mode == GITLINK)
    if after is None:
        return held.apart is not None or held.twin is not None
    if held.apart is not None:
        return after.oid == blob_oid(algorithm, stand_in(held.apart, held.size))
    mode = LINK if held.kind == "link" else 0o100755 if held.mode & 0o100 else 0o100644
    same = after.mode == mode or (mode == 0o100644 and after.mode & 0o170100 == 0o100000)
    return after.oid == held.oid and same
