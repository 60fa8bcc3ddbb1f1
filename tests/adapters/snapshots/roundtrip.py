"""What changes with every touch of a lane; whole round trips are in tests/roundtrip."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.sagas.trees import walk

if TYPE_CHECKING:
    from tests.sagas.worlds import World


def stamps(world: World, place: bytes) -> tuple[object, ...]:
    """Returns the times and numbers of every entry, and the index as it is on disk."""
    seen = {}
    for path in walk(place):
        status = os.lstat(os.path.join(place, path))
        seen[path] = (status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_nlink)
    index = os.path.join(world.common, b"worktrees", os.path.basename(place), b"index")
    with open(index, "rb") as file:
        return seen, file.read(), os.lstat(index).st_mtime_ns
