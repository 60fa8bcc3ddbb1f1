"""Packs out of which blobs were read and hashed before: one that has the same bytes has the same blobs.

Whoever reaps several lanes of a repository would have git inflate the same blobs for each. A pack has a fifth
of the bytes that are in it, and hashing them all takes a twentieth of the time.
"""

from __future__ import annotations

import hashlib
import os
import struct
from array import array
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from adapters.files.descriptors import READ, owned
from adapters.files.durable import read_file
from adapters.files.errors import FilesError
from adapters.snapshots.files import PIECE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

# gitformat-pack(5): of the one version that is looked into, what it begins with and how many names it has.
BEGINNING, COUNT = b"\xfftOc\0\0\0\x02", struct.Struct(">1028xI")
LEAST = 1 << 20  # bytes of packs and of indexes that are looked into for however little
HASHED = 1 << 15  # and more for each blob: hashing as many takes as long as having git read the blob
INDEXED = 1 << 9  # the same of indexes
LIMIT = 1 << 28  # bytes of one index
MOST = 1 << 20  # blobs that are remembered, at some 40 bytes each


class Pack(NamedTuple):
    """A pack when all of it was hashed, and which of the blobs in question it has, and no other pack."""

    path: bytes
    status: tuple[int, ...]
    digest: bytes
    blobs: tuple[bytes, ...]


class Memory:
    """What was read out of which packs. It lasts as long as the process."""

    def __init__(self) -> None:
        self._read: OrderedDict[bytes, tuple[bytes, array[int]]] = OrderedDict()
        self._lock = Lock()  # each repository of a service has a thread of its own

    def sizes(self, packs: Collection[Pack]) -> dict[str, int]:
        """Returns the sizes of the blobs that were read out of just these bytes, and were whole."""
        found: dict[str, int] = {}
        for pack in packs:
            with self._lock:
                names, sizes = self._read.get(pack.digest, (b"", array("Q")))
            width = len(names) // max(len(sizes), 1)
            asked = set(pack.blobs)
            for number, size in enumerate(sizes):
                if (name := names[number * width : number * width + width]) in asked:
                    found[name.hex()] = size
        return found

    def add(self, packs: Collection[Pack], sizes: Mapping[str, int]) -> None:
        """Remembers that all these blobs were read and hashed after the packs were, and are whole."""
        for pack in packs:
            if _status(pack.path) != pack.status:
                continue
            read = [(name, sizes[name.hex()]) for name in pack.blobs]
            with self._lock:
                self._read[pack.digest] = b"".join(name for name, _ in read), array("Q", (s for _, s in read))
                self._read.move_to_end(pack.digest)
                while sum(len(each) for _, each in self._read.values()) > MOST:
                    self._read.popitem(last=False)


def look(common: bytes, oids: Collection[str]) -> list[Pack]:
    """Returns the packs that these blobs are in, after reading every byte of each.

    None where that takes longer than having git read the blobs, or where something cannot be read: whoever
    has git read them finds out what it means.
    """
    wanted = {bytes.fromhex(oid) for oid in oids}
    try:
        found = _in_packs(os.path.join(common, b"objects/pack"), wanted) if wanted else {}
        if sum(os.stat(path).st_size for path in found) > LEAST + HASHED * len(wanted):
            return []
        return [_hashed(path, blobs) for path, blobs in found.items()]
    except (OSError, FilesError):
        return []


def _in_packs(directory: bytes, wanted: set[bytes]) -> dict[bytes, tuple[bytes, ...]]:
    """Returns, for each pack that has some, which of the blobs it has and no other pack has."""
    room, width = LEAST + INDEXED * len(wanted), len(next(iter(wanted)))
    found: dict[bytes, set[bytes]] = {}
    once: set[bytes] = set()
    for name in sorted(name for name in os.listdir(directory) if name.endswith(b".idx")):
        path = os.path.join(directory, name)
        room -= os.stat(path).st_size
        names = _names(path, width) if room >= 0 else None
        if names is None:  # any of the blobs may be in this one as well
            return {}
        blobs = wanted.intersection(names)
        for others in found.values():
            others -= blobs
        if blobs := blobs - once:
            found[path.removesuffix(b"idx") + b"pack"] = set(blobs)
        once |= blobs
    return {path: tuple(sorted(blobs)) for path, blobs in found.items() if blobs}


def _names(path: bytes, width: int) -> Iterator[bytes] | None:
    """Returns the names of all objects of a pack by its index, or None where it is none that we know."""
    data = read_file(path, LIMIT)
    if not data.startswith(BEGINNING) or len(data) < COUNT.size:
        return None
    start, end = COUNT.size, COUNT.size + COUNT.unpack_from(data)[0] * width
    return (data[at : at + width] for at in range(start, end, width)) if end <= len(data) else None


def _hashed(path: bytes, blobs: tuple[bytes, ...]) -> Pack:
    before = _status(path)
    return Pack(path, before, _digest(path) + _digest(path.removesuffix(b"pack") + b"idx"), blobs)


def _digest(path: bytes) -> bytes:
    total = hashlib.sha256()
    with owned(os.open(path, READ)) as descriptor:
        while piece := os.read(descriptor, PIECE):
            total.update(piece)
    return total.digest()


def _status(path: bytes) -> tuple[int, ...]:
    """Returns by what another file under the name would be known."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return ()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
