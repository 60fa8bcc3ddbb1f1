"""Branches and other refs of a repository: read from the files git keeps them in, changed only by git."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters.git.door import Location
from adapters.git.errors import GitFailed
from adapters.git.repository import content

if TYPE_CHECKING:
    from adapters.git.door import Git

NESTING = 5  # symbolic refs may name symbolic refs; git itself gives up after five


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


def from_files(common: bytes, ref: bytes) -> str | None:
    """Returns what a ref names where refs are files; a loose one goes before a packed one."""
    for _ in range(NESTING):
        text = content(os.path.join(common, ref))
        if text is None:
            return packed(common, ref)
        if not text.startswith(b"ref:"):
            return text.decode("ascii")
        ref = text.removeprefix(b"ref:").strip()
    return None


def packed(common: bytes, ref: bytes) -> str | None:
    """Returns what a packed ref names."""
    try:
        with open(os.path.join(common, b"packed-refs"), "rb") as lines:
            for line in lines:
                if line.endswith(b" " + ref + b"\n"):
                    return line.partition(b" ")[0].decode("ascii")
    except FileNotFoundError:
        return None
    return None


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
