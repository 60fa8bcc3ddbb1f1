"""A tree whose paths are longer than the kernel takes is made again, looked at from inside."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from domain.effects import Applied
from tests.adapters.snapshots.applying import OLD, apply, fresh
from tests.adapters.snapshots.handmade import snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.adapters.snapshots.lanes import Lane


async def test_a_tree_deeper_than_any_path_comes_back(lane: Lane) -> None:
    """Looked at from inside: a path of 6,000 bytes cannot be named."""
    path = b"/".join([b"d" * 199] * 30 + [b"file"])
    make_deep(lane, path)
    taken = snapshot(lane, apart=(path,))
    before = facts_on_the_way(lane, path)
    place = await fresh(lane, taken)
    for _ in range(2):
        assert await apply(lane, taken, place) == Applied(content=taken.content)
        assert facts_on_the_way(lane, path) == before


def descend(lane: Lane, path: bytes, *, make: bool = False) -> Iterator[tuple[int, bytes]]:
    """Yields each directory on the way to a path, open, with the next name in it."""
    descriptor = os.open(lane.path, os.O_RDONLY)
    try:
        *directories, last = path.split(b"/")
        for name in directories:
            if make:
                os.mkdir(name, 0o755, dir_fd=descriptor)
            yield descriptor, name
            below = os.open(name, os.O_RDONLY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        yield descriptor, last
    finally:
        os.close(descriptor)


def make_deep(lane: Lane, path: bytes) -> None:
    """Writes a file at a path of any length, and makes all that leads to it old."""
    way = list(path.split(b"/"))
    for number, (parent, name) in enumerate(descend(lane, path, make=True)):
        if number == len(way) - 1:
            with open(os.open(name, os.O_WRONLY | os.O_CREAT, 0o640, dir_fd=parent), "wb") as file:
                file.write(b"deep\n")
    for number, (parent, name) in enumerate(descend(lane, path)):
        os.utime(name, ns=(OLD, OLD + number), dir_fd=parent)


def facts_on_the_way(lane: Lane, path: bytes) -> list[tuple[int, int]]:
    """Returns mode and time of all that leads to a path."""
    found = (os.stat(name, dir_fd=parent) for parent, name in descend(lane, path))
    return [(status.st_mode, status.st_mtime_ns) for status in found]
