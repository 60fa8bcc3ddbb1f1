"""Which object a path leads to, so that another one in its place is noticed."""

from adapters.files import kernel
from adapters.files.descriptors import located
from domain.evidence import Identity


def identify(path: bytes) -> Identity:
    """Returns the identity of what is at the path, of the link itself if it is one. Raises OSError."""
    try:
        return Identity(*kernel.statx(kernel.AT_FDCWD, path or b"."))
    except OSError as error:
        raise located(error, path) from error


def identify_descriptor(descriptor: int) -> Identity:
    """Returns the identity of the open object. Raises OSError."""
    return Identity(*kernel.statx(descriptor, b""))
