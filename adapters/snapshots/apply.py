"""Filling an empty worktree with what a snapshot holds. Only ever in a worktree that this restore has made.

Raw bytes are written as they were captured or committed, without a filter or a conversion. What is already
right stays, so that doing it twice is doing it once; the end is a comparison of the tree with the manifest.
"""

from __future__ import annotations

import os
from contextlib import aclosing
from typing import TYPE_CHECKING

import trio

from adapters.files.descriptors import DIRECTORY
from adapters.files.durable import make_directories
from adapters.files.kernel import open_beneath
from adapters.files.scan import Entry, digest, scan
from adapters.git.door import Location
from adapters.snapshots import objects, registration
from adapters.snapshots.capture import tree_of, verify
from adapters.snapshots.manifest import Expected, Held, SnapshotDamaged, parents
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
    expected = Expected(manifest, await tree_of(git, common, manifest.head))
    wanted = expected.wanted()
    present = await trio.to_thread.run_sync(_present, root, manifest.algorithm)
    await trio.to_thread.run_sync(_make_directories, root, wanted)
    await _fill(git, common, root, wanted, present)
    await trio.to_thread.run_sync(_set_modes, root, wanted, expected)
    admin = unpack(effect.place.admin)
    await trio.to_thread.run_sync(registration.put_back, directory, manifest, admin)
    await _refresh(git, Location(admin, root))
    found = digest((await trio.to_thread.run_sync(_present, root, manifest.algorithm)).values())
    if found != manifest.content:
        raise SnapshotDamaged("the restored tree is not the one that was captured")
    return found


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
    needed = {path for path, held in wanted.items() if held.kind == "directory"}
    needed |= {os.path.dirname(path) for path in wanted}
    for path in sorted(needed - {b""}):
        make_directories(os.path.join(root, path), 0o777)


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
        _clear_beginning(parent, name, data)
        if held.kind == "link":
            os.symlink(data, name, dir_fd=parent)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    finally:
        os.close(parent)


def _clear_beginning(parent: int, name: bytes, data: bytes) -> None:
    """Takes away what a killed attempt has left of these very bytes. Raises SnapshotDamaged for others."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except FileNotFoundError:
        return
    with os.fdopen(descriptor, "rb") as file:
        if not data.startswith(file.read(len(data) + 1)):
            raise SnapshotDamaged(f"something else has been written to {os.fsdecode(name)!r} meanwhile")
    os.unlink(name, dir_fd=parent)


def _set_modes(root: bytes, wanted: dict[bytes, Held], expected: Expected) -> None:
    """Sets permissions, those of directories last and deepest first, for they may forbid writing."""
    modes = {path: held.mode for path, held in wanted.items() if held.kind == "file"}
    plain = dict.fromkeys(parents(wanted), expected.manifest.directory_mode)
    held = {path: each.mode for path, each in wanted.items() if each.kind == "directory"}
    ordered = sorted((plain | held).items(), key=lambda each: each[0].count(b"/"), reverse=True)
    for path, mode in (*modes.items(), *ordered):
        parent, name = _parent(root, path)
        try:
            if os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode & 0o7777 != mode:
                os.chmod(name, mode, dir_fd=parent)
        finally:
            os.close(parent)
