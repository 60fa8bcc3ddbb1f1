"""The only code that unlinks a user's tree."""

import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping

import msgspec

from adapters.files.blob import PIECE, blob_oid, file_oid
from adapters.files.descent import Descent
from adapters.files.descriptors import READ, change_mode, open_directory, owned, parent_of
from adapters.files.errors import FilesError, IdentityChanged
from adapters.files.identity import identify_descriptor
from adapters.files.mounts import refuse_mounts
from adapters.files.scan import Entry, observe
from domain.evidence import Identity

NAMED = 1_000  # how many refusals and failures are named; the rest is only counted
# Here a page is protected again once it is written back, so that a write through a mapping that was made
# long before changes the times. Elsewhere (tmpfs never writes back; a server keeps its own clock) it may not.
TELLING = frozenset((b"ext4", b"xfs", b"btrfs"))

Path = bytes  # one field of the result below is itself called bytes
Allowed = Callable[[Entry], bool]
Known = Mapping[bytes, Entry]


class Demolition(msgspec.Struct, frozen=True):
    """What went (entries, and the sizes of the files and links among them) and what stayed, with why.

    `refused` and `failed` name the first thousand; their counts are complete. The tree is gone, root
    included unless something was spared, exactly if both counts are 0.
    """

    entries: int
    bytes: int
    refused: tuple[Path, ...]
    refused_count: int
    failed: tuple[tuple[Path, str], ...]
    failed_count: int


def demolish(
    root: bytes,
    identity: Identity,
    algorithm: str,
    allowed: Allowed,
    spared: bytes | None = None,
    known: Known | None = None,
) -> Demolition:
    """Deletes each entry that, read again, is allowed; last the root, if nothing is left in it.

    What is `known` was read and allowed before, at a time that no later write can carry. Where the file
    system's times tell of every write it need only be the same object with the same times; elsewhere its
    bytes are read again all the same.
    With a name that is `spared` that entry of the root stays, and the root with it; all else is durably gone
    then, if nothing was refused and nothing has failed.
    Raises IdentityChanged if another object is at the root and MountInside if anything is mounted in it or
    on it, both before the first unlink; Unstable if a directory is moved away under the walk; OSError if
    the root cannot be opened or its removal not be made durable. All else is told by the result.
    """
    with parent_of(root) as (parent, name):
        with owned(open_directory(parent, name, root, os.O_PATH)) as handle:
            if not identity.same(identify_descriptor(handle)):
                raise IdentityChanged(root)
            refuse_mounts(handle, itself=True)
            mode, descriptor = _make_accessible(handle)
        with Descent(root, descriptor) as descent:
            rereads = _file_system(descriptor) not in TELLING
            crew = _Crew(descent, algorithm, allowed, known or {}, rereads=rereads)
            found = (each for each in _pointer_last(_names(descriptor)) if each != spared)
            crew.work(_Site(name, mode, None, found, permitted=True), parent, stays=spared is not None)
            os.fsync(parent if spared is None else descent.descriptor)  # a deep tree's was opened again
    return crew.report()


class _Site:
    """A directory that is being emptied; `stays` as soon as something in it does."""

    def __init__(
        self, name: bytes, mode: int, entry: Entry | None, pending: Iterator[bytes], *, permitted: bool
    ) -> None:
        self.name = name
        self.mode = mode
        self.entry = entry  # as it was before we changed it; the root has none
        self.pending = pending
        self.permitted = permitted  # whether nobody need be asked any more
        self.stays = False


class _Crew:
    def __init__(
        self, descent: Descent, algorithm: str, allowed: Allowed, known: Known, *, rereads: bool
    ) -> None:
        self._descent = descent
        self._algorithm = algorithm
        self._allowed = allowed
        self._known = known
        self._rereads = rereads
        self._sites: list[_Site] = []
        self._entries = self._bytes = 0
        self._refused: list[bytes] = []
        self._failed: list[tuple[bytes, str]] = []
        self._refused_count = self._failed_count = 0

    def work(self, root: _Site, parent: int, *, stays: bool) -> None:
        self._sites.append(root)
        while True:
            site = self._sites[-1]
            if self._empty(site.pending):
                continue
            if site is root:
                break
            self._leave()
        root.stays = root.stays or stays
        self._finish(root, self._descent.descriptor, parent, b"")

    def report(self) -> Demolition:
        refused, failed = tuple(self._refused), tuple(self._failed)
        return Demolition(
            self._entries, self._bytes, refused, self._refused_count, failed, self._failed_count
        )

    def _empty(self, pending: Iterator[bytes]) -> bool:
        """Deletes what comes next where we are, until a directory is entered (True) or nothing is left."""
        here, prefix = self._descent.descriptor, self._descent.prefix
        known, rereads, algorithm = self._known, self._rereads, self._algorithm
        for name in pending:
            path = prefix + name
            try:
                entry = known.get(path)
                if (
                    entry is None
                    or entry.kind == "directory"
                    or path == b".git"
                    or (rereads and not _reads_the_same(entry, here, name, algorithm))
                    or not _is_still(entry, here, name)
                ):
                    if self._visit(path, name):
                        return True
                    continue
                os.unlink(name, dir_fd=here)
                self._entries += 1
                self._bytes += entry.size
            except FileNotFoundError:
                continue  # gone since it was listed, which is what we came for
            except (OSError, FilesError) as error:
                self._fail(path, error)
        return False

    def _visit(self, path: bytes, name: bytes) -> bool:
        """Looks at an entry anew, and tells whether it is a directory that was entered."""
        if path == b".git" and self._sites[-1].stays:
            return False  # what is left is left as a worktree, which can be put back
        entry, before = observe(self._descent, name, self._algorithm), self._known.get(path)
        if entry.kind == "directory":
            return self._enter(entry, name, permitted=entry == before)
        self._unlink(entry, name)
        return False

    def _unlink(self, entry: Entry, name: bytes) -> None:
        if not self._allowed(entry) or not _is_still(entry, self._descent.descriptor, name):
            self._refuse(entry.path)
            return
        os.unlink(name, dir_fd=self._descent.descriptor)
        self._entries += 1
        self._bytes += entry.size

    def _enter(self, entry: Entry, name: bytes, *, permitted: bool) -> bool:
        here, path = self._descent.descriptor, self._descent.full(name)
        with owned(open_directory(here, name, path, os.O_PATH)) as handle:
            if not _is_same_object(entry, os.fstat(handle)):
                self._refuse(entry.path)
                return False
            mode, descriptor = _make_accessible(handle)
        try:
            found = _names(descriptor)
        except OSError:
            with owned(descriptor):
                _put_mode_back(descriptor, mode)
            raise
        self._descent.push(name, descriptor)
        self._sites.append(_Site(name, mode, entry, iter(found), permitted=permitted))
        return True

    def _leave(self) -> None:
        path = self._descent.prefix[:-1]
        site = self._sites.pop()
        with owned(self._descent.pop()) as descriptor:
            self._finish(site, descriptor, self._descent.descriptor, path)

    def _finish(self, site: _Site, descriptor: int, parent: int, path: bytes) -> None:
        if not site.stays:
            try:
                self._remove(site, descriptor, parent, path)
            except (OSError, FilesError) as error:
                self._fail(path, error)
                site.stays = True
        if site.stays:
            _put_mode_back(descriptor, site.mode)
            self._keep()

    def _remove(self, site: _Site, descriptor: int, parent: int, path: bytes) -> None:
        seen = os.stat(site.name, dir_fd=parent, follow_symlinks=False)
        permitted = site.permitted or site.entry is None or self._allowed(site.entry)
        if not permitted or not os.path.samestat(seen, os.fstat(descriptor)):
            self._refuse(path)
            site.stays = True
            return
        os.rmdir(site.name, dir_fd=parent)
        self._entries += 1

    def _refuse(self, path: bytes) -> None:
        self._keep()
        self._refused_count += 1
        if self._refused_count <= NAMED:
            self._refused.append(path)

    def _fail(self, path: bytes, error: OSError | FilesError) -> None:
        self._keep()
        self._failed_count += 1
        if self._failed_count <= NAMED:
            self._failed.append((path, _reason(error)))

    def _keep(self) -> None:
        if self._sites:
            self._sites[-1].stays = True


def _pointer_last(found: list[bytes]) -> list[bytes]:
    """Orders names so that `.git` goes last: as long as anything is left, it is left as a worktree."""
    return sorted(found, key=lambda name: (name == b".git", name))


def _names(descriptor: int) -> list[bytes]:
    found = os.listdir(b"/proc/self/fd/%d" % descriptor)  # of a path that is bytes the names are, too
    found.sort()
    return found


def _make_accessible(handle: int) -> tuple[int, int]:
    """Returns the directory's mode as it was, and a descriptor through which it can be listed and emptied."""
    status = os.fstat(handle)
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid == os.geteuid() and mode & stat.S_IRWXU != stat.S_IRWXU:
        change_mode(handle, mode | stat.S_IRWXU)
    return mode, os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=handle)


def _put_mode_back(descriptor: int, mode: int) -> None:
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        os.fchmod(descriptor, mode)


def _is_same_object(entry: Entry, status: os.stat_result) -> bool:
    return (entry.device, entry.inode) == (status.st_dev, status.st_ino)


def _reads_the_same(entry: Entry, parent: int, name: bytes, algorithm: str) -> bool:
    """Tells whether an entry has the bytes that it had; whether it is the same one, a later look tells."""
    size = entry.size
    if entry.kind != "file":
        return True  # nobody can write to a link
    try:
        if size >= PIECE:
            read = file_oid(parent, name, algorithm)
            return read is not None and read[1] == entry.oid
        descriptor = os.open(name, READ, dir_fd=parent)
        try:
            data = os.read(descriptor, size + 1)
        finally:
            os.close(descriptor)
    except OSError:
        return False  # whoever looks at it anew finds out what it means
    return len(data) == size and blob_oid(algorithm, data) == entry.oid


def _is_still(entry: Entry, parent: int, name: bytes) -> bool:
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    same = entry.ctime_ns == status.st_ctime_ns and entry.mtime_ns == status.st_mtime_ns
    same = same and entry.inode == status.st_ino and entry.size == status.st_size
    return same and entry.device == status.st_dev and entry.mode == status.st_mode & 0o7777


def _file_system(descriptor: int) -> bytes:
    """Returns the type of the file system that an open directory is on."""
    with open(f"/proc/self/fdinfo/{descriptor}", "rb") as file:
        number = next(line.split()[1] for line in file if line.startswith(b"mnt_id:"))
    with open("/proc/self/mountinfo", "rb") as table:
        for line in table:
            if line.split(b" ", 1)[0] == number:
                return line.rpartition(b" - ")[2].split(b" ", 1)[0]
    return b""


def _reason(error: OSError | FilesError) -> str:
    if isinstance(error, OSError):
        return f"{errno.errorcode.get(error.errno or 0, 'EIO')}: {error.strerror}"
    return f"{type(error).__name__}: {error.summary}"
