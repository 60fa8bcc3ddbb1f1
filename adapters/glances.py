"""What git's files say of each lane now, without a process: is it there, on which branch, at which commit.

`glance` reads everything. `Glances` says the same of many lanes and reads again only what has changed.
"""

from __future__ import annotations

import os
import stat
from functools import cache
from operator import attrgetter
from time import monotonic_ns
from typing import TYPE_CHECKING, NamedTuple

from adapters.api.documents import ObservedFlag, ObservedText
from adapters.files.errors import words
from adapters.git.errors import GitError, RegistrationUnreadable
from adapters.git.heads import OID
from adapters.git.ref_files import NESTING
from adapters.git.repository import GITDIR
from domain.paths import unpack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.store.reader import Record

Signature = tuple[int, int, int, int, int]
Step = tuple[bytes, Signature | None]  # a file and its state before it was read; None where no file was
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a fifo must not make us wait
LINE, FILE = 1 << 14, 1 << 30  # the most bytes of a file that has one line, and of packed refs
MARGIN = 50_000_000  # ns: the kernel stamps files with the time of its last tick, at most 10 ms ago
COARSE = 2_100_000_000  # ns: some file systems keep whole seconds, FAT every other one
sign = attrgetter("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
TURN = 256  # looks, after which the lanes that none of them asked for are forgotten


class Glance(NamedTuple):
    """What is seen of a lane: each value with its time, or why it is unknown."""

    present: ObservedFlag
    branch_now: ObservedText
    head_now: ObservedText


def glance(row: Record, at: str) -> Glance:
    """Returns what is seen of a lane at a time; nothing is remembered and nothing reused."""
    if row["path"] is None or row["state"] == "reaped":
        unknown = ObservedText(unknown="the lane has no tree")
        return Glance(ObservedFlag(value=False, at=at), unknown, unknown)
    present = _presence(row, at)
    try:
        ref, oid = Reading(Shared(many=False)).head(row)
    except (GitError, OSError, ValueError) as error:
        return Glance(present, *(ObservedText(unknown=words(error)) for _ in range(2)))
    return Glance(present, _branch(ref, at), _commit(oid, at))


class Glances:
    """Remembers what was read of lanes, best of one repository's; for use by one thread.

    It is used again only if all it was read from has the same device, inode, size and times, and was read
    so late that any change since must have changed one of these.
    """

    def __init__(self) -> None:
        self._young: dict[str, Remembered] = {}
        self._old: dict[str, Remembered] = {}
        self._looks = 0

    def look(self, rows: Sequence[Record], at: str) -> dict[str, Glance]:
        """Returns by id what `glance` would say of each lane at this time."""
        self._looks += 1
        if self._looks % TURN == 0:
            self._young, self._old = {}, self._young
        shared = Shared(many=True)
        # Whatever is not known in full is said by the plain reading.
        return {str(row["id"]): self._known(row, at, shared) or glance(row, at) for row in rows}

    def _known(self, row: Record, at: str, shared: Shared) -> Glance | None:
        if row["path"] is None or row["state"] == "reaped":
            return None
        lane = str(row["id"])
        before = self._young.get(lane) or self._old.get(lane)
        try:
            if before is None or not before.holds(row, shared):
                before = Remembered.of(row, shared, before)
        except (GitError, OSError, ValueError):
            return None
        self._young[lane] = before
        branch, head = before.known
        # Of any lane but the primary one, a file in it has just been found.
        present = _presence(row, at) if row["kind"] == "primary" else ObservedFlag(value=True, at=at)
        return Glance(present, ObservedText(value=branch, at=at), ObservedText(value=head, at=at))


class Remembered(NamedTuple):
    """What was read of a lane: its steps were first seen so at `since`, and if settled read well after it."""

    where: tuple[object, object, object]
    resolved: tuple[tuple[bytes, bytes], ...]
    steps: tuple[Step, ...]
    since: int
    settled: bool
    known: tuple[str | None, str]

    @classmethod
    def of(cls, row: Record, shared: Shared, before: Remembered | None) -> Remembered:
        """Reads a lane again; raises GitError, OSError or ValueError if anything is unknown."""
        reading = Reading(shared)
        ref, oid = reading.head(row)
        if oid is None or not OID.fullmatch(oid):
            raise ValueError("HEAD names no commit")
        steps, resolved = tuple(reading.steps), tuple(reading.resolved)
        since = before.since if before and before.steps == steps else monotonic_ns()
        whole = any(signature and signature[4] % 1_000_000_000 == 0 for _, signature in steps)
        settled = shared.started - since >= (COARSE if whole else MARGIN)
        where, branch = (row["repository"], row["path"], row["kind"]), None if ref is None else ref.decode()
        return cls(where, resolved, steps, since, settled, (branch, oid))

    def holds(self, row: Record, shared: Shared) -> bool:
        """Tells whether it is certain that reading again would give the same; raises OSError."""
        if not self.settled or self.where != (row["repository"], row["path"], row["kind"]):
            return False
        for path, real in self.resolved:
            if shared.real(path) != real:
                return False
        return not shared.keeps_reftable(self.where[0]) and unchanged(self.steps)


class Reading:
    """Reads one lane's files as git would, and notes what the answer rests on."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self.resolved: list[tuple[bytes, bytes]] = []
        self.steps: list[Step] = []

    def head(self, row: Record) -> tuple[bytes | None, str | None]:
        """Returns the branch (None: detached) and the commit if any; raises GitError, OSError, ValueError."""
        common, path = unpack(str(row["repository"])), unpack(str(row["path"]))
        git_dir = common if row["kind"] == "primary" else self._registration(common, path)
        text = self._said(git_dir, b"HEAD")
        if not text.startswith(b"ref:"):
            return None, text.decode("ascii", "replace")
        ref = text.removeprefix(b"ref:").strip()
        if self._shared.keeps_reftable(row["repository"]):
            raise RegistrationUnreadable(common, "its refs are kept in a reftable")
        return ref, self._commit(common, ref)

    def _registration(self, common: bytes, path: bytes) -> bytes:
        """Returns the lane's git directory, if it and the tree name each other, and it the repository."""
        dot_git = os.path.join(path, b".git")
        text = self._text(dot_git)
        if text is None or not text.startswith(GITDIR) or len(text) == len(GITDIR):
            raise RegistrationUnreadable(dot_git, "does not name a git directory")
        git_dir = os.path.join(path, text.removeprefix(GITDIR))
        target = os.path.join(git_dir, self._said(git_dir, b"gitdir"))
        if target != dot_git and self._canonical(target) != self._canonical(dot_git):
            raise RegistrationUnreadable(path, "the registration names another worktree")
        if self._common(git_dir) != common:
            raise RegistrationUnreadable(path, "it belongs to another repository")
        return git_dir

    def _canonical(self, path: bytes) -> tuple[bytes, bytes]:
        directory, name = os.path.split(path)
        return self._resolve(directory), name

    def _common(self, git_dir: bytes) -> bytes:
        named = self._text(os.path.join(git_dir, b"commondir"))
        if named == b"../..":  # as git writes it: the directory of all registrations is resolved once
            return os.path.dirname(os.path.dirname(self._resolve(git_dir)))
        return self._resolve(git_dir if named is None else os.path.join(git_dir, named))

    def _commit(self, common: bytes, ref: bytes) -> str | None:
        for _ in range(NESTING):
            text = self._text(os.path.join(common, ref))
            if text is None:  # asked in this order: git writes the packed one before it removes the loose one
                path = self._resolve(os.path.join(common, b"packed-refs"))
                signature, text = self._shared.packed(path, ref)
                self.steps.append((path, signature))
                return None if text is None else text.decode("ascii")
            if not text.startswith(b"ref:"):
                return text.decode("ascii")
            ref = text.removeprefix(b"ref:").strip()
        return None

    def _resolve(self, path: bytes) -> bytes:
        self.resolved.append((path, real := self._shared.real(path)))
        return real

    def _said(self, git_dir: bytes, name: bytes) -> bytes:
        path = os.path.join(git_dir, name)
        if not (text := self._text(path)):
            raise RegistrationUnreadable(path, "missing or empty")
        return text

    def _text(self, path: bytes) -> bytes | None:
        signature, text = read(path, LINE)
        self.steps.append((path, signature))
        return None if text is None else text.rstrip(b"\r\n")


class Shared:
    """What the lanes of one look have in common; with `many`, directories are listed to resolve paths."""

    def __init__(self, *, many: bool) -> None:
        self.started = monotonic_ns()
        self.keeps_reftable = cache(keeps_reftable)
        self._many, self._directory, self._no_links = many, cache(os.path.realpath), cache(names_of_no_links)
        self._packed: dict[bytes, tuple[Signature | None, bytes | None]] = {}

    def real(self, path: bytes) -> bytes:
        """Returns the path without links; raises OSError where a directory cannot be listed."""
        if not self._many:
            return os.path.realpath(path)
        parent, _, name = path.rpartition(b"/")
        real = self._directory(parent or b"/")
        return os.path.join(real, name) if name in self._no_links(real) else os.path.realpath(path)

    def packed(self, path: bytes, ref: bytes) -> tuple[Signature | None, bytes | None]:
        """Returns the state of `packed-refs` and what it says of the ref; raises RegistrationUnreadable."""
        if path not in self._packed or not unchanged(((path, self._packed[path][0]),)):
            self._packed[path] = read(path, FILE)
        signature, refs = self._packed[path]
        end = -1 if refs is None else refs.find(b" " + ref + b"\n")
        return signature, None if refs is None or end < 0 else refs[refs.rfind(b"\n", 0, end) + 1 : end]


def read(path: bytes, most: int) -> tuple[Signature | None, bytes | None]:
    """Returns a file's state before reading and its content, or None twice; raises RegistrationUnreadable."""
    try:
        descriptor = os.open(path, READ)
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    except OSError as error:
        raise RegistrationUnreadable(path, words(error)) from error
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):  # git leaves empty ones where nested branches were
            return None, None
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            raise RegistrationUnreadable(path, "not a regular file, or too large")
        data = os.read(descriptor, status.st_size + 1)
    finally:
        os.close(descriptor)
    if len(data) != status.st_size:
        raise RegistrationUnreadable(path, "changed while it was read")
    return sign(status), data


def names_of_no_links(directory: bytes) -> set[bytes]:
    """Returns the names in a directory, but for those of links. Raises OSError."""
    with os.scandir(directory) as entries:
        return {each.name for each in entries if not each.is_symlink()}


def keeps_reftable(repository: object) -> bool:
    """Tells whether the repository keeps its refs in a reftable, whatever its files say."""
    return os.path.isdir(os.path.join(unpack(str(repository)), b"reftable"))


def unchanged(steps: Sequence[Step]) -> bool:
    """Tells whether each file is there in the same state, or still none is. Raises OSError."""
    for path, signature in steps:
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            if signature:
                return False
            continue
        if sign(status) != signature and (signature or not stat.S_ISDIR(status.st_mode)):
            return False
    return True


def _presence(row: Record, at: str) -> ObservedFlag:
    try:
        os.lstat(unpack(str(row["path"])))
    except FileNotFoundError:
        return ObservedFlag(value=False, at=at)
    except OSError as error:
        return ObservedFlag(unknown=words(error))
    return ObservedFlag(value=True, at=at)


def _branch(ref: bytes | None, at: str) -> ObservedText:
    try:
        return ObservedText(value=None if ref is None else ref.decode("utf-8"), at=at)
    except UnicodeDecodeError:
        return ObservedText(unknown="the branch's name is not UTF-8")


def _commit(oid: str | None, at: str) -> ObservedText:
    if oid is None:
        return ObservedText(unknown="HEAD is on a branch without a commit")
    if not OID.fullmatch(oid):
        return ObservedText(unknown="HEAD or its branch is damaged")
    return ObservedText(value=oid, at=at)
