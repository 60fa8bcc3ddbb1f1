"""Walking a lane's tree: every entry of it, and which of them a snapshot holds.

The walk is ours and not git's: what git never shows (assume-unchanged edits, force-added ignored files, empty
directories) is found because it is there.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import msgspec

from adapters.files.scan import TOGETHER, Entry, Known, digest, scan
from adapters.git.parse import TreeEntry
from adapters.snapshots.capture.putting_apart import Apart
from adapters.snapshots.capture.sorting import hold, sort
from adapters.snapshots.manifest import Held
from domain.evidence import Obstacle
from domain.paths import unpack


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What a tree holds beyond its commit. `omitted` and `obstacles` are packed.

    `seen` has every entry of the walk, which began at `began_ns`, and `kept` those that belong to the
    snapshot; `outside` names held paths that are not in the snapshot's commit.
    """

    held: tuple[Held, ...]
    omitted: tuple[str, ...]
    obstacles: tuple[Obstacle, ...]
    file_mode: int
    directory_mode: int
    root: os.stat_result
    began_ns: int
    seen: list[Entry]
    kept: list[Entry]
    outside: frozenset[bytes]

    @property
    def fingerprint(self) -> str:
        """Returns the digest of all metadata, made anew each time."""
        return fingerprint(self.seen, unpacked(self.omitted))

    @property
    def content(self) -> str:
        """Returns the digest of what is kept, made anew each time."""
        return digest(self.kept)

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
    found = sort(seen, tree, modes, left_out, (root, admin))
    with apart or Apart(root, algorithm) as putting:
        odd = putting.with_big(found.odd, tree)
        held, outside = hold(odd, found, tree, modes, putting)
    return Survey(
        held=held,
        omitted=found.omitted,
        obstacles=found.obstacles,
        file_mode=modes[0],
        directory_mode=modes[1],
        root=status,
        began_ns=began,
        seen=seen,
        kept=found.kept if odd is found.odd else _with(found.kept, odd),
        outside=outside,
    )


def _with(kept: list[Entry], identified: list[Entry]) -> list[Entry]:
    """Returns what is kept with the ids that some got after the walk."""
    now = {entry.path: entry for entry in identified}
    return [now.get(entry.path, entry) for entry in kept]


def unpacked(paths: Sequence[str]) -> frozenset[bytes]:
    """Returns the paths of a list of packed ones, a directory's without its slash."""
    return frozenset(unpack(path).rstrip(b"/") for path in paths)


def _inside(left_out: frozenset[bytes]) -> Callable[[Entry], bool] | None:
    return (lambda entry: entry.path not in left_out) if left_out else None


def fingerprint(entries: Iterable[Entry], left_out: frozenset[bytes] = frozenset()) -> str:
    """Returns a digest of every entry's metadata: any write to the tree makes it another.

    Of what is left out only the place counts: whoever writes there does not change what a snapshot holds.
    """
    total, encode = hashlib.sha256(b"laneyard-fingerprint-2\n"), msgspec.msgpack.encode
    if left_out:
        entries = (_place_of(e) if e.path in left_out else e for e in entries)
    facts = ((e.path, e.kind, e.mode, e.size, e.inode, e.mtime_ns, e.ctime_ns, e.links) for e in entries)
    while batch := list(islice(facts, TOGETHER)):
        total.update(encode(batch))
    return total.hexdigest()


def _place_of(entry: Entry) -> Entry:
    return Entry(entry.path, entry.kind, 0, 0, 0, 0, 0, 0, 0, None)


def take_fingerprint(root: bytes, omit: Sequence[str]) -> str:
    """Walks the tree without reading files, and returns its fingerprint."""
    left_out = unpacked(omit)
    return fingerprint(scan(root, None, inside=_inside(left_out)), left_out)


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
