"""Taking a snapshot while others may write: a bounded number of attempts; and reading one back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from adapters.files.errors import Unstable
from adapters.git.door import Location
from adapters.git.errors import GitFailed
from adapters.git.refs import read_ref
from adapters.snapshots import objects
from adapters.snapshots.capture.survey import survey, take_fingerprint
from adapters.snapshots.capture.taking import Attempt, as_snapshot
from adapters.snapshots.differences import differences, require_captured
from adapters.snapshots.files import Files, SnapshotDamaged
from adapters.snapshots.manifest import Expected, Manifest, digest_of, load
from adapters.snapshots.objects import Moving
from adapters.snapshots.position import CannotCapture, tree_of
from adapters.snapshots.restorable import require_same
from domain.paths import display, unpack

if TYPE_CHECKING:
    from adapters.git.door import Git
    from adapters.git.parse import TreeEntry
    from domain.effects import Capture
    from domain.evidence import Snapshot

ATTEMPTS = 3  # captures of a tree that keeps changing before it is refused


class StillChanging(Exception):
    """Somebody writes to the tree, and does not stop."""


async def capture(git: Git, directory: bytes, effect: Capture) -> Snapshot:
    """Returns the snapshot, durable and read back; one that was finished before is only read back.

    Raises CannotCapture, StillChanging, SnapshotDamaged, GitError, FilesError, OSError.
    """
    if os.path.exists(os.path.join(directory, b"manifest.json")):
        return await read_back(git, directory, effect)
    why: Exception | None = None
    remembers = not effect.thorough
    for number in range(ATTEMPTS):
        try:
            return await Attempt(git, directory, effect, remembers=remembers and number == 0).take()
        except (Moving, Unstable, SnapshotDamaged) as error:
            why = error
        except GitFailed as error:
            if not error.says("could not fetch"):
                raise
            raise CannotCapture(f"an object that was promised to this clone is missing: {error}") from error
    raise StillChanging(f"{display(effect.place.path)} kept changing while it was captured: {why}") from why


async def read_back(git: Git, directory: bytes, effect: Capture) -> Snapshot:
    """Returns a snapshot that was finished before its event could be written; the tree must still be it.

    Raises as `capture`.
    """
    manifest = await trio.to_thread.run_sync(load, directory, None)
    root, common = unpack(effect.place.path), unpack(effect.repository)
    fingerprint = await trio.to_thread.run_sync(take_fingerprint, root, effect.omit)
    digest = await trio.to_thread.run_sync(digest_of, directory)
    snapshot = as_snapshot(manifest, digest, fingerprint, effect.apart)
    await verify(git, directory, common, snapshot)
    tree = await tree_of(git, common, manifest.head) if manifest.head else {}
    await trio.to_thread.run_sync(_require_same, effect, manifest, tree)
    return snapshot


def _require_same(effect: Capture, manifest: Manifest, tree: dict[bytes, TreeEntry]) -> None:
    root, admin = unpack(effect.place.path), unpack(effect.place.admin)
    seen = survey(root, tree, manifest.algorithm, effect.omit, admin=admin)
    if seen.content != manifest.content:
        raise StillChanging(f"{display(effect.place.path)} changed after it was captured")
    try:
        require_same(Expected(manifest, tree), seen.kept)
    except SnapshotDamaged as error:
        raise CannotCapture(str(error)) from error


async def verify(git: Git, directory: bytes, common: bytes, snapshot: Snapshot) -> Manifest:
    """Reads a snapshot back: ref, manifest, kept files, every blob of its own.

    Raises SnapshotDamaged, GitError, OSError.
    """
    manifest = await trio.to_thread.run_sync(load, directory, snapshot.manifest)
    at = await read_ref(git, common, snapshot.ref.encode())
    if at != snapshot.commit or manifest.commit != snapshot.commit:
        found_at = "is not there" if at is None else f"is at {at}, not at {snapshot.commit}"
        raise SnapshotDamaged(f"{snapshot.ref} {found_at}")
    await trio.to_thread.run_sync(_check_files, directory, manifest)
    found = await differences(git, common, manifest.head, manifest.commit)
    same = any(each.oid is not None and unpack(each.path) not in found for each in manifest.entries)
    tree = await tree_of(git, common, manifest.head) if same and manifest.head else {}
    require_captured(manifest.entries, found, tree, manifest.algorithm)
    await _require_objects(git, common, manifest)
    return manifest


async def _require_objects(git: Git, common: bytes, manifest: Manifest) -> None:
    oids = sorted({each.oid for each in manifest.entries if each.oid is not None and each.apart is None})
    async with git.converse(b"cat-file", b"--batch", repository=Location(common)) as asking:
        tree, parents = await objects.commit_at(asking, manifest.commit)
        if tree != manifest.tree or (manifest.keep and manifest.keep not in parents):
            raise SnapshotDamaged(f"the commit {manifest.commit} is not as the manifest says")
        await objects.require_whole(asking, oids)
        await asking.finish()


def _check_files(directory: bytes, manifest: Manifest) -> None:
    files = Files(directory)
    named = {each.sha256 for each in manifest.registration} | {manifest.times}
    named.update(each.apart for each in manifest.entries if each.apart is not None)
    for digest in sorted(named - {""}):
        files.check(digest)
