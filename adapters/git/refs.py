"""Branches and other refs of a repository: read from files where they are files, changed only by git."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from adapters.files.durable import sync_directory
from adapters.git.door import Location
from adapters.git.errors import GitCallError, GitFailed
from adapters.git.parse import ascii_lines
from adapters.git.ref_files import from_files

if TYPE_CHECKING:
    from adapters.git.door import Git


async def read_ref(git: Git, common: bytes, ref: bytes) -> str | None:
    """Returns the object that a ref names, or None if there is no such ref.

    Costs no process where refs are files (loose or packed), and one where they are kept in a reftable.
    """
    if os.path.isdir(os.path.join(common, b"reftable")):
        ran = await git.run(
            b"rev-parse",
            b"--verify",
            b"--quiet",
            b"--end-of-options",
            ref,
            repository=Location(common),
            allow=(0, 1),
        )
        return "".join(ascii_lines("rev-parse", ran.out)) or None
    return from_files(common, ref)


async def delete_ref(git: Git, common: bytes, ref: bytes, old: str) -> None:
    """Deletes a ref durably by compare-and-swap, and looks whether it is gone.

    Raises GitFailed where it is not at `old`, another GitError, or OSError.
    """
    arguments = (b"update-ref", b"--no-deref", b"-d", ref, old.encode())
    await git.run(*arguments, repository=Location(common), write=True)
    if await read_ref(git, common, ref) == old:
        raise GitCallError(arguments, "reports success, but the ref is still there")
    await trio.to_thread.run_sync(sync_names, common, ref)


async def create_ref(git: Git, common: bytes, ref: bytes, new: str) -> bool:
    """Creates a ref durably by compare-and-swap; False where it exists by now, or was not made.

    Raises GitError, OSError.
    """
    zero = b"0" * len(new)
    try:
        await git.run(b"update-ref", ref, new.encode(), zero, repository=Location(common), write=True)
    except GitFailed:
        return False
    await trio.to_thread.run_sync(sync_names, common, ref)
    return await read_ref(git, common, ref) == new


def sync_names(common: bytes, ref: bytes) -> None:
    """Makes durable in which directories a ref is, or is no longer: git syncs only its content."""
    directory = os.path.dirname(os.path.join(common, ref))
    while len(directory) > len(common):
        sync_directory(directory)
        directory = os.path.dirname(directory)
    sync_directory(common)  # which has the packed refs
