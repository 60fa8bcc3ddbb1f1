"""How a path becomes descriptors: the one place that opens directories."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from adapters.files import kernel
from adapters.files.errors import MountInside

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a fifo must not make us wait


@contextmanager
def owned(descriptor: int) -> Iterator[int]:
    """Lends the descriptor and closes it."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def parent_of(path: bytes) -> Iterator[tuple[int, bytes]]:
    """Lends a descriptor of the directory that holds the path, no link, and the path's last name.

    An OSError inside is raised again about the whole path. Raises ValueError for a path without a name of
    its own, such as `/` or `..`.
    """
    head, name = os.path.split(path.rstrip(b"/"))
    if name in (b"", b".", b".."):
        raise ValueError(f"no name in {path!r}")
    try:
        with owned(os.open(head or b".", DIRECTORY)) as descriptor:
            yield descriptor, name
    except OSError as error:
        raise located(error, path) from error


def open_directory(parent: int, name: bytes, path: bytes, flags: int = os.O_RDONLY) -> int:
    """Opens a directory of the parent, never through a link (ENOTDIR or ELOOP).

    Raises MountInside about `path` if something is mounted there, or OSError.
    """
    flags |= DIRECTORY
    try:
        return kernel.open_beneath(parent, name, flags)
    except OSError as error:
        if error.errno == errno.EXDEV:
            raise MountInside(path) from error
        if error.errno not in kernel.UNAVAILABLE:
            raise
    return _open_on_same_mount(parent, name, path, flags)


def _open_on_same_mount(parent: int, name: bytes, path: bytes, flags: int) -> int:
    # Without openat2 (before Linux 5.6) only the mount's number gives a bind mount away.
    descriptor = os.open(name, flags, dir_fd=parent)
    try:
        if _mount_of(descriptor) != _mount_of(parent):
            raise MountInside(path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _mount_of(descriptor: int) -> bytes:
    with open(f"/proc/self/fdinfo/{descriptor}", "rb") as file:
        return next(line for line in file if line.startswith(b"mnt_id:"))


def change_mode(handle: int, mode: int) -> None:
    """Changes the mode of what the descriptor stands for, even one opened with O_PATH."""
    os.chmod(b"/proc/self/fd/%d" % handle, mode)  # fchmod refuses O_PATH


def names(descriptor: int) -> list[bytes]:
    """Returns the names in the directory, sorted as bytes."""
    return sorted(map(os.fsencode, os.listdir(descriptor)))


def located(error: OSError, path: bytes) -> OSError:
    """Returns the same error about the path as the caller knows it."""
    number = error.errno or errno.EIO
    return OSError(number, os.strerror(number), path)
