"""Walking a lane's tree and sorting its entries: as committed, to be held, omitted, or in the way.

The walk is ours and not git's: what git never shows (assume-unchanged edits, force-added ignored files, empty
directories) is found because it is there.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence

import msgspec

from adapters.files.scan import Entry, digest, scan
from adapters.git.parse import TreeEntry
from adapters.snapshots.manifest import GITLINK, Held, as_committed, parents
from domain.evidence import Obstacle
from domain.paths import pack, unpack

ORDINARY = ("file", "link", "directory")


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What a tree holds beyond its commit. `omitted` and `obstacles` are packed; `sizes` are by object id."""

    held: tuple[Held, ...]
    omitted: tuple[str, ...]
    obstacles: tuple[Obstacle, ...]
    fingerprint: str
    content: str
    sizes: dict[str, int]
    file_mode: int
    directory_mode: int


def survey(root: bytes, tree: dict[bytes, TreeEntry], algorithm: str, omit: Sequence[str]) -> Survey:
    """Walks and hashes the tree. Raises MountInside, Unstable or OSError of an entry that cannot be read."""
    left_out = frozenset(unpack(path).rstrip(b"/") for path in omit)
    mask = current_umask()
    file_mode, directory_mode = 0o666 & ~mask, 0o777 & ~mask
    entries = list(scan(root, algorithm, inside=lambda entry: entry.path not in left_out))
    kept, omitted, obstacles = _sort(entries, tree, left_out)
    held = _held(kept, tree, file_mode, directory_mode)
    # What is omitted is absent too: a restore must not put the commit's content in its place.
    gone = sorted(tree.keys() - {entry.path for entry in kept})
    absent = (Held(pack(path), "absent", 0, 0, None) for path in gone)
    return Survey(
        held=(*held, *absent),
        omitted=tuple(omitted),
        obstacles=tuple(obstacles),
        fingerprint=fingerprint(entries),
        content=digest(kept),
        sizes={entry.oid: entry.size for entry in kept if entry.oid is not None},
        file_mode=file_mode,
        directory_mode=directory_mode,
    )


def _sort(
    entries: list[Entry], tree: dict[bytes, TreeEntry], left_out: frozenset[bytes]
) -> tuple[list[Entry], list[str], list[Obstacle]]:
    nested = {os.path.dirname(entry.path) for entry in entries if os.path.basename(entry.path) == b".git"}
    nested.discard(b"")
    kept, omitted, obstacles = [], [], []
    for entry in entries:
        if entry.path == b".git":
            continue
        if _within(entry.path, left_out):
            omitted.append(pack(entry.path))
        elif entry.path in nested:
            known = tree.get(entry.path)
            kind = "submodule" if known and known.mode == GITLINK else "nested-repository"
            obstacles.append(Obstacle(kind, pack(entry.path)))
        elif _within(entry.path, nested):
            continue
        elif entry.kind not in ORDINARY:
            obstacles.append(Obstacle("special-file", pack(entry.path)))
        else:
            kept.append(entry)
    return kept, omitted, obstacles


def _within(path: bytes, roots: Iterable[bytes]) -> bool:
    roots = roots if isinstance(roots, frozenset | set) else frozenset(roots)
    while path:
        if path in roots:
            return True
        path = os.path.dirname(path)
    return False


def _held(
    entries: list[Entry], tree: dict[bytes, TreeEntry], file_mode: int, directory_mode: int
) -> list[Held]:
    """Returns the entries that a checkout of the commit would not make as they are."""
    # A directory that has lost its last file is not implied by anything any more: it is held as itself.
    leading = parents(tree) & parents(entry.path for entry in entries if entry.kind != "directory")
    held = []
    for entry in entries:
        if entry.kind == "directory":
            plain = entry.path in leading or _is_gitlink(tree.get(entry.path))
            if plain and entry.mode == directory_mode:
                continue
        elif as_committed(entry, tree.get(entry.path), file_mode):
            continue
        held.append(Held(pack(entry.path), entry.kind, entry.mode, entry.size, entry.oid))
    return held


def _is_gitlink(entry: TreeEntry | None) -> bool:
    return entry is not None and entry.mode == GITLINK


def fingerprint(entries: Iterable[Entry]) -> str:
    """Returns a digest of every entry's metadata: any write to the tree makes it another."""
    total = hashlib.sha256(b"laneyard-fingerprint-1\n")
    for entry in entries:
        facts = (entry.kind, entry.mode, entry.size, entry.inode, entry.mtime_ns, entry.ctime_ns, entry.links)
        total.update(f"{len(entry.path)} {facts}\n".encode() + entry.path)
    return total.hexdigest()


def take_fingerprint(root: bytes, omit: Sequence[str]) -> str:
    """Walks the tree without reading files, and returns its fingerprint."""
    left_out = frozenset(unpack(path).rstrip(b"/") for path in omit)
    return fingerprint(scan(root, None, inside=lambda entry: entry.path not in left_out))


def current_umask() -> int:
    """Returns the process's umask, which decides the modes that a checkout gives."""
    with open("/proc/self/status", "rb") as status:  # reading it with umask(2) would change it for a moment
        for line in status:
            if line.startswith(b"Umask:"):
                return int(line.split()[1], 8)
    raise OSError("the system does not tell the umask")
