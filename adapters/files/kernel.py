"""The only place for system calls that the standard library lacks: statx, renameat2, openat2 and the like."""

import ctypes
import errno
import fcntl
import os
import struct
from typing import NamedTuple

OPENAT2 = 437  # the same number on every architecture
AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW = 0x100
AT_EMPTY_PATH = 0x1000
RENAME_NOREPLACE = 1
RESOLVE_NO_XDEV = 0x01
RESOLVE_NO_SYMLINKS = 0x04
STATX_BASIC_STATS = 0x7FF
STATX_BTIME = 0x800

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.syscall.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
_libc.statx.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p]
_libc.syncfs.argtypes = [ctypes.c_int]
_libc.renameat2.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]


class Birth(NamedTuple):
    """What statx tells beyond stat, and what ties it to the object."""

    device: int
    inode: int
    born_ns: int | None


def statx(directory: int, name: bytes) -> Birth:
    """Returns device, inode and birth time of the entry, or of the descriptor itself where the name is empty.

    Raises OSError.
    """
    buffer = ctypes.create_string_buffer(256)
    flags = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH
    _check(_libc.statx(directory, name, flags, STATX_BASIC_STATS | STATX_BTIME, buffer), name)
    (mask,) = struct.unpack_from("=I", buffer, 0)
    (inode,) = struct.unpack_from("=Q", buffer, 32)
    seconds, nanoseconds = struct.unpack_from("=qI", buffer, 80)
    device = os.makedev(*struct.unpack_from("=II", buffer, 136))
    return Birth(device, inode, seconds * 10**9 + nanoseconds if mask & STATX_BTIME else None)


def rename_without_replacing(source_parent: int, source: bytes, target_parent: int, target: bytes) -> None:
    """Renames the entry unless the target exists in any form. Raises OSError."""
    _check(_libc.renameat2(source_parent, source, target_parent, target, RENAME_NOREPLACE), source)


def sync_file_system(descriptor: int) -> None:
    """Makes everything on the file system of the descriptor durable, which is one wait for many files."""
    _check(_libc.syncfs(descriptor), b"")


def clone(source: int, target: int) -> bool:
    """Shares the bytes of one open file with another, and returns False where the file system cannot.

    What is written to either later is its own. Raises OSError.
    """
    try:
        fcntl.ioctl(target, FICLONE, source)
    except OSError as error:
        if error.errno not in UNSHARED:
            raise
        return False
    return True


def open_beneath(directory: int, name: bytes, flags: int) -> int:
    """Opens the entry, refusing links (ELOOP) and mount points, bind mounts too (EXDEV); raises OSError.

    ENOSYS and EPERM mean that openat2 itself is not to be had: Linux before 5.6, or a seccomp filter.
    """
    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, 0, RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS)
    return _check(_libc.syscall(OPENAT2, directory, name, how, len(how)), name)


def _check(result: int, name: bytes) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return result


UNAVAILABLE = frozenset({errno.ENOSYS, errno.EPERM})
FICLONE = 0x40049409  # ioctl_ficlone(2)
UNSHARED = (
    errno.EOPNOTSUPP,
    errno.ENOTTY,
    errno.EXDEV,
    errno.EINVAL,
    errno.ENOSYS,
    errno.EPERM,
    errno.ETXTBSY,
)
