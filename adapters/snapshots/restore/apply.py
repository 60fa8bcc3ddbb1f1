"""Filling an empty worktree with what a snapshot holds. Only ever in a worktree that this restore has made.

Git fills it, we mend what git cannot write, and at the end all of it is looked at and compared. What is
already right stays, so that doing it twice is doing it once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import trio

from adapters.files.durable import sync_file_systems
from adapters.files.scan import scan
from adapters.git.door import Location
from adapters.snapshots.beneath import Beneath
from adapters.snapshots.capture.capture import verify
from adapters.snapshots.files import Files
from adapters.snapshots.manifest import Expected
from adapters.snapshots.position import tree_of
from adapters.snapshots.registration import registration
from adapters.snapshots.restorable import require_consistent
from adapters.snapshots.restore import filling
from adapters.snapshots.restore.adopting import adopt
from adapters.snapshots.restore.checking import Look
from adapters.snapshots.restore.filling import Filled
from adapters.snapshots.restore.indexing import put_index_back
from adapters.snapshots.restore.mending import Site, look_again, mend
from adapters.snapshots.restore.setting import settle, times_of
from adapters.snapshots.together import together
from domain.paths import unpack

if TYPE_CHECKING:
    from adapters.git.door import Git
    from adapters.git.parse import TreeEntry
    from adapters.snapshots.manifest import Held, Manifest
    from adapters.snapshots.restore.setting import Times
    from domain.effects import Apply


class Restored(msgspec.Struct, frozen=True):
    """A tree that is what was captured: its digest, and in words what could not be had here as it was."""

    content: str
    differences: tuple[str, ...]


async def apply(git: Git, directory: bytes, effect: Apply) -> Restored:
    """Makes the tree and its registration what was captured, durably; twice is once.

    The caller holds the snapshot's lock, which every git of ours inherits: none that an earlier attempt has
    left is still at work. Raises SnapshotDamaged where the snapshot cannot be read back, or somebody has put
    something into the worktree; GitError, FilesError, OSError.
    """
    common, root = unpack(effect.repository), unpack(effect.place.path)
    lane, files = Location(unpack(effect.place.admin), root), Files(directory)
    manifest = await verify(git, directory, common, effect.snapshot)
    filled, plan = await together(
        lambda: filling.fill(git, lane, manifest.commit),
        lambda: _plan(git, common, files, manifest),
    )
    with Beneath(root) as beneath:
        site = Site(
            git=git,
            common=common,
            lane=lane,
            beneath=beneath,
            files=files,
            commit=manifest.commit,
            wanted=plan.wanted,
            known={},
        )
        done = await trio.to_thread.run_sync(_look, site, plan.times, filled is Filled.WHOLLY)
        done.difference_update(await mend(site, done, unfinished=filled is Filled.PARTLY))
        look = await trio.to_thread.run_sync(_settle, site, manifest, plan.times, done)
        differences = await trio.to_thread.run_sync(look.differences)
        site.known.clear()  # what is not needed any more is some 40 MiB of 100,000 files
        await trio.to_thread.run_sync(registration.put_back, files, manifest, site.admin, root, plan.tree)
        await trio.to_thread.run_sync(registration.repoint_modules, site.admin, root)
        await trio.to_thread.run_sync(sync_file_systems, root, site.admin)
        await put_index_back(site, manifest, look.stamps)
    await trio.to_thread.run_sync(filling.end, site.admin)
    return Restored(manifest.content, differences)


class _Plan(NamedTuple):
    """What the restore is to make."""

    tree: dict[bytes, TreeEntry]
    wanted: dict[bytes, Held]
    times: Times


async def _plan(git: Git, common: bytes, files: Files, manifest: Manifest) -> _Plan:
    tree = await tree_of(git, common, manifest.head) if manifest.head else {}
    return await trio.to_thread.run_sync(_planned, files, manifest, tree)


def _planned(files: Files, manifest: Manifest, tree: dict[bytes, TreeEntry]) -> _Plan:
    wanted = Expected(manifest, tree).wanted()
    require_consistent(wanted)
    return _Plan(tree, wanted, times_of(files, manifest, wanted))


def _look(site: Site, times: Times, filled: bool) -> set[bytes]:
    """Makes known what is there, and returns of what nothing is to be set any more."""
    if filled:
        return adopt(site, times)
    found = scan(site.beneath.root, site.algorithm)
    site.known.update((entry.path, entry) for entry in found if entry.path != b".git")
    return set()


def _settle(site: Site, manifest: Manifest, times: Times, done: set[bytes]) -> Look:
    """Sets all that is not content, and returns the look that comes last."""
    touched = settle(site, times, done, manifest.root_mode, attributes=manifest.format > 1)
    look_again(site, touched)
    return Look(site, manifest, times)
