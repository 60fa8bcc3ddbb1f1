"""The entries of a worktree's registration: which belong to a snapshot, how they are kept, what cannot be.

What git keeps there it keeps nowhere else: staged content, commits that only the log names, an operation in
progress, the git directories of submodules. So all of it is kept, as raw files.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from adapters.files.blob import unchanged
from adapters.files.descent import Descent
from adapters.files.descriptors import DIRECTORY, READ, located, names, open_directory, owned
from adapters.files.durable import TEMPORARY, read_file
from adapters.files.errors import MountInside, Unstable
from adapters.files.mounts import refuse_mounts
from adapters.git.repository import is_git_directory
from adapters.snapshots.files import LIMIT, Shortened
from adapters.snapshots.manifest import Registered
from domain.evidence import Obstacle
from domain.paths import display, pack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapters.snapshots.files import Files

SMALL = 1 << 20  # bytes up to which a file is read at once
# Where the worktree is and on what, which a new registration says of itself, and who has locked it.
OWN = frozenset((b"HEAD", b"gitdir", b"commondir", b"locked"))
MONITOR = b"fsmonitor--daemon.ipc"  # the socket by which git asks its own monitor; it makes a new one
ORDINARY = frozenset((stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK))


class Found(NamedTuple):
    """One entry; `parent` is open only until the walk goes on."""

    name: bytes
    status: os.stat_result
    parent: int
    last: bytes

    @property
    def kind(self) -> int:
        """Returns what it is, as in the mode."""
        return stat.S_IFMT(self.status.st_mode)

    @property
    def is_lock(self) -> bool:
        """Tells whether it is a lock of git; a submodule's directory may be called so as well."""
        return self.last.endswith(b".lock") and self.kind != stat.S_IFDIR


def walk(admin: bytes, *, locks: bool = False) -> Iterator[Found]:
    """Yields every entry that belongs to a snapshot: by name, a directory before its content.

    With `locks` those are told as well that git holds while it is at work. Links are not followed; what goes
    away meanwhile is not there. Raises MountInside, Unstable, OSError.
    """
    with Descent(admin, os.open(admin, DIRECTORY)) as descent:
        refuse_mounts(descent.descriptor)
        pending = [iter(names(descent.descriptor))]
        while True:
            for name in pending[-1]:
                found = _look(descent, name)
                if found is None or (found.is_lock and not locks) or _is_of_monitor(admin, found):
                    continue
                yield found
                if stat.S_ISDIR(found.status.st_mode):
                    pending.append(iter(_enter(descent, name)))
                    break
            else:
                pending.pop()
                if not pending:
                    return
                os.close(descent.pop())


def _is_of_monitor(admin: bytes, found: Found) -> bool:
    return found.last == MONITOR and found.kind == stat.S_IFSOCK and is_top(admin, found.name)


def _look(descent: Descent, name: bytes) -> Found | None:
    """Returns the entry, or None where it is gone, or is none of a snapshot's."""
    if name.startswith(TEMPORARY) or (name in OWN and not descent.prefix):
        return None
    try:
        status = os.stat(name, dir_fd=descent.descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise located(error, descent.full(name)) from error
    return Found(descent.prefix + name, status, descent.descriptor, name)


def _enter(descent: Descent, name: bytes) -> list[bytes]:
    path = descent.full(name)
    try:
        descent.push(name, open_directory(descent.descriptor, name, path))
        return names(descent.descriptor)
    except FileNotFoundError as error:
        raise Unstable(path) from error
    except OSError as error:
        raise located(error, path) from error


def keep(files: Files, admin: bytes) -> tuple[Registered, ...]:
    """Keeps every file, directory and link of the registration, parents first; `files.sync` makes it durable.

    What `obstacles` names is left out. Raises Unstable where something changes meanwhile, and as `walk`.
    """
    return tuple(_kept(files, admin, found) for found in walk(admin) if found.kind in ORDINARY)


def _kept(files: Files, admin: bytes, found: Found) -> Registered:
    name, mode = pack(found.name), stat.S_IMODE(found.status.st_mode)
    time = found.status.st_mtime_ns
    if found.kind == stat.S_IFDIR:
        return Registered(name, "", mode, time)
    path = os.path.join(admin, found.name)
    if found.kind == stat.S_IFLNK:
        return Registered(name, "", mode, time, pack(target_of(found, path)))
    with opened(found, path) as descriptor:
        return Registered(name, _keep_content(files, descriptor, path), mode, time)


def target_of(found: Found, path: bytes) -> bytes:
    """Returns what a link names. Raises Unstable where it is no longer the one that was found."""
    try:
        target = os.readlink(found.last, dir_fd=found.parent)
        now = os.stat(found.last, dir_fd=found.parent, follow_symlinks=False)
    except OSError as error:
        raise Unstable(path) from error
    if not unchanged(found.status, now):
        raise Unstable(path)
    return target


@contextmanager
def opened(found: Found, path: bytes) -> Iterator[int]:
    """Lends a descriptor of the very file that was found. Raises Unstable, also at the end, if it changes."""
    try:
        descriptor = os.open(found.last, READ, dir_fd=found.parent)
    except PermissionError as error:
        raise located(error, path) from error
    except OSError as error:
        raise Unstable(path) from error
    with owned(descriptor):
        if not unchanged(found.status, os.fstat(descriptor)):
            raise Unstable(path)
        yield descriptor
        if not unchanged(found.status, os.fstat(descriptor)):
            raise Unstable(path)


def _keep_content(files: Files, descriptor: int, path: bytes) -> str:
    size = os.fstat(descriptor).st_size
    if size > SMALL:
        try:
            return files.keep_from(descriptor, size)
        except Shortened as error:
            raise Unstable(path) from error
    data = os.pread(descriptor, size + 1, 0)
    if len(data) != size:
        raise Unstable(path)
    return files.keep(data)


def fingerprint(admin: bytes) -> str:
    """Returns a digest of names and stat data of HEAD and the entries: the same twice, nothing has changed.

    Of directories only that they are there: git makes and removes lock files in them. Of a shared index not
    its times: git sets them when it reads it, and never writes it again. Raises as `walk`.
    """
    total = hashlib.sha256(b"laneyard-registration-1\n")
    head = os.lstat(os.path.join(admin, b"HEAD"))
    for name, status in ((b"HEAD", head), *((each.name, each.status) for each in walk(admin))):
        facts: tuple[int, ...] = (status.st_mode, status.st_ino)
        if not stat.S_ISDIR(status.st_mode):
            facts += (status.st_size, status.st_nlink)
            if not is_shared_index(os.path.basename(name)):
                facts += (status.st_mtime_ns, status.st_ctime_ns)
        total.update(f"{len(name)} {facts}\n".encode() + name)
    return total.hexdigest()


def kept(files: Files, registered: tuple[Registered, ...], name: str) -> bytes:
    """Returns what was kept of one file, or nothing. Raises SnapshotDamaged."""
    known = next((each for each in registered if each.name == name), None)
    return files.read(known.sha256, LIMIT) if known is not None and known.sha256 else b""


def size_of(files: Files, sha256: str) -> int:
    """Returns how many bytes were kept. Raises OSError."""
    with owned(files.open(sha256)) as descriptor:
        return os.fstat(descriptor).st_size


def obstacles(admin: bytes) -> tuple[Obstacle, ...]:
    """Returns what a snapshot cannot hold of a registration. Raises Unstable, OSError."""
    try:
        found = ((_obstacle(admin, each), each.name) for each in walk(admin, locks=True))
        return tuple(dict.fromkeys(Obstacle(*_named(kind, name)) for kind, name in found if kind))
    except MountInside as error:
        place = os.path.relpath(os.path.realpath(error.path), os.path.realpath(admin))
        return (Obstacle("mount", inside(pack(place))),)


def _obstacle(admin: bytes, found: Found) -> str | None:
    if found.kind not in ORDINARY:
        return "special-file"
    if found.is_lock:  # a gc in a lane is of the whole repository, and may go on, or have died, for long
        return None if found.name == b"gc.log.lock" else "git-lock"
    parent = os.path.dirname(found.name)
    if found.kind == stat.S_IFDIR and parent.endswith(b"/worktrees"):
        owner = os.path.dirname(parent)
        if is_git_directory(os.path.join(admin, owner)):
            return "nested-worktrees"
    return None


def _named(kind: str, name: bytes) -> tuple[str, str]:
    return kind, inside(pack(os.path.dirname(name) if kind == "nested-worktrees" else name))


def inside(name: str) -> str:
    """Returns how something of the registration is named: never as a path of the tree could be.

    A consent to lose a merge in progress must not be one to lose a directory that is called `merge`.
    """
    return f".git/{name}"


def said_of(name: bytes) -> str:
    """Returns how people read the name of an entry of the registration."""
    return display(inside(pack(name)))


def lines_of(log: bytes) -> Counter[bytes]:
    """Returns what a reflog says; git's gc writes a tab where a line has no message, as a new worktree's."""
    return Counter(line.rstrip(b"\t") for line in log.splitlines())


def present(admin: bytes, name: bytes) -> bytes:
    """Returns what a file of a registration says, or nothing where there is none. Raises as `read_file`."""
    path = os.path.join(admin, name)
    return read_file(path, LIMIT) if os.path.lexists(path) else b""


def is_top(admin: bytes, name: bytes) -> bool:
    """Tells whether the entry lies directly in the registration, or in the git directory of a submodule.

    Only there it is git's own file: a branch may be called `index`.
    """
    parent = os.path.dirname(name)
    return not parent or (parent.startswith(b"modules/") and is_git_directory(os.path.join(admin, parent)))


def is_shared_index(name: bytes) -> bool:
    """Tells whether a name is that of the other part of a split index."""
    return name.startswith(b"sharedindex.")


def is_index_file(each: Registered) -> bool:
    """Tells whether an entry is the worktree's own index, or a part of it."""
    return each.name == "index" or ("/" not in each.name and each.name.startswith("sharedindex."))


def index_files(registered: tuple[Registered, ...]) -> tuple[Registered, ...]:
    """Returns the entries that `put_back` leaves to its caller: the shared parts first, the index last."""
    return tuple(sorted(filter(is_index_file, registered), key=lambda each: each.name == "index"))
