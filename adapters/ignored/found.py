"""What a walk over one ignored directory has found, as far as it is needed to class it and to divide it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from adapters.ignored.classes import CACHE
from adapters.ignored.patterns import Patterns

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from adapters.files.scan import Entry
    from adapters.ignored.classes import Rules

BARE = (b"HEAD", b"objects", b"refs")  # what makes a directory without a `.git` a repository
HISTORY = {b".git", b".hg", b".jj", b".svn", b".bzr", b".pijul", b".fslckout", b"_fossil_", b"_darcs"}
TAGS = {b"CACHEDIR.TAG", b"pyvenv.cfg"}
COMMITTED = "the commit has it, and the index has not any more"
Mark = tuple[Literal["precious", "unknown"], str] | None  # None: told by itself, with its directory's class


class Found:
    """Sums and suspects of one directory, `sealed` if a tool has made it. Paths are relative to the lane.

    `committed` are ignored paths that HEAD has.
    """

    def __init__(
        self, path: bytes, rules: Rules, *, sealed: bool, committed: frozenset[bytes] = frozenset()
    ) -> None:
        self.bytes = 0
        self.entries = 1  # the directory itself
        self.content = False  # whether there is anything but directories
        self.flat = True
        self.files: list[bytes] = []  # of a directory for bytecode only
        self.sealable: set[bytes] = set()
        self._path = path
        self._rules = rules
        self._sealed = sealed
        self._committed = committed
        self._named: dict[bytes, str] = {}
        self._chosen: dict[bytes, Mark] = {}
        self._repositories: list[bytes] = []
        self._bare: dict[bytes, set[bytes]] = {}
        self._is_cache = os.path.basename(path) == CACHE
        # What is wanted whole is not divided any further.
        self._wanted = Patterns() if rules.wanted.match(path, directory=True) else rules.wanted
        self._choosy = bool(rules.precious or rules.added or rules.takes_back or self._wanted or committed)

    def add(self, entry: Entry) -> None:
        """Takes in one entry, given by its path below the directory."""
        inner, directory = entry.path, entry.kind == "directory"
        name = inner.rpartition(b"/")[2]
        self.entries += 1
        self.bytes += entry.size
        self.flat = self.flat and entry.kind == "file"
        if directory:
            if name == b"node_modules":
                self.sealable.add(self._full(inner))
        else:
            self.content = True
            if name in TAGS:
                self.sealable.add(self._full(inner.rpartition(b"/")[0]))
            if self._is_cache:
                self.files.append(self._full(inner))
            if not (self._sealed and b"/" in inner):
                self._name(self._full(inner))
        if name.lower() in HISTORY or (name == b"CVS" and directory):
            self._repositories.append(self._full(inner.rpartition(b"/")[0]))
        elif name in BARE:
            self._bare.setdefault(inner.rpartition(b"/")[0], set()).add(name)
        if self._choosy:
            self._choose(self._full(inner), directory=directory)

    def count(self, entry: Entry) -> None:
        """Takes in the size of one entry, and nothing else of it."""
        self.entries += 1
        self.bytes += entry.size
        self.content = self.content or entry.kind != "directory"

    def _name(self, path: bytes) -> None:
        why = self._rules.precious_by_name(path)
        if why is not None:
            self._named[path] = why

    def _choose(self, path: bytes, *, directory: bool) -> None:
        """Remembers what a pattern, the commit or the request names; the request alone gives no class."""
        mark: Mark = None
        if (why := self._rules.precious_by_pattern(path, directory=directory)) is not None:
            mark = "precious", why
        elif path in self._committed:
            mark = "unknown", COMMITTED
        elif (why := self._rules.taken_back(path, directory=directory)) is not None:
            mark = "unknown", why
        if mark is not None or self._wanted.match(path, directory=directory) is not None:
            self._chosen[path] = mark

    def _full(self, inner: bytes) -> bytes:
        return self._path + b"/" + inner if inner else self._path

    def repository(self) -> bytes | None:
        """Returns the first repository of somebody's at or below the directory, if there is any."""
        return next(iter(self._whole()), None)

    def _whole(self) -> tuple[bytes, ...]:
        bare = (self._full(inner) for inner, names in self._bare.items() if len(names) == len(BARE))
        return (*self._repositories, *bare)

    def marks(self, seals: frozenset[bytes]) -> dict[bytes, Mark]:
        """Returns the topmost paths that are told by themselves, each with its own class, if it has one.

        Names count in a directory that a tool has made, and not deeper in it: fixtures of packages are there.
        Nothing in somebody's repository is told by itself.
        """
        closed = frozenset(self._whole())
        named: dict[bytes, Mark] = {
            path: ("precious", why)
            for path, why in self._named.items()
            if not _within(os.path.dirname(path), seals)
        }
        marked = {path: mark for path, mark in (self._chosen | named).items() if not _within(path, closed)}
        found: dict[bytes, Mark] = {}
        for path in sorted(marked, key=len):
            top = _within(path, found) or path
            found[top] = _careful(found.get(top), marked[path])
        return found


def _careful(one: Mark, other: Mark) -> Mark:
    """Returns the more careful of two marks."""
    if one is None or (other is not None and other[0] == "precious"):
        return other
    return one


def _within(path: bytes, roots: Container[bytes]) -> bytes | None:
    """Returns the nearest of the roots that a path lies below; it is none itself."""
    path = os.path.dirname(path)
    while path:
        if path in roots:
            return path
        path = os.path.dirname(path)
    return None


def parts(path: bytes, entries: Iterable[Entry], marks: Iterable[bytes]) -> Iterator[tuple[bytes, int, int]]:
    """Yields the marked paths and what else is in the directory, in as few parts as can be, with their sizes.

    A part without content is left out: it is nothing but directories.
    """
    leading = {path}
    for mark in marks:
        parent = os.path.dirname(mark)
        while parent not in leading:
            leading.add(parent)
            parent = os.path.dirname(parent)
    part, size, number, content = b"", 0, 0, False
    for entry in entries:
        full = path + b"/" + entry.path
        if not part or not full.startswith(part + b"/"):
            if content:
                yield part, size, number
            part, size, number, content = (b"" if full in leading else full), 0, 0, False
        if part:
            size, number, content = size + entry.size, number + 1, content or entry.kind != "directory"
    if content:
        yield part, size, number
