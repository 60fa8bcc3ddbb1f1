"""The stat data in git's index file: written anew for files that are as the index knew them, the rest kept.

A restored file has another inode and another time of its own than the one that the index has seen. Git would
read every such file again, and run filters on it, before it believed that nothing has changed.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

from adapters.git.errors import GitError, IndexUnreadable
from adapters.git.index import (
    EXTENDED,
    HASHES,
    LENGTH,
    STAGE,
    SUBMODULE,
    checksum_matches,
    extensions,
    header,
    offset_number,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Container, Iterator

    Found = tuple[int, bytes, bool, int]  # offset, path, whether it is plain, end

NANO = 10**9
WORD = 0xFFFFFFFF
STAMP = struct.Struct(">9I")  # ctime, mtime (seconds and nanoseconds), device, inode; uid, gid, size
MODE = slice(24, 28)  # where in an entry, between inode and uid
END = 40  # of the stat data in an entry
UNKNOWN_CTIME, UNKNOWN_INODE = bytes(8), bytes(4)


class SplitIndex(GitError):
    """Most of the entries of this index are in another file, which it names."""


def restamp(
    data: bytes,
    oid_bytes: int,
    stamp_of: Callable[[bytes], bytes | None],
    stale: Container[bytes] = frozenset(),
) -> bytes:
    """Returns the same index with the stat data of every plain entry that has a `stamp`; modes stay.

    A stale path keeps its mtime and size, by which git may have told that the content is another, but not
    inode and ctime, so that git looks. A checksum is made anew where there was one; what a file system
    monitor has said is left out. Raises SplitIndex, IndexUnreadable.
    """
    out, end = bytearray(data), 12
    for offset, path, plain, after in _entries(data, oid_bytes):
        end = after
        if not plain:
            continue
        if path in stale:
            out[offset : offset + 8] = UNKNOWN_CTIME
            out[offset + 20 : offset + MODE.start] = UNKNOWN_INODE
        elif (made := stamp_of(path)) is not None:
            out[offset : offset + MODE.start] = made[: MODE.start]
            out[offset + MODE.stop : offset + END] = made[MODE.start :]
    names = extensions(data, end, oid_bytes)
    if b"link" in names:
        raise SplitIndex("the index is split")
    if b"FSMN" in names:
        out[end:-oid_bytes] = _unmonitored(data, end, oid_bytes)
    if any(out[-oid_bytes:]):
        out[-oid_bytes:] = hashlib.new(HASHES[oid_bytes], memoryview(out)[:-oid_bytes]).digest()
    return bytes(out)


def untouched(data: bytes, oid_bytes: int, stamp_of: Callable[[bytes], bytes | None]) -> frozenset[bytes]:
    """Returns the paths of plain entries of which the index has this very stamp. Raises IndexUnreadable."""
    found = set()
    for offset, path, plain, _ in _entries(data, oid_bytes):
        made = stamp_of(path) if plain else None
        if made is not None:
            recorded = data[offset : offset + END]
            if recorded[: MODE.start] + recorded[MODE.stop :] == made:
                found.add(path)
    return frozenset(found)


def stamp(status: os.stat_result) -> bytes:
    """Returns a file's stat data, mode aside, as an index has it: the lower 32 bits of each number."""
    changed, modified = status.st_ctime_ns, status.st_mtime_ns
    return STAMP.pack(
        changed // NANO & WORD,
        changed % NANO,
        modified // NANO & WORD,
        modified % NANO,
        status.st_dev & WORD,
        status.st_ino & WORD,
        status.st_uid,
        status.st_gid,
        status.st_size & WORD,
    )


def _entries(data: bytes, oid_bytes: int) -> Iterator[Found]:
    """Yields offset and path of every entry, whether it is of a file or link without conflict, and its end.

    Raises IndexUnreadable.
    """
    # This runs for every entry of every index that is restored: flat, and everything in it a local name.
    version, count = header(data, oid_bytes)
    if not checksum_matches(data, oid_bytes):
        raise IndexUnreadable("the checksum does not match")
    layout = struct.Struct(f">24xI12x{oid_bytes}xH")
    unpack, name, find, limit = layout.unpack_from, layout.size, data.find, len(data) - oid_bytes
    start, path = 12, b""
    for _ in range(count):
        if start + name >= limit:
            raise IndexUnreadable(f"an entry breaks off at byte {start}")
        mode, flags = unpack(data, start)
        at = start + name + 2 if flags & EXTENDED else start + name
        if version == 4:
            dropped, at = offset_number(data, at)
            kept = path[: len(path) - dropped]
        end = find(b"\0", at, limit)
        if end < 0:
            raise IndexUnreadable(f"a name has no end at byte {at}")
        path = kept + data[at:end] if version == 4 else data[at:end]
        if min(len(path), LENGTH) != flags & LENGTH:
            raise IndexUnreadable(f"a name's length is wrong at byte {start}")
        end = end + 1 if version == 4 else start + (end - start + 8 & ~7)
        if end > limit:
            raise IndexUnreadable(f"an entry runs into the checksum at byte {start}")
        yield start, path, not flags & STAGE and mode not in UNSTAMPED, end
        start = end


def _unmonitored(data: bytes, start: int, oid_bytes: int) -> bytes:
    """Returns the extensions without the monitor's, and without the one that has a hash over all others."""
    kept = []
    while start < len(data) - oid_bytes:
        end = start + 8 + int.from_bytes(data[start + 4 : start + 8], "big")
        if data[start : start + 4] not in (b"FSMN", b"EOIE"):
            kept.append(data[start:end])
        start = end
    return b"".join(kept)


UNSTAMPED = (SUBMODULE, 0o040000)  # a directory stands for what is in it, in a sparse index
