"""Content that a snapshot keeps beside git, by its SHA-256: one file on the disk for all that have it.

`snapshots/<id>/files/<sha256>` is a hard link to `blobs/<sha256>` of the state directory, so that each
snapshot is whole in its own directory. Nothing counts as durable before `sync`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from adapters.files.descriptors import READ, owned
from adapters.files.durable import TEMPORARY, make_directories, sync_file_systems, write_all
from adapters.files.errors import words
from adapters.files.kernel import clone

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE = 1 << 20
LIMIT = 1 << 30  # bytes of a file that is read at once
NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
POOL = b"blobs"
BEGINNINGS = b"beginnings"  # the directory of files that are not in the pool yet


class SnapshotDamaged(Exception):
    """A snapshot is not what the log says that it was."""


class Shortened(Exception):
    """A file has become shorter while it was copied."""


class Files:
    """The files of one snapshot, whose directory need not exist before something is kept."""

    def __init__(self, directory: bytes) -> None:
        self._own = os.path.join(directory, b"files")
        self._pool = os.path.join(os.path.dirname(os.path.dirname(directory)), POOL)
        self._new = os.path.join(os.path.dirname(self._pool), BEGINNINGS)
        self._made = False

    def keep(self, data: bytes) -> str:
        """Keeps the bytes, and returns their SHA-256. Raises OSError."""
        digest = hashlib.sha256(data).hexdigest()
        if not self._has_whole(digest):
            with self._beginning() as (descriptor, temporary):
                write_all(descriptor, data)
                self._publish(temporary, digest)
        return digest

    def keep_from(self, source: int, size: int, also: hashlib._Hash | None = None) -> str:
        """Copies so many bytes of an open file, shared with it where the file system can, and feeds `also`.

        Returns the SHA-256 of what was kept, which is what both hashes have seen. Raises Shortened, OSError.
        """
        with self._beginning() as (descriptor, temporary):
            total = hashlib.sha256()
            cloned = _clone(source, descriptor, size)
            for piece in _pieces(descriptor if cloned else source, size):
                total.update(piece)
                if also is not None:
                    also.update(piece)
                if not cloned:
                    write_all(descriptor, piece)
            digest = total.hexdigest()
            if not self._has_whole(digest):
                self._publish(temporary, digest)
        return digest

    def sync(self) -> None:
        """Makes all that was kept durable, in one wait. Raises OSError."""
        sync_file_systems(self._pool, self._own)

    def read(self, digest: str, limit: int = LIMIT) -> bytes:
        """Returns content that was kept. Raises SnapshotDamaged where it is missing, longer or another."""
        return b"".join(self.pieces(digest, limit))

    def pieces(self, digest: str, limit: int | None = None) -> Iterator[bytes]:
        """Yields the content piece by piece; only at the end it is known to be whole.

        Raises SnapshotDamaged, also at the end.
        """
        total, size = hashlib.sha256(), 0
        try:
            with owned(self.open(digest)) as descriptor:
                while piece := os.read(descriptor, PIECE):
                    total.update(piece)
                    size += len(piece)
                    if limit is not None and size > limit:
                        raise SnapshotDamaged(
                            f"the file {digest} of the snapshot is longer than {limit} bytes"
                        )
                    yield piece
        except OSError as error:
            raise SnapshotDamaged(f"a file of the snapshot cannot be read: {words(error)}") from error
        if total.hexdigest() != digest:
            raise SnapshotDamaged(f"the file {digest} of the snapshot is damaged")

    def check(self, digest: str) -> int:
        """Reads the content back and returns its size. Raises SnapshotDamaged."""
        return sum(len(piece) for piece in self.pieces(digest))

    def open(self, digest: str) -> int:
        """Opens the content for reading; its bytes are not compared with the digest. Raises OSError."""
        return os.open(os.path.join(self._own, digest.encode("ascii")), READ)

    def link(self, digest: str) -> bool:
        """Keeps what is in the pool already, without reading it, and tells whether it is. Raises OSError."""
        name = digest.encode("ascii")
        self._make()
        try:
            os.link(os.path.join(self._pool, name), os.path.join(self._own, name), follow_symlinks=False)
        except FileExistsError:
            return True
        except OSError as error:
            # Not kept yet, or by too many snapshots, or what is there is no file.
            if error.errno in (errno.ENOENT, errno.EMLINK) or os.path.isdir(os.path.join(self._pool, name)):
                return False
            raise
        return True

    def _make(self) -> None:
        if not self._made:
            make_directories(self._own)
            make_directories(self._pool)
            make_directories(self._new)
            self._made = True

    def _has_whole(self, digest: str) -> bool:
        """Tells whether the content is kept already, and whole; one that is damaged gives way."""
        if not self.link(digest):
            return False
        try:
            self.check(digest)
        except SnapshotDamaged:
            return False
        return True

    @contextmanager
    def _beginning(self) -> Iterator[tuple[int, bytes]]:
        """Lends a new file that has no name in the pool yet, and its path."""
        self._make()
        temporary = os.path.join(self._new, TEMPORARY + secrets.token_hex(8).encode())
        descriptor = os.open(temporary, NEW, 0o600)
        try:
            with owned(descriptor):
                yield descriptor, temporary
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)

    def _publish(self, temporary: bytes, digest: str) -> None:
        """Gives the new file its name in the pool and in the snapshot, in place of what was damaged."""
        name = digest.encode("ascii")
        for place in (self._pool, self._own):
            beside, there = temporary + b"-named", os.path.join(place, name)
            os.link(temporary, beside, follow_symlinks=False)
            if os.path.isdir(there) and not os.path.islink(there):
                os.rename(there, there + b"-" + secrets.token_hex(4).encode())
            os.rename(beside, there)


def clear_beginnings(state_dir: bytes) -> None:
    """Takes away what killed processes have begun, for the owner of the state directory. Raises OSError."""
    place = os.path.join(state_dir, BEGINNINGS)
    with suppress(FileNotFoundError), os.scandir(place) as found:
        for each in found:
            if each.name.startswith(TEMPORARY):
                os.unlink(each.path)


def clear_pool(state_dir: bytes) -> None:
    """Takes content from the pool that no snapshot has: a killed capture kept it and did not need it again.

    Also while others capture: what is being kept has a second name until its snapshot has it, and whoever
    does not find it in the pool keeps it anew. What cannot be taken away stays for the next time.
    """
    with suppress(OSError), os.scandir(os.path.join(state_dir, POOL)) as found:
        for each in found:
            status = each.stat(follow_symlinks=False)
            if status.st_nlink == 1 and stat.S_ISREG(status.st_mode):
                os.unlink(each.path)


def _clone(source: int, target: int, size: int) -> bool:
    """Tells whether the target shares the source's bytes now: a copy that nobody can write to any more."""
    if not clone(source, target):
        return False
    if os.fstat(target).st_size > size:  # it has grown since its size was seen
        os.ftruncate(target, size)
    return os.fstat(target).st_size == size


def _pieces(descriptor: int, size: int) -> Iterator[bytes]:
    left = size
    while left:
        piece = os.pread(descriptor, min(left, PIECE), size - left)
        if not piece:
            raise Shortened(f"{left} bytes of {size} are missing")
        left -= len(piece)
        yield piece
