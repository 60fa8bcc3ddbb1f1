"""Explaining a tree: every entry is reproducible, captured or consented to, or the tree is not deleted.

The explanations are of the snapshot that a lane comes back from, which is read back first, and of the commit,
whose blobs must be there as far as a restore takes them from it. The walk is ours; git is not asked what is
in the tree.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import trio

from adapters.files.durable import sync_file_systems
from adapters.files.own_directory import in_own_directory
from adapters.files.scan import Entry, scan
from adapters.git.refs import read_ref
from adapters.snapshots.capture.capture import verify
from adapters.snapshots.explain.beginnings import find_beginnings
from adapters.snapshots.explain.expected import bare, is_captured_tree, needed, require_whole
from adapters.snapshots.explain.reasons import (
    NOTHING,
    Agreed,
    Explanation,
    Verdict,
    algorithm_for,
    judge,
    pointers_of,
    remember,
)
from adapters.snapshots.files import Files, SnapshotDamaged
from adapters.snapshots.manifest import Expected, Manifest, digest_of, load
from adapters.snapshots.position import CannotCapture, head_of, tree_of
from adapters.snapshots.registration import registration
from adapters.snapshots.restorable import require_restorable
from adapters.snapshots.together import together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.git.door import Git
    from adapters.git.parse import TreeEntry
    from domain.evidence import Snapshot
    from domain.states import Basis

__all__ = ["NOTHING", "Explanation", "Verdict"]

LOCKED, PAUSE = 1.0, 0.02  # seconds for which a lock of git's is waited for, and between two looks at it


class RegistrationChanged(Exception):
    """Somebody has gone on working with git in the tree since it was captured; `paths` can be agreed to."""

    def __init__(self, why: str, paths: tuple[str, ...] = ()) -> None:
        super().__init__(why)
        self.paths = paths


async def prepare(
    git: Git, snapshot_dir: bytes | None, common: bytes, place: tuple[bytes, bytes], basis: Basis
) -> Explanation:
    """Reads the snapshot back, makes sure that the commit's blobs are all there, and returns the explanation.

    `place` is the tree and its registration, which the tree's `.git` file has to name.
    Raises SnapshotDamaged, RegistrationChanged, GitError, OSError: then nothing is explained.
    """
    snapshot = await _snapshot(git, snapshot_dir, common, basis)
    explanation, sizes = await _read_back(git, snapshot, common, place, basis)
    await trio.to_thread.run_sync(_require_restorable, explanation.expected, sizes, basis)
    return explanation


async def explain(
    git: Git, common: bytes, place: tuple[bytes, bytes], explanation: Explanation, *, partial: bool
) -> Verdict:
    """Walks the whole tree and holds every entry against the explanation."""
    root, _ = place
    entries = await trio.to_thread.run_sync(_walk, root, explanation.algorithm, explanation.agreed)
    if partial:
        await find_beginnings(git, common, place, entries, explanation)
    verdict, _ = await trio.to_thread.run_sync(judge, entries, explanation)
    return verdict


async def examine(
    git: Git, snapshot_dir: bytes | None, common: bytes, place: tuple[bytes, bytes], basis: Basis
) -> tuple[Explanation, Verdict]:
    """Does what `prepare` and `explain` do together, and walks the tree while git is asked.

    Where all is explained, the explanation remembers what was seen of each entry. Raises what both raise.
    """
    # Not while the tree is walked: to read 100,000 entries back takes as much memory again, for a moment.
    snapshot = await _snapshot(git, snapshot_dir, common, basis)
    root, began, agreed = place[0], time.time_ns(), Agreed(basis.consent)
    await trio.to_thread.run_sync(_write_back, root)
    (explanation, sizes), entries = await together(
        lambda: _read_back(git, snapshot, common, place, basis),
        lambda: trio.to_thread.run_sync(in_own_directory, lambda: _walk(root, algorithm_for(basis), agreed)),
    )
    if basis.partial:
        await find_beginnings(git, common, place, entries, explanation)
    verdict, reproducible = await trio.to_thread.run_sync(judge, entries, explanation)
    if not is_captured_tree(reproducible, explanation.expected):
        await trio.to_thread.run_sync(_require_restorable, explanation.expected, sizes, basis)
    if not verdict.count:
        remember(entries, explanation, began)
    return explanation, verdict


def _write_back(root: bytes) -> None:
    """Has every page written out that a program has changed through a mapping.

    The next change through one then gives the file a new time, later than the beginning of the look.
    """
    sync_file_systems(root)


def _walk(root: bytes, algorithm: str, agreed: Agreed) -> list[Entry]:
    """Returns every entry, but for those in a directory that may not be looked into, and need not be."""

    def enters(entry: Entry) -> bool:
        path = os.path.join(root, entry.path)
        return not agreed.covers(entry.path) or os.access(path, os.R_OK | os.X_OK, effective_ids=True)

    return list(scan(root, algorithm, inside=enters)) if os.path.lexists(root) else []


async def _read_back(
    git: Git, snapshot: tuple[Files | None, Manifest], common: bytes, place: tuple[bytes, bytes], basis: Basis
) -> tuple[Explanation, Sequence[int]]:
    """Returns the explanation, and the sizes of the blobs that are `needed`, each of them read and hashed."""
    root, admin = place
    pointers = pointers_of(root, admin)
    files, manifest = snapshot
    if basis.snapshot is None and agrees_to_all(basis):  # also where nothing can be read back any more
        return Explanation(Expected(manifest, {}), basis, pointers), ()
    tree = await tree_of(git, common, basis.commit) if basis.commit else {}
    begun = (b"",) if basis.partial else ()
    explanation = Explanation(Expected(manifest, tree), basis, (*pointers, *begun), files)
    wanted = await trio.to_thread.run_sync(needed, explanation.expected)
    explanation.registration, sizes = await together(
        lambda: _compare(git, common, admin, basis, explanation),
        lambda: require_whole(git, common, wanted, explanation.algorithm),
    )
    return explanation, sizes


async def _snapshot(
    git: Git, snapshot_dir: bytes | None, common: bytes, basis: Basis
) -> tuple[Files | None, Manifest]:
    """Returns what the snapshot has, read back; without one, what the commit alone says."""
    if basis.snapshot is None or snapshot_dir is None:
        return None, bare(basis.commit)
    return Files(snapshot_dir), await verify(git, snapshot_dir, common, basis.snapshot)


async def _compare(
    git: Git, common: bytes, admin: bytes, basis: Basis, explanation: Explanation
) -> str | None:
    """Holds the registration against what is in the log and in the snapshot.

    Returns the fingerprint of the registration that was compared.
    """
    files, manifest, seen = explanation.files, explanation.expected.manifest, None
    if files is not None:
        seen = await trio.to_thread.run_sync(_fingerprint, admin)
        await _require_unchanged(git, files, common, admin, basis, manifest)
    if basis.partial or basis.snapshot is None:
        await _require_only_ours(git, files, common, admin, basis, manifest, explanation.expected.tree)
    return seen


def _require_restorable(expected: Expected, sizes: Sequence[int], basis: Basis) -> None:
    if expected.manifest.content and not (basis.partial or agrees_to_all(basis)):
        require_restorable(expected, dict(zip(needed(expected), sizes, strict=True)))


def agrees_to_all(basis: Basis) -> bool:
    """Tells whether a person has consented to lose the whole tree."""
    return basis.consent is not None and "." in basis.consent.paths


def _fingerprint(admin: bytes) -> str | None:
    return registration.fingerprint(admin) if os.path.isdir(admin) else None


async def _require_unchanged(
    git: Git,
    files: Files,
    common: bytes,
    admin: bytes,
    basis: Basis,
    manifest: Manifest,
    seen: str | None = None,
) -> None:
    """Raises RegistrationChanged unless the registration holds nothing that the snapshot does not.

    One that was compared when it had the fingerprint `seen`, and has it still, is not read again. Git's locks
    are waited for, as a gc takes them in every worktree for a moment.
    """
    agreed = {*manifest.omitted, *(basis.consent.paths if basis.consent else ())}
    if basis.partial or "." in agreed or not os.path.isdir(admin):
        return
    head = await _commit_of(git, common, admin)
    untouched = seen is not None and await trio.to_thread.run_sync(_fingerprint, admin) == seen
    if untouched and head == manifest.head:
        return

    def changes() -> list[registration.Change]:
        return list(registration.changes(files, manifest, admin, head, agreed))

    found, end = await trio.to_thread.run_sync(changes), trio.current_time() + LOCKED
    while found and all(each.path.endswith(".lock") for each in found) and trio.current_time() < end:
        await trio.sleep(PAUSE)
        found = await trio.to_thread.run_sync(changes)
    if found:
        raise RegistrationChanged(found[0].why, tuple(dict.fromkeys(each.path for each in found)))


async def _commit_of(git: Git, common: bytes, admin: bytes) -> str:
    """Returns the commit that HEAD is at, or nothing where it is on a branch without one."""
    try:
        return (await head_of(git, common, admin)).oid
    except CannotCapture:
        return ""


async def _require_only_ours(
    git: Git,
    files: Files | None,
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
    ours = {basis.commit, manifest.commit}
    if head.strip("0") and head not in ours:  # a killed git may not have come to write it
        moved = f"HEAD is at {head}, and was at {basis.commit}"
        raise RegistrationChanged(f"{moved}; 'git branch NAME {head}' keeps what is new")
    why = await trio.to_thread.run_sync(registration.strange, files, manifest, admin, tree)
    if why is not None:
        raise RegistrationChanged(why)


async def require_same_registration(
    git: Git,
    snapshot_dir: bytes,
    common: bytes,
    admin: bytes,
    basis: Basis,
    explanation: Explanation | None = None,
) -> None:
    """Raises RegistrationChanged if somebody has worked with git in a tree until it was gone.

    What the explanation has compared is compared again only as far as it was touched.
    """
    files = Files(snapshot_dir)
    if explanation is not None:
        manifest, seen = explanation.expected.manifest, explanation.registration
    else:
        manifest, seen = await trio.to_thread.run_sync(load, snapshot_dir, None), None
    await _require_unchanged(git, files, common, admin, basis, manifest, seen)


async def require_same_snapshot(git: Git, snapshot_dir: bytes, common: bytes, snapshot: Snapshot) -> None:
    """Raises SnapshotDamaged unless ref and manifest are still those that were read back."""
    at = await read_ref(git, common, snapshot.ref.encode())
    if at != snapshot.commit:
        raise SnapshotDamaged(f"{snapshot.ref} is at {at}, not at {snapshot.commit}")
    if await trio.to_thread.run_sync(digest_of, snapshot_dir) != snapshot.manifest:
        raise SnapshotDamaged("the manifest is not the one that was written")
