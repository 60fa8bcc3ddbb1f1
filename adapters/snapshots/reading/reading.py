"""Reading a snapshot: what every path of it is. The lane itself is not looked at."""

from __future__ import annotations

import os
import struct
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import trio

from adapters.git.door import Location
from adapters.git.index import survey_index
from adapters.git.parse import terminated
from adapters.git.refs import read_ref
from adapters.snapshots import objects
from adapters.snapshots.differences import EMPTY_TREE
from adapters.snapshots.files import Files, SnapshotDamaged
from adapters.snapshots.manifest import (
    GITLINK,
    LINK,
    Expected,
    Held,
    Manifest,
    algorithm_of,
    load,
    ordinary,
    snapshot_dir,
)
from adapters.snapshots.position import tree_of
from adapters.snapshots.registration import registration
from domain.errors import NotARepository, NotInSnapshot
from domain.paths import display, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adapters.git.door import Git
    from adapters.git.parse import TreeEntry
    from domain.evidence import Snapshot

STAGES = {1: "the base", 2: "ours", 3: "theirs"}


class Part(msgspec.Struct, frozen=True, gc=False):
    """One path as a restore would make it; `sha256` is of content that git does not have.

    `committed` tells that it is as the commit has it; `mtime_ns` is None where it was not captured.
    """

    path: bytes
    kind: str
    mode: int
    size: int
    oid: str | None
    sha256: str | None
    mtime_ns: int | None
    committed: bool


class Opened:
    """A snapshot whose ref and manifest are those that the log knows."""

    def __init__(self, git: Git, common: bytes, directory: bytes, manifest: Manifest) -> None:
        self.git, self.common, self.directory, self.manifest = git, common, directory, manifest
        self._tree: dict[bytes, TreeEntry] | None = None

    @property
    def algorithm(self) -> str:
        """Returns the hash by which the repository names its objects; `head` may be unborn."""
        return algorithm_of(self.manifest.commit)

    @property
    def before(self) -> str:
        """Returns what the worktree and the index are compared with: the commit, or the empty tree."""
        return self.manifest.head or EMPTY_TREE[self.algorithm]

    @property
    def index(self) -> str:
        """Returns the commit of the index, as git takes it."""
        return f"{self.manifest.commit}^{2 if self.manifest.head else 1}"

    @cached_property
    def held(self) -> dict[bytes, Held]:
        """Returns what is not as the commit has it, by path."""
        return {unpack(each.path): each for each in self.manifest.entries}

    async def tree(self) -> dict[bytes, TreeEntry]:
        """Returns every path of the commit."""
        if self._tree is None:
            head = self.manifest.head
            self._tree = await tree_of(self.git, self.common, head) if head else {}
        return self._tree

    async def staged(self) -> dict[bytes, TreeEntry]:
        """Returns every path of the index."""
        return await tree_of(self.git, self.common, self.index)

    async def wanted(self) -> dict[bytes, Held]:
        """Returns what a restore would make, each directory before what is in it."""
        return Expected(self.manifest, await self.tree()).wanted()

    async def parts(self, below: Sequence[bytes] = ()) -> list[Part]:
        """Returns these paths and all below them, or everything, in the order of the tree; sizes may be -1.

        Raises NotInSnapshot for a path that a restore would not make, and SnapshotDamaged.
        """
        wanted = await self.wanted()
        for path in below:
            if path and path not in wanted:
                raise self.missing(path)
        times = await trio.to_thread.run_sync(self._times, len(wanted))
        chosen = frozenset(below) - {b""}
        if b"" in below:
            chosen = frozenset()
        return [
            _part(path, held, time, committed=path not in self.held)
            for (path, held), time in zip(wanted.items(), times, strict=True)
            if not chosen or _within(path, chosen)
        ]

    async def measured(self, parts: Sequence[Part]) -> list[Part]:
        """Returns the parts with the sizes of what only git knows. Raises SnapshotDamaged."""
        unknown = sorted({each.oid for each in parts if each.size < 0 and each.oid is not None})
        found = await objects.check(self.git, self.common, unknown)
        sizes = {oid: size for oid, _, size in found}
        if missing := next((oid for oid in unknown if oid not in sizes), None):
            raise SnapshotDamaged(f"the blob {missing} is missing")
        replace = msgspec.structs.replace
        return [each if each.size >= 0 else replace(each, size=sizes[each.oid or ""]) for each in parts]

    async def at(self, paths: Sequence[bytes]) -> list[Held]:
        """Returns the file or link at each path. Raises NotInSnapshot where there is none."""
        committed = await self._committed([each for each in paths if each not in self.held])
        return [self._readable(path, self.held.get(path) or committed.get(path)) for path in paths]

    async def staged_at(self, paths: Sequence[bytes]) -> list[Held]:
        """Returns the file or link that was staged at each path. Raises NotInSnapshot where none was."""
        staged, unmerged, found = await self.staged(), await self.unmerged(), []
        for path in paths:
            entry = staged.get(path)
            if path in unmerged:
                raise self._refused(path, f"it is unmerged, with {_stages(unmerged[path])}")
            if entry is None or entry.mode == GITLINK:
                raise self._refused(path, "nothing is staged there" if entry is None else "it is a submodule")
            found.append(_plain(path, entry.mode, entry.oid, self.manifest.file_mode))
        return found

    def _readable(self, path: bytes, held: Held | None) -> Held:
        held = held or self._directory(path)
        if held is None or held.kind == "absent":
            raise self.missing(path)
        if held.oid is None:
            raise self._refused(path, "it is a directory")
        return held

    def missing(self, path: bytes) -> NotInSnapshot:
        """Returns why there is nothing at a path."""
        held = self.held.get(path)
        if any(_within(path, frozenset([unpack(each).rstrip(b"/")])) for each in self.manifest.omitted):
            return self._refused(path, "it was left out")
        return self._refused(path, "nothing was there" if held is None else "it was deleted")

    def _refused(self, path: bytes, why: str) -> NotInSnapshot:
        return NotInSnapshot(self.manifest.id, display(pack(path)), why)

    async def require(self, paths: Sequence[bytes], *commits: str) -> None:
        """Raises NotInSnapshot for a path at which neither a commit nor the manifest has anything."""
        left = [each for each in paths if each and each not in self.held and self._directory(each) is None]
        for commit in commits:
            known = await self._committed(left, commit) if left else {}
            left = [each for each in left if each not in known]
        if left:
            raise self.missing(left[0])

    async def unmerged(self) -> dict[bytes, tuple[int, ...]]:
        """Returns the paths that were in conflict, with the stages that the index had of each."""
        if all(each.name != "index" for each in self.manifest.registration):
            return {}
        return await trio.to_thread.run_sync(_unmerged, Files(self.directory), self.manifest)

    async def _committed(self, paths: Sequence[bytes], commit: str | None = None) -> dict[bytes, Held | None]:
        """Returns what a commit, by default the head, has at these paths, without reading all of it."""
        named, head = [each for each in paths if each], self.manifest.head if commit is None else commit
        if not head or not named:
            return {}
        arguments = (b"--literal-pathspecs", b"ls-tree", b"-t", b"-z", b"--full-tree", b"--end-of-options")
        ran = await self.git.run(*arguments, head.encode(), *named, repository=Location(self.common))
        found: dict[bytes, Held | None] = {}
        for record in terminated("ls-tree", ran.out, b"\0"):
            header, _, path = record.partition(b"\t")
            mode, kind, oid = header.split(b" ")
            plain = kind == b"blob"  # else a tree, or a submodule
            file_mode = self.manifest.file_mode
            found[path] = _plain(path, int(mode, 8), oid.decode(), file_mode) if plain else _directory(path)
        return found

    def _directory(self, path: bytes) -> Held | None:
        """Returns a directory that leads to something that is held, or is the root."""
        stem = path + b"/"
        leads = any(each.startswith(stem) and held.kind != "absent" for each, held in self.held.items())
        return _directory(path) if leads or not path else None

    def _times(self, entries: int) -> Iterable[int | None]:
        """Returns the time of change of every entry, in nanoseconds. Raises SnapshotDamaged."""
        if not self.manifest.times:
            return (None,) * entries
        data = Files(self.directory).read(self.manifest.times)
        if len(data) != 8 * (entries + 1):  # the first one is the root's
            raise SnapshotDamaged("the times of change are not those of the entries")
        return struct.unpack(f"<{entries + 1}q", data)[1:]


async def open_snapshot(git: Git, state_dir: bytes, repository: str, taken: Snapshot) -> Opened:
    """Opens a snapshot of a repository, by its key. Raises NotARepository, SnapshotDamaged."""
    common, directory = unpack(repository), snapshot_dir(state_dir, taken.id)
    if not await trio.to_thread.run_sync(os.path.isdir, common):
        raise NotARepository(f"{display(repository)} (it is not there)")
    manifest = await trio.to_thread.run_sync(load, directory, taken.manifest)
    at = await read_ref(git, common, taken.ref.encode())
    if at != taken.commit:
        found = "is not there" if at is None else f"is at {at}, not at {taken.commit}"
        raise SnapshotDamaged(f"{taken.ref} {found}")
    return Opened(git, common, directory, manifest)


def relative(path: bytes, snapshot: str) -> bytes:
    """Returns a path below the lane in its plain form, empty for the lane itself.

    Raises NotInSnapshot for one that leads out of it.
    """
    parts = [each for each in path.split(b"/") if each not in (b"", b".")]
    if path.startswith(b"/") or b".." in parts or b"\0" in path:
        raise NotInSnapshot(snapshot, display(pack(path)), "a path is relative to the lane, and stays in it")
    return b"/".join(parts)


def _unmerged(files: Files, manifest: Manifest) -> dict[bytes, tuple[int, ...]]:
    data = registration.kept(files, manifest.registration, "index")
    seen = survey_index(data, 20 if manifest.algorithm == "sha1" else 32)
    if not (seen.conflicted or seen.split):
        return {}
    found: dict[bytes, tuple[int, ...]] = {}
    for each in registration.staged(files, manifest.registration).entries:
        if each.stage:
            found[each.path] = (*found.get(each.path, ()), each.stage)
    return found


def _stages(stages: Sequence[int]) -> str:
    return " and ".join(f"stage {each} ({STAGES[each]})" for each in stages)


def _within(path: bytes, roots: frozenset[bytes]) -> bool:
    while path:
        if path in roots:
            return True
        path = os.path.dirname(path)
    return False


def _part(path: bytes, held: Held, time: int | None, *, committed: bool) -> Part:
    return Part(path, held.kind, held.mode, held.size, held.oid, held.apart, time, committed)


def _plain(path: bytes, mode: int, oid: str, file_mode: int) -> Held:
    if mode == LINK:
        return Held(pack(path), "link", 0o777, -1, oid)
    return Held(pack(path), "file", ordinary(mode, file_mode), -1, oid)


def _directory(path: bytes) -> Held:
    return Held(pack(path), "directory", 0, 0, None)
