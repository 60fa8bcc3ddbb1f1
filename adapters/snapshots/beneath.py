"""The directories below the root of a tree, opened at any depth and never through a link."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from adapters.files.descriptors import DIRECTORY, open_directory, owned
from adapters.files.kernel import UNAVAILABLE, open_beneath

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

LONGEST = 4000  # bytes of a path that are opened in one step; the kernel takes at most 4,095


class Beneath:
    """A root that stays open, whatever becomes of its name. Raises OSError where it cannot be opened."""

    def __init__(self, root: bytes) -> None:
        self.root = root
        self.descriptor = os.open(root, DIRECTORY)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self.descriptor)

    @contextmanager
    def directory(self, path: bytes) -> Iterator[int]:
        """Lends a descriptor of the directory. Raises OSError, MountInside."""
        if not path:
            yield self.descriptor
            return
        with owned(self.open(path)) as descriptor:
            yield descriptor

    @contextmanager
    def parent(self, path: bytes) -> Iterator[tuple[int, bytes]]:
        """Lends a descriptor of the directory that the entry is in, and the entry's own name."""
        directory, _, name = path.rpartition(b"/")
        with self.directory(directory) as descriptor:
            yield descriptor, name

    def open(self, path: bytes) -> int:
        """Opens a directory below the root, which is the caller's to close. Raises OSError, MountInside."""
        at = self.descriptor
        for piece in _pieces(path or b"."):
            try:
                below = self._step(at, piece)
            finally:
                if at != self.descriptor:
                    os.close(at)
            at = below
        return at

    def _step(self, at: int, piece: bytes) -> int:
        try:
            return open_beneath(at, piece, DIRECTORY)
        except OSError as error:
            if error.errno not in UNAVAILABLE:
                raise
        return self._walk(at, piece.split(b"/"))

    def _walk(self, at: int, names: list[bytes]) -> int:
        """Goes down name by name, where the kernel cannot look after the whole way."""
        descriptor = os.dup(at)
        for name in names:
            with owned(descriptor):
                descriptor = open_directory(descriptor, name, os.path.join(self.root, name))
        return descriptor


def _pieces(path: bytes) -> Iterator[bytes]:
    while len(path) > LONGEST:
        cut = path.rindex(b"/", 0, LONGEST)
        yield path[:cut]
        path = path[cut + 1 :]
    yield path
