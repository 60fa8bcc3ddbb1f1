"""The ways in which the file system layer says no."""

import os


class FilesError(Exception):
    """An answer of this layer that is not the kernel's; names the path it is about."""

    summary = "file system operation refused"

    def __init__(self, path: bytes) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"{self.summary}: {legible(self.path)}"


class LockFileHeld(FilesError):
    """`<path>.lock` exists: somebody else is writing this file."""

    summary = "lock file exists"


class LockHeld(FilesError):
    """Another holder kept the lock until the deadline; `holder` is what it wrote, "" if nothing yet."""

    summary = "lock is held"

    def __init__(self, path: bytes, holder: str) -> None:
        super().__init__(path)
        self.holder = holder

    def __str__(self) -> str:
        return f"{super().__str__()} by {self.holder or 'an unnamed holder'}"


class TooLarge(FilesError):
    """The file is larger than its reader accepts."""

    summary = "file is too large"


class NotRegular(FilesError):
    """A regular file was expected and something else, perhaps a link, is there."""

    summary = "not a regular file"


class Unstable(FilesError):
    """The entry changed each time it was read."""

    summary = "changed while it was read"


class MountInside(FilesError):
    """Another file system, or another part of this one, is mounted here."""

    summary = "mount point in the tree"


class IdentityChanged(FilesError):
    """The path leads to another object than the one that was meant."""

    summary = "not the object that was seen before"


class Halfway(FilesError):
    """What was begun could be neither finished nor undone: it is to be gone on with, as after a crash."""

    summary = "begun, and neither finished nor undone"

    def __init__(self, path: bytes, why: Exception) -> None:
        super().__init__(path)
        self.why = why

    def __str__(self) -> str:
        return f"{super().__str__()}: {words(self.why)}"


def legible(path: object) -> str:
    """Returns a path as text that any log can keep."""
    return os.fsdecode(path).encode("utf-8", "replace").decode() if isinstance(path, bytes | str) else "?"


def words(error: Exception) -> str:
    """Returns what went wrong as text that any log can keep; the system's errors name their paths plainly."""
    if isinstance(error, OSError) and error.strerror:
        paths = [legible(path) for path in (error.filename, error.filename2) if path is not None]
        return ": ".join([error.strerror, " -> ".join(paths)] if paths else [error.strerror])
    return str(error).encode("utf-8", "replace").decode()
