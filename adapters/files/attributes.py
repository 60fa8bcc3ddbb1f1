"""Extended attributes of an entry, read where the file system has them."""

import errno
import os

Attributes = tuple[tuple[bytes, bytes], ...]

# The security label is the system's own, made anew for each file that is created.
NOT_KEPT = frozenset({"security.selinux"})
NONE: Attributes = ()
UNSUPPORTED = (errno.ENOTSUP, errno.EPERM)


def of_open(descriptor: int) -> Attributes:
    """Returns names and values of what is open, sorted; none where they are not supported. Raises OSError."""
    try:
        found = os.listxattr(descriptor)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        return NONE
    return _values(descriptor, found, follow=True) if found else NONE


def of_entry(parent: int | None, name: bytes) -> Attributes:
    """Returns those of an entry of an open directory, or of the working directory, never through a link.

    Raises OSError.
    """
    path = name if parent is None else b"/proc/self/fd/%d/%b" % (parent, name)
    try:
        found = os.listxattr(path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        return NONE
    return _values(path, found, follow=False) if found else NONE


def _values(target: int | bytes, names: list[str], *, follow: bool) -> Attributes:
    kept = (name for name in names if name not in NOT_KEPT)
    return tuple(sorted((os.fsencode(name), _value(target, name, follow=follow)) for name in kept))


def _value(target: int | bytes, name: str, *, follow: bool) -> bytes:
    return os.getxattr(target, name) if follow else os.getxattr(target, name, follow_symlinks=False)
