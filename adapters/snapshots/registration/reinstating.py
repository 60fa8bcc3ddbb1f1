"""Making the registration of a new worktree what was captured; never over what somebody has done in it.

Nothing is waited for here: whoever calls makes the registration's file system durable when all is written. A
crash before that leaves beginnings of files, which are known for ours by their bytes.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from adapters.files.descriptors import DIRECTORY, owned
from adapters.files.durable import TEMPORARY, write_all
from adapters.git.errors import RegistrationUnreadable
from adapters.git.registration import pointers_agree
from adapters.snapshots.beneath import Beneath
from adapters.snapshots.files import NEW, SnapshotDamaged
from adapters.snapshots.registration.registered import is_index_file, walk
from adapters.snapshots.registration.strangers import begins_with, is_left, strange
from domain.paths import unpack

if TYPE_CHECKING:
    from adapters.git.parse import TreeEntry
    from adapters.snapshots.files import Files
    from adapters.snapshots.manifest import Manifest, Registered

BESIDE = TEMPORARY + b"put-back"  # a file that is not whole yet


def put_back(
    files: Files, manifest: Manifest, admin: bytes, root: bytes, tree: dict[bytes, TreeEntry]
) -> None:
    """Makes all but HEAD and `index_files` what was captured, with modes and times; nothing is durable yet.

    Twice is once. Raises SnapshotDamaged where somebody has used git here since we began, and overwrites
    nothing of his; RegistrationUnreadable where the registration is not of this tree; Unstable, OSError.
    """
    wrong = pointers_agree(admin, root)
    if wrong is not None:
        raise RegistrationUnreadable(root, wrong)
    why = strange(files, manifest, admin, tree)
    if why is not None:
        raise SnapshotDamaged(f"somebody is working here already: {why}")
    wanted = [each for each in manifest.registration if not is_index_file(each)]
    _clear(admin, {unpack(each.name) for each in wanted})
    with Beneath(admin) as top:
        for each in wanted:
            _make(files, top, each)
        for each in reversed(wanted):  # a directory has its time when all is in it
            _dress(top, each)


def _clear(admin: bytes, wanted: set[bytes]) -> None:
    """Takes away what git has made for the new worktree, copied from the main one, and the lane had not."""
    extra = [each for each in walk(admin) if each.name not in wanted and not is_left(each.name)]
    for found in reversed(extra):
        path = os.path.join(admin, found.name)
        if found.kind != stat.S_IFDIR:
            os.unlink(path)
        elif found.name == b"info" and not os.listdir(path):
            os.rmdir(path)


def _make(files: Files, top: Beneath, each: Registered) -> None:
    with top.parent(unpack(each.name)) as (parent, name):
        if each.link is not None:
            _make_link(parent, name, unpack(each.link))
        elif not each.sha256:
            _make_directory(parent, name)
        elif not _is_whole(files, parent, name, each.sha256):
            _make_file(files, parent, name, each.sha256)


def _make_link(parent: int, name: bytes, target: bytes) -> None:
    with suppress(FileExistsError):  # a killed attempt of ours made it: what else there may be was looked at
        os.symlink(target, name, dir_fd=parent)


def _make_directory(parent: int, name: bytes) -> None:
    """Makes a directory that we can write in, whatever mode it will have."""
    try:
        os.mkdir(name, 0o700, dir_fd=parent)
    except FileExistsError:
        with owned(os.open(name, os.O_PATH | DIRECTORY, dir_fd=parent)) as handle:
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(name, mode | stat.S_IRWXU, dir_fd=parent)


def _make_file(files: Files, parent: int, name: bytes, sha256: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(BESIDE, dir_fd=parent)
    with owned(os.open(BESIDE, NEW, 0o600, dir_fd=parent)) as descriptor:
        for piece in files.pieces(sha256):
            write_all(descriptor, piece)
    os.rename(BESIDE, name, src_dir_fd=parent, dst_dir_fd=parent)


def _is_whole(files: Files, parent: int, name: bytes, sha256: str) -> bool:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    except FileNotFoundError:
        return False
    with owned(descriptor), owned(files.open(sha256)) as before:
        return os.fstat(descriptor).st_size == os.fstat(before).st_size and begins_with(before, descriptor)


def _dress(top: Beneath, each: Registered) -> None:
    """Sets mode and time of change; format 1 had no times."""
    with top.parent(unpack(each.name)) as (parent, name):
        if each.link is None:
            os.chmod(name, each.mode, dir_fd=parent)
        if each.mtime_ns:
            times = (each.mtime_ns, each.mtime_ns)
            os.utime(name, ns=times, dir_fd=parent, follow_symlinks=False)
