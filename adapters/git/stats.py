"""What an index recorded of the files that it saw: a reader that does nothing else, and does it fast."""

from __future__ import annotations

import struct

import msgspec

from adapters.git.errors import IndexUnreadable
from adapters.git.index import INTENT_TO_ADD, STAGE, Walk, checksum_matches, header, sections

# ctime, mtime (each seconds and nanoseconds), device, inode, mode, user, group, size, raw object id, flags
Recorded = tuple[int, int, int, int, int, int, int, int, int, int, bytes, int]


class IndexStats(msgspec.Struct, frozen=True):
    """What an index recorded of each path of stage 0, and which of them have no content yet.

    `entries` has the fixed part of each as it lies there, which `layout` turns into `Recorded`: of a large
    lane that is a fifth of the memory. `unmerged` are the ids at the other stages, `sections` where each
    extension lies.
    """

    version: int
    entries: dict[bytes, bytes]
    layout: struct.Struct
    intents: frozenset[bytes]
    unmerged: tuple[str, ...]
    sections: dict[bytes, bytes]


def oid_of(fixed: bytes) -> str:
    """Returns the object that is recorded in the fixed part of an entry."""
    return fixed[40:-2].hex()


def mode_of(fixed: bytes) -> int:
    """Returns the mode that is recorded in the fixed part of an entry."""
    return int.from_bytes(fixed[24:28], "big")


def stats(data: bytes, oid_bytes: int) -> IndexStats:
    """Reads what is recorded of every path, in a fraction of the time of `read_index`.

    Raises IndexUnreadable.
    """
    version, count = header(data, oid_bytes)
    if not checksum_matches(data, oid_bytes):
        raise IndexUnreadable("the checksum does not match")
    layout = struct.Struct(f">10I{oid_bytes}sH")
    walk = StatWalk(data, oid_bytes, version)
    entries: dict[bytes, bytes] = {}
    intents: list[bytes] = []
    unmerged: list[str] = []
    while count:
        count -= walk.take_plain(count, entries)
        if count:
            count -= 1
            start, path, _, flags = walk.next()
            fixed = data[start : start + layout.size]
            if flags & STAGE:
                unmerged.append(oid_of(fixed))
                continue
            entries[path] = fixed
            if flags & INTENT_TO_ADD:
                intents.append(path)
    blocks = sections(data, walk.offset, oid_bytes)
    return IndexStats(version, entries, layout, frozenset(intents), tuple(unmerged), blocks)


class StatWalk(Walk):
    """A walk that takes most entries at once, as they lie there."""

    def take_plain(self, count: int, into: dict[bytes, bytes]) -> int:
        """Reads entries that have no flags, no stage and a short name, and returns how many there were."""
        if self._version == 4:
            return self._take_compressed(count, into)
        data, offset, size, steps = self._data, self.offset, self._name, _steps(self._name)
        left, limit, last = count, self._end, self._end - self._name
        while left and offset <= last:
            start = offset + size
            length = data[start - 1]
            end = start + length
            # The upper half of the flags is empty, and the name ends where it should.
            if data[start - 2] or not length or end >= limit or data[end]:
                break
            into[data[start:end]] = data[offset:start]
            offset += steps[length]
            left -= 1
        self.offset = offset
        return count - left

    def _take_compressed(self, count: int, into: dict[bytes, bytes]) -> int:
        data, offset, size, path = self._data, self.offset, self._name, self._path
        left, limit, last, find = count, self._end, self._end - self._name, data.find
        while left and offset < last:
            start = offset + size
            dropped = data[start]
            if data[start - 2] or not data[start - 1] or dropped & 0x80:
                break
            end = find(b"\0", start + 1, limit)
            if end < 0 or dropped > len(path):
                break
            path = path[: len(path) - dropped] + data[start + 1 : end]
            into[path] = data[offset:start]
            offset = end + 1
            left -= 1
        self.offset, self._path = offset, path
        return count - left


def _steps(size: int) -> list[int]:
    """Returns how long an entry is with a name of each length below 256, padding included."""
    return [(size + length + 8) & ~7 for length in range(256)]
