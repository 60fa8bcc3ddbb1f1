"""A reader of git's index file, versions 2 to 4 (gitformat-index): no process, no lock, nothing refreshed."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

import msgspec

from adapters.git.errors import IndexUnreadable

if TYPE_CHECKING:
    from collections.abc import Iterator


class IndexEntry(msgspec.Struct, frozen=True, gc=False):
    """One entry; a sparse index has directories, of mode 0o40000, a split one has entries without a path."""

    path: bytes
    mode: int
    oid: str
    stage: int
    assume_unchanged: bool
    skip_worktree: bool
    intent_to_add: bool


class Index(msgspec.Struct, frozen=True):
    """A whole index; with a `link` extension, only what differs from the shared index that it names."""

    version: int
    entries: tuple[IndexEntry, ...]
    extensions: tuple[bytes, ...]


class IndexSurvey(msgspec.Struct, frozen=True):
    """What in an index makes `status` say less than the truth; a split index tells only a part of it."""

    version: int
    count: int
    hidden: tuple[bytes, ...]
    conflicted: tuple[bytes, ...]
    submodules: tuple[bytes, ...]
    intent_to_add: tuple[bytes, ...]
    split: bool
    sparse: bool
    checksum_ok: bool


def read_index(data: bytes, oid_bytes: int) -> Index:
    """Reads an index whose object ids have so many bytes; raises IndexUnreadable."""
    version, count = header(data, oid_bytes)
    if not checksum_matches(data, oid_bytes):
        raise IndexUnreadable("the checksum does not match")
    walk = Walk(data, oid_bytes, version)
    entries = tuple(entry(data, oid_bytes, *found) for found in walk.every(count))
    return Index(version, entries, extensions(data, walk.offset, oid_bytes))


def survey_index(data: bytes, oid_bytes: int) -> IndexSurvey:
    """Reads only what is out of the ordinary, of an index of any size; raises IndexUnreadable."""
    version, count = header(data, oid_bytes)
    walk = Walk(data, oid_bytes, version)
    odd = walk.odd(count)
    names = extensions(data, walk.offset, oid_bytes)
    special = [(path, mode, flags) for _, path, mode, flags in odd]
    return IndexSurvey(
        version=version,
        count=count,
        hidden=tuple(path for path, _, flags in special if flags & (ASSUME_UNCHANGED | SKIP_WORKTREE)),
        conflicted=tuple(dict.fromkeys(path for path, _, flags in special if flags & STAGE)),
        submodules=tuple(dict.fromkeys(path for path, mode, _ in special if mode == SUBMODULE)),
        intent_to_add=tuple(path for path, _, flags in special if flags & INTENT_TO_ADD),
        split=b"link" in names,
        sparse=b"sdir" in names,
        checksum_ok=checksum_matches(data, oid_bytes),
    )


class Walk:
    """One pass over the entries; afterwards `offset` is where the extensions begin."""

    def __init__(self, data: bytes, oid_bytes: int, version: int) -> None:
        self.offset = 12
        self._data = data
        self._end = len(data) - oid_bytes
        self._version = version
        self._layout = struct.Struct(f">24xI12x{oid_bytes}xH")  # mode and flags
        self._name = self._layout.size
        self._path = b""

    def every(self, count: int) -> Iterator[Found]:
        """Yields offset, path, mode and flags of so many entries; raises IndexUnreadable."""
        for _ in range(count):
            yield self.next()

    def odd(self, count: int) -> list[Found]:
        """Returns the entries that have a flag, a stage or a submodule's mode; raises IndexUnreadable."""
        if self._version == 4:
            return [found for found in self.every(count) if found[3] & ~LENGTH or found[2] == SUBMODULE]
        odd: list[Found] = []
        while count:
            count -= self._skip_plain(count)
            if count:
                found = self.next()
                count -= 1
                if found[3] & ~LENGTH or found[2] == SUBMODULE:
                    odd.append(found)
        return odd

    def _skip_plain(self, count: int) -> int:
        """Passes over entries without flags and with a short name, and returns how many there were."""
        # The one loop that runs a hundred thousand times: everything in it is a local name on purpose.
        data, offset, name, unpack = self._data, self.offset, self._name, self._layout.unpack_from
        find, limit, last = data.find, self._end, self._end - name
        left = count
        while left and offset <= last:
            mode, flags = unpack(data, offset)
            # 0 < flags < 0xFFF: no flag, no stage, and the whole length of the name.
            if not 0 < flags < LENGTH or mode == SUBMODULE:
                break
            if find(b"\0", offset + name, limit) != offset + name + flags:
                break
            offset += (name + flags + 8) & ~7
            left -= 1
        self.offset = offset
        return count - left

    def next(self) -> Found:
        """Reads the next entry, whatever it is; raises IndexUnreadable."""
        start = self.offset
        try:
            mode, flags = self._layout.unpack_from(self._data, start)
            at = start + self._name
            if flags & EXTENDED:
                if self._version < 3:
                    raise IndexUnreadable("an extended entry in version 2")
                flags |= int.from_bytes(self._data[at : at + 2], "big") << 16
                at += 2
            path = self._compressed(at) if self._version == 4 else self._plain(at, start)
        except (struct.error, IndexError) as error:
            raise IndexUnreadable(f"an entry breaks off at byte {start}") from error
        if min(len(path), LENGTH) != flags & LENGTH:
            raise IndexUnreadable(f"a name's length is wrong at byte {start}")
        if self.offset > self._end:
            raise IndexUnreadable(f"an entry runs into the checksum at byte {start}")
        return start, path, mode, flags

    def _plain(self, at: int, start: int) -> bytes:
        end = self._terminator(at)
        self.offset = start + ((end - start + 8) & ~7)
        return self._data[at:end]

    def _compressed(self, at: int) -> bytes:
        dropped, at = offset_number(self._data, at)
        if dropped > len(self._path):
            raise IndexUnreadable(f"a name drops more than there is at byte {at}")
        end = self._terminator(at)
        self._path = self._path[: len(self._path) - dropped] + self._data[at:end]
        self.offset = end + 1
        return self._path

    def _terminator(self, at: int) -> int:
        end = self._data.find(b"\0", at, self._end)
        if end < 0:
            raise IndexUnreadable(f"a name has no end at byte {at}")
        return end


def offset_number(data: bytes, at: int) -> tuple[int, int]:
    """Reads a number of packfile offset encoding, and returns it with where it ends."""
    byte = data[at]
    number = byte & 0x7F
    while byte & 0x80 and number < len(data):
        at += 1
        byte = data[at]
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, at + 1


def entry(data: bytes, oid_bytes: int, offset: int, path: bytes, mode: int, flags: int) -> IndexEntry:
    """Returns an entry that a walk has found, as a value of its own."""
    return IndexEntry(
        path=path,
        mode=mode,
        oid=data[offset + 40 : offset + 40 + oid_bytes].hex(),
        stage=(flags & STAGE) >> 12,
        assume_unchanged=bool(flags & ASSUME_UNCHANGED),
        skip_worktree=bool(flags & SKIP_WORKTREE),
        intent_to_add=bool(flags & INTENT_TO_ADD),
    )


def header(data: bytes, oid_bytes: int) -> tuple[int, int]:
    """Returns version and number of entries; raises IndexUnreadable."""
    if oid_bytes not in HASHES:
        raise IndexUnreadable(f"object ids of {oid_bytes} bytes are unknown")
    if len(data) < 12 + oid_bytes or data[:4] != b"DIRC":
        raise IndexUnreadable("not an index file")
    version, count = struct.unpack_from(">II", data, 4)
    if version not in (2, 3, 4):
        raise IndexUnreadable(f"version {version} is unknown")
    return version, count


def checksum_matches(data: bytes, oid_bytes: int) -> bool:
    """Returns whether the file is as it was written, or was written without a checksum (index.skipHash)."""
    written = data[-oid_bytes:]
    if not any(written):
        return True
    return hashlib.new(HASHES[oid_bytes], memoryview(data)[:-oid_bytes]).digest() == written


def extensions(data: bytes, offset: int, oid_bytes: int) -> tuple[bytes, ...]:
    """Returns the names of the extensions between the entries and the checksum; raises IndexUnreadable."""
    return tuple(sections(data, offset, oid_bytes))


def sections(data: bytes, offset: int, oid_bytes: int) -> dict[bytes, bytes]:
    """Returns the extensions by their names; raises IndexUnreadable."""
    found: dict[bytes, bytes] = {}
    name, end = b"an entry", len(data) - oid_bytes
    while offset < end:
        if offset + 8 > end:
            raise IndexUnreadable(f"an extension breaks off at byte {offset}")
        name = data[offset : offset + 4]
        if not name[:1].isupper() and name not in (b"link", b"sdir"):
            raise IndexUnreadable(f"extension {name!r} must be understood, and is unknown")
        start, offset = offset + 8, offset + 8 + int.from_bytes(data[offset + 4 : offset + 8], "big")
        found[name] = data[start:offset]
    if offset != end:
        raise IndexUnreadable(f"{name!r} runs into the checksum")
    return found


Found = tuple[int, bytes, int, int]  # offset, path, mode, flags

HASHES = {20: "sha1", 32: "sha256"}
SUBMODULE = 0o160000
ASSUME_UNCHANGED, EXTENDED, STAGE, LENGTH = 0x8000, 0x4000, 0x3000, 0x0FFF
SKIP_WORKTREE, INTENT_TO_ADD = 0x4000 << 16, 0x2000 << 16  # of the second pair of bytes
