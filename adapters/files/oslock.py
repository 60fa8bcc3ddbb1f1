"""A lock between processes that the kernel drops when its holder dies."""

import fcntl
import os
import stat
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from adapters.files.descriptors import owned
from adapters.files.errors import LockHeld, NotRegular

OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
FIRST_PAUSE = 0.001
LONGEST_PAUSE = 0.05


class OsLock:
    """An flock on a file that it creates; excludes other processes and other objects of this one.

    One object is for one thread at a time. `with` waits for ever; `with lock.acquire(2.0):` does not.
    """

    def __init__(self, path: bytes, shared: bool = False) -> None:
        self._path = path
        self._shared = shared
        self._descriptor: int | None = None

    def acquire(self, timeout: float | None = None) -> Self:
        """Takes the lock, waiting at most `timeout` seconds (None: for ever; 0: not at all).

        Raises LockHeld at the deadline, NotRegular if the file is none, or OSError.
        """
        if self._descriptor is not None:
            raise RuntimeError(f"{self._path!r} is already held by this object")
        descriptor = self._wait() if timeout is None else self._poll(time.monotonic() + timeout)
        with suppress(OSError):  # who holds it is a courtesy: it is held on a full disk, too
            _write_holder(descriptor)
        self._descriptor = descriptor
        return self

    @property
    def descriptor(self) -> int:
        """Returns the open file that holds the lock: whoever inherits it holds the lock as well."""
        assert self._descriptor is not None
        return self._descriptor

    def release(self) -> None:
        """Gives the lock up; does nothing where it is not held."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        # Other holders of a shared lock may still be named in it. What was done under the lock is done,
        # whether or not this can be written.
        with owned(descriptor), suppress(OSError):
            if not self._shared:
                os.ftruncate(descriptor, 0)

    def __enter__(self) -> Self:
        return self if self._descriptor is not None else self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _wait(self) -> int:
        while (descriptor := self._attempt(0)) is None:
            continue  # the file was replaced while we waited on it: that lock guards nothing
        return descriptor

    def _poll(self, deadline: float) -> int:
        pause = FIRST_PAUSE
        while (descriptor := self._attempt(fcntl.LOCK_NB)) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise LockHeld(self._path, _read_holder(self._path))
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, LONGEST_PAUSE)
        return descriptor

    def _attempt(self, extra: int) -> int | None:
        descriptor = os.open(self._path, OPEN, 0o600)
        try:
            taken = self._take(descriptor, extra)
        except BaseException:
            os.close(descriptor)
            raise
        if taken:
            return descriptor
        os.close(descriptor)
        return None

    def _take(self, descriptor: int, extra: int) -> bool:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegular(self._path)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if self._shared else fcntl.LOCK_EX) | extra)
        except BlockingIOError:
            return False
        return _is_at(descriptor, self._path)


def _is_at(descriptor: int, path: bytes) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _write_holder(descriptor: int) -> None:
    with open("/proc/self/stat", "rb") as file:
        line = file.read()
    # proc(5): pid (program) state ... with the start time, in clock ticks since boot, as field 22.
    head, tail = line.rsplit(b")", 1)
    pid, program = head.split(b" (", 1)
    text = b" ".join((pid, tail.split()[19], program)) + b"\n"
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text, 0)


def _read_holder(path: bytes) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    with owned(descriptor):
        return os.read(descriptor, 256).decode(errors="replace").strip()
