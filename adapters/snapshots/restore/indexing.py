"""The index of a restored worktree: the captured one, which knows the new files as it knew the old ones."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from adapters.files.descriptors import READ, owned
from adapters.files.durable import TEMPORARY, read_file, remove_file, replace, write_locked
from adapters.git.restamp import SplitIndex, restamp
from adapters.snapshots.files import LIMIT
from adapters.snapshots.registration.registered import index_files
from adapters.snapshots.restore.filling import announce
from domain.paths import unpack

if TYPE_CHECKING:
    from adapters.snapshots.manifest import Manifest, Registered
    from adapters.snapshots.restore.mending import Site

    Stamps = dict[bytes, bytes]

REFRESHED = TEMPORARY + b"refreshed"  # the index while git looks at every file, under a lock of its own
REFRESH = (b"update-index", b"-q", b"--refresh")


async def put_index_back(site: Site, manifest: Manifest, stamps: Stamps) -> None:
    """Writes the captured index durably, so that git sees what it saw before, and need not look again.

    Where it is split, or the snapshot does not say what it knew, git looks at every file.
    Raises SnapshotDamaged, IndexUnreadable, LockFileHeld, GitError, OSError.
    """
    if not await trio.to_thread.run_sync(_write_all, site, manifest, stamps):
        beside = os.path.join(site.admin, REFRESHED)
        await site.git.run(*REFRESH, repository=site.lane, write=True, index=beside, allow=(0, 1))
        await trio.to_thread.run_sync(_adopt, site.admin, beside)


def _write_all(site: Site, manifest: Manifest, stamps: Stamps) -> bool:
    """Writes the index and its shared parts; tells whether it knows the new files, or is to be refreshed."""
    knows = True
    for each in index_files(manifest.registration):
        data, path = site.files.read(each.sha256), os.path.join(site.admin, unpack(each.name))
        if each.name == "index":
            data, knows = _renewed(site, manifest, stamps, data)
            _write_index(site.admin, data)
            if not knows:
                replace(os.path.join(site.admin, REFRESHED), data, each.mode)
        else:
            replace(path, data, each.mode)
        _dress(path, each)
    return knows


def _write_index(admin: bytes, data: bytes) -> None:
    announce(admin, data)
    write_locked(os.path.join(admin, b"index"), data)


def _adopt(admin: bytes, beside: bytes) -> None:
    """Makes the index what git has made of its copy."""
    _write_index(admin, read_file(beside, LIMIT))
    remove_file(beside)


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
