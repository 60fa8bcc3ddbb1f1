"""Walking down and up a tree by descriptors, to any depth with few of them."""

import os
from types import TracebackType
from typing import Self

from adapters.files.descriptors import DIRECTORY
from adapters.files.errors import Unstable

HELD = 64  # far below the usual limit of 1,024, deeper than nearly every real tree


class Descent:
    """The directories from the root to where we are; `prefix` is what a name here begins with.

    Owns the descriptors it is given. Only the deepest stay open; one further up is opened again through
    `..` when the walk comes back, and must then be the directory that it was.
    """

    def __init__(self, root: bytes, descriptor: int) -> None:
        self.root = root
        self.device = os.fstat(descriptor).st_dev
        self.prefix = b""
        self._levels = [_Level(descriptor, b"")]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for level in self._levels:
            level.close()

    @property
    def descriptor(self) -> int:
        """The descriptor of the directory where we are."""
        return self._levels[-1].descriptor

    def full(self, name: bytes) -> bytes:
        """Returns the path of a name here as the caller of the walk would spell it."""
        return os.path.join(self.root, self.prefix + name)

    def push(self, name: bytes, descriptor: int) -> None:
        """Goes down into the directory, whose descriptor becomes ours."""
        self.prefix += name + b"/"
        self._levels.append(_Level(descriptor, self.prefix))
        if len(self._levels) > HELD:
            self._levels[-HELD - 1].close()

    def pop(self) -> int:
        """Goes up; return the descriptor of the directory left, which is the caller's to close.

        Raises Unstable if the way up no longer leads where we came from.
        """
        child, parent = self._levels[-1], self._levels[-2]
        if parent.descriptor < 0:
            parent.reopen(child.descriptor, os.path.join(self.root, child.prefix))
        self._levels.pop()
        self.prefix = parent.prefix
        return child.descriptor


class _Level:
    __slots__ = ("descriptor", "identity", "prefix")

    def __init__(self, descriptor: int, prefix: bytes) -> None:
        self.descriptor = descriptor
        self.prefix = prefix
        self.identity = _identity(descriptor)

    def close(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def reopen(self, child: int, path: bytes) -> None:
        descriptor = os.open(b"..", DIRECTORY, dir_fd=child)
        if _identity(descriptor) != self.identity:
            os.close(descriptor)
            raise Unstable(path)
        self.descriptor = descriptor


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino
