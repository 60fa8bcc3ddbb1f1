"""What earlier captures of a lane have read, so that it need not be read again while its status is the same.

A cache: not durable, replaced by each capture, and what cannot be used is as if it were not there.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from adapters.files.durable import CREATE, TEMPORARY, read_file
from adapters.files.errors import FilesError
from adapters.files.scan import TOGETHER
from adapters.snapshots.files import BEGINNINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adapters.files.scan import Entry

TICK = 20_000_000  # nanoseconds, more than a tick of the clock: a write this close to a look may not show
COARSE = 2_000_000_000  # the same where the file system keeps times in whole seconds
SECOND = 1_000_000_000
LIMIT = 1 << 28  # bytes of a file of looks
HEAD = b"laneyard-looks-1\n"


class Look(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a file or link was when it was read; `apart` is the SHA-256 by which its bytes were kept."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    oid: str
    xattrs: tuple[tuple[bytes, bytes], ...] = ()
    apart: str | None = None

    def is_of(self, status: os.stat_result) -> bool:
        """Tells whether nothing was written since: any write or change of attributes moves the ctime."""
        return (
            self.ctime_ns == status.st_ctime_ns
            and self.inode == status.st_ino
            and self.mtime_ns == status.st_mtime_ns
            and self.size == status.st_size
        )


Looks = dict[bytes, Look]
BATCH = msgspec.msgpack.Decoder(list[tuple[bytes, Look]])


def path_of(directory: bytes, lane: str) -> bytes:
    """Returns where the looks at a lane are, beside the directory of any of its snapshots."""
    state = os.path.dirname(os.path.dirname(directory))
    return os.path.join(state, b"looks", hashlib.sha256(lane.encode()).hexdigest()[:32].encode())


def load(path: bytes, algorithm: str) -> Looks:
    """Returns what is remembered for repositories of that hash, which is nothing where it is unusable."""
    with suppress(OSError, FilesError, msgspec.MsgspecError):
        data = read_file(path, LIMIT)
        head = HEAD + algorithm.encode() + b"\n"
        body = memoryview(data)[len(head) + 32 :]
        if data.startswith(head) and hashlib.sha256(body).digest() == data[len(head) : len(head) + 32]:
            batches = msgspec.msgpack.decode(body, type=list[bytes])
            return {path: look for batch in batches for path, look in BATCH.decode(batch)}
    return {}


def save(path: bytes, algorithm: str, looks: Iterable[tuple[bytes, Look]]) -> None:
    """Remembers the looks instead of earlier ones; does nothing where the disk will not."""
    pending, batches = iter(looks), []
    while batch := list(islice(pending, TOGETHER)):
        batches.append(msgspec.msgpack.encode(batch))
    body = msgspec.msgpack.encode(batches)
    batches.clear()
    place = os.path.dirname(path)
    begun = os.path.join(os.path.dirname(place), BEGINNINGS)  # is cleared at the next start
    temporary = os.path.join(begun, TEMPORARY + secrets.token_hex(8).encode())
    with suppress(OSError):
        os.makedirs(place, 0o700, exist_ok=True)
        os.makedirs(begun, 0o700, exist_ok=True)
        try:
            with os.fdopen(os.open(temporary, CREATE, 0o600), "wb") as file:
                file.write(HEAD + algorithm.encode() + b"\n" + hashlib.sha256(body).digest())
                file.write(body)
            os.rename(temporary, path)
        except OSError:
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise


def worth(
    entries: Iterable[Entry], known: frozenset[bytes] | set[bytes], apart: dict[bytes, str], began_ns: int
) -> Iterator[tuple[bytes, Look]]:
    """Yields the looks at these entries that a later write cannot have left as they are.

    What is `known` in another way is left out. `began_ns` is when the first of them was read.
    """
    return (
        (e.path, Look(e.inode, e.size, e.mtime_ns, e.ctime_ns, e.oid, e.xattrs, apart.get(e.path)))
        for e in entries
        if e.oid is not None and e.path not in known and not is_racy(e.ctime_ns, began_ns)
    )


def is_racy(ctime_ns: int, looked_ns: int) -> bool:
    """Tells whether a write just after that look may have left the time of change as it was."""
    if ctime_ns >= looked_ns - TICK:
        return True
    return ctime_ns >= looked_ns - COARSE and ctime_ns % SECOND == 0


def wait_for_the_clock(ctime_ns: int) -> None:
    """Waits until a write would carry a later time: only then a second reading says more than the first."""
    tick = COARSE if ctime_ns % SECOND == 0 else TICK
    while 0 <= (since := time.time_ns() - ctime_ns) < tick:
        time.sleep((tick - since) / 1e9)
