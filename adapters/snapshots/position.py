"""Where a lane's HEAD is, and what its commit has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import trio

from adapters.git.door import Location
from adapters.git.heads import read_head
from adapters.git.parse import TreeEntry, ascii_lines, parse_ls_tree
from adapters.git.refs import read_ref
from adapters.snapshots.manifest import algorithm_of

if TYPE_CHECKING:
    from adapters.git.door import Git


class CannotCapture(Exception):
    """The tree holds what a snapshot cannot keep."""


class Head(msgspec.Struct, frozen=True):
    """Where a lane's HEAD is: the commit, and the branch if it is on one."""

    oid: str
    branch: str | None


async def head_of(git: Git, common: bytes, admin: bytes) -> Head:
    """Returns where HEAD is. Raises CannotCapture where it is on a branch without a commit."""
    head = await position_of(git, common, admin)
    if not head.oid:
        raise CannotCapture(f"HEAD is on {head.branch}, which has no commit yet")
    return head


async def position_of(git: Git, common: bytes, admin: bytes) -> Head:
    """Returns where HEAD is; its commit is empty on a branch without one."""
    text = await trio.to_thread.run_sync(read_head, admin) or b""
    if not text.startswith(b"ref:"):
        return Head(text.decode("ascii"), None)
    ref = text.removeprefix(b"ref:").strip()
    return Head(await read_ref(git, common, ref) or "", os.fsdecode(ref))


async def tree_of(git: Git, common: bytes, commit: str) -> dict[bytes, TreeEntry]:
    """Returns every path of a commit."""
    arguments = (b"ls-tree", b"-r", b"-z", b"--full-tree", b"--end-of-options", commit.encode())
    ran = await git.run(*arguments, repository=Location(common))
    return parse_ls_tree(ran.out)


async def algorithm_here(git: Git, common: bytes, head: str) -> str:
    """Returns the hash by which a repository names its objects, which a commit tells without asking."""
    if head:
        return algorithm_of(head)
    ran = await git.run(b"rev-parse", b"--show-object-format", repository=Location(common))
    return "".join(ascii_lines("rev-parse", ran.out))
