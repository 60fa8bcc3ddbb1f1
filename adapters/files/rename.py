"""Moving an entry without ever replacing another."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from adapters.files import kernel
from adapters.files.descriptors import change_mode, owned, parent_of


def move(source: bytes, target: bytes) -> None:
    """Renames the entry, replacing nothing, and make that durable.

    Raises FileExistsError, FileNotFoundError or another OSError with the kernel's errno and both paths.
    An error of the final fsync comes after the rename: look before trying again.
    """
    try:
        with parent_of(source) as (source_parent, old), parent_of(target) as (target_parent, new):
            _rename(source_parent, old, target_parent, new)
            # Target first: a power cut between the two may show the entry twice but never nowhere.
            os.fsync(target_parent)
            os.fsync(source_parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, source, None, target) from error


def _rename(source_parent: int, old: bytes, target_parent: int, new: bytes) -> None:
    try:
        kernel.rename_without_replacing(source_parent, old, target_parent, new)
    except OSError as error:
        if error.errno != errno.EACCES or not _is_our_read_only_directory(source_parent, old):
            raise
        with _writable(source_parent, old):
            kernel.rename_without_replacing(source_parent, old, target_parent, new)


def _is_our_read_only_directory(parent: int, name: bytes) -> bool:
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    ours = status.st_uid == os.geteuid()
    return ours and stat.S_ISDIR(status.st_mode) and not status.st_mode & stat.S_IWUSR


@contextmanager
def _writable(parent: int, name: bytes) -> Iterator[None]:
    # A new parent means a new "..", which is a write to the directory itself (rename(2), EACCES).
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    with owned(os.open(name, flags, dir_fd=parent)) as handle:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        change_mode(handle, mode | stat.S_IWUSR)
        try:
            yield
        finally:
            change_mode(handle, mode)
