"""Reading an entry so that the answer belongs to one moment, as git's object id of its raw bytes."""

import errno
import hashlib
import os
import stat

PIECE = 1 << 20
ATTEMPTS = 3
OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
EMPTY_BODY = b""

Read = tuple[os.stat_result, str]


def file_oid(parent: int, name: bytes, algorithm: str) -> Read | None:
    """Returns the status and blob id of the regular file's raw bytes, or None if it never held still.

    `algorithm` is "sha1" or "sha256". Raises OSError. Before Linux 6.13 two writes within one clock tick
    (at most 10 ms) carry the same time; one that falls between our two looks may go unseen.
    """
    for _ in range(ATTEMPTS):
        try:
            descriptor = os.open(name, OPEN, dir_fd=parent)
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
    """Returns the status and blob id of the link's target, or None if it never held still. Raises OSError."""
    for _ in range(ATTEMPTS):
        before = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISLNK(before.st_mode):
            continue
        target = os.readlink(name, dir_fd=parent)
        if unchanged(before, os.stat(name, dir_fd=parent, follow_symlinks=False)):
            return before, blob_hash(algorithm, len(target), target).hexdigest()
    return None


def blob_hash(algorithm: str, size: int, beginning: bytes = EMPTY_BODY) -> "hashlib._Hash":
    """Returns the hash of a git blob of that size, fed with the beginning of its body."""
    return hashlib.new(algorithm, b"blob %d\0" % size + beginning, usedforsecurity=False)


def unchanged(before: os.stat_result, after: os.stat_result) -> bool:
    """Tells whether both looks saw the same object, untouched in between."""
    return _moment(before) == _moment(after)


def _moment(status: os.stat_result) -> tuple[int, int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _hash_once(descriptor: int, algorithm: str) -> Read | None:
    before = os.fstat(descriptor)
    if not stat.S_ISREG(before.st_mode):
        return None
    left = before.st_size
    digest = blob_hash(algorithm, left)
    while left > 0 and (piece := os.read(descriptor, min(left, PIECE))):
        digest.update(piece)
        left -= len(piece)
    if left or not unchanged(before, os.fstat(descriptor)):
        return None
    return before, digest.hexdigest()
