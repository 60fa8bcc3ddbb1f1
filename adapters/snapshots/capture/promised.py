"""What a partial clone was promised and has not got; it is never fetched for a snapshot."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters.git.door import Location
from adapters.git.parse import ascii_lines

if TYPE_CHECKING:
    from adapters.git.door import Git


def is_partial(common: bytes) -> bool:
    """Tells whether a repository may lack objects that a remote has promised."""
    packs = os.path.join(common, b"objects/pack")
    return os.path.isdir(packs) and any(name.endswith(b".promisor") for name in os.listdir(packs))


async def missing_below(git: Git, common: bytes, tree: str) -> frozenset[str]:
    """Returns the objects of a tree that are not there. Raises GitError."""
    # `cat-file --batch-check` ends at the first promised object that it cannot fetch.
    arguments = (b"rev-list", b"--objects", b"--no-object-names", b"--missing=print", tree.encode())
    ran = await git.run(*arguments, repository=Location(common))
    lines = ascii_lines("rev-list", ran.out)
    return frozenset(line.removeprefix("?") for line in lines if line.startswith("?"))
