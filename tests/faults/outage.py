"""A power cut for whole directories: the tree is put as the disk would have it, under its own path."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING, NamedTuple

from adapters.files import kernel
from adapters.files.identity import identify
from domain.evidence import Place
from domain.paths import unpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from random import Random

    from domain.envelope import Envelope
    from domain.evidence import Identity
    from tests.faults.disk import Disk, Node, Said


Key = tuple[int, int | None]  # inode and birth


class Left(NamedTuple):
    """One entry that is there after a cut; more than one name may be the same object's."""

    path: bytes
    node: Node
    said: Said


def after_cut(disk: Disk, *, names: bool = False, chance: Random | None = None) -> list[Left]:
    """Returns the tree after a power cut now: what is durable; with `names` also every name that is seen.

    A file that was not synced has its old bytes or none, or by `chance` its new ones.
    """

    def walk(node: Node, path: bytes) -> Iterator[Left]:
        lucky = names and (node.kind != "file" or (chance is not None and chance.random() < 0.5))
        said = node.said() if lucky else node.kept
        yield Left(path, node, said)
        for name, below in said.names:
            yield from walk(below, os.path.join(path, name))

    return [*walk(disk.root, disk.place)]


def put(tree: list[Left], events: Iterable[Envelope]) -> dict[Key, Identity]:
    """Makes the place what is left, and returns which objects are to be taken for which.

    A real disk keeps the objects themselves; here each is another, so that their numbers are translated.
    """
    place, made = tree[0].path, dict[int, bytes]()
    told = {unpack(each.path): each.identity for each in _places(events)}
    instead: dict[Key, Identity] = {}
    for name in os.listdir(place):
        path = os.path.join(place, name)
        shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
    for path, node, said in tree:
        if id(node) in made and node.kind == "file":
            os.link(made[id(node)], path, follow_symlinks=False)
            continue
        _make(path, node, said)
        made[id(node)] = path
        new, old = identify(path), node.identity or told.get(path)
        if old is not None:
            instead[new.inode, new.born_ns] = old
    for path, node, said in reversed(tree):
        if node.kind != "link":
            os.chmod(path, said.mode)
        if nanoseconds := _time(said.time):
            os.utime(path, ns=(nanoseconds, nanoseconds), follow_symlinks=False)
    return instead


def translate(instead: dict[Key, Identity]) -> None:
    """Lets this process take the new objects for the old ones, for ever."""
    statx = kernel.statx

    def translated(directory: int, name: bytes) -> kernel.Birth:
        found = statx(directory, name)
        old = instead.get((found.inode, found.born_ns))
        return found if old is None else kernel.Birth(old.device, old.inode, old.born_ns)

    kernel.statx = translated


def _make(path: bytes, node: Node, said: Said) -> None:
    if node.kind == "directory":
        os.makedirs(path, exist_ok=True)
    elif node.kind == "link":
        os.symlink(said.data, path)
    else:
        with open(path, "xb") as file:
            file.write(said.data)


def _places(events: Iterable[Envelope]) -> Iterator[Place]:
    for event in events:
        for name in ("place", "left"):
            place = getattr(event.fact, name, None)
            if isinstance(place, Place):
                yield place


def _time(said: str) -> int:
    if said.isdigit():
        return int(said)
    found = SECONDS.findall(said)
    return int(found[1][0]) * 10**9 + int(found[1][1]) if len(found) == 2 else 0


SECONDS = re.compile(r"tv_sec=(-?\d+), tv_nsec=(\d+)")
