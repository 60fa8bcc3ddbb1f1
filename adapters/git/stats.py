"""What an index recorded of the files that it saw: a reader that does nothing else, and does it fast."""

from __future__ import annotations

import struct

import msgspec

from adapters.git.errors import IndexUnreadable
from adapters.git.index import INTENT_TO_ADD, LENGTH, STAGE, Walk, checksum_matches, header, sections

# ctime, mtime (each seconds and nanoseconds), device, inode, mode, user, group, size, raw object id, flags
Recorded = tuple[int, int, int, int, int, int, int, int, int, int, bytes, int]


class IndexStats(msgspec.Struct, frozen=True):
    """What an index recorded of each path of stage 0, as `Recorded`, and which of them have no content yet.

    `unmerged` are the ids at the other stages, `sections` where each extension lies.
    """

    version: int
    entries: dict[bytes, Recorded]
    intents: frozenset[bytes]
    unmerged: tuple[str, ...]
    sections: dict[bytes, bytes]


def stats(data: bytes, oid_bytes: int) -> IndexStats:
    """Reads what is recorded of every path, in a fraction of the time of `read_index`.

    Raises IndexUnreadable.
    """
    version, count = header(data, oid_bytes)
    if not checksum_matches(data, oid_bytes):
        raise IndexUnreadable("the checksum does not match")
    layout = struct.Struct(f">10I{oid_bytes}sH")
    walk = StatWalk(data, oid_bytes, version)
    entries: dict[bytes, Recorded] = {}
    intents: list[bytes] = []
    unmerged: list[str] = []
    while count:
        plain = walk.take_plain(count, layout, entries)
        count -= plain
        if count:
            count -= 1
            start, path, _, flags = walk.next()
            if flags & STAGE:
                unmerged.append(data[start + 40 : start + 40 + oid_bytes].hex())
                continue
            entries[path] = layout.unpack_from(data, start)
            if flags & INTENT_TO_ADD:
                intents.append(path)
    return IndexStats(
        version, entries, frozenset(intents), tuple(unmerged), sections(data, walk.offset, oid_bytes)
    )


class StatWalk(Walk):
    """A walk that takes most entries at once, as they lie there."""

    def take_plain(self, count: int, layout: struct.Struct, into: dict[bytes, Recorded]) -> int:
        """Reads entries that have no flags, no stage and a short name, and returns how many there were."""
        if self._version == 4:
            return self._take_compressed(count, layout, into)
        data, offset, name, unpack = self._data, self.offset, self._name, layout.unpack_from
        left, limit, last = count, self._end, self._end - self._name
        while left and offset <= last:
            fields = unpack(data, offset)
            flags = fields[11]
            if not 0 < flags < LENGTH:
                break
            start = offset + name
            end = start + flags
            if end >= limit or data[end]:  # the name has no end where it should
                break
            into[data[start:end]] = fields
            offset += (name + flags + 8) & ~7
            left -= 1
        self.offset = offset
        return count - left

    def _take_compressed(self, count: int, layout: struct.Struct, into: dict[bytes, Recorded]) -> int:
        data, offset, name, unpack, path = self._data, self.offset, self._name, layout.unpack_from, self._path
        left, limit, last, find = count, self._end, self._end - self._name, data.find
        while left and offset < last:
            fields = unpack(data, offset)
            dropped = data[offset + name]
            if not 0 < fields[11] < LENGTH or dropped & 0x80:
                break
            start = offset + name + 1
            end = find(b"\0", start, limit)
            if end < 0 or dropped > len(path):
                break
            path = path[: len(path) - dropped] + data[start:end]
            into[path] = fields
            offset = end + 1
            left -= 1
        self.offset, self._path = offset, path
        return count - left
