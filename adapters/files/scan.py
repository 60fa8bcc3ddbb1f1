"""Seeing every entry of a tree, with our own eyes and not with git's."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator

import msgspec

from adapters.files.blob import file_oid, link_oid
from adapters.files.descent import Descent
from adapters.files.descriptors import DIRECTORY, located, names, open_directory
from adapters.files.errors import MountInside, Unstable
from adapters.files.mounts import refuse_mounts


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


def scan(
    root: bytes, algorithm: str | None, *, inside: Callable[[Entry], bool] | None = None
) -> Iterator[Entry]:
    """Yields every entry below the root: by name, a directory before its content, links never followed.

    With an algorithm ("sha1", "sha256") files and links carry the blob id of their raw bytes. A directory
    for which `inside` says no is yielded but not entered. Raises MountInside, Unstable, or the OSError of
    an entry with its path, whole.
    """
    with Descent(root, os.open(root, DIRECTORY)) as descent:
        refuse_mounts(descent.descriptor)
        pending = [iter(names(descent.descriptor))]
        while True:
            for name in pending[-1]:
                entry = observe(descent, name, algorithm)
                yield entry
                if entry.kind == "directory" and (inside is None or inside(entry)):
                    pending.append(iter(_enter(descent, name)))
                    break
            else:
                pending.pop()
                if not pending:
                    return
                os.close(descent.pop())


def observe(descent: Descent, name: bytes, algorithm: str | None) -> Entry:
    """Returns the entry of that name where the descent is. Raises Unstable, MountInside or OSError."""
    try:
        status = os.stat(name, dir_fd=descent.descriptor, follow_symlinks=False)
        kind = KINDS[stat.S_IFMT(status.st_mode)]
        oid = None
        if algorithm and (read_oid := READERS.get(kind)):
            read = read_oid(descent.descriptor, name, algorithm)
            if read is None:
                raise Unstable(descent.full(name))
            status, oid = read
    except OSError as error:
        raise located(error, descent.full(name)) from error
    if kind == "directory" and status.st_dev != descent.device:
        raise MountInside(descent.full(name))
    return _entry(descent.prefix + name, kind, status, oid)


def digest(entries: Iterable[Entry]) -> str:
    """Returns the SHA-256 over path, kind, mode, size and oid of the entries, in their order."""
    total = hashlib.sha256(b"laneyard-tree-1\n")
    for entry in entries:
        # The path, the only free text, goes last and its length first: no two entries encode alike.
        head = f"{len(entry.path)} {entry.kind} {entry.mode:o} {entry.size} {entry.oid or '-'} "
        total.update(head.encode() + entry.path)
    return total.hexdigest()


def _enter(descent: Descent, name: bytes) -> list[bytes]:
    path = descent.full(name)
    try:
        descent.push(name, open_directory(descent.descriptor, name, path))
        return names(descent.descriptor)
    except OSError as error:
        raise located(error, path) from error


def _entry(path: bytes, kind: str, status: os.stat_result, oid: str | None) -> Entry:
    return Entry(
        path,
        kind,
        status.st_mode & 0o7777,
        0 if kind == "directory" else status.st_size,
        status.st_dev,
        status.st_ino,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_nlink,
        oid,
    )


KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFBLK: "block",
    stat.S_IFCHR: "character",
}
READERS = {"file": file_oid, "link": link_oid}
