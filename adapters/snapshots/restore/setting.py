"""Modes, extended attributes and times of a tree whose content is right, each directory after all in it.

What a file system or a user may not set stays as it is: the look at the end tells the difference.
"""

from __future__ import annotations

import errno
import os
import sys
from array import array
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from adapters.files.attributes import Attributes, of_entry, of_open
from adapters.files.descriptors import change_mode, owned
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import unpacked_attributes

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from adapters.snapshots.files import Files
    from adapters.snapshots.manifest import Held, Manifest
    from adapters.snapshots.restore.mending import Site

    Times = dict[bytes, int]  # nanoseconds by path; the root's is the empty one


def times_of(files: Files, manifest: Manifest, wanted: Iterable[bytes]) -> Times:
    """Returns when the root and each entry was changed, or nothing where the snapshot does not know.

    Raises SnapshotDamaged.
    """
    if not manifest.times:
        return {}
    data = files.read(manifest.times)
    numbers = array("q", data[: len(data) // 8 * 8])
    if sys.byteorder == "big":
        numbers.byteswap()
    try:
        return dict(zip((b"", *wanted), numbers, strict=True))
    except ValueError as error:
        raise SnapshotDamaged("the snapshot does not have one time for every entry") from error


def by_directory(wanted: Mapping[bytes, Held]) -> dict[bytes, list[bytes]]:
    """Returns what is in each directory, the root first and each before those below it."""
    found: dict[bytes, list[bytes]] = {b"": []}
    for path, held in wanted.items():
        found[path.rpartition(b"/")[0]].append(path)
        if held.kind == "directory":
            found[path] = []
    return found


def settle(
    site: Site, times: Times, done: Container[bytes], root_mode: int | None, *, attributes: bool
) -> list[bytes]:
    """Sets what differs, and returns the paths that somebody has touched since they were read.

    Files that are `done` need nothing. Extended attributes are left alone unless the snapshot knows them.
    Raises OSError, MountInside.
    """
    touched: list[bytes] = []
    for directory, entries in reversed(by_directory(site.wanted).items()):
        paths = [path for path in entries if path not in done and site.wanted[path].kind != "directory"]
        with site.beneath.directory(directory) as descriptor:
            if attributes:
                _set_attributes(site, descriptor, directory, paths)
            touched += _settle_all(site, descriptor, paths, times)
            mode = site.wanted[directory].mode if directory else root_mode
            _set_directory(descriptor, mode, times.get(directory))
    return touched


def _settle_all(site: Site, parent: int, paths: list[bytes], times: Times) -> list[bytes]:
    # This runs for every file of every restore: flat, and everything in it a local name.
    wanted, known, status_of, set_times = site.wanted, site.known, os.stat, os.utime
    cut = len(paths[0].rpartition(b"/")[0]) if paths else 0
    cut += cut > 0
    touched = []
    for path in paths:
        name, entry, held = path[cut:], known[path], wanted[path]
        status = status_of(name, dir_fd=parent, follow_symlinks=False)
        modified = status.st_mtime_ns
        if status.st_ctime_ns != entry.ctime_ns or status.st_ino != entry.inode:
            touched.append(path)
        if entry.mode != held.mode and held.kind == "file":
            _set_mode(parent, name, held.mode)
        if modified != (time := times.get(path, modified)):
            with if_able():
                set_times(name, ns=(status.st_atime_ns, time), dir_fd=parent, follow_symlinks=False)
    return touched


def _set_mode(parent: int, name: bytes, mode: int) -> None:
    with if_able(), owned(os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)) as handle:
        change_mode(handle, mode)


def _set_directory(descriptor: int, mode: int | None, time: int | None) -> None:
    status = os.fstat(descriptor)
    if mode is not None and status.st_mode & 0o7777 != mode:
        with if_able():
            os.fchmod(descriptor, mode)
    if time is not None and status.st_mtime_ns != time:
        with if_able():
            os.utime(descriptor, ns=(status.st_atime_ns, time))


def _set_attributes(site: Site, parent: int, directory: bytes, paths: list[bytes]) -> None:
    for path in paths:
        entry, held = site.known[path], site.wanted[path]
        if not (entry.xattrs or held.xattrs) or entry.xattrs == (wanted := unpacked_attributes(held.xattrs)):
            continue
        name = path.rpartition(b"/")[2]
        _change(b"/proc/self/fd/%d/%b" % (parent, name), entry.xattrs, wanted)
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        mode = status.st_mode & 0o7777  # an access list is a part of it
        site.known[path] = replace(
            entry, mode=mode, ctime_ns=status.st_ctime_ns, xattrs=of_entry(parent, name)
        )
    if directory:
        found, wanted = site.known[directory], unpacked_attributes(site.wanted[directory].xattrs)
        if found.xattrs != wanted:
            _change(b"/proc/self/fd/%d/." % parent, found.xattrs, wanted)
            site.known[directory] = replace(found, xattrs=of_open(parent))


def _change(path: bytes, found: Attributes, wanted: Attributes) -> None:
    """Makes the extended attributes of an entry what they were, as far as is possible here."""
    before, after = dict(found), dict(wanted)
    for name in before.keys() - after.keys():
        with if_able():
            os.removexattr(path, name, follow_symlinks=False)
    for name, value in after.items():
        if before.get(name) != value:
            with if_able():
                os.setxattr(path, name, value, follow_symlinks=False)


@contextmanager
def if_able() -> Iterator[None]:
    """Lets pass that something cannot be had here; whoever looks afterwards sees that it is not so."""
    try:
        yield
    except OSError as error:
        if error.errno not in UNSETTABLE:
            raise


UNSETTABLE = frozenset(
    {
        *(errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.EINVAL, errno.ERANGE, errno.EOVERFLOW),
        *(errno.E2BIG, errno.ENOSPC, errno.EDQUOT, errno.ENODATA),
    }
)
