"""Branches and other refs of a repository: read from files where they are files, changed only by git."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters.git.door import Location
from adapters.git.errors import GitFailed
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
        return ran.out.strip().decode() or None
    return from_files(common, ref)


async def delete_ref(git: Git, common: bytes, ref: bytes, old: str) -> None:
    """Deletes a ref by compare-and-swap; raises GitFailed where it is not at `old`."""
    await git.run(
        b"update-ref", b"--no-deref", b"-d", ref, old.encode(), repository=Location(common), write=True
    )


async def create_ref(git: Git, common: bytes, ref: bytes, new: str) -> bool:
    """Creates a ref by compare-and-swap; False where it exists by now."""
    zero = b"0" * len(new)
    try:
        await git.run(b"update-ref", ref, new.encode(), zero, repository=Location(common), write=True)
    except GitFailed:
        return False
    return True
