"""Seeing every entry of a tree, with our own eyes and not with git's."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator

import msgspec

from adapters.files.attributes import NONE, Attributes, of_entry
from adapters.files.blob import file_oid, link_oid
from adapters.files.descent import Descent
from adapters.files.descriptors import DIRECTORY, located, open_directory
from adapters.files.errors import MountInside, Unstable
from adapters.files.mounts import refuse_mounts
from adapters.files.own_directory import go_to


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One entry of a tree; the path is relative to its root, the size of a directory is 0."""

    path: bytes
    kind: str
    mode: int
    size: int
    device: int
    inode: int
    mtime_ns: int
    ctime_ns: int
    links: int
    oid: str | None
    xattrs: Attributes = ()


# What is known of a file or link without reading it: its blob id alone, or that (None: not to be read here)
# and its extended attributes (None: only these are to be read).
Told = str | tuple[str | None, Attributes | None] | None
Known = Callable[[bytes, os.stat_result], Told]


def scan(
    root: bytes,
    algorithm: str | None,
    *,
    inside: Callable[[Entry], bool] | None = None,
    known: Known | None = None,
) -> Iterator[Entry]:
    """Yields every entry below the root: by name, a directory before its content, links never followed.

    With an algorithm ("sha1", "sha256") files and links carry the blob id of their raw bytes, and everything
    its extended attributes; of what is `known` only the status is looked at. A directory for which `inside`
    says no is yielded but not entered. Raises MountInside, Unstable, or the OSError of an entry with its
    path, whole.
    """
    with Descent(root, os.open(root, DIRECTORY)) as descent:
        refuse_mounts(descent.descriptor)
        pending = [_cut(_look(descent, _names(descent.descriptor), algorithm, known))]
        while True:
            for part in pending[-1]:
                yield from part
                entry = part[-1]
                if entry.kind == "directory" and (inside is None or inside(entry)):
                    found = _enter(descent, entry.path[len(descent.prefix) :])
                    pending.append(_cut(_look(descent, found, algorithm, known)))
                    break
            else:
                pending.pop()
                if not pending:
                    return
                os.close(descent.pop())


def _cut(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Yields the entries of a directory in parts, each of which ends where there is a directory to enter."""
    start = 0
    for end, entry in enumerate(entries, 1):
        if entry.kind == "directory":
            yield entries[start:end]
            start = end
    if start < len(entries):
        yield entries[start:]


def observe(descent: Descent, name: bytes, algorithm: str | None) -> Entry:
    """Returns the entry of that name where the descent is. Raises Unstable, MountInside or OSError."""
    return _look(descent, [name], algorithm, None)[0]


def digest(entries: Iterable[Entry]) -> str:
    """Returns the SHA-256 over path, kind, mode, size, oid and attributes of the entries, in their order."""
    total, kinds = hashlib.sha256(b"laneyard-tree-1\n"), KIND_NAMES
    pieces: list[bytes] = []
    add = pieces.append
    for entry in entries:
        if len(pieces) > TOGETHER:
            total.update(b"".join(pieces))
            pieces.clear()
        path, xattrs, oid = entry.path, entry.xattrs, entry.oid
        kind, named = kinds[entry.kind], oid.encode() if oid else b"-"
        # The path, the only free text, goes last and its length first: no two entries encode alike.
        if not xattrs:
            add(b"%d %b %o %d %b %b" % (len(path), kind, entry.mode, entry.size, named, path))
            continue
        add(b"%d %b+%d %o %d %b %b" % (len(path), kind, len(xattrs), entry.mode, entry.size, named, path))
        for name, value in xattrs:
            add(b"%d %d %b%b" % (len(name), len(value), name, value))
    total.update(b"".join(pieces))
    return total.hexdigest()


def digest_of_facts(facts: Iterable[tuple[bytes, str, int, int, str | None, Attributes]]) -> str:
    """Returns what `digest` returns of entries with these paths, kinds, modes, sizes, oids and attributes."""
    return digest(
        Entry(path, kind, mode, size, 0, 0, 0, 0, 0, oid, xattrs)
        for path, kind, mode, size, oid, xattrs in facts
    )


def _look(descent: Descent, names: list[bytes], algorithm: str | None, known: Known | None) -> list[Entry]:
    """Returns these entries of where the descent is."""
    # The one loop that runs for every entry of every tree: everything in it is a local name on purpose.
    parent, prefix, device = descent.descriptor, descent.prefix, descent.device
    here = None if go_to(parent) else parent  # where names are looked up: None is the working directory
    stat_, kinds, attributes, name = os.stat, KINDS, of_entry, b""
    found: list[Entry] = []
    add = found.append
    try:
        for name in names:
            status = stat_(name, dir_fd=here, follow_symlinks=False)
            mode, size, path = status.st_mode, status.st_size, prefix + name
            kind, oid, xattrs = kinds[mode & 0o170000], None, NONE
            if kind == "directory":
                size = 0
                if status.st_dev != device:
                    raise MountInside(descent.full(name))
                if algorithm is not None:
                    xattrs = attributes(here, name)
            elif algorithm is not None:
                told = known(path, status) if known is not None else None
                if isinstance(told, str):
                    oid, xattrs = told, attributes(here, name)
                elif told is not None:
                    oid, xattrs = told[0], attributes(here, name) if told[1] is None else told[1]
                else:
                    status, oid, xattrs = _read(descent, name, kind, status, algorithm)
                    mode, size = status.st_mode, status.st_size
            add(
                Entry(
                    path,
                    kind,
                    mode & 0o7777,
                    size,
                    status.st_dev,
                    status.st_ino,
                    status.st_mtime_ns,
                    status.st_ctime_ns,
                    status.st_nlink,
                    oid,
                    xattrs,
                )
            )
    except OSError as error:
        raise _about(error, descent.full(name)) from error
    return found


def _read(
    descent: Descent, name: bytes, kind: str, status: os.stat_result, algorithm: str
) -> tuple[os.stat_result, str | None, Attributes]:
    """Reads a file or a link, and of anything else only its attributes. Raises Unstable, OSError."""
    if kind not in READERS:
        return status, None, of_entry(descent.descriptor, name)
    read = READERS[kind](descent.descriptor, name, algorithm)
    if read is None:
        raise Unstable(descent.full(name))
    return read


def _names(descriptor: int) -> list[bytes]:
    found = os.listdir(b"." if go_to(descriptor) else b"/proc/self/fd/%d" % descriptor)
    found.sort()
    return found


def _enter(descent: Descent, name: bytes) -> list[bytes]:
    path = b"%b/%b%b" % (descent.root, descent.prefix, name)
    try:
        descent.push(name, open_directory(descent.descriptor, name, path))
        return _names(descent.descriptor)
    except OSError as error:
        raise _about(error, path) from error


def _about(error: OSError, path: bytes) -> Exception:
    """Returns the error about the path as the caller knows it; an attribute that went is a change."""
    return Unstable(path) if error.errno == errno.ENODATA else located(error, path)


TOGETHER = 1_000  # entries that are hashed in one go
KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFBLK: "block",
    stat.S_IFCHR: "character",
}
KIND_NAMES = {kind: kind.encode() for kind in KINDS.values()}
READERS = {"file": file_oid, "link": link_oid}
