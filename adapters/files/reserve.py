"""Room that is set aside, so that on a full disk the log can be read and a lane be put back all the same."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from adapters.files.descriptors import owned

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = b"reserve"
STEPS = 16  # parts of it that are kept where there is no room for all
OPEN = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Reserve:
    """A file in a directory whose blocks are nobody else's until they are given away."""

    def __init__(self, directory: bytes, size: int) -> None:
        """`size` is in bytes."""
        self._path = os.path.join(directory, NAME)
        self._size = size

    def keep(self) -> None:
        """Sets aside what is missing, as far as there is room."""
        with suppress(OSError):
            if os.lstat(self._path).st_size >= self._size:
                return
        sizes = range(self._size, 0, -self._size // STEPS)
        next((size for size in sizes if self._is_kept(size)), None)

    def _is_kept(self, size: int) -> bool:
        try:
            with owned(os.open(self._path, OPEN, 0o600)) as descriptor:
                os.posix_fallocate(descriptor, 0, size)
        except OSError:
            return False
        return True

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Gives the room away for the block, and takes back afterwards what is left of it."""
        with suppress(OSError):
            os.truncate(self._path, 0)
        try:
            yield
        finally:
            self.keep()
