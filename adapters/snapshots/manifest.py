"""The manifest: what a snapshot holds, path by path, and what a tree must be to be the one that was captured.

A path that the manifest does not name is as the commit `head` has it: the blob's raw bytes with the ordinary
mode. Manifests are written last, so that one on disk means that all that it names is durable.
"""

import hashlib
import os
from base64 import b64decode, b64encode
from collections.abc import Iterable
from itertools import chain

import msgspec

from adapters.files.attributes import Attributes
from adapters.files.durable import read_file, replace
from adapters.files.errors import FilesError, words
from adapters.files.scan import Entry
from adapters.git.parse import TreeEntry
from adapters.snapshots.files import SnapshotDamaged
from domain.paths import pack, unpack

FORMAT = 2
READABLE = (1, FORMAT)
LIMIT = 1 << 30  # bytes of a manifest that is read back


class Held(msgspec.Struct, frozen=True, omit_defaults=True):
    """One path that is not as the commit has it; `kind` may be `absent`.

    `oid` is the blob id of the raw bytes, also of those that git does not have: then `apart` is the SHA-256
    of a file of the snapshot. `xattrs` are packed names and values in base64; `twin` is the first path, in
    the order of the tree, of the file that this is another name of.
    """

    path: str
    kind: str
    mode: int
    size: int
    oid: str | None
    apart: str | None = None
    xattrs: tuple[tuple[str, str], ...] = ()
    twin: str | None = None


class Registered(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of the registration, kept by its SHA-256; `name` is packed, a directory has no content.

    `link` is the packed target of a symbolic link.
    """

    name: str
    sha256: str
    mode: int
    mtime_ns: int = 0
    link: str | None = None


class Owned(msgspec.Struct, frozen=True):
    """Whose a snapshot is."""

    lane: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a snapshot that git's objects do not say. Modes are those that a checkout gives.

    `head` is empty where HEAD was on a branch without a commit. Since format 2: `times` is the SHA-256 of a
    file with the time of change of the root and of every entry of `wanted`, in that order, as 8 bytes each,
    signed nanoseconds, little-endian; `root_mode` is the root's own mode; `stale` names the paths (packed)
    of which the index did not know that they are as they were; `keep` is the commit that keeps alive what
    only the registration names.
    """

    format: int
    id: str
    lane: str
    repository: str
    head: str
    branch: str | None
    commit: str
    tree: str
    file_mode: int
    directory_mode: int
    entries: tuple[Held, ...]
    registration: tuple[Registered, ...]
    omitted: tuple[str, ...]
    content: str
    times: str = ""
    root_mode: int | None = None
    stale: tuple[str, ...] = ()
    keep: str = ""

    @property
    def algorithm(self) -> str:
        """Returns the hash by which the repository names its objects."""
        return algorithm_of(self.head or self.commit)


def algorithm_of(oid: str) -> str:
    """Returns the hash that an object id is made with."""
    return "sha1" if len(oid) == 40 else "sha256"


class Expected:
    """What every path of a captured tree has to be."""

    def __init__(self, manifest: Manifest, tree: dict[bytes, TreeEntry]) -> None:
        self.manifest = manifest
        self.held = held = {unpack(each.path): each for each in manifest.entries}
        self.tree = tree
        there = (path for path, each in held.items() if each.kind != "absent")
        plain = (path for path in tree if path not in held) if held else iter(tree)
        self.directories = parents(chain(there, plain))
        # A submodule that is not checked out is an empty directory that no path leads through.
        links = (path for path, each in tree.items() if each.mode == GITLINK and path not in held)
        self.directories.update(links)

    def holds(self, entry: Entry) -> bool:
        """Tells whether the entry is exactly what was captured: kind, mode, attributes and bytes."""
        held = self.held.get(entry.path)
        if held is not None and held.kind != "absent":
            same = (held.kind, held.mode, held.oid) == (entry.kind, entry.mode, entry.oid)
            same = same and held.xattrs == packed_attributes(entry.xattrs)
            return same and (entry.kind == "directory" or held.size == entry.size)
        if entry.xattrs:
            return False
        if entry.kind == "directory":
            return entry.path in self.directories and entry.mode == self.manifest.directory_mode
        return as_committed(entry, self.tree.get(entry.path), self.manifest.file_mode)

    def wanted(self) -> dict[bytes, Held]:
        """Returns what is to be at every path of the tree, each directory before what is in it."""
        mode = self.manifest.directory_mode
        leading = {path: Held(pack(path), "directory", mode, 0, None) for path in self.directories}
        plain = {path: self._plain(path, each) for path, each in self.tree.items() if path not in self.held}
        held = {path: each for path, each in self.held.items() if each.kind != "absent"}
        return dict(sorted((leading | plain | held).items(), key=lambda item: item[0].split(b"/")))

    def wanted_at(self, path: bytes) -> str | None:
        """Returns the blob that belongs at a path, if one does."""
        held, committed = self.held.get(path), self.tree.get(path)
        if held is not None:
            return held.oid
        return committed.oid if committed is not None and committed.mode != GITLINK else None

    def count(self) -> int:
        """Returns how many entries `wanted` has."""
        present = {path for path, each in self.held.items() if each.kind != "absent"}
        other = self.held.keys() | self.directories
        return len(present | self.directories) + len(self.tree) - sum(path in self.tree for path in other)

    def _plain(self, path: bytes, entry: TreeEntry) -> Held:
        if entry.mode == GITLINK:
            return Held(pack(path), "directory", self.manifest.directory_mode, 0, None)
        if entry.mode == LINK:
            return Held(pack(path), "link", 0o777, -1, entry.oid)
        return Held(pack(path), "file", ordinary(entry.mode, self.manifest.file_mode), -1, entry.oid)


GITLINK, LINK, EXECUTABLE = 0o160000, 0o120000, 0o100755
REGULAR = (0o100644, EXECUTABLE)  # what git writes into trees for files today


def as_committed(entry: Entry, committed: TreeEntry | None, file_mode: int) -> bool:
    """Tells whether an entry is what a checkout of the commit makes of the path, byte for byte."""
    if committed is None:
        return False
    if committed.mode == GITLINK:
        return entry.kind == "directory"
    if committed.mode == LINK:
        return entry.kind == "link" and entry.oid == committed.oid
    mode = ordinary(committed.mode, file_mode)
    return entry.kind == "file" and entry.oid == committed.oid and entry.mode == mode


def ordinary(committed: int, file_mode: int) -> int:
    """Returns the permissions that a checkout gives to a file of this mode."""
    return file_mode | (file_mode & 0o444) >> 2 if committed == EXECUTABLE else file_mode


def parents(paths: Iterable[bytes]) -> set[bytes]:
    """Returns every directory that leads to one of the paths."""
    found: set[bytes] = set()
    last = b""
    for path in paths:
        parent = path.rpartition(b"/")[0]
        if parent == last:  # paths mostly come by directory
            continue
        last = parent
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition(b"/")[0]
    return found


def packed_attributes(attributes: Attributes) -> tuple[tuple[str, str], ...]:
    """Returns extended attributes as a manifest has them."""
    if not attributes:
        return ()
    return tuple((pack(name), b64encode(value).decode("ascii")) for name, value in attributes)


def unpacked_attributes(packed: tuple[tuple[str, str], ...]) -> Attributes:
    """Returns extended attributes of a manifest as they are. Raises ValueError."""
    return tuple((unpack(name), b64decode(value, validate=True)) for name, value in packed)


def stand_in(sha256: str, size: int) -> bytes:
    """Returns what the snapshot's commit has in place of a big file."""
    return b"laneyard: held apart, sha256 %b, %d bytes\n" % (sha256.encode("ascii"), size)


def snapshot_dir(state_dir: bytes, snapshot: str) -> bytes:
    """Returns where a snapshot's manifest and files are kept."""
    return os.path.join(state_dir, b"snapshots", snapshot.encode("ascii"))


def save(directory: bytes, manifest: Manifest) -> str:
    """Writes the manifest durably, and returns its SHA-256."""
    data = msgspec.json.encode(manifest)
    replace(os.path.join(directory, b"manifest.json"), data)
    return hashlib.sha256(data).hexdigest()


def digest_of(directory: bytes) -> str:
    """Returns the SHA-256 of the manifest that is there."""
    return hashlib.sha256(read_file(os.path.join(directory, b"manifest.json"), LIMIT)).hexdigest()


def lane_in(directory: bytes) -> str:
    """Returns the lane that the manifest names, and nothing else of it. Raises SnapshotDamaged."""
    try:
        data = read_file(os.path.join(directory, b"manifest.json"), LIMIT)
        return msgspec.json.decode(data, type=Owned).lane
    except (OSError, FilesError, msgspec.DecodeError) as error:
        raise SnapshotDamaged(f"the manifest cannot be read: {words(error)}") from error


def load(directory: bytes, digest: str | None) -> Manifest:
    """Reads a manifest back and compares it with its digest. Raises SnapshotDamaged."""
    try:
        data = read_file(os.path.join(directory, b"manifest.json"), LIMIT)
        manifest = msgspec.json.decode(data, type=Manifest)
    except (OSError, FilesError, msgspec.DecodeError) as error:
        raise SnapshotDamaged(f"the manifest cannot be read: {words(error)}") from error
    if digest is not None and hashlib.sha256(data).hexdigest() != digest:
        raise SnapshotDamaged("the manifest is not the one that was written")
    if manifest.format not in READABLE:
        raise SnapshotDamaged(f"the manifest has format {manifest.format}, this program knows {READABLE}")
    return manifest
