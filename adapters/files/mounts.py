"""What is mounted where, from the kernel's own table."""

import os
import re

from adapters.files.errors import MountInside

_ESCAPE = re.compile(rb"\\([0-7]{3})")


def refuse_mounts(root: int, *, itself: bool = False) -> None:
    """Raises MountInside if anything is mounted below the open directory, or on it where `itself` says so.

    A bind mount has the device of its source, so comparing devices does not show it.
    """
    path = os.readlink(b"/proc/self/fd/%d" % root)
    below = path.rstrip(b"/") + b"/"
    with open("/proc/self/mountinfo", "rb") as table:
        for point in mount_points(table.read()):
            if point.startswith(below) or (itself and point == path):
                raise MountInside(point)


def mount_points(table: bytes) -> list[bytes]:
    """Returns the mount points of a mountinfo table, unescaped."""
    return [_unescape(line.split(b" ", 5)[4]) for line in table.splitlines()]


def _unescape(field: bytes) -> bytes:
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), field)
