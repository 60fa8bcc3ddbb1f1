"""A real repository of ten thousand files, and a lane with every kind of change, through a whole removal."""

from __future__ import annotations

import os
import shutil
import sysconfig
from contextlib import closing
from typing import TYPE_CHECKING

import apsw
import pytest

from adapters.clock import now
from adapters.store import tables, views
from adapters.store.connection import connect
from adapters.store.journal import Journal
from adapters.store.verify import verify
from domain.states import Active, Quarantined, Reaped
from projections.catalogue import TABLES
from tests.sagas.scenarios import place_of
from tests.sagas.worlds import World, walk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from projections.table import Row

FILES = 10_000
LARGEST = 64 << 10  # bytes; a few large ones would take all the time and show nothing
KINDS = 12  # of changes that are made to tracked files, each to as many files
EACH = 8

pytestmark = pytest.mark.slow


def installed() -> Iterator[str]:
    """Yields the files of the running Python: its packages and its standard library."""
    for scheme in ("purelib", "platlib", "stdlib"):
        for directory, directories, names in os.walk(sysconfig.get_path(scheme)):
            directories.sort()
            paths = (os.path.join(directory, name) for name in sorted(names))
            yield from (path for path in paths if os.path.isfile(path) and os.path.getsize(path) <= LARGEST)


def fill(world: World) -> list[bytes]:
    """Commits ten thousand installed files, and returns their paths."""
    sources = dict.fromkeys(path for _, path in zip(range(2 * FILES), installed(), strict=False))
    if len(sources) < FILES:
        pytest.skip(f"this Python has only {len(sources)} files of at most {LARGEST} bytes installed")
    paths = []
    for source in list(sources)[:FILES]:
        path = os.path.join(b"environment", os.fsencode(source).lstrip(b"/"))
        target = os.path.join(world.root, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(os.fsencode(source), target)
        paths.append(path)
    world.git(world.root, "add", "--force", "--all", ":/")
    world.git(world.root, "config", "gc.auto", "0")  # it would go on in the background, and leave its files
    world.git(world.root, "commit", "-q", "-m", "ten thousand")
    return paths


def change(world: World, place: bytes, tracked: list[bytes]) -> None:
    """Makes every kind of change to files far apart, some of it staged."""
    spread = [os.path.join(place, path) for path in tracked[:: len(tracked) // (KINDS * EACH)]]
    staged, both, unstaged, gone, dropped, made_executable, linked, moved, *_ = (
        spread[kind::KINDS] for kind in range(KINDS)
    )
    for path in (*staged, *both):
        append(path, b"staged\n")
    for path in (*dropped, *moved):
        os.rename(path, path + b".moved") if path in moved else os.unlink(path)
    add(place, b"new/staged", b"a new file, staged\n")
    add(place, b"new/line\nfeed", b"staged under two lines\n")
    world.git(place, "add", "--force", "--all", ":/")
    for path in (*both, *unstaged):
        append(path, b"unstaged\n")
    for path in gone:
        os.unlink(path)
    for path in made_executable:
        os.chmod(path, 0o755)
    for path in linked:
        os.unlink(path)
        os.symlink(b"../target of a link", path)
    for name in (b"untracked", b"also\nuntracked", b"not \xff\xfe UTF-8", b"-leading", b'quote"d\\'):
        add(place, b"new/" + name, b"untracked: " + name)
    add(place, b"new/tool", b"#!/bin/sh\n", 0o755)
    os.symlink(b"nowhere", os.path.join(place, b"new/dangling"))


def append(path: bytes, data: bytes) -> None:
    with open(path, "ab") as file:
        file.write(data)


def add(place: bytes, path: bytes, data: bytes, mode: int = 0o644) -> None:
    target = os.path.join(place, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "wb") as file:
        file.write(data)
    os.chmod(target, mode)


async def test_ten_thousand_files_come_back_as_they_were_and_the_log_tells_it_all(world: World) -> None:
    tracked = fill(world)
    async with world.open() as opened:
        await opened.create()
        place = place_of(opened)
        change(world, place, tracked)
        before = walk(place), world.index_of(place)
        assert isinstance((await opened.remove()).lane, Quarantined)
        assert walk(place) == {}
        assert isinstance((await opened.reap()).lane, Reaped)
        assert isinstance((await opened.restore()).lane, Active)
        assert place_of(opened) == place
        assert (walk(place), world.index_of(place)) == before
        assert len(before[0]) > FILES
        assert {b"1 .M", b"1 M.", b"1 MM", b"1 .D", b"1 D.", b"1 .T", b"1 A."} <= kinds(before[1][0])
    assert await world.complaints() == []
    require_rebuildable(world.settings.store)
    require_tamper_evident(world.settings.store, world.home)


def kinds(status: bytes) -> set[bytes]:
    """Returns which kinds of change git shows."""
    return {record[:4] for record in status.split(b"\0")}


def require_rebuildable(store: bytes) -> None:
    """Deletes every projection's table, and holds the rebuilt ones against them."""
    with closing(connect(store)) as connection:
        before = rows(connection)
        assert all(before[name] for name in ("lane", "snapshot", "repository", "history"))
        for table in TABLES:
            connection.execute(f"DROP TABLE {table.name}")
    with closing(Journal(store, now)) as journal:
        journal.maintain(views.rebuild).result()
    with closing(connect(store, read_only=True)) as connection:
        assert rows(connection) == before
        assert list(verify(connection)) == []


def rows(connection: apsw.Connection) -> dict[str, list[Row]]:
    return {table.name: tables.read(connection, table) for table in TABLES}


def require_tamper_evident(store: bytes, home: Path) -> None:
    """Flips one bit in a copy of the log, and expects its position to be named."""
    copy = os.path.join(os.fsencode(home), b"copy.db")
    for end in (b"", b"-wal"):
        if os.path.exists(store + end):  # whoever only reads leaves the write-ahead log behind
            shutil.copyfile(store + end, copy + end)
    position = flip(copy)
    with closing(connect(copy, read_only=True)) as connection:
        found = list(verify(connection))
    assert position in {each.position for each in found if each.check == "chain"}


def flip(store: bytes) -> int:
    """Changes one bit of the state of the event in the middle, as somebody would who may write the file."""
    with closing(apsw.Connection(os.fsdecode(store))) as hostile:
        triggers = hostile.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            hostile.execute(f"DROP TRIGGER {name}")
        position = hostile.execute("SELECT max(position) / 2 FROM event").get
        state = hostile.execute("SELECT state FROM event WHERE position = ?", (position,)).get
        middle = len(state) // 2
        flipped = state[:middle] + bytes([state[middle] ^ 1]) + state[middle + 1 :]
        hostile.execute("UPDATE event SET state = ? WHERE position = ?", (flipped, position))
        for _, sql in triggers:
            hostile.execute(str(sql))
    return int(position)
