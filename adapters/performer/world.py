"""What the performers share: the git door, the state directory, and the lock of a repository."""

from __future__ import annotations

import errno
import os
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import trio

from adapters.files.durable import make_directories
from adapters.files.errors import FilesError, Halfway, LockFileHeld, LockHeld, Unstable, words
from adapters.files.oslock import OsLock
from adapters.files.reserve import Reserve
from adapters.git.errors import ForeignLock, GitError, GitFailed, GitNotStarted, GitTimedOut
from adapters.snapshots.manifest import snapshot_dir
from domain.effects import NotDone
from domain.paths import unpack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from adapters.git.door import Git

RESERVE = 1 << 16  # bytes: putting a lane back writes three small files
LOCK_PATIENCE = 30.0  # seconds to wait for another process of ours that changes the same repository


class World:
    """The means of acting."""

    def __init__(self, git: Git, state_dir: bytes) -> None:
        self.git = git
        self.state_dir = state_dir
        self._turns: dict[str, trio.Lock] = {}

    def snapshot_dir(self, snapshot: str) -> bytes:
        """Returns where a snapshot's manifest and files are kept."""
        return snapshot_dir(self.state_dir, snapshot)

    def reserve(self, repository: str) -> Reserve:
        """Returns the room that is set aside in a repository for putting a lane back on a full disk."""
        return Reserve(os.path.join(unpack(repository), b"laneyard"), RESERVE)

    @asynccontextmanager
    async def writing(self, snapshot: str, *, new: bool) -> AsyncIterator[bytes]:
        """Holds a snapshot's lock while its objects are made, and yields where its manifest is or will be.

        A git of ours that has outlived us holds it too: two that write one ref disturb each other.
        Raises LockHeld when it is kept for longer than `LOCK_PATIENCE` seconds, and OSError where one that
        is not new has no directory.
        """
        directory = self.snapshot_dir(snapshot)
        lock = OsLock(os.path.join(directory, b"lock"))
        await trio.to_thread.run_sync(_take_new if new else _take_known, directory, lock)
        try:
            with self.git.holding(lock.descriptor):
                yield directory
        finally:
            lock.release()

    @asynccontextmanager
    async def changing(self, repository: str) -> AsyncIterator[bytes]:
        """Holds the repository's lock while its registry changes, and yields its common directory.

        Raises LockHeld when another process keeps it for longer than `LOCK_PATIENCE` seconds, and Halfway
        where the repository is not there: what an earlier attempt has done to it cannot be seen now.
        """
        common = unpack(repository)
        ours = os.path.join(common, b"laneyard")
        lock = OsLock(os.path.join(ours, b"lock"))
        # Among ourselves in order: whoever polls the system's lock may be passed for ever.
        async with self._turns.setdefault(repository, trio.Lock()):
            await trio.to_thread.run_sync(_take, ours, lock)
            try:
                with self.git.holding(lock.descriptor):
                    yield common
            finally:
                self.reserve(repository).keep()
                lock.release()


def _take_new(directory: bytes, lock: OsLock) -> None:
    make_directories(directory)
    try:
        lock.acquire(LOCK_PATIENCE)
    except OSError:
        with suppress(OSError):  # what is of use to somebody is not empty
            os.rmdir(directory)
        raise


def _take_known(directory: bytes, lock: OsLock) -> None:
    # What is not mounted is not made anew, as in `_take`.
    os.stat(directory)
    lock.acquire(LOCK_PATIENCE)


def _take(directory: bytes, lock: OsLock) -> None:
    # A repository that is gone, or not mounted, is not made anew: what was put there would hide it.
    common = os.path.dirname(directory)
    try:
        os.stat(common)
    except OSError as error:
        raise Halfway(common, error) from error
    make_directories(directory, 0o755)
    lock.acquire(LOCK_PATIENCE)


def not_done(step: str, error: Exception) -> NotDone:
    """Returns what a failed step amounts to: a stable code, the reason, and whether trying again may help.

    Raises what was neither finished nor undone: nothing is known of it that could be written down.
    """
    if isinstance(error, Halfway):
        raise error
    code, transient = _judge(error)
    return NotDone(step=step, code=code, reason=words(error), transient=transient)


def _judge(error: Exception) -> tuple[str, bool]:
    match error:
        case LockHeld() | LockFileHeld():
            return "locked", True
        case Unstable():
            return "changing", True
        case ForeignLock():
            return "foreign_lock", False
        case GitTimedOut():
            return "git_timed_out", False
        case GitFailed() if error.says("Unable to create '") and error.says(".lock': File exists"):
            return "locked", True
        case GitFailed() if any(error.says(words) for words in FULL):
            return "disk_full", False
        case GitFailed() if error.code < 0:  # somebody has killed it, or the system for want of memory
            return "git_failed", True
        case GitNotStarted() if error.errno in SCARCE:
            return "git_failed", True
        case GitError():
            return "git_failed", False
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return "disk_full", False
        case OSError():
            return _BY_ERRNO.get(error.errno or 0, "io_failed"), error.errno in SCARCE
        case _:
            return "io_failed", False


# Git 2.39 gives the system's reason only sometimes; what it could not write it had opened for writing.
FULL = (
    "No space left on device",
    "Disk quota exceeded",
    "Out of diskspace",
    "unable to write file",
    "couldn't write ",
)
SCARCE = (errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM)  # what others give back
EXPECTED = (GitError, FilesError, OSError)  # what the world may answer; anything else is a bug of ours

_BY_ERRNO = {
    errno.EACCES: "not_permitted",
    errno.EPERM: "not_permitted",
    errno.EROFS: "read_only",
    errno.EXDEV: "crosses_file_systems",
    errno.EEXIST: "path_in_use",
    errno.ENOTEMPTY: "path_in_use",
    errno.ENOENT: "missing",
}
