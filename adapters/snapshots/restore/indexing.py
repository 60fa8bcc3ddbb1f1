"""The index of a restored worktree: the captured one, which knows the new files as it knew the old ones."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from adapters.files.descriptors import owned
from adapters.files.durable import replace, write_locked
from adapters.files.errors import LockFileHeld
from adapters.git.restamp import SplitIndex, restamp
from adapters.snapshots.files import READ
from adapters.snapshots.registration.registered import index_files
from adapters.snapshots.restore.filling import disown
from domain.paths import unpack

if TYPE_CHECKING:
    from adapters.snapshots.manifest import Manifest, Registered
    from adapters.snapshots.restore.mending import Site

    Stamps = dict[bytes, bytes]

REFRESH = (b"update-index", b"-q", b"--refresh")


async def put_index_back(site: Site, manifest: Manifest, stamps: Stamps) -> None:
    """Writes the captured index durably, so that git sees what it saw before, and need not look again.

    Where it is split, or the snapshot does not say what it knew, git looks at every file.
    Raises SnapshotDamaged, IndexUnreadable, LockFileHeld, GitError, OSError.
    """
    try:
        knows = await trio.to_thread.run_sync(_write_all, site, manifest, stamps)
    except LockFileHeld:
        await trio.to_thread.run_sync(disown, site.admin)
        raise
    if not knows:
        await site.git.run(*REFRESH, repository=site.lane, write=True, allow=(0, 1))


def _write_all(site: Site, manifest: Manifest, stamps: Stamps) -> bool:
    """Writes the index and its shared parts; tells whether it knows the new files."""
    knows = True
    for each in index_files(manifest.registration):
        data, path = site.files.read(each.sha256), os.path.join(site.admin, unpack(each.name))
        if each.name == "index":
            data, knows = _renewed(site, manifest, stamps, data)
            write_locked(path, data)
        else:
            replace(path, data, each.mode)
        _dress(path, each)
    return knows


def _renewed(site: Site, manifest: Manifest, stamps: Stamps, data: bytes) -> tuple[bytes, bool]:
    if manifest.format == 1:
        return data, False
    stale = frozenset(unpack(path) for path in manifest.stale)
    try:
        return restamp(data, len(site.commit) // 2, stamps.get, stale), True
    except SplitIndex:
        return data, False


def _dress(path: bytes, each: Registered) -> None:
    """Gives an index its own mode and time, by which git knows what it cannot know by those of the files."""
    with owned(os.open(path, READ)) as descriptor:
        os.fchmod(descriptor, each.mode)
        if each.mtime_ns:
            os.utime(descriptor, ns=(each.mtime_ns, each.mtime_ns))
        os.fsync(descriptor)
