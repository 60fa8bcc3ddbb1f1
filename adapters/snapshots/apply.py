"""Filling an empty worktree with what a snapshot holds. Only ever in a worktree that this restore has made.

Raw bytes are written as they were captured or committed, without a filter or a conversion. What is already
right stays, so that doing it twice is doing it once; the end is a comparison of the tree with the manifest.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import aclosing
from typing import TYPE_CHECKING

import trio

from adapters.files.descriptors import DIRECTORY, owned
from adapters.files.errors import legible
from adapters.files.kernel import open_beneath, sync_file_system
from adapters.files.scan import Entry, digest, scan
from adapters.git.door import Location
from adapters.snapshots import objects, registration
from adapters.snapshots.capture import tree_of, verify
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import Expected, Held
from adapters.snapshots.restorable import require_consistent
from domain.paths import unpack

if TYPE_CHECKING:
    from adapters.git.door import Git
    from domain.effects import Apply

TOGETHER = 100  # files that are written in one go of a thread


async def apply(git: Git, directory: bytes, effect: Apply) -> str:
    """Puts every entry in place, and returns the digest of the tree, which is the manifest's.

    Raises SnapshotDamaged where the snapshot cannot be read back or the tree did not become it.
    """
    common, root = unpack(effect.repository), unpack(effect.place.path)
    manifest = await verify(git, directory, common, effect.snapshot)
    tree = await tree_of(git, common, manifest.head)
    wanted = Expected(manifest, tree).wanted()
    require_consistent(wanted)
    present = await trio.to_thread.run_sync(_present, root, manifest.algorithm)
    await trio.to_thread.run_sync(_make_directories, root, wanted)
    await _fill(git, common, root, wanted, present)
    await trio.to_thread.run_sync(_set_modes, root, wanted)
    await trio.to_thread.run_sync(_make_durable, root)
    admin = unpack(effect.place.admin)
    await trio.to_thread.run_sync(registration.put_back, directory, manifest, admin, tree)
    await _refresh(git, Location(admin, root))
    found = digest((await trio.to_thread.run_sync(_present, root, manifest.algorithm)).values())
    if found != manifest.content:
        raise SnapshotDamaged("the restored tree is not the one that was captured")
    return found


def _make_durable(root: bytes) -> None:
    with owned(os.open(root, DIRECTORY)) as descriptor:
        sync_file_system(descriptor)


async def _refresh(git: Git, lane: Location) -> None:
    """Tells the index about the new files, without running a filter: what needs one stays to be looked at."""
    arguments = (b"config", b"--null", b"--name-only", b"--get-regexp", rb"^filter\..*\.(clean|process)$")
    programs = await git.run(*arguments, repository=lane, allow=(0, 1))
    options: list[bytes] = []
    for name in programs.out.split(b"\0")[:-1]:
        required = name.rpartition(b".")[0] + b".required=false"
        options += [b"-c", name + b"=", b"-c", required]
    refresh = (*options, b"update-index", b"-q", b"--refresh")
    await git.run(*refresh, repository=lane, write=True, allow=(0, 1))


def _present(root: bytes, algorithm: str) -> dict[bytes, Entry]:
    return {entry.path: entry for entry in scan(root, algorithm) if entry.path != b".git"}


def _right(entry: Entry | None, held: Held) -> bool:
    return entry is not None and (entry.kind, entry.oid) == (held.kind, held.oid)


def _parent(root: bytes, path: bytes) -> tuple[int, bytes]:
    """Opens the directory of a path below the root, never through a link."""
    directory, name = os.path.split(path)
    top = os.open(root, DIRECTORY)
    if not directory:
        return top, name
    try:
        return open_beneath(top, directory, DIRECTORY), name
    finally:
        os.close(top)


def _make_directories(root: bytes, wanted: dict[bytes, Held]) -> None:
    for path, held in wanted.items():
        if held.kind == "directory":
            _make_directory(root, path)


def _make_directory(root: bytes, path: bytes) -> None:
    """Makes a directory, unless a killed attempt has. Raises SnapshotDamaged where another thing is."""
    parent, name = _parent(root, path)
    try:
        os.mkdir(name, 0o700, dir_fd=parent)  # nobody else reads in it before it has the mode that it had
    except FileExistsError:
        if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise _in_the_way(path) from None
    finally:
        os.close(parent)


def _in_the_way(path: bytes) -> SnapshotDamaged:
    return SnapshotDamaged(f"something else has been put at {legible(path)!r} meanwhile")


async def _fill(
    git: Git, common: bytes, root: bytes, wanted: dict[bytes, Held], present: dict[bytes, Entry]
) -> None:
    """Writes the files and links whose bytes are not there yet."""
    paths: dict[str, list[bytes]] = {}
    for path, held in wanted.items():
        if held.oid is not None and not _right(present.get(path), held):
            paths.setdefault(held.oid, []).append(path)
    batch: list[tuple[bytes, bytes]] = []
    async with aclosing(objects.contents(git, common, sorted(paths))) as found:
        async for oid, data in found:
            batch += ((path, data) for path in paths[oid])
            if len(batch) >= TOGETHER or len(data) >= objects.PIECE:
                await trio.to_thread.run_sync(_write_all, root, wanted, batch)
                batch = []
    await trio.to_thread.run_sync(_write_all, root, wanted, batch)


def _write_all(root: bytes, wanted: dict[bytes, Held], batch: list[tuple[bytes, bytes]]) -> None:
    for path, data in batch:
        _write(root, path, wanted[path], data)


def _write(root: bytes, path: bytes, held: Held, data: bytes) -> None:
    parent, name = _parent(root, path)
    try:
        if not _clear_beginning(parent, name, data):
            raise _in_the_way(path)
        if held.kind == "link":
            os.symlink(data, name, dir_fd=parent)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    finally:
        os.close(parent)


def _clear_beginning(parent: int, name: bytes, data: bytes) -> bool:
    """Takes away what a killed attempt has left of these very bytes; False where it is anything else."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a socket
            return False
        if error.errno != errno.ENOENT:
            raise
        return True
    with owned(descriptor):
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        with open(descriptor, "rb", closefd=False) as file:
            if not data.startswith(file.read(len(data) + 1)):
                return False
    os.unlink(name, dir_fd=parent)
    return True


def _set_modes(root: bytes, wanted: dict[bytes, Held]) -> None:
    """Sets permissions, those of a directory after all that is in it, for they may forbid writing."""
    for path, held in reversed(wanted.items()):
        if held.kind == "link":
            continue
        parent, name = _parent(root, path)
        try:
            if os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode & 0o7777 != held.mode:
                os.chmod(name, held.mode, dir_fd=parent)
        finally:
            os.close(parent)
