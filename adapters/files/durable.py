"""Small files that are whole and on the disk, or not there, whatever happens in between."""

import errno
import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

from adapters.files.descriptors import DIRECTORY, READ, located, owned, parent_of
from adapters.files.errors import Halfway, LockFileHeld, NotRegular, TooLarge
from adapters.files.kernel import rename_without_replacing, sync_file_system

TEMPORARY = b".laneyard-"  # how the name of a file begins that is not yet, or never came to be, in its place
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
UNNAMED = os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC
NAMED_ONLY = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)  # a file system where a new file has a name


def write_new(path: bytes, data: bytes, mode: int = 0o600) -> None:
    """Creates the file with all of the data in one step (mode less the umask), or not at all.

    Raises FileExistsError or another OSError.
    """
    with parent_of(path) as (parent, name):
        with _written_beside(parent, name, data, mode) as temporary:
            rename_without_replacing(parent, temporary, parent, name)
        os.fsync(parent)


def replace(path: bytes, data: bytes, mode: int = 0o600) -> None:
    """Puts the data at the path in one step (mode less the umask); a link there is replaced, not followed.

    Raises OSError; until the last fsync the old content is still there, whole.
    """
    with parent_of(path) as (parent, name):
        with _written_beside(parent, name, data, mode) as temporary:
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        os.fsync(parent)


def write_locked(path: bytes, data: bytes) -> None:
    """Puts the data at the path by git's protocol, under `<path>.lock`; an existing file's mode is kept.

    Raises LockFileHeld if that lock exists, NotRegular if the path is no regular file, Halfway if our lock
    is there still, or OSError.
    """
    with parent_of(path) as (parent, name):
        lock = name + b".lock"
        mode = partial(_take_mode_of, parent, name, path)
        with _written_beside(parent, name, data, 0o644, mode) as ours:
            try:
                rename_without_replacing(parent, ours, parent, lock)
            except FileExistsError as error:
                _adopt(parent, lock, path, data, error)
                os.unlink(ours, dir_fd=parent)
            except OSError:
                if _is_there(parent, ours):  # else it was done all the same
                    raise
            try:
                with _undone_on_error(parent, lock):
                    os.rename(lock, name, src_dir_fd=parent, dst_dir_fd=parent)
            except OSError as error:
                if _is_there(parent, lock):  # git would wait for us
                    raise Halfway(path + b".lock", error) from error
                raise
        os.fsync(parent)


def _adopt(parent: int, lock: bytes, path: bytes, data: bytes, error: FileExistsError) -> None:
    """Raises LockFileHeld unless the lock has just what we want to write: a killed attempt of ours left it.

    Ours appear whole. Whoever else holds a lock with this very content wants what we want.
    """
    found, flags = None, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    # A lock that is given back meanwhile is not found: whoever tries again will see.
    with suppress(FileNotFoundError), owned(os.open(lock, flags, dir_fd=parent)) as descriptor:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            found = read_most(descriptor, len(data) + 1)
    if found != data:
        raise LockFileHeld(path) from error


def remove_file(path: bytes) -> bool:
    """Removes the file or link and make that durable; return whether it was there. Raises OSError."""
    with suppress(FileNotFoundError), parent_of(path) as (parent, name):
        try:
            os.unlink(name, dir_fd=parent)
            return True
        finally:
            # Also where it was missing: the unlink of a run that crashed may not be on the disk yet.
            os.fsync(parent)
    return False


def make_directories(path: bytes, mode: int = 0o700) -> None:
    """Creates each missing component durably (mode less the umask); what exists is left as it is.

    Raises NotADirectoryError where a component below the nearest real directory is a link or a file.
    """
    ancestor, missing = _nearest_directory(path)
    with ExitStack() as stack:
        parent = stack.enter_context(owned(os.open(ancestor, DIRECTORY)))
        for name in missing:
            ancestor = os.path.join(ancestor, name)
            _make_directory(parent, name, mode, ancestor)
            child = stack.enter_context(owned(_open_real(parent, name, ancestor)))
            os.fsync(parent)
            parent = child


def sync_directory(path: bytes) -> None:
    """Makes durable which names are in the directory, if it is there. Raises OSError."""
    with suppress(FileNotFoundError, NotADirectoryError), owned(os.open(path, DIRECTORY)) as descriptor:
        os.fsync(descriptor)


def sync_file_systems(*directories: bytes) -> None:
    """Makes everything durable on the file systems of the directories that are there, in one wait for each.

    Raises OSError.
    """
    done: set[int] = set()
    for path in directories:
        with suppress(FileNotFoundError, NotADirectoryError), owned(os.open(path, DIRECTORY)) as descriptor:
            device = os.fstat(descriptor).st_dev
            if device not in done:
                sync_file_system(descriptor)
                done.add(device)


def read_file(path: bytes, limit: int = 1 << 20) -> bytes:
    """Returns the content of the regular file, at most `limit` bytes.

    Raises TooLarge, NotRegular (for a link too) or OSError.
    """
    with parent_of(path) as (parent, name), owned(open_regular(parent, name, path)) as descriptor:
        data = read_most(descriptor, limit + 1)
    if len(data) > limit:
        raise TooLarge(path)
    return data


@contextmanager
def _written_beside(
    parent: int, name: bytes, data: bytes, mode: int, prepare: Callable[[int], None] = lambda descriptor: None
) -> Iterator[bytes]:
    """Lends the name of a file that has the data and is on the disk; it must be renamed, or it goes.

    A crash leaves at most one such file for each name, whole; whoever writes that name next takes it away.
    """
    # A name of fixed length: one derived from a name of 255 bytes would be too long.
    temporary = TEMPORARY + hashlib.sha256(name).hexdigest()[:16].encode()
    try:
        descriptor = os.open(b".", UNNAMED, mode, dir_fd=parent)
    except OSError as error:
        if error.errno not in NAMED_ONLY:
            raise
        temporary = TEMPORARY + secrets.token_hex(8).encode()
        descriptor = os.open(temporary, CREATE, mode, dir_fd=parent)
    with owned(descriptor), ExitStack() as undone:
        named = os.fstat(descriptor).st_nlink > 0
        if named:
            undone.enter_context(_undone_on_error(parent, temporary))
        prepare(descriptor)
        _fill(descriptor, data)
        if not named:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            _name(descriptor, parent, temporary)
            undone.enter_context(_undone_on_error(parent, temporary))
        yield temporary


def _name(descriptor: int, parent: int, name: bytes) -> None:
    """Gives a file the name, from which a dead process's file gives way; a living one's is waited for."""
    while True:
        try:
            os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=parent, follow_symlinks=True)
            return
        except FileExistsError:
            with suppress(FileNotFoundError), owned(os.open(name, READ, dir_fd=parent)) as found:
                fcntl.flock(found, fcntl.LOCK_EX)
                if os.path.samestat(os.fstat(found), os.stat(name, dir_fd=parent, follow_symlinks=False)):
                    os.unlink(name, dir_fd=parent)


@contextmanager
def _undone_on_error(parent: int, name: bytes) -> Iterator[None]:
    """Unlinks what we created under the name if the rest of its making fails."""
    try:
        yield
    except BaseException:
        with suppress(OSError):  # it may have got its own name already; and what went wrong first counts
            os.unlink(name, dir_fd=parent)
        raise


def _is_there(parent: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _fill(descriptor: int, data: bytes) -> None:
    write_all(descriptor, data)
    os.fsync(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of the data where the descriptor is. Raises OSError."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _take_mode_of(parent: int, name: bytes, path: bytes, descriptor: int) -> None:
    try:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise NotRegular(path)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))


def _nearest_directory(path: bytes) -> tuple[bytes, list[bytes]]:
    missing: list[bytes] = []
    path = path.rstrip(b"/") or path[:1]
    while not _is_real_directory(path):
        path, name = os.path.split(path)
        path = path.rstrip(b"/") or (b"/" if path else b".")
        missing.insert(0, name)
    return path, missing


def _make_directory(parent: int, name: bytes, mode: int, path: bytes) -> None:
    try:
        os.mkdir(name, mode, dir_fd=parent)
    except FileExistsError:
        return  # made by somebody at the same time, or a link: the open tells
    except OSError as error:
        raise located(error, path) from error


def _is_real_directory(path: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _open_real(parent: int, name: bytes, path: bytes) -> int:
    try:
        return os.open(name, DIRECTORY, dir_fd=parent)
    except OSError as error:
        raise located(error, path) from error


def open_regular(parent: int, name: bytes, path: bytes) -> int:
    """Opens a regular file of a directory for reading. Raises NotRegular, for a link too, or OSError."""
    try:
        descriptor = os.open(name, READ, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a socket
            raise NotRegular(path) from error
        raise
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotRegular(path)


def read_most(descriptor: int, most: int) -> bytes:
    """Reads on from where the descriptor is, at most so many bytes. Raises OSError."""
    pieces = []
    while most > 0 and (piece := os.read(descriptor, min(most, 1 << 20))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)
