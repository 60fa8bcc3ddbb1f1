"""Reading what git has filled a tree with; a file that is right gets its time while it is open for that.

Whatever is not as it is to be, or is no small file, is only made known; the others mend and set it.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from adapters.files.attributes import of_open
from adapters.files.blob import PIECE, blob_oid
from adapters.files.descriptors import READ
from adapters.files.scan import Entry
from adapters.snapshots.restore.mending import look_again
from adapters.snapshots.restore.setting import by_directory

if TYPE_CHECKING:
    from adapters.files.attributes import Attributes
    from adapters.snapshots.restore.mending import Site
    from adapters.snapshots.restore.setting import Times

# What it means that there is nothing, or no regular file or directory.
ODD = (errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.ENOTDIR)


def adopt(site: Site, times: Times) -> set[bytes]:
    """Makes known what is at each wanted path, and returns the files of which nothing is to be set any more.

    Raises Unstable, MountInside, OSError.
    """
    done: set[bytes] = set()
    odd: list[bytes] = []
    for directory, paths in by_directory(site.wanted).items():
        try:
            descriptor = site.beneath.open(directory)
        except OSError as error:
            if error.errno not in ODD:
                raise
            odd.append(directory)
            continue
        try:
            if directory:
                status = os.fstat(descriptor)
                site.known[directory] = _entry(directory, "directory", status, None, of_open(descriptor))
            odd += _adopt_all(site, descriptor, paths, times, done)
        finally:
            os.close(descriptor)
    look_again(site, [path for path in odd if _is_there(site, path)])
    return done


def _adopt_all(site: Site, parent: int, paths: list[bytes], times: Times, done: set[bytes]) -> list[bytes]:
    """Reads the files of one directory, and returns what is none of the kind that is wanted."""
    # This runs for every file of every restore: flat, and everything in it a local name.
    wanted, known, algorithm, regular = site.wanted, site.known, site.algorithm, stat.S_IFREG
    odd: list[bytes] = []
    cut = len(paths[0].rpartition(b"/")[0]) if paths else 0
    cut += cut > 0
    for path in paths:
        held = wanted[path]
        if held.kind != "file":
            if held.kind == "link":
                odd.append(path)
            continue
        try:
            descriptor = os.open(path[cut:], READ, dir_fd=parent)
        except OSError as error:
            if error.errno not in ODD:
                raise
            odd.append(path)
            continue
        try:
            status = os.fstat(descriptor)
            size, mode = status.st_size, status.st_mode
            if size >= PIECE or mode & 0o170000 != regular:
                odd.append(path)
                continue
            data = os.read(descriptor, size + 1)
            oid, xattrs = blob_oid(algorithm, data), of_open(descriptor)
            if oid != held.oid or len(data) != size:
                known[path] = _entry(path, "file", status, oid, xattrs)
                continue
            known[path] = _entry(
                path, "file", status, held.oid, xattrs
            )  # one string for both, of 100,000 files
            plain = mode & 0o7777 == held.mode and not (xattrs or held.xattrs or held.twin)
            if plain and _has_time(descriptor, status, times.get(path)):
                done.add(path)
        finally:
            os.close(descriptor)
    return odd


def _has_time(descriptor: int, status: os.stat_result, time: int | None) -> bool:
    """Sets the time, and tells whether there was one that can be had here."""
    if time is None:
        return False
    try:
        os.utime(descriptor, ns=(status.st_atime_ns, time))
    except OSError:
        return False  # whoever sets what is left knows what that means
    return True


def _entry(path: bytes, kind: str, status: os.stat_result, oid: str | None, xattrs: Attributes) -> Entry:
    return Entry(
        path,
        kind,
        status.st_mode & 0o7777,
        0 if kind == "directory" else status.st_size,
        status.st_dev,
        status.st_ino,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_nlink,
        oid,
        xattrs,
    )


def _is_there(site: Site, path: bytes) -> bool:
    try:
        with site.beneath.parent(path) as (parent, name):
            os.stat(name, dir_fd=parent, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True
