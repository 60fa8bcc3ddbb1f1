"""Content that git should not or cannot have, put into the files of a snapshot while it is read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

from msgspec.structs import replace

from adapters.files.attributes import of_open
from adapters.files.blob import PIECE, blob_hash, blob_oid
from adapters.files.descriptors import READ, owned
from adapters.files.errors import words
from adapters.snapshots.beneath import Beneath
from adapters.snapshots.capture.looks import wait_for_the_clock
from adapters.snapshots.files import Shortened
from adapters.snapshots.manifest import GITLINK
from adapters.snapshots.objects import REPLACED, Moving

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from adapters.files.scan import Entry
    from adapters.git.parse import TreeEntry
    from adapters.snapshots.files import Files

BIG = 8 << 20  # bytes from which on a file is not for git
LONGEST = 4000  # bytes of a path; git fails at more than 4,096
SMALL = 1 << 20  # bytes that are read at once


def is_odd(path: bytes) -> bool:
    """Tells whether git refuses a path, or cannot walk it."""
    return len(path) > LONGEST or (b".git" in (low := path.lower()) and b".git" in low.split(b"/"))


class Apart:
    """Reads what lies below the root, in `with`; without `files` it only hashes.

    `asked` names what is put apart because somebody wants it in the snapshot, with all that is below;
    `earlier` has the SHA-256 of what an earlier look is known to have put apart.
    """

    def __init__(
        self,
        root: bytes,
        algorithm: str,
        files: Files | None = None,
        asked: frozenset[bytes] = frozenset(),
        earlier: Mapping[bytes, str] | None = None,
    ) -> None:
        self._root, self._algorithm, self._files = root, algorithm, files
        self._asked = asked
        self._earlier = earlier or {}
        self._read: dict[tuple[int, int], tuple[str, str]] = {}
        self._beneath: Beneath | None = None

    def __enter__(self) -> Self:
        self._beneath = Beneath(self._root)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._beneath is not None
        self._beneath.__exit__(kind, error, trace)

    def is_asked(self, path: bytes) -> bool:
        """Tells whether somebody wants the content apart."""
        while self._asked and path and path not in self._asked:
            path = path.rpartition(b"/")[0]
        return bool(self._asked and path)

    def with_big(self, entries: list[Entry], tree: Mapping[bytes, TreeEntry]) -> list[Entry]:
        """Returns the entries with the ids of the files that the walk has left unread.

        What cannot be the commit's is put apart in the same reading. Raises Moving, OSError.
        """
        if not any(entry.oid is None and entry.kind == "file" for entry in entries):
            return entries
        return [self._identified(entry, tree) for entry in entries]

    def put(self, entry: Entry) -> str | None:
        """Keeps the content of a file or link, and returns its SHA-256. Raises Moving, OSError."""
        if self._files is None:
            return None
        kept = self._already(entry)
        if kept is not None:
            return kept
        return self._put_link(entry) if entry.kind == "link" else self._take(entry, keep=True)[1]

    def _already(self, entry: Entry) -> str | None:
        """Returns what was kept in this reading, or in an earlier one if it is still there."""
        oid, sha256 = self._read.get((entry.device, entry.inode), ("", ""))
        if sha256 and oid == entry.oid:
            return sha256
        before = self._earlier.get(entry.path)
        return before if before is not None and self._files is not None and self._files.link(before) else None

    def _identified(self, entry: Entry, tree: Mapping[bytes, TreeEntry]) -> Entry:
        if entry.oid is not None or entry.kind != "file":
            return entry
        found = self._read.get((entry.device, entry.inode))
        if found is None:
            known = tree.get(entry.path)
            found = self._take(entry, keep=known is None or known.mode == GITLINK)
        return replace(entry, oid=found[0])

    def _take(self, entry: Entry, *, keep: bool) -> tuple[str, str]:
        """Reads a file once, and returns its blob id and, if it is kept, its SHA-256."""
        assert self._beneath is not None
        try:
            with (
                self._beneath.parent(entry.path) as (parent, name),
                owned(os.open(name, READ, dir_fd=parent)) as descriptor,
            ):
                found = self._read_open(descriptor, entry, keep=keep)
        except Shortened as error:
            raise Moving(str(error)) from error
        except OSError as error:
            if error.errno not in REPLACED:
                raise
            raise Moving(words(error)) from error
        self._read[entry.device, entry.inode] = found
        return found

    def _read_open(self, descriptor: int, entry: Entry, *, keep: bool) -> tuple[str, str]:
        if entry.oid is None:
            wait_for_the_clock(entry.ctime_ns)
        _require_same(descriptor, entry)
        oid, sha256 = self._hash(descriptor, entry.size, keep=keep and self._files is not None)
        _require_same(descriptor, entry)
        if entry.oid not in (None, oid):
            raise Moving(f"{os.fsdecode(entry.path)} was not the same when it was read again")
        return oid, sha256

    def _hash(self, descriptor: int, size: int, *, keep: bool) -> tuple[str, str]:
        if keep and size <= SMALL and self._files is not None:
            data = os.pread(descriptor, size, 0)
            return blob_oid(self._algorithm, data), self._files.keep(data)
        total = blob_hash(self._algorithm, size)
        if keep and self._files is not None:
            sha256 = self._files.keep_from(descriptor, size, total)
            return total.hexdigest(), sha256
        while piece := os.read(descriptor, PIECE):
            total.update(piece)
        return total.hexdigest(), ""

    def _put_link(self, entry: Entry) -> str:
        assert self._beneath is not None
        assert self._files is not None
        with self._beneath.parent(entry.path) as (parent, name):
            try:
                target = os.readlink(name, dir_fd=parent)
            except OSError as error:
                raise Moving(words(error)) from error
        if blob_oid(self._algorithm, target) != entry.oid:
            raise Moving(f"{os.fsdecode(entry.path)} leads elsewhere by now")
        return self._files.keep(target)


def _require_same(descriptor: int, entry: Entry) -> None:
    """Raises Moving unless the open file is the one that the walk saw, untouched since."""
    now = os.fstat(descriptor)
    seen = (entry.inode, entry.size, entry.mtime_ns, entry.ctime_ns)
    if (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns) != seen:
        raise Moving(f"{os.fsdecode(entry.path)} changed while it was read")
    if of_open(descriptor) != entry.xattrs:
        raise Moving(f"the attributes of {os.fsdecode(entry.path)} changed while it was read")
