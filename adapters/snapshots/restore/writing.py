"""Making one entry of a tree, and comparing one that is there with what it should have been."""

from __future__ import annotations

import os
from typing import Protocol

from adapters.files.durable import open_regular, read_most, write_all
from adapters.files.errors import NotRegular, legible
from adapters.files.kernel import clone
from adapters.snapshots.files import SnapshotDamaged

CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Taking(Protocol):
    """Something that takes the content of an entry piece by piece."""

    def take(self, piece: bytes) -> None:
        """Takes the next piece."""

    def finish(self) -> None:
        """Is told that the content is whole."""

    def close(self) -> None:
        """Gives back what it holds, also where the content did not come to its end."""


class NewFile:
    """A file that is made, where nothing may be yet. Raises SnapshotDamaged, OSError."""

    def __init__(self, parent: int, name: bytes, path: bytes) -> None:
        try:
            self._descriptor = os.open(name, CREATE, 0o600, dir_fd=parent)
        except FileExistsError:
            raise in_the_way(path) from None

    def take(self, piece: bytes) -> None:
        """Writes the piece."""
        write_all(self._descriptor, piece)

    def clone(self, source: int) -> bool:
        """Shares the bytes of an open file, and returns False where this file system cannot."""
        return clone(source, self._descriptor)

    def finish(self) -> None:
        """Has nothing to do: mode and times are set later, with those of all others."""

    def close(self) -> None:
        """Closes the file."""
        os.close(self._descriptor)


class NewLink:
    """A symbolic link that is made, where nothing may be yet. Raises SnapshotDamaged, OSError."""

    def __init__(self, parent: int, name: bytes, path: bytes) -> None:
        self._parent, self._name, self._path = os.dup(parent), name, path
        self._target = b""

    def take(self, piece: bytes) -> None:
        """Takes a piece of the target."""
        self._target += piece

    def finish(self) -> None:
        """Makes the link."""
        try:
            os.symlink(self._target, self._name, dir_fd=self._parent)
        except FileExistsError:
            raise in_the_way(self._path) from None

    def close(self) -> None:
        """Gives the directory back."""
        os.close(self._parent)


class Beginning:
    """A file that is there, and goes if it is a beginning of the content: a killed attempt of ours left it.

    Raises SnapshotDamaged where it is anything else.
    """

    def __init__(self, parent: int, name: bytes, path: bytes) -> None:
        self._descriptor = open_file(parent, name, path)
        self._parent, self._name, self._path = os.dup(parent), name, path
        self._same = True

    def take(self, piece: bytes) -> None:
        """Compares the next piece."""
        self._same = self._same and piece.startswith(read_most(self._descriptor, len(piece)))

    def finish(self) -> None:
        """Takes the file away, unless it has other bytes, or more."""
        if not self._same or os.read(self._descriptor, 1):
            raise in_the_way(self._path)
        os.unlink(self._name, dir_fd=self._parent)

    def close(self) -> None:
        """Gives back file and directory."""
        os.close(self._descriptor)
        os.close(self._parent)


def open_file(parent: int, name: bytes, path: bytes) -> int:
    """Opens a regular file for reading. Raises SnapshotDamaged where it is anything else, or OSError."""
    try:
        return open_regular(parent, name, path)
    except NotRegular:
        raise in_the_way(path) from None


def make_directory(parent: int, name: bytes, path: bytes) -> None:
    """Makes a directory that nobody else can look into yet. Raises SnapshotDamaged where something is."""
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        raise in_the_way(path) from None


def in_the_way(path: bytes) -> SnapshotDamaged:
    """Returns what is said of a path where something is that is not ours."""
    return SnapshotDamaged(f"something else has been put at {legible(path)!r} meanwhile")
