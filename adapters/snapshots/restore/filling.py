"""The first filling of an empty worktree: by git, which writes many files several times faster than we do.

It knows two modes and no times, and attributes may convert what it writes: all of that is looked at and
mended afterwards. It writes no index but one of its own, which tells later what of the tree is its work, and
takes no lock but that one's: `index.lock` is somebody else's, but for the moment in which we write the index.
"""

from __future__ import annotations

import hashlib
import os
from enum import Enum
from typing import TYPE_CHECKING

import trio

from adapters.files.durable import TEMPORARY, read_file, remove_file, replace
from adapters.files.errors import FilesError, LockFileHeld
from adapters.git.errors import GitFailed, GitTalksTooMuch
from adapters.git.restamp import untouched

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.git.door import Git, Location

BEGUN = TEMPORARY + b"applying"  # there from the first to the last moment of a restore
FILLED = TEMPORARY + b"filled"  # the index of what git has written
LIMIT = 1 << 30  # bytes of an index

# What settings may change in the bytes and names that are written. Attributes of the repository remain.
PLAIN = (
    *(b"-c", b"core.autocrlf=false", b"-c", b"core.eol=lf", b"-c", b"core.attributesFile=/dev/null"),
    *(b"-c", b"core.protectNTFS=false", b"-c", b"core.protectHFS=false"),
    *(b"-c", b"core.symlinks=true", b"-c", b"core.fileMode=true", b"-c", b"core.ignoreCase=false"),
    *(b"-c", b"core.sparseCheckout=false", b"-c", b"submodule.recurse=false"),
)
# The index that is written is not for keeping, and nobody reads it but us.
PASSING = (
    *(b"-c", b"core.fsync=none", b"-c", b"core.splitIndex=false", b"-c", b"index.version=2"),
    *(b"-c", b"index.sparse=false", b"-c", b"core.untrackedCache=false", b"-c", b"checkout.workers=4"),
)


def begin(admin: bytes) -> bool:
    """Marks that a restore is at work here, and returns whether an earlier one has died at it.

    What that one has left of the index that it wrote, and beginnings of files, goes: whoever calls holds the
    lock that every git of ours has inherited. Raises LockFileHeld where the index's lock is somebody else's,
    or OSError.
    """
    mark, index = os.path.join(admin, BEGUN), os.path.join(admin, b"index")
    died = os.path.exists(mark)
    if os.path.lexists(index + b".lock"):
        if not (died and _is_announced(index + b".lock", mark)):
            raise LockFileHeld(index)
        remove_file(index + b".lock")
    replace(mark, b"")
    if died:
        _clear_beginnings(admin)
    return died


def announce(admin: bytes, index: bytes) -> None:
    """Marks what the index's lock, which appears whole, will hold if it is ours. Raises OSError."""
    replace(os.path.join(admin, BEGUN), hashlib.sha256(index).digest())


def _is_announced(lock: bytes, mark: bytes) -> bool:
    """Tells whether a lock has what we were about to write; where that cannot be told, it is another's."""
    try:
        return hashlib.sha256(read_file(lock, LIMIT)).digest() == read_file(mark)
    except (FilesError, OSError):
        return False


def _clear_beginnings(admin: bytes) -> None:
    for directory, _, names in os.walk(admin):
        for name in names:
            if name.startswith(TEMPORARY) and name not in (BEGUN, FILLED):
                remove_file(os.path.join(directory, name))


def end(admin: bytes) -> None:
    """Takes away what `begin` and `fill` have put into the registration. Raises OSError."""
    for name in (FILLED, BEGUN):
        remove_file(os.path.join(admin, name))


class Filled(Enum):
    """How far git has come."""

    NOT = "not at all"
    PARTLY = "some files may be there by half, now or from an attempt that has died"
    WHOLLY = "it has written all files"


async def fill(git: Git, lane: Location, commit: str) -> Filled:
    """Has git write the commit's files where nothing is yet, after it is marked that a restore is at work.

    Raises GitError other than GitFailed, OSError.
    """
    assert lane.work_tree is not None
    assert lane.git_dir is not None
    if await trio.to_thread.run_sync(begin, lane.git_dir):
        return Filled.PARTLY
    if os.listdir(lane.work_tree) != [b".git"]:
        return Filled.NOT
    index = os.path.join(lane.git_dir, FILLED)
    # Not with `--reset`, which writes over what a stranger may have put there since.
    arguments = (b"read-tree", b"-m", b"-u", b"--no-sparse-checkout", commit.encode())
    try:
        await git.run(*PLAIN, *PASSING, *arguments, repository=lane, write=True, index=index)
    except GitFailed:
        return Filled.PARTLY
    return Filled.WHOLLY


def written_by_git(
    admin: bytes, oid_bytes: int, stamp_of: Callable[[bytes], bytes | None]
) -> frozenset[bytes]:
    """Returns the paths that are to a nanosecond as git has left them, of those that have a stamp.

    Raises IndexUnreadable, OSError.
    """
    path = os.path.join(admin, FILLED)
    if not os.path.exists(path):
        return frozenset()
    return untouched(read_file(path, LIMIT), oid_bytes, stamp_of)


async def converted(git: Git, lane: Location, commit: str, path: bytes) -> bytes | None:
    """Returns what git makes of a path of the commit when it checks it out, or None where it has none."""
    name = commit.encode() + b":" + path
    try:
        ran = await git.run(*PLAIN, b"cat-file", b"--filters", name, repository=lane)
    except (GitFailed, GitTalksTooMuch):
        return None
    return ran.out
