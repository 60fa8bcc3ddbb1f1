"""Writing paths of a snapshot into any directory: never over anything, never through a link.

All is made in a directory of its own there, and given its name at the end. Each file becomes a file of its
own; owners and extended attributes are those of whoever writes.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from adapters.files import kernel
from adapters.files.descent import Descent
from adapters.files.descriptors import DIRECTORY, located, open_directory, owned
from adapters.files.durable import CREATE, TEMPORARY, write_all
from adapters.snapshots.files import SnapshotDamaged
from domain.errors import NotWritable, PathInUse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from adapters.snapshots.reading.reading import Part


@dataclass(eq=False)
class AlreadyThere(PathInUse):
    """What should be written is there already."""

    paths: tuple[str, ...] = ()
    text = "in {path!r} there is already {paths}, and nothing is ever overwritten."
    quoted = ("paths",)
    remedy = "Move it out of the way, or choose another directory with --to."


class Unwritable(NotWritable):
    """The system does not let it be written there."""

    text = "nothing can be written to {path!r}: {why}."
    remedy = "Make it writable, or choose another directory with --to."


class NoRoom(NotWritable):
    """The disk or the user's share of it is full; nothing of what was to be extracted is left there."""

    code = "disk_full"
    text = "what was to be written to {path!r} does not fit: {why}."
    remedy = "Free some space and try again, or choose another directory with --to."
    status = 507


class Extraction:
    """One writing of paths that are to appear in a directory, which is made if it is not there.

    For each entry, in the order of the tree: `begin`, `write` as often as there are pieces, `end`; then
    `finish`. Leaving the block before that leaves nothing, also no directory that was made for it.
    """

    def __init__(self, directory: bytes, tops: Sequence[bytes]) -> None:
        """Raises AlreadyThere, FilesError, OSError."""
        self.entries = self.bytes = 0
        self._place, self._tops = directory, tuple(tops)
        self._made, self._finished = _missing(directory), False
        self._staging = TEMPORARY + secrets.token_hex(8).encode()
        try:
            os.makedirs(directory, exist_ok=True)
            self._root = os.open(directory, DIRECTORY & ~os.O_NOFOLLOW)
        except OSError:
            _unmake(self._made)
            raise
        try:
            self._require_free()
            os.mkdir(self._staging, 0o700, dir_fd=self._root)
            staging = os.path.join(directory, self._staging)
            self._descent = Descent(staging, os.open(self._staging, DIRECTORY, dir_fd=self._root))
        except BaseException:
            os.close(self._root)
            _unmake(self._made)
            raise
        self._inside: list[Part] = []
        self._roots: dict[bytes, Part] = {}
        self._top = 0
        self._part: Part | None = None
        self._file, self._target = -1, b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._close_file()
            self._descent.__exit__(kind, error, trace)
            _discard(self._root, self._staging)
        finally:
            os.close(self._root)
            if not self._finished:
                _unmake(self._made)

    def begin(self, part: Part) -> None:
        """Begins an entry. Raises SnapshotDamaged for one that has no place among the others, and OSError."""
        name = self._go_to(part.path)
        self._part, self._target = part, b""
        if part.kind == "directory":
            parent = self._descent.descriptor
            os.mkdir(name, 0o700, dir_fd=parent)
            self._descent.push(name, open_directory(parent, name, self._descent.full(name)))
            self._inside.append(part)
        elif part.kind == "file":
            self._file = os.open(name, CREATE, 0o600, dir_fd=self._descent.descriptor)
        self.entries += 1

    def write(self, piece: bytes) -> None:
        """Adds to the content of the entry. Raises OSError."""
        self.bytes += len(piece)
        if self._file < 0:
            self._target += piece
        else:
            write_all(self._file, piece)

    def end(self) -> None:
        """Ends an entry; a directory gets its mode and time once all below it is there. Raises OSError."""
        part = self._part
        assert part is not None
        if part.kind == "file":
            _finish(self._file, part)
            self._close_file()
        elif part.kind == "link":
            name = self._go_to(part.path)
            os.symlink(self._target, name, dir_fd=self._descent.descriptor)
            if part.mtime_ns is not None:
                times = (part.mtime_ns, part.mtime_ns)
                os.utime(name, ns=times, dir_fd=self._descent.descriptor, follow_symlinks=False)

    def finish(self) -> None:
        """Gives everything its name. Raises AlreadyThere, where somebody was faster, FilesError, OSError."""
        while self._inside:
            self._leave()
        for number, top in enumerate(self._tops):
            with owned(self._parent_of(top)) as parent:
                name = os.path.basename(top)
                try:
                    kernel.rename_without_replacing(self._descent.descriptor, b"%d" % number, parent, name)
                except FileExistsError as error:
                    raise self._taken([top]) from error
                if top in self._roots:  # only now: what may not be written to cannot be moved either
                    with owned(os.open(name, DIRECTORY, dir_fd=parent)) as descriptor:
                        _finish(descriptor, self._roots[top])
        self._finished = True

    def _go_to(self, path: bytes) -> bytes:
        """Goes to the directory in which an entry is made, and returns its name there."""
        while not _is_inside(path, self._tops[self._top]):
            self._top += 1
            if self._top == len(self._tops):
                raise SnapshotDamaged(f"{os.fsdecode(path)!r} was not asked for")
        staged = b"%d" % self._top + path[len(self._tops[self._top]) :]
        while not staged.startswith(self._descent.prefix):
            self._leave()
        name = staged[len(self._descent.prefix) :]
        if name in (b"", b".", b"..") or b"/" in name:
            raise SnapshotDamaged(f"{os.fsdecode(path)!r} has no directory to be in")
        return name

    def _leave(self) -> None:
        part = self._inside.pop()
        with owned(self._descent.pop()) as descriptor:
            if self._inside:
                _finish(descriptor, part)
            else:
                self._roots[part.path] = part

    def _require_free(self) -> None:
        taken = [each for each in self._tops if self._is_there(each)]
        if taken:
            raise self._taken(taken)

    def _taken(self, paths: Sequence[bytes]) -> AlreadyThere:
        named = tuple(each.decode("utf-8", "replace") for each in paths)
        return AlreadyThere(self._place.decode("utf-8", "replace"), named)

    def _is_there(self, path: bytes) -> bool:
        """Tells whether something is at a path, or in the way to it: a file, or a link to anywhere."""
        *directories, name = path.split(b"/")
        with owned(os.dup(self._root)) as parent:
            here = parent
            try:
                for each in directories:
                    if not stat.S_ISDIR(_status(here, each).st_mode):
                        return True
                    below = os.open(each, DIRECTORY, dir_fd=here)
                    os.dup2(below, parent, inheritable=False)
                    os.close(below)
                _status(here, name)
            except FileNotFoundError:
                return False
        return True

    def _parent_of(self, path: bytes) -> int:
        """Opens the directory of a path, made if it is not there; the caller closes it."""
        here = os.dup(self._root)
        for name in path.split(b"/")[:-1]:
            try:
                if not _exists(here, name):
                    os.mkdir(name, dir_fd=here)
                below = open_directory(here, name, os.path.join(self._place, path))
            except OSError as error:
                raise located(error, os.path.join(self._place, path)) from error
            finally:
                os.close(here)
            here = below
        return here

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def outermost(paths: Sequence[bytes]) -> list[bytes]:
    """Returns the paths that lie in no other one, in the order of the tree; all lie in the lane, b""."""
    if b"" in paths:
        return [b""]
    chosen: list[bytes] = []
    for path in sorted(set(paths), key=lambda each: each.split(b"/")):
        if not chosen or not _is_inside(path, chosen[-1]):
            chosen.append(path)
    return chosen


def _is_inside(path: bytes, top: bytes) -> bool:
    return path == top or path.startswith(top + b"/")


def _finish(descriptor: int, part: Part) -> None:
    os.fchmod(descriptor, part.mode)
    if part.mtime_ns is not None:
        os.utime(descriptor, ns=(part.mtime_ns, part.mtime_ns))


def _missing(directory: bytes) -> list[bytes]:
    """Returns the directories that have to be made so that this one is there, itself first."""
    found: list[bytes] = []
    while not os.path.lexists(directory):
        found.append(directory)
        directory = os.path.dirname(directory)
    return found


def _unmake(directories: Sequence[bytes]) -> None:
    """Deletes the directories that were made, as far as nobody has put anything there."""
    with suppress(OSError):
        for each in directories:
            os.rmdir(each)


def _status(parent: int, name: bytes) -> os.stat_result:
    return os.stat(name, dir_fd=parent, follow_symlinks=False)


def _exists(parent: int, name: bytes) -> bool:
    try:
        _status(parent, name)
    except FileNotFoundError:
        return False
    return True


def _discard(root: int, staging: bytes) -> None:
    """Deletes what was made and did not get its name: all of it is ours, and only some seconds old."""
    for _, directories, _, descriptor in os.fwalk(staging, dir_fd=root):
        for name in directories:  # may forbid to be emptied, as it was captured
            if stat.S_ISDIR(_status(descriptor, name).st_mode):
                os.chmod(name, 0o700, dir_fd=descriptor)
    shutil.rmtree(staging, dir_fd=root)
