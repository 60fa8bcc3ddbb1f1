"""Reading an entry so that the answer belongs to one moment, as git's object id of its raw bytes."""

import errno
import hashlib
import os
import stat

from adapters.files.attributes import Attributes, of_entry, of_open
from adapters.files.descriptors import READ

PIECE = 1 << 20
ATTEMPTS = 3
EMPTY_BODY = b""
SHA1, SHA256 = hashlib.sha1, hashlib.sha256

Read = tuple[os.stat_result, str, Attributes]


def file_oid(parent: int, name: bytes, algorithm: str) -> Read | None:
    """Returns status, blob id and extended attributes of the regular file, or None if it never held still.

    `algorithm` is "sha1" or "sha256". Raises OSError. Before Linux 6.13 two writes within one clock tick
    (at most 10 ms) carry the same time; one that falls between our two looks may go unseen.
    """
    for _ in range(ATTEMPTS):
        try:
            descriptor = os.open(name, READ, dir_fd=parent)
        except OSError as error:
            if error.errno in (
                errno.ELOOP,
                errno.ENXIO,
            ):  # swapped for a link or a socket since it was listed
                continue
            raise
        try:
            read = _hash_once(descriptor, algorithm)
        finally:
            os.close(descriptor)
        if read is not None:
            return read
    return None


def link_oid(parent: int, name: bytes, algorithm: str) -> Read | None:
    """Returns status, blob id of its target and attributes of the link, or None if it never held still.

    Raises OSError.
    """
    for _ in range(ATTEMPTS):
        before = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISLNK(before.st_mode):
            continue
        target, attributes = os.readlink(name, dir_fd=parent), of_entry(parent, name)
        if unchanged(before, os.stat(name, dir_fd=parent, follow_symlinks=False)):
            return before, blob_oid(algorithm, target), attributes
    return None


def blob_hash(algorithm: str, size: int, beginning: bytes = EMPTY_BODY) -> "hashlib._Hash":
    """Returns the hash of a git blob of that size, fed with the beginning of its body."""
    constructor = SHA1 if algorithm == "sha1" else SHA256
    return constructor(b"blob %d\0" % size + beginning, usedforsecurity=False)


def blob_oid(algorithm: str, data: bytes) -> str:
    """Returns the id of the git blob with these bytes."""
    return blob_hash(algorithm, len(data), data).hexdigest()


def unchanged(before: os.stat_result, after: os.stat_result) -> bool:
    """Tells whether both looks saw the same object, untouched in between."""
    return _moment(before) == _moment(after)


def _moment(status: os.stat_result) -> tuple[int, int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _hash_once(descriptor: int, algorithm: str) -> Read | None:
    before = os.fstat(descriptor)
    if before.st_mode & 0o170000 != stat.S_IFREG:
        return None
    size = before.st_size
    oid = (
        _hash_small(descriptor, size, algorithm) if size < PIECE else _hash_large(descriptor, size, algorithm)
    )
    attributes = of_open(descriptor)
    after = os.fstat(descriptor)
    still = before.st_ctime_ns == after.st_ctime_ns and before.st_mtime_ns == after.st_mtime_ns
    return (before, oid, attributes) if oid and still and size == after.st_size else None


def _hash_small(descriptor: int, size: int, algorithm: str) -> str | None:
    data = os.read(descriptor, size) if size else EMPTY_BODY
    return blob_hash(algorithm, size, data).hexdigest() if len(data) == size else None


def _hash_large(descriptor: int, size: int, algorithm: str) -> str | None:
    digest = blob_hash(algorithm, size)
    while size > 0 and (piece := os.read(descriptor, min(size, PIECE))):
        digest.update(piece)
        size -= len(piece)
    return None if size else digest.hexdigest()
