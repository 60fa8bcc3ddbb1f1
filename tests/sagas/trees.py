"""What the scratch repository's commit holds, and every kind of change that a lane can have."""

from __future__ import annotations

import os
import stat
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


Entry = tuple[str, int, bytes]


def walk(place: bytes, skipped: tuple[bytes, ...] = ()) -> dict[bytes, Entry]:
    """Returns type, permissions and bytes (or target) of every entry below, by relative path."""
    found: dict[bytes, Entry] = {}
    pending = [place] if os.path.isdir(place) else []
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                path = os.path.relpath(entry.path, place)
                if path not in skipped:
                    found[path] = _entry(entry)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
    return found


def _entry(entry: os.DirEntry[bytes]) -> Entry:
    status = entry.stat(follow_symlinks=False)
    mode = stat.S_IMODE(status.st_mode)
    if entry.is_symlink():
        return "link", mode, os.readlink(entry.path)
    if entry.is_file(follow_symlinks=False):
        with open(entry.path, "rb") as file:
            return "file", mode, file.read()
    return ("directory" if entry.is_dir(follow_symlinks=False) else "other"), mode, b""
