"""What an index says, whatever its form: entries, flags and resolved conflicts, and not its stat data.

A refresh rewrites the file and says nothing new. A split index says a part of it in another file
(gitformat-index, "Split index"; the bitmaps are those of EWAH, gitformat-bitmap).
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from adapters.git.errors import IndexUnreadable
from adapters.git.index import HASHES, STAGE, IndexEntry, Walk, checksum_matches, entry, extensions, header

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapters.git.index import Found

    Shared = Callable[
        [bytes], bytes
    ]  # the content of the shared index of that file name; empty: there is none


class Meaning(msgspec.Struct, frozen=True):
    """All entries, those of a shared index among them, and the `REUC` extension as it is."""

    entries: tuple[IndexEntry, ...]
    resolved: bytes


def meaning_of(data: bytes, shared: Shared) -> Meaning:
    """Returns what an index says; no index says the same as an empty one. Raises IndexUnreadable."""
    if not data:
        return Meaning((), b"")
    width, found, blocks = _read(data, lambda walk, count: list(walk.every(count)))
    entries = tuple(entry(data, width, *each) for each in found)
    if b"link" in blocks:
        entries = _joined(entries, blocks[b"link"], shared, width)
    return Meaning(entries, blocks.get(b"REUC", b""))


def objects_of(data: bytes, shared: Shared) -> set[bytes]:
    """Returns the ids that only an index has: of conflicts, open and resolved, and of all of a shared index.

    Raises IndexUnreadable.
    """
    if not data:
        return set()
    width, odd, blocks = _read(data, Walk.odd)
    found = {data[each[0] + 40 : each[0] + 40 + width].hex().encode() for each in odd if each[3] & STAGE}
    found.update(_resolved(blocks.get(b"REUC", b""), width))
    if b"link" in blocks:
        found.update(each.oid.encode() for each in _base(blocks[b"link"], shared, width))
    return found


def _read(
    data: bytes, entries: Callable[[Walk, int], list[Found]]
) -> tuple[int, list[Found], dict[bytes, bytes]]:
    """Returns how long ids are, the entries and the extensions; the file does not say the first."""
    why: IndexUnreadable | None = None
    for width in HASHES:
        try:
            version, count = header(data, width)
            if not checksum_matches(data, width):
                raise IndexUnreadable("the checksum does not match")
            walk = Walk(data, width, version)
            found = entries(walk, count)
            extensions(data, walk.offset, width)
            return width, found, dict(_blocks(data, walk.offset, width))
        except IndexUnreadable as error:
            why = error
    raise why or IndexUnreadable("no hash is known")


def _blocks(data: bytes, offset: int, width: int) -> Iterator[tuple[bytes, bytes]]:
    """Yields name and content of extensions that are known to be whole."""
    while offset < len(data) - width:
        end = offset + 8 + int.from_bytes(data[offset + 4 : offset + 8], "big")
        yield data[offset : offset + 4], data[offset + 8 : end]
        offset = end


def _resolved(data: bytes, width: int) -> Iterator[bytes]:
    """Yields the ids of a `REUC` extension: a path, three modes in octal, an id for each that is not 0."""
    at = 0
    while at < len(data):
        ends = []
        for _ in range(4):
            ends.append(at := data.find(b"\0", at) + 1)
            if not at:
                raise IndexUnreadable("a resolved conflict breaks off")
        for start, end in pairwise(ends):
            if data[start : end - 1].strip(b"0"):
                yield data[at : at + width].hex().encode()
                at += width


def _base(link: bytes, shared: Shared, width: int) -> tuple[IndexEntry, ...]:
    """Returns the entries of the shared index that a `link` extension names, if it names one."""
    name = link[:width].hex()
    if not name.strip("0"):
        return ()
    data = shared(b"sharedindex." + name.encode())
    if not data:
        raise IndexUnreadable(f"the shared index {name} is missing")
    found, each, _ = _read(data, lambda walk, count: list(walk.every(count)))
    return tuple(entry(data, found, *one) for one in each)


def _joined(
    entries: tuple[IndexEntry, ...], link: bytes, shared: Shared, width: int
) -> tuple[IndexEntry, ...]:
    """Returns the entries of both parts: shared ones that are neither deleted nor replaced, and ours."""
    base = list(_base(link, shared, width))
    deleted, at = _bits(link, width) if len(link) > width else ([], width)
    replaced, _ = _bits(link, at) if len(link) > at else ([], at)
    if len(replaced) > len(entries) or max((*deleted, *replaced), default=-1) >= len(base):
        raise IndexUnreadable("the two parts of a split index do not fit")
    for position, each in zip(replaced, entries, strict=False):  # a replacement has no name of its own
        base[position] = replace(each, path=base[position].path)
    gone = set(deleted)
    whole = {(each.path, each.stage): each for at, each in enumerate(base) if at not in gone}
    whole |= {(each.path, each.stage): each for each in entries[len(replaced) :]}
    return tuple(whole[key] for key in sorted(whole))


def _bits(data: bytes, at: int) -> tuple[list[int], int]:
    """Reads an EWAH bitmap, and returns where its bits are and where it ends; raises IndexUnreadable."""
    try:
        size, count = struct.unpack_from(">II", data, at)
        words = struct.unpack_from(f">{count}Q", data, at + 8)
    except struct.error as error:
        raise IndexUnreadable("a bitmap of a split index breaks off") from error
    found: list[int] = []
    position = index = 0
    while index < count and position < size:
        marker = words[index]
        run, literals = (marker >> 1 & 0xFFFFFFFF) * 64, marker >> 33
        if marker & 1:
            found += range(position, min(position + run, size))
        position += run
        for word in words[index + 1 : index + 1 + literals]:
            found += (position + bit for bit in range(64) if word >> bit & 1)
            position += 64
        index += 1 + literals
    return found, at + 12 + 8 * count
