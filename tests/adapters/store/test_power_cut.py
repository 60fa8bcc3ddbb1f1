"""A disk that forgets at a power cut what was never synced: each such write is kept, lost or torn."""

from __future__ import annotations

from contextlib import closing
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import apsw
import pytest

from adapters.store.append import append, read_head
from adapters.store.chain import walk
from adapters.store.connection import connect, initialise, transaction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECTOR = 512
CUTS = 20
COMMITS = 60

pytestmark = pytest.mark.slow


class Write(NamedTuple):
    offset: int
    data: bytes


class Truncation(NamedTuple):
    size: int


class Medium:
    """What one file holds for certain, and what the disk has been told since but not asked to keep."""

    def __init__(self, image: bytes = b"") -> None:
        self.image = bytearray(image)
        self.pending: list[Write | Truncation] = []

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.image, change)
        self.pending.clear()

    def after_power_cut(self, chance: Random) -> bytes:
        image = bytearray(self.image)
        for change in self.pending:
            for part in _torn(change, chance):
                _apply(image, part)
        return bytes(image)


class Disk(apsw.VFS):
    """The system's own file system, with a `Medium` kept beside each file."""

    def __init__(self, name: str) -> None:
        self.media: dict[str, Medium] = {}
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None:
            return apsw.VFSFile("", name, flags)
        if path not in self.media:
            self.media[path] = Medium(_content(path))
        return File(name, flags, self.media[path])

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self.media.pop(filename, None)
        super().xDelete(filename, syncdir)


class File(apsw.VFSFile):
    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int], medium: Medium) -> None:
        self.medium = medium
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self.medium.pending.append(Write(offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self.medium.pending.append(Truncation(newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self.medium.sync()


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk("forgetful")
    yield disk
    disk.unregister()


def test_no_acknowledged_commit_is_lost_in_a_power_cut(disk: Disk, tmp_path: Path) -> None:
    assert [losses(disk, tmp_path, seed, "FULL") for seed in range(CUTS)] == [0] * CUTS


def test_the_same_power_cuts_do_lose_commits_that_are_not_synced(disk: Disk, tmp_path: Path) -> None:
    assert sum(losses(disk, tmp_path, seed, "NORMAL") > 0 for seed in range(CUTS)) > CUTS // 2


def losses(disk: Disk, directory: Path, seed: int, synchronous: str) -> int:
    """Returns how many acknowledged events are missing after a power cut at a random commit."""
    chance = Random(seed)
    path = directory / f"{seed}.db"
    with closing(connect(str(path))) as connection:
        initialise(connection)
    acknowledged = _write_until_cut(disk, path, chance, synchronous)
    with closing(connect(str(directory / f"{seed}-after.db"))) as connection:
        assert connection.execute("PRAGMA integrity_check").get == "ok"
        assert list(walk(connection)) == []
        return acknowledged - read_head(connection).position


def _write_until_cut(disk: Disk, path: Path, chance: Random, synchronous: str) -> int:
    """Commits under `path`, and leaves what a cut would leave under the same name with `-after`."""
    with closing(connect(str(path), vfs="forgetful")) as connection:
        if synchronous != "FULL":  # else what `connect` has set, which is what is tried here
            connection.pragma("synchronous", synchronous)
        connection.pragma("wal_autocheckpoint", 60)  # pages: some cuts come after a checkpoint
        cut = chance.randrange(10, COMMITS)
        for version in range(1, cut + 1):
            with transaction(connection):
                append(connection, [("lane", version, "t", chance.randbytes(chance.randrange(3000)))])
        for suffix in ("", "-wal"):
            image = disk.media[f"{path}{suffix}"].after_power_cut(chance)
            path.with_name(f"{path.stem}-after.db{suffix}").write_bytes(image)
    return cut


def _torn(change: Write | Truncation, chance: Random) -> Iterator[Write | Truncation]:
    fate = chance.random()
    if fate < 0.4:
        yield change
    elif fate < 0.7 and isinstance(change, Write):
        for start in range(0, len(change.data), SECTOR):
            if chance.random() < 0.5:
                yield Write(change.offset + start, change.data[start : start + SECTOR])


def _apply(image: bytearray, change: Write | Truncation) -> None:
    if isinstance(change, Truncation):
        del image[change.size :]
        return
    image.extend(bytes(max(0, change.offset - len(image))))
    image[change.offset : change.offset + len(change.data)] = change.data


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""
