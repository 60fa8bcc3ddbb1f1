"""What the scratch repository's commit holds, and every kind of change that a lane can have."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.sagas.worlds import World

COMMITTED: dict[bytes, bytes] = {
    b".gitignore": b"*.log\nbuild/\n",
    b"file": b"one\n",
    b"both": b"one\n",
    b"gone": b"gone\n",
    b"plain": b"plain\n",
    b"sub/inner": b"inner\n",
    b"-dash": b"dash\n",
    b"kept\xff": b"not UTF-8\n",
}


def commit_files(world: World) -> None:
    """Makes the first commit."""
    for path, data in COMMITTED.items():
        write(os.path.join(world.root, path), data)
    write(os.path.join(world.root, b"tool"), b"#!/bin/sh\n", 0o755)
    os.symlink(b"file", os.path.join(world.root, b"link"))
    world.git(world.root, "add", ".")
    world.git(world.root, "commit", "-q", "-m", "first")


def write(path: bytes, data: bytes, mode: int = 0o644) -> None:
    """Writes a file anew, with its permissions."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, mode)


def disturb(lane: bytes, *, again: bool = False) -> None:
    """Makes the changes that are to be staged or, again, those that come after."""
    if not again:
        write(os.path.join(lane, b"staged"), b"staged\n")
        write(os.path.join(lane, b"both"), b"staged\n")
        write(os.path.join(lane, b"doomed"), b"only in the index\n")
        return
    write(os.path.join(lane, b"both"), b"staged, then modified\n")
    os.unlink(os.path.join(lane, b"doomed"))
    write(os.path.join(lane, b"file"), b"modified\n")
    os.unlink(os.path.join(lane, b"gone"))
    os.chmod(os.path.join(lane, b"plain"), 0o755)
    os.unlink(os.path.join(lane, b"link"))
    os.symlink(b"sub/inner", os.path.join(lane, b"link"))
    os.symlink(b"/nowhere/at all", os.path.join(lane, b"dangling"))
    os.mkdir(os.path.join(lane, b"empty"))
    for path, mode in UNTRACKED.items():
        write(os.path.join(lane, path), b"untracked " + path, mode)


DIRTY_INDEX = b"staged\0both\0doomed\0"
UNTRACKED = {
    b"untracked": 0o644,
    b"secret": 0o600,
    b"program": 0o755,
    b"new\nline": 0o644,
    b"\xfe\xff": 0o644,
    b"--force": 0o644,
    b"deep/er/file": 0o644,
}
