"""What a snapshot holds, sorted into classes that a person thinks in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from adapters.files.descriptors import owned
from adapters.files.errors import words
from adapters.git.heads import OPERATIONS
from adapters.snapshots import objects
from adapters.snapshots.files import Files, SnapshotDamaged
from adapters.snapshots.manifest import GITLINK, Held, parents
from adapters.snapshots.position import tree_of
from domain.paths import is_inside, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adapters.git.parse import TreeEntry
    from adapters.snapshots.manifest import Registered
    from adapters.snapshots.reading.reading import Opened


class Sort(msgspec.Struct, frozen=True):
    """Paths of one class, packed, and how many bytes they have together."""

    name: str
    paths: tuple[str, ...]
    bytes: int


async def summarise(opened: Opened) -> tuple[Sort, ...]:
    """Returns every class that has a path in it; one path may be in several. Raises GitError."""
    tree, staged = await opened.tree(), await opened.staged()
    known = tree.keys() | staged.keys()
    full = parents(await opened.wanted())
    sorts: dict[str, list[Held]] = {name: [] for name in OF_ENTRIES}
    for path, held in opened.held.items():
        plain = path in full and held.mode == opened.manifest.directory_mode
        for name in _classes(held, known=path in known, full=path in full, plain=plain):
            sorts[name].append(held)
    sorts["changed"] += await _moved(opened, tree)
    omitted = opened.manifest.omitted
    sorts["deleted"] = [
        each for each in sorts["deleted"] if not any(is_inside(each.path, o) for o in omitted)
    ]
    found = [_sort(name, sorts[name]) for name in OF_ENTRIES]
    found.insert(OF_ENTRIES.index("apart"), await _staged(opened, tree, staged))
    found.append(_registration(opened))
    return tuple(each for each in found if each.paths)


async def _moved(opened: Opened, tree: dict[bytes, TreeEntry]) -> list[Held]:
    """Returns the submodules that are at other commits than the lane's commit has."""
    if not any(path.endswith(b"/.git") for path in opened.held):
        return []
    now = await tree_of(opened.git, opened.common, opened.manifest.commit)
    links = (path for path, entry in now.items() if entry.mode == GITLINK and tree.get(path) != entry)
    return [Held(pack(path), "directory", 0, 0, None) for path in links]


def operation(registered: Iterable[Registered]) -> str | None:
    """Returns the operation that was in progress, by what is in the registration."""
    names = {unpack(each.name) for each in registered}
    names |= parents(names)
    return next((operation for name, operation in OPERATIONS if name in names), None)


def _classes(held: Held, *, known: bool, full: bool, plain: bool) -> Iterator[str]:
    """Yields the classes of one entry; of a directory that is full and plain none, as it holds nothing."""
    if held.kind == "absent":
        yield "deleted"
    elif held.kind == "directory":
        if not plain:
            yield "directories" if full else "empty"
    elif known:
        yield "changed"
    elif held.apart is None:
        yield "untracked"
    if held.apart is not None:
        yield "apart"
    if held.twin is not None:
        yield "linked"
    if held.xattrs:
        yield "attributed"


def _sort(name: str, entries: Iterable[Held]) -> Sort:
    entries = tuple(entries)
    return Sort(name, tuple(each.path for each in entries), sum(each.size for each in entries))


async def _staged(opened: Opened, tree: dict[bytes, TreeEntry], staged: dict[bytes, TreeEntry]) -> Sort:
    """Returns what the index has otherwise than the commit; a path that it does not have counts nothing."""
    differs = [path for path, entry in staged.items() if tree.get(path) != entry]
    oids = sorted({staged[path].oid for path in differs if staged[path].mode != GITLINK})
    sizes = {oid: size for oid, _, size in await objects.check(opened.git, opened.common, oids)}
    total = sum(sizes.get(staged[path].oid, 0) for path in differs)
    paths = sorted([*differs, *(tree.keys() - staged.keys())])
    return Sort("staged", tuple(map(pack, paths)), total)


def _registration(opened: Opened) -> Sort:
    files = [each for each in opened.manifest.registration if each.sha256]
    sizes = (_size(Files(opened.directory), each.sha256) for each in files)
    return Sort("registration", tuple(each.name for each in files), sum(sizes))


def _size(files: Files, digest: str) -> int:
    try:
        with owned(files.open(digest)) as descriptor:
            return os.fstat(descriptor).st_size
    except OSError as error:
        raise SnapshotDamaged(f"a file of the snapshot cannot be read: {words(error)}") from error


OF_ENTRIES = ("changed", "untracked", "deleted", "apart", "directories", "empty", "linked", "attributed")
