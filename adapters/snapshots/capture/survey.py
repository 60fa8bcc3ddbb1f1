"""Walking a lane's tree and sorting its entries: as committed, to be held, omitted, or in the way.

The walk is ours and not git's: what git never shows (assume-unchanged edits, force-added ignored files, empty
directories) is found because it is there.
"""

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import islice

import msgspec

from adapters.files.scan import TOGETHER, Entry, Known, digest, scan
from adapters.git.parse import TreeEntry
from adapters.snapshots.capture.putting_apart import BIG, Apart, is_odd
from adapters.snapshots.manifest import EXECUTABLE, GITLINK, LINK, Held, ordinary, packed_attributes, parents
from adapters.snapshots.registration.neighbours import neighbour
from domain.evidence import Obstacle
from domain.paths import pack, unpack

ORDINARY = ("file", "link", "directory")


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What a tree holds beyond its commit. `omitted` and `obstacles` are packed.

    `seen` has every entry of the walk, which began at `began_ns`, and `kept` those that belong to the
    snapshot; `outside` names held paths that are not in the snapshot's commit.
    """

    held: tuple[Held, ...]
    omitted: tuple[str, ...]
    obstacles: tuple[Obstacle, ...]
    fingerprint: str
    content: str
    file_mode: int
    directory_mode: int
    root: os.stat_result
    began_ns: int
    seen: list[Entry]
    kept: list[Entry]
    outside: frozenset[bytes]

    @property
    def sizes(self) -> dict[str, int]:
        """Returns how many bytes each content has, by object id."""
        return {entry.oid: entry.size for entry in self.kept if entry.oid is not None}


def survey(
    root: bytes,
    tree: dict[bytes, TreeEntry],
    algorithm: str,
    omit: Sequence[str],
    *,
    admin: bytes = b"",
    apart: Apart | None = None,
    known: Known | None = None,
) -> Survey:
    """Walks and hashes the tree, but for what is known.

    Content that git should not have is put apart while it is read. `admin` is the lane's registration, in
    which its submodules may have their git directories.
    Raises MountInside, Unstable, Moving, or OSError of an entry that cannot be read.
    """
    left_out, modes = unpacked(omit), ordinary_modes()
    status, began = os.lstat(root), time.time_ns()
    seen = list(scan(root, algorithm, inside=_inside(left_out), known=known))
    kept, omitted, obstacles, nested = _sort(seen, tree, left_out, (root, admin))
    with apart or Apart(root, algorithm) as putting:
        kept = putting.with_big(kept, tree)
        held, outside = _held(kept, tree, modes, nested, putting)
    # What is omitted is absent too: a restore must not put the commit's content in its place.
    gone = sorted(tree.keys() - {entry.path for entry in kept})
    absent = (Held(pack(path), "absent", 0, 0, None) for path in gone)
    return Survey(
        held=(*held, *absent),
        omitted=tuple(omitted),
        obstacles=tuple(obstacles),
        fingerprint=fingerprint(seen),
        content=digest(kept),
        file_mode=modes[0],
        directory_mode=modes[1],
        root=status,
        began_ns=began,
        seen=seen,
        kept=kept,
        outside=frozenset(outside),
    )


def unpacked(paths: Sequence[str]) -> frozenset[bytes]:
    """Returns the paths of a list of packed ones, a directory's without its slash."""
    return frozenset(unpack(path).rstrip(b"/") for path in paths)


def _inside(left_out: frozenset[bytes]) -> Callable[[Entry], bool] | None:
    return (lambda entry: entry.path not in left_out) if left_out else None


def _sort(
    seen: list[Entry], tree: dict[bytes, TreeEntry], left_out: frozenset[bytes], place: tuple[bytes, bytes]
) -> tuple[list[Entry], list[str], list[Obstacle], frozenset[bytes]]:
    """Returns what is kept, omitted and in the way, and below which paths everything is somebody else's."""
    root, admin = place
    nested = {entry.path[:-5] for entry in seen if entry.path.endswith(b"/.git")}
    obstacles: list[Obstacle] = []
    blocked: set[bytes] = set()
    for path in sorted(nested):
        kind = neighbour(os.path.join(root, path), admin)
        if kind is not None and not within(path, blocked):
            obstacles.append(Obstacle(kind, pack(path)))
            blocked.add(path)
    kept: list[Entry] = []
    omitted: list[str] = []
    for entry in seen:
        if left_out and within(entry.path, left_out):
            omitted.append(pack(entry.path))
        elif blocked and within(entry.path, blocked):
            continue
        elif entry.kind not in ORDINARY:
            obstacles.append(Obstacle("special-file", pack(entry.path)))
        elif entry.path != b".git":
            kept.append(entry)
    # What lies in the directory of a submodule that is not checked out is none of the commit's either.
    links = (path for path, each in tree.items() if each.mode == GITLINK)
    return kept, omitted, obstacles, frozenset(nested).union(links)


def within(path: bytes, roots: Container[bytes]) -> bool:
    """Tells whether a path is one of the roots, or below one."""
    while path and path not in roots:
        path = path.rpartition(b"/")[0]
    return bool(path)


def _held(
    kept: list[Entry],
    tree: dict[bytes, TreeEntry],
    modes: tuple[int, int],
    nested: frozenset[bytes],
    putting: Apart,
) -> tuple[list[Held], list[bytes]]:
    """Returns the entries that a checkout would not make as they are, and which of them git cannot have.

    A file of several names in the tree is held under each of them, all but the first as its twins.
    """
    file_mode, directory_mode = modes
    tool_mode = ordinary(EXECUTABLE, file_mode)
    # A directory that has lost its last file is not implied by anything any more: it is held as itself.
    leading = parents(tree) & parents(entry.path for entry in kept if entry.kind != "directory")
    several = _several(kept)
    firsts: dict[tuple[int, int] | None, Held] = {}
    held: list[Held] = []
    outside: list[bytes] = []
    for entry in kept:
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


def _several(kept: list[Entry]) -> set[tuple[int, int] | None]:
    """Returns the files that have more than one name among these."""
    linked = Counter(
        (entry.device, entry.inode) for entry in kept if entry.links > 1 and entry.kind != "directory"
    )
    return {each for each, count in linked.items() if count > 1}


def fingerprint(entries: Iterable[Entry]) -> str:
    """Returns a digest of every entry's metadata: any write to the tree makes it another."""
    total, encode = hashlib.sha256(b"laneyard-fingerprint-2\n"), msgspec.msgpack.encode
    facts = ((e.path, e.kind, e.mode, e.size, e.inode, e.mtime_ns, e.ctime_ns, e.links) for e in entries)
    while batch := list(islice(facts, TOGETHER)):
        total.update(encode(batch))
    return total.hexdigest()


def take_fingerprint(root: bytes, omit: Sequence[str]) -> str:
    """Walks the tree without reading files, and returns its fingerprint."""
    return fingerprint(scan(root, None, inside=_inside(unpacked(omit))))


def ordinary_modes() -> tuple[int, int]:
    """Returns the modes that a checkout gives to files and to directories."""
    mask = current_umask()
    return 0o666 & ~mask, 0o777 & ~mask


def current_umask() -> int:
    """Returns the process's umask, which decides the modes that a checkout gives."""
    with open("/proc/self/status", "rb") as status:  # reading it with umask(2) would change it for a moment
        for line in status:
            if line.startswith(b"Umask:"):
                return int(line.split()[1], 8)
    raise OSError("the system does not tell the umask")
