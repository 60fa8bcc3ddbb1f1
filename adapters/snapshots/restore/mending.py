"""Making every path of a tree that is being restored have its kind and its bytes; what is right stays.

Only what is certainly ours gives way: what git has left exactly so, a beginning of the right content that a
killed attempt has left, or what git makes of the path. Anything else is somebody's, and ends the restore.
"""

from __future__ import annotations

import errno
import os
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec
import trio

from adapters.files.descent import Descent
from adapters.files.descriptors import owned
from adapters.files.durable import TEMPORARY, read_most
from adapters.files.scan import Entry, observe
from adapters.git.door import Git, Location
from adapters.git.restamp import stamp
from adapters.snapshots.beneath import Beneath
from adapters.snapshots.files import Files
from adapters.snapshots.manifest import Held, algorithm_of
from adapters.snapshots.restore import filling
from adapters.snapshots.restore.delivering import deliver
from adapters.snapshots.restore.writing import (
    Beginning,
    NewFile,
    NewLink,
    in_the_way,
    make_directory,
    open_file,
)
from domain.paths import unpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Set

    from adapters.snapshots.restore.delivering import Taker
    from adapters.snapshots.restore.writing import Taking

POINTER = 4096  # bytes of the `.git` file of a submodule


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A tree that is being restored: what is wanted at each path, and what is known to be there.

    `known` is kept true by all who change the tree.
    """

    git: Git
    common: bytes
    lane: Location
    beneath: Beneath
    files: Files
    commit: str
    wanted: dict[bytes, Held]
    known: dict[bytes, Entry]

    @property
    def algorithm(self) -> str:
        """Returns the hash by which the repository names its objects."""
        return algorithm_of(self.commit)

    @property
    def admin(self) -> bytes:
        """Returns the registration's directory."""
        assert self.lane.git_dir is not None
        return self.lane.git_dir

    def is_right(self, path: bytes) -> bool:
        """Tells whether the path has its kind and its bytes."""
        entry, held = self.known.get(path), self.wanted.get(path)
        return entry is not None and held is not None and (entry.kind, entry.oid) == (held.kind, held.oid)


async def mend(site: Site, done: Set[bytes], *, unfinished: bool) -> list[bytes]:
    """Makes every path right but those that are, and returns what was made.

    `unfinished` says that git may have been killed while it was filling the tree.

    Raises SnapshotDamaged where something is in the way, GitError, FilesError, OSError.
    """
    await trio.to_thread.run_sync(_clear_what_git_left, site, done)
    made = await trio.to_thread.run_sync(_make_directories, site)
    left = [path for path in site.wanted if path not in done]
    todo = [path for path in left if site.wanted[path].oid is not None and not site.is_right(path)]
    # What git makes of a path depends on these, which therefore come first.
    first = [path for path in todo if os.path.basename(path) == b".gitattributes"]
    made += await _put(site, first)
    if unfinished:
        await _clear_what_git_began(site)
    earlier = set(first)
    made += await _put(site, [path for path in todo if path not in earlier])
    twins, alone = await trio.to_thread.run_sync(_make_twins, site)
    await _deliver(site, alone, _new(site))
    made += [*twins, *alone]
    await trio.to_thread.run_sync(look_again, site, made)
    return made


def look_again(site: Site, paths: Iterable[bytes]) -> None:
    """Reads and hashes what is at these paths now. Raises Unstable, MountInside, OSError."""
    for directory, group in groupby(paths, key=_directory_of):
        with Descent(site.beneath.root, site.beneath.open(directory)) as descent:
            descent.prefix = directory + b"/" if directory else b""
            for path in group:
                site.known[path] = observe(descent, _name_of(path), site.algorithm)


def _directory_of(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def _name_of(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _wrong(site: Site, done: Set[bytes]) -> list[bytes]:
    """Returns the files and links that are there and not as wanted."""
    left = (path for path in site.known if path not in done and not site.is_right(path))
    return [path for path in left if site.known[path].kind != "directory"]


def _clear_what_git_left(site: Site, done: Set[bytes]) -> None:
    """Takes away what is wrong and was not touched since git wrote it, or since we pointed it elsewhere."""
    wrong = _wrong(site, done)
    if not wrong:
        return
    asked = frozenset(wrong)

    def stamp_of(path: bytes) -> bytes | None:
        return stamp(_status(site, path)) if path in asked else None

    gits = filling.written_by_git(site.admin, len(site.commit) // 2, stamp_of)
    for path in wrong:
        if path in gits or _is_pointer_of_ours(site, path):
            _remove(site, path)


def _status(site: Site, path: bytes) -> os.stat_result:
    with site.beneath.parent(path) as (parent, name):
        return os.stat(name, dir_fd=parent, follow_symlinks=False)


def _remove(site: Site, path: bytes) -> None:
    with site.beneath.parent(path) as (parent, name):
        os.unlink(name, dir_fd=parent)
    del site.known[path]


def _is_pointer_of_ours(site: Site, path: bytes) -> bool:
    """Tells whether an earlier attempt has pointed this `.git` file of a submodule at its new place.

    Or was about to: then it is beside, under a name of ours.
    """
    directory, _, name = path.rpartition(b"/")
    if directory + b"/.git" not in site.wanted or site.known[path].size > POINTER:
        return False
    if name != b".git" and not name.startswith(TEMPORARY):
        return False
    with site.beneath.parent(path) as (parent, _), owned(open_file(parent, name, path)) as descriptor:
        said = read_most(descriptor, POINTER).removeprefix(b"gitdir:").strip()
    place = os.path.realpath(os.path.join(site.beneath.root, directory, said))
    return (name != b".git" and not said) or place.startswith(
        os.path.join(os.path.realpath(site.admin), b"modules/")
    )


def _make_directories(site: Site) -> list[bytes]:
    made = [
        path for path, held in site.wanted.items() if held.kind == "directory" and not site.is_right(path)
    ]
    for path in made:
        if path in site.known:
            raise in_the_way(path)
        with site.beneath.parent(path) as (parent, name):
            make_directory(parent, name, path)
    return made


async def _put(site: Site, paths: list[bytes]) -> list[bytes]:
    """Writes files and links, after what is there of them has given way, and returns what was written."""
    there = [path for path in paths if path in site.known]
    await _deliver(site, there, Beginning)
    for path in there:
        del site.known[path]
    new = [path for path in paths if site.wanted[path].twin is None]
    await _deliver(site, new, _new(site))
    return new


def _new(site: Site) -> Taker:
    def made(parent: int, name: bytes, path: bytes) -> Taking:
        kind = NewLink if site.wanted[path].kind == "link" else NewFile
        return kind(parent, name, path)

    return made


async def _deliver(site: Site, paths: list[bytes], taker: Taker) -> None:
    await deliver(site.git, site.common, site.files, site.beneath, site.wanted, paths, taker)


async def _clear_what_git_began(site: Site) -> None:
    """Takes away what is wrong and is a beginning of what git makes of the path."""
    for path in _wrong(site, frozenset()):
        if site.known[path].kind == "file":
            made = await filling.converted(site.git, site.lane, site.commit, path)
            if made is not None and await trio.to_thread.run_sync(_begins, site, path, made):
                await trio.to_thread.run_sync(_remove, site, path)


def _begins(site: Site, path: bytes, made: bytes) -> bool:
    with site.beneath.parent(path) as (parent, name), owned(open_file(parent, name, path)) as descriptor:
        return made.startswith(read_most(descriptor, len(made) + 1))


def _make_twins(site: Site) -> tuple[list[bytes], list[bytes]]:
    """Makes names of one file what they were, one file, and returns those that are, and those that cannot be.

    Git writes a file for each.
    """
    made, alone = [], []
    for path, held in site.wanted.items():
        if held.twin is None:
            continue
        first, there = unpack(held.twin), site.known.get(path)
        if there is not None:
            if there.inode == _status(site, first).st_ino:
                continue
            _remove(site, path)  # it has the same bytes, or would have given way by now
        if _is_made_twin(site, first, path):
            made += [first, path]
        else:
            alone.append(path)
    return made, alone


def _is_made_twin(site: Site, first: bytes, path: bytes) -> bool:
    with site.beneath.parent(first) as (source, name), site.beneath.parent(path) as (parent, new):
        try:
            os.link(name, new, src_dir_fd=source, dst_dir_fd=parent, follow_symlinks=False)
        except FileExistsError:
            raise in_the_way(path) from None
        except OSError as error:
            if error.errno not in UNLINKABLE:
                raise
            return False
    return True


# What it means that a file system, or a limit of it, does not let a file have another name.
UNLINKABLE = (errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS)
