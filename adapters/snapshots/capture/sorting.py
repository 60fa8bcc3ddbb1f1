"""Sorting the entries of a tree: as committed, to be held, omitted, or in the way."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from adapters.files.scan import Entry
from adapters.snapshots.capture.putting_apart import BIG, is_odd
from adapters.snapshots.manifest import (
    EXECUTABLE,
    GITLINK,
    LINK,
    REGULAR,
    Held,
    ordinary,
    packed_attributes,
    parents,
)
from adapters.snapshots.registration.neighbours import neighbour
from domain.evidence import Obstacle
from domain.paths import pack

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from adapters.git.parse import TreeEntry
    from adapters.snapshots.capture.putting_apart import Apart

ORDINARY = ("file", "link", "directory")

Tree = dict[bytes, "TreeEntry"]


class Sorted(msgspec.Struct, frozen=True):
    """The entries of a walk: those that are `kept` in a snapshot, and of these the `odd` ones.

    All other kept ones are files just as a checkout of the commit makes them; the `firsts` of those lead to
    all of their directories. Below a path of `nested` everything is somebody else's.
    """

    kept: list[Entry]
    odd: list[Entry]
    firsts: list[bytes]
    omitted: tuple[str, ...]
    obstacles: tuple[Obstacle, ...]
    nested: frozenset[bytes]


def sort(
    seen: list[Entry],
    tree: Tree,
    modes: tuple[int, int],
    left_out: frozenset[bytes],
    place: tuple[bytes, bytes],
) -> Sorted:
    """Sorts what a walk has seen that did not enter what is left out; the place is root and registration."""
    odd, firsts = _odd(seen, tree, modes[0])
    nested = {entry.path[:-5] for entry in odd if entry.path.endswith(b"/.git")}
    obstacles, blocked = _neighbours(nested, *place)
    kept = seen
    if left_out or blocked:
        kept = [e for e in seen if e.path not in left_out and not (blocked and within(e.path, blocked))]
        odd, firsts = _odd(kept, tree, modes[0])
    dropped = {e.path for e in odd if e.kind not in ORDINARY}
    obstacles += [Obstacle("special-file", pack(e.path)) for e in odd if e.path in dropped]
    dropped.add(b".git")
    # What lies in the directory of a submodule that is not checked out is none of the commit's either.
    nested.update(path for path, each in tree.items() if each.mode == GITLINK)
    return Sorted(
        kept=[e for e in kept if e.path not in dropped],
        odd=[e for e in odd if e.path not in dropped],
        firsts=firsts,
        omitted=tuple(pack(e.path) for e in seen if e.path in left_out) if left_out else (),
        obstacles=tuple(obstacles),
        nested=frozenset(nested),
    )


def _odd(entries: list[Entry], tree: Tree, file_mode: int) -> tuple[list[Entry], list[bytes]]:
    """Returns all but the files that are just as committed, and of those the first after each other entry.

    Until the walk enters another directory, which is an entry by itself, it only goes back up: so the first
    of some files in a row is below all directories that the others are in.
    """
    by_mode = {mode: ordinary(mode, file_mode) for mode in REGULAR}
    committed, mode_of = tree.get, by_mode.get
    odd: list[Entry] = []
    firsts: list[bytes] = []
    follows = False
    for entry in entries:
        path = entry.path
        known = committed(path)
        if (
            known is not None
            and known.oid == entry.oid
            and entry.mode == mode_of(known.mode)
            and entry.links == 1
            and not entry.xattrs
            and entry.kind == "file"
            and path[-4:] != b".git"
        ):
            if not follows:
                firsts.append(path)
                follows = True
            continue
        odd.append(entry)
        follows = False
    return odd, firsts


def _neighbours(nested: set[bytes], root: bytes, admin: bytes) -> tuple[list[Obstacle], set[bytes]]:
    """Returns which of these repositories are in the way, and where everything below is."""
    obstacles: list[Obstacle] = []
    blocked: set[bytes] = set()
    for path in sorted(nested):
        kind = neighbour(os.path.join(root, path), admin)
        if kind is not None and not within(path, blocked):
            obstacles.append(Obstacle(kind, pack(path)))
            blocked.add(path)
    return obstacles, blocked


def within(path: bytes, roots: Container[bytes]) -> bool:
    """Tells whether a path is one of the roots, or below one."""
    while path and path not in roots:
        path = path.rpartition(b"/")[0]
    return bool(path)


def hold(
    odd: list[Entry], found: Sorted, tree: Tree, modes: tuple[int, int], putting: Apart
) -> tuple[tuple[Held, ...], frozenset[bytes]]:
    """Returns what a checkout would not make as it is, and which paths of it git cannot have.

    What is omitted is absent too: a restore must not put the commit's content in its place.
    """
    gone = sorted(tree.keys() - {entry.path for entry in found.kept})
    leading = _leading(odd, found.firsts, tree, gone)
    held, outside = _held(odd, tree, modes, found.nested, leading, putting)
    absent = (Held(pack(path), "absent", 0, 0, None) for path in gone)
    return (*held, *absent), frozenset(outside)


def _leading(odd: list[Entry], firsts: list[bytes], tree: Tree, gone: Sequence[bytes]) -> set[bytes]:
    """Returns the directories that lead to a path of the commit and to a file or link that is there.

    A directory that has lost its last file is not implied by anything any more: it is held as itself.
    """
    plain = parents(firsts)
    committed = parents([*gone, *(entry.path for entry in odd if entry.path in tree)])
    present = parents(entry.path for entry in odd if entry.kind != "directory")
    return plain | (committed & present)


def _held(
    odd: list[Entry],
    tree: Mapping[bytes, TreeEntry],
    modes: tuple[int, int],
    nested: frozenset[bytes],
    leading: set[bytes],
    putting: Apart,
) -> tuple[list[Held], list[bytes]]:
    """Returns the entries that a checkout would not make as they are, and which of them git cannot have.

    A file of several names in the tree is held under each of them, all but the first as its twins.
    """
    file_mode, directory_mode = modes
    tool_mode = ordinary(EXECUTABLE, file_mode)
    several = _several(odd)
    firsts: dict[tuple[int, int] | None, Held] = {}
    held: list[Held] = []
    outside: list[bytes] = []
    for entry in odd:
        path, kind = entry.path, entry.kind
        known = tree.get(path)
        if kind == "directory":
            plain = path in leading or (known is not None and known.mode == GITLINK)
            if plain and entry.mode == directory_mode and not entry.xattrs:
                continue
            held.append(_as_held(entry))
            continue
        named = (entry.device, entry.inode) if entry.links > 1 else None
        if known is not None and known.oid == entry.oid and not entry.xattrs and named not in several:
            if kind == "link" and known.mode == LINK:
                continue
            mode = tool_mode if known.mode == EXECUTABLE else file_mode
            if kind == "file" and entry.mode == mode and known.mode not in (LINK, GITLINK):
                continue
        out = is_odd(path) or (bool(nested) and within(path, nested)) or putting.is_asked(path)
        if out:
            outside.append(path)
        first = firsts.get(named)
        if first is not None:
            held.append(_as_held(entry, first.apart, first.path))
            continue
        sha256 = putting.put(entry) if out or (entry.size >= BIG and kind == "file") else None
        held.append(_as_held(entry, sha256))
        if named in several:
            firsts[named] = held[-1]
    return held, outside


def _as_held(entry: Entry, apart: str | None = None, twin: str | None = None) -> Held:
    xattrs = packed_attributes(entry.xattrs)
    return Held(pack(entry.path), entry.kind, entry.mode, entry.size, entry.oid, apart, xattrs, twin)


def _several(entries: list[Entry]) -> set[tuple[int, int] | None]:
    """Returns the files that have more than one name among these."""
    linked = Counter(
        (entry.device, entry.inode) for entry in entries if entry.links > 1 and entry.kind != "directory"
    )
    return {each for each, count in linked.items() if count > 1}
