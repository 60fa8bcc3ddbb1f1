"""Taking a snapshot while others may write: survey, write, read back, look again; then refuse."""

from __future__ import annotations

import os
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec
import trio

from adapters.files.blob import blob_hash
from adapters.files.durable import read_file
from adapters.files.errors import Unstable, words
from adapters.git.door import Location
from adapters.git.heads import read_head
from adapters.git.index import Index, read_index
from adapters.git.parse import TreeEntry, parse_ls_tree
from adapters.git.refs import read_ref
from adapters.snapshots import objects, registration
from adapters.snapshots.files import Files, SnapshotDamaged
from adapters.snapshots.manifest import (
    FORMAT,
    Expected,
    Held,
    Manifest,
    Registered,
    algorithm_of,
    digest_of,
    load,
    save,
)
from adapters.snapshots.objects import Moving
from adapters.snapshots.restorable import require_restorable
from adapters.snapshots.survey import Survey, survey, take_fingerprint
from domain.evidence import Snapshot
from domain.paths import display, unpack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.git.door import Git
    from domain.effects import Capture

ATTEMPTS = 3  # captures of a tree that keeps changing before it is refused
REFS = "refs/laneyard/snapshots/"


class CannotCapture(Exception):
    """The tree holds what a snapshot cannot keep."""


class StillChanging(Exception):
    """Somebody writes to the tree, and does not stop."""


class Head(msgspec.Struct, frozen=True):
    """Where a lane's HEAD is: the commit, and the branch if it is on one."""

    oid: str
    branch: str | None


async def capture(git: Git, directory: bytes, effect: Capture) -> Snapshot:
    """Returns the snapshot, durable and read back; one that was finished before is only read back."""
    common = unpack(effect.repository)
    if os.path.exists(os.path.join(directory, b"manifest.json")):
        return await read_back(git, directory, effect)
    for _ in range(ATTEMPTS):
        head = await head_of(git, common, unpack(effect.place.admin))
        try:
            found = await _attempt(git, common, directory, effect, head)
        except (Moving, Unstable, SnapshotDamaged):
            continue
        if found is not None:
            return found
    raise StillChanging(f"{display(effect.place.path)} kept changing while it was captured")


async def _attempt(git: Git, common: bytes, directory: bytes, effect: Capture, head: Head) -> Snapshot | None:
    root = unpack(effect.place.path)
    tree = await tree_of(git, common, head.oid)
    seen = await _look(root, tree, algorithm_of(head.oid), effect.omit)
    if seen.obstacles and not effect.tolerant:
        named = ", ".join(f"{each.kind} {display(each.path)!r}" for each in seen.obstacles[:5])
        raise CannotCapture(f"a snapshot cannot hold {named}")
    kept = await trio.to_thread.run_sync(registration.keep, directory, unpack(effect.place.admin))
    await trio.to_thread.run_sync(Files(directory).sync)
    index = _index(directory, kept, head.oid)
    logs = [registration.kept(directory, kept, name) for name in ("logs/HEAD", "ORIG_HEAD")]
    logs.append(await trio.to_thread.run_sync(_log_of, common, head.branch or effect.branch))
    reflog = await objects.only_in_reflog(git, common, b"\n".join(logs), head.oid)
    ref = REFS + effect.snapshot
    staged = objects.staged_changes(index, tree)
    commit, top = await objects.write(git, common, root, ref, head.oid, seen.held, staged, reflog)
    await _compare(git, common, commit, seen.held)
    if await trio.to_thread.run_sync(take_fingerprint, root, effect.omit) != seen.fingerprint:
        return None
    oids = [commit, *(each.oid for each in seen.held if each.oid)]
    await trio.to_thread.run_sync(objects.sync_objects, common, oids, ref)
    manifest = _manifest(effect, head, seen, kept, commit, top)
    _require_restorable(manifest, tree, seen)
    digest = await trio.to_thread.run_sync(save, directory, manifest)
    return _snapshot(manifest, digest, seen.fingerprint)


async def _look(root: bytes, tree: dict[bytes, TreeEntry], algorithm: str, omit: Sequence[str]) -> Survey:
    """Surveys the tree. Raises Moving for an entry that is gone between its listing and its reading."""
    try:
        return await trio.to_thread.run_sync(survey, root, tree, algorithm, omit)
    except FileNotFoundError as error:
        if not os.path.isdir(root):
            raise
        raise Moving(words(error)) from error


def _require_restorable(manifest: Manifest, tree: dict[bytes, TreeEntry], seen: Survey) -> None:
    try:
        require_restorable(Expected(manifest, tree), seen.sizes)
    except SnapshotDamaged as error:
        raise CannotCapture(str(error)) from error


def _manifest(
    effect: Capture, head: Head, seen: Survey, kept: tuple[Registered, ...], commit: str, tree: str
) -> Manifest:
    obstacles = (each.path for each in seen.obstacles)
    return Manifest(
        format=FORMAT,
        id=effect.snapshot,
        lane=effect.lane,
        repository=effect.repository,
        head=head.oid,
        branch=head.branch or effect.branch,
        commit=commit,
        tree=tree,
        file_mode=seen.file_mode,
        directory_mode=seen.directory_mode,
        entries=seen.held,
        registration=kept,
        omitted=tuple(dict.fromkeys((*effect.omit, *obstacles))),
        content=seen.content,
    )


def _snapshot(manifest: Manifest, digest: str, fingerprint: str) -> Snapshot:
    return Snapshot(
        id=manifest.id,
        ref=REFS + manifest.id,
        commit=manifest.commit,
        tree=manifest.tree,
        head=manifest.head,
        branch=manifest.branch,
        fingerprint=fingerprint,
        content=manifest.content,
        manifest=digest,
        entries=len(manifest.entries),
        bytes=sum(each.size for each in manifest.entries),
        omitted=manifest.omitted,
    )


async def read_back(git: Git, directory: bytes, effect: Capture) -> Snapshot:
    """Returns a snapshot that was finished before its event could be written; the tree must still be it."""
    manifest = await trio.to_thread.run_sync(load, directory, None)
    root = unpack(effect.place.path)
    fingerprint = await trio.to_thread.run_sync(take_fingerprint, root, effect.omit)
    digest = await trio.to_thread.run_sync(digest_of, directory)
    snapshot = _snapshot(manifest, digest, fingerprint)
    await verify(git, directory, unpack(effect.repository), snapshot)
    tree = await tree_of(git, unpack(effect.repository), manifest.head)
    seen = await trio.to_thread.run_sync(survey, root, tree, manifest.algorithm, effect.omit)
    if seen.content != manifest.content:
        raise StillChanging(f"{display(effect.place.path)} changed after it was captured")
    _require_restorable(manifest, tree, seen)
    return snapshot


async def verify(git: Git, directory: bytes, common: bytes, snapshot: Snapshot) -> Manifest:
    """Reads a snapshot back: ref, manifest, kept files, every blob. Raises SnapshotDamaged."""
    manifest = await trio.to_thread.run_sync(load, directory, snapshot.manifest)
    at = await read_ref(git, common, snapshot.ref.encode())
    if at != snapshot.commit:
        raise SnapshotDamaged(f"{snapshot.ref} is at {at}, not at {snapshot.commit}")
    for each in manifest.registration:
        await trio.to_thread.run_sync(Files(directory).check, each.sha256)
    await _compare(git, common, snapshot.commit, manifest.entries)
    return manifest


async def _compare(git: Git, common: bytes, commit: str, held: tuple[Held, ...]) -> None:
    """Raises SnapshotDamaged unless the commit has every captured path, and git its bytes, hashed again."""
    tree = await tree_of(git, common, commit)
    for each in held:
        known = tree.get(unpack(each.path))
        if each.oid is not None and (known is None or known.oid != each.oid):
            raise SnapshotDamaged(f"the snapshot's commit does not have {display(each.path)!r} as captured")
    wanted = sorted({each.oid for each in held if each.oid is not None})
    async with aclosing(objects.contents(git, common, wanted)) as found:
        async for oid, data in found:
            if blob_hash(algorithm_of(oid), len(data), data).hexdigest() != oid:
                raise SnapshotDamaged(f"the blob {oid} does not have the bytes that were captured")


async def head_of(git: Git, common: bytes, admin: bytes) -> Head:
    """Returns where HEAD is. Raises CannotCapture where it is on a branch without a commit."""
    text = await trio.to_thread.run_sync(read_head, admin) or b""
    if not text.startswith(b"ref:"):
        return Head(text.decode("ascii"), None)
    ref = text.removeprefix(b"ref:").strip()
    oid = await read_ref(git, common, ref)
    if oid is None:
        raise CannotCapture(f"HEAD is on {os.fsdecode(ref)}, which has no commit yet")
    return Head(oid, os.fsdecode(ref))


async def tree_of(git: Git, common: bytes, commit: str) -> dict[bytes, TreeEntry]:
    """Returns every path of a commit."""
    arguments = (b"ls-tree", b"-r", b"-z", b"--full-tree", b"--end-of-options", commit.encode())
    ran = await git.run(*arguments, repository=Location(common))
    return parse_ls_tree(ran.out)


def _log_of(common: bytes, branch: str | None) -> bytes:
    """Returns a branch's own log, which git deletes with the branch, and which may name commits alone."""
    if branch is None:
        return b""
    path = os.path.join(common, b"logs", branch.encode())
    return read_file(path, registration.LIMIT) if os.path.isfile(path) else b""


def _index(directory: bytes, kept: tuple[Registered, ...], head: str) -> Index:
    data = registration.kept(directory, kept, "index")
    if not data:
        raise CannotCapture("the worktree has no index")
    index = read_index(data, len(head) // 2)
    if {b"link", b"sdir"} & set(index.extensions):
        raise CannotCapture("the index is split or sparse")
    return index
