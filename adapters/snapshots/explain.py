"""Explaining a tree: every entry is reproducible, captured or consented to, or the tree is not deleted.

The explanations are of the snapshot that a lane comes back from, which is read back first, and of the commit,
whose blobs must all be there. The walk is ours; git is not asked what is in the tree.
"""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec
import trio
from msgspec.structs import replace

from adapters.files.blob import blob_hash
from adapters.files.descriptors import DIRECTORY
from adapters.files.kernel import open_beneath
from adapters.files.scan import Entry, scan
from adapters.snapshots import objects, registration
from adapters.snapshots.capture import CannotCapture, head_of, tree_of, verify
from adapters.snapshots.manifest import (
    FORMAT,
    GITLINK,
    Expected,
    Manifest,
    algorithm_of,
    load,
)
from adapters.snapshots.restorable import require_restorable
from adapters.snapshots.survey import current_umask
from domain.paths import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapters.git.door import Git
    from adapters.git.parse import TreeEntry
    from domain.states import Basis

NAMED = 1_000  # unexplained paths that are named; the rest is counted
PREFIX = b"laneyard-explanation-1\n"
NOTHING = hashlib.sha256(PREFIX).hexdigest()  # the digest where there was nothing to explain


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the walk found; `digest` is of the explanation, entry by entry."""

    digest: str
    entries: int
    bytes: int
    unexplained: tuple[str, ...]
    count: int


class Explanation:
    """Answers for each entry of one tree what explains it."""

    def __init__(self, expected: Expected, basis: Basis, pointers: tuple[bytes, ...]) -> None:
        self._expected = expected
        self._consent = frozenset(
            unpack(path).rstrip(b"/") for path in (basis.consent.paths if basis.consent else ())
        )
        self._worn = basis.worn
        self._algorithm = algorithm_of(basis.commit)
        self._pointers = {blob_hash(self._algorithm, len(text), text).hexdigest() for text in pointers}
        self.beginnings: set[tuple[bytes, str]] = set()

    @property
    def algorithm(self) -> str:
        """Returns the hash that entries are compared by."""
        return self._algorithm

    def reason(self, entry: Entry) -> str | None:
        """Returns what explains the entry, or None."""
        if entry.path == b".git":
            return "pointer" if entry.kind == "file" and entry.oid in self._pointers else None
        if self._expected.holds(entry):
            return "snapshot" if entry.path in self._expected.held else "commit"
        if self._worn and self._is_opened(entry):
            return "opened"
        if (entry.path, entry.oid or "") in self.beginnings:
            return "interrupted"
        return "consent" if self._consented(entry.path) else None

    def explains(self, entry: Entry) -> bool:
        """Tells whether anything explains the entry."""
        return self.reason(entry) is not None

    def _is_opened(self, entry: Entry) -> bool:
        """Tells whether a directory is as it was but for what a deletion of ours permits itself."""
        if entry.kind != "directory" or entry.mode & stat.S_IRWXU != stat.S_IRWXU:
            return False
        closed = entry.mode & ~stat.S_IRWXU
        modes = (closed | bits << 6 for bits in range(7))
        return any(self._expected.holds(replace(entry, mode=mode)) for mode in modes)

    def _consented(self, path: bytes) -> bool:
        if b"." in self._consent or b"" in self._consent:
            return True
        while path:
            if path in self._consent:
                return True
            path = os.path.dirname(path)
        return False

    def is_way(self, entry: Entry) -> bool:
        """Tells whether the directory belongs in the tree, whatever its permissions are by now."""
        held = self._expected.held.get(entry.path)
        known = entry.path in self._expected.directories or (held is not None and held.kind == "directory")
        return entry.kind == "directory" and known

    def candidates(self, entry: Entry) -> str | None:
        """Returns the blob that an interrupted checkout may have been writing to this path."""
        wanted = self._expected.wanted_at(entry.path)
        return wanted if entry.kind == "file" else None


async def prepare(
    git: Git, snapshot_dir: bytes | None, common: bytes, place: tuple[bytes, bytes], basis: Basis
) -> Explanation:
    """Reads the snapshot back, makes sure that the commit's blobs are all there, and returns the explanation.

    `place` is the tree and its registration, which the tree's `.git` file has to name.
    Raises SnapshotDamaged, RegistrationChanged, GitError, OSError: then nothing is explained.
    """
    root, admin = place
    pointers = (b"gitdir: %s\n" % admin, b"gitdir: %s\n" % os.path.relpath(admin, root))
    if basis.snapshot is None and agrees_to_all(basis):  # also where nothing can be read back any more
        return Explanation(Expected(_bare(basis), {}), basis, pointers)
    tree = await tree_of(git, common, basis.commit)
    if basis.snapshot is not None and snapshot_dir is not None:
        manifest = await verify(git, snapshot_dir, common, basis.snapshot)
        await _require_unchanged(git, snapshot_dir, common, admin, basis, manifest)
    else:
        manifest = _bare(basis)
    if basis.partial:
        await _require_only_ours(git, snapshot_dir, common, admin, basis, manifest, tree)
    blobs = sorted({each.oid for each in tree.values() if each.mode != GITLINK})
    sizes = await objects.require_whole(git, common, blobs)
    begun = (b"",) if basis.partial else ()
    expected = Expected(manifest, tree)
    if manifest.content and not (basis.partial or agrees_to_all(basis)):
        await trio.to_thread.run_sync(require_restorable, expected, sizes)
    return Explanation(expected, basis, (*pointers, *begun))


def agrees_to_all(basis: Basis) -> bool:
    """Tells whether a person has consented to lose the whole tree."""
    return basis.consent is not None and "." in basis.consent.paths


class RegistrationChanged(Exception):
    """Somebody has gone on working with git in the tree since it was captured."""


async def _require_unchanged(
    git: Git, snapshot_dir: bytes, common: bytes, admin: bytes, basis: Basis, manifest: Manifest
) -> None:
    """Raises RegistrationChanged unless the registration holds nothing that the snapshot does not."""
    agreed = {*manifest.omitted, *(basis.consent.paths if basis.consent else ())}
    if basis.partial or "." in agreed or not os.path.isdir(admin):
        return
    head = await _commit_of(git, common, admin)
    change = registration.change
    why = await trio.to_thread.run_sync(change, snapshot_dir, manifest, admin, head, agreed)
    if why is not None:
        raise RegistrationChanged(why)


async def _commit_of(git: Git, common: bytes, admin: bytes) -> str:
    """Returns the commit that HEAD is at. Raises RegistrationChanged where it is on a branch without one."""
    try:
        return (await head_of(git, common, admin)).oid
    except CannotCapture as error:
        raise RegistrationChanged(str(error)) from error


def _moved(head: str, before: str) -> str:
    return f"HEAD is at {head}, and was at {before}; 'git branch NAME {head}' keeps what is new"


async def _require_only_ours(
    git: Git,
    snapshot_dir: bytes | None,
    common: bytes,
    admin: bytes,
    basis: Basis,
    manifest: Manifest,
    tree: dict[bytes, TreeEntry],
) -> None:
    """Raises RegistrationChanged if somebody has worked with git in what we were making and now undo."""
    if agrees_to_all(basis) or not os.path.isdir(admin):
        return
    head = await _commit_of(git, common, admin)
    if head.strip("0") and head != basis.commit:  # a killed git may not have come to write it
        raise RegistrationChanged(_moved(head, basis.commit))
    why = await trio.to_thread.run_sync(registration.strange, snapshot_dir, manifest, admin, tree)
    if why is not None:
        raise RegistrationChanged(why)


async def require_same_registration(
    git: Git, snapshot_dir: bytes, common: bytes, admin: bytes, basis: Basis
) -> None:
    """Raises RegistrationChanged if somebody has worked with git in a tree until it was gone."""
    manifest = await trio.to_thread.run_sync(load, snapshot_dir, None)
    await _require_unchanged(git, snapshot_dir, common, admin, basis, manifest)


def _bare(basis: Basis) -> Manifest:
    """Returns the manifest of a tree that is exactly its commit."""
    mask = current_umask()
    return Manifest(
        format=FORMAT,
        id="",
        lane="",
        repository="",
        head=basis.commit,
        branch=None,
        commit=basis.commit,
        tree="",
        file_mode=0o666 & ~mask,
        directory_mode=0o777 & ~mask,
        entries=(),
        registration=(),
        omitted=(),
        content="",
    )


async def explain(
    git: Git, common: bytes, root: bytes, explanation: Explanation, *, partial: bool
) -> Verdict:
    """Walks the whole tree and holds every entry against the explanation."""
    if not os.path.lexists(root):
        return _verdict((), explanation)
    entries = await trio.to_thread.run_sync(lambda: list(scan(root, explanation.algorithm)))
    if partial:
        await _find_beginnings(git, common, root, entries, explanation)
    return await trio.to_thread.run_sync(_verdict, entries, explanation)


def _verdict(entries: Iterable[Entry], explanation: Explanation) -> Verdict:
    total, count, size = hashlib.sha256(PREFIX), 0, 0
    unexplained: list[str] = []
    for entry in entries:
        reason = explanation.reason(entry)
        count, size = count + 1, size + entry.size
        if reason is None:
            unexplained.append(pack(entry.path))
        facts = f"{len(entry.path)} {entry.kind} {entry.mode:o} {entry.size} {entry.oid} {reason}\n"
        total.update(facts.encode() + entry.path)
    return Verdict(
        digest=total.hexdigest(),
        entries=count,
        bytes=size,
        unexplained=tuple(unexplained[:NAMED]),
        count=len(unexplained),
    )


async def _find_beginnings(
    git: Git, common: bytes, root: bytes, entries: list[Entry], explanation: Explanation
) -> None:
    """Notes what an interrupted checkout of ours was making: beginnings of files, and its directories."""
    wanted: dict[str, list[Entry]] = {}
    for entry in entries:
        if explanation.is_way(entry):
            explanation.beginnings.add((entry.path, ""))
        elif explanation.reason(entry) is None and (oid := explanation.candidates(entry)):
            wanted.setdefault(oid, []).append(entry)
    async with aclosing(objects.contents(git, common, sorted(wanted))) as found:
        async for oid, data in found:
            for entry in wanted[oid]:
                if await trio.to_thread.run_sync(_read, root, entry) == data[: entry.size]:
                    explanation.beginnings.add((entry.path, entry.oid or ""))


def _read(root: bytes, entry: Entry) -> bytes:
    top = os.open(root, DIRECTORY)
    try:
        descriptor = open_beneath(top, entry.path, os.O_RDONLY | os.O_NOFOLLOW)
    finally:
        os.close(top)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(entry.size + 1)
