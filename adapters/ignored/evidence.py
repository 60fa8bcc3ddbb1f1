"""Looking at ignored paths: a walk of ours over each, which never follows a link, and what it has found."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Literal

from adapters.files.errors import FilesError, words
from adapters.files.scan import scan
from adapters.ignored.classes import CACHE, Rules
from adapters.ignored.found import COMMITTED, Found, parts
from adapters.ignored.gathered import Gathered
from adapters.ignored.seals import Seal, bytecode_of_a_source, seal
from domain.evidence import Ignored
from domain.paths import pack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST = 300_000  # entries that one look walks over; what lies beyond is unknown
Class = Literal["rebuildable", "precious", "unknown"]


def classify(
    root: bytes,
    paths: Iterable[bytes],
    rules: Rules,
    most: int = MOST,
    *,
    changed: Iterable[bytes] = (),
    committed: Iterable[bytes] = (),
) -> tuple[Ignored, ...]:
    """Returns what git ignores below the root, classed; what cannot be looked at is unknown and says why.

    A directory is told as a whole, unless something in it is precious or wanted: then that is told by itself,
    and the rest in as few parts as can be. Empty directories are told by nobody: a snapshot has them anyway.
    `changed` are the tracked paths that differ, `committed` those that HEAD has and the index has not.
    """
    look = _Look(root, rules, most, frozenset(committed))
    gathered = Gathered(root, paths, changed)
    found = [each for path in gathered.tops(look.is_sealed) for each in look.told(path)]
    return tuple(gathered.together(found, look.is_asked))


class _Look:
    """One look at ignored paths, which walks over so many entries at most."""

    def __init__(self, root: bytes, rules: Rules, most: int, committed: frozenset[bytes]) -> None:
        self._root, self._rules, self._committed = root, rules, committed
        self._most, self._left = most, most

    def is_sealed(self, path: bytes) -> bool:
        """Tells whether a tool has put its mark on the directory, even if something speaks against it."""
        try:
            return any(seal(self._root, path, self._rules))
        except OSError:
            return False  # and is told by its parts

    def is_asked(self, path: bytes) -> bool:
        """Tells whether a request names the path."""
        wanted = self._rules.wanted
        return any(wanted.match(path, directory=each) is not None for each in (True, False))

    def told(self, path: bytes) -> list[Ignored]:
        """Returns a path, or its parts, with their classes."""
        told = list(self._told(path))
        self._left = max(self._left - sum(each.entries for each in told), 0)
        return told

    def _told(self, path: bytes) -> Iterator[Ignored]:
        try:
            status = os.lstat(os.path.join(self._root, path))
            if not stat.S_ISDIR(status.st_mode):
                kind, why = self._of_file(path, regular=stat.S_ISREG(status.st_mode))
                yield _ignored(path, kind, why, status.st_size, 1)
                return
            yield from self._of_directory(path)
        except (OSError, FilesError) as error:
            yield _ignored(path, "unknown", f"it cannot be looked at: {words(error)}", 0, 1)

    def _of_file(self, path: bytes, *, regular: bool) -> tuple[Class, str]:
        rules = self._rules
        why = rules.precious_by_pattern(path, directory=False) or rules.precious_by_name(path)
        if why is not None:
            return "precious", why
        why = COMMITTED if path in self._committed else rules.taken_back(path, directory=False)
        if why is not None:
            return "unknown", why
        if regular and bytecode_of_a_source(self._root, path):
            return "rebuildable", "bytecode of a present source"
        why = rules.made_again(path, directory=False)
        return ("rebuildable", why) if why else ("unknown", rules.why_unknown(path, directory=False))

    def _of_directory(self, path: bytes) -> Iterator[Ignored]:
        why = self._rules.precious_by_pattern(path, directory=True)
        sealed = seal(self._root, path, self._rules)
        found = Found(path, self._rules, sealed=sealed.why is not None, committed=self._committed)
        complete = self._walk(path, found)
        if not found.content:
            return
        if why is not None:
            yield _ignored(path, "precious", why, found.bytes, found.entries)
            return
        if not complete:
            beyond = f"one look ends after {self._most} entries"
            yield _ignored(path, "unknown", beyond, found.bytes, found.entries)
            return
        kind, why = self._class(path, found, sealed)
        marks = found.marks(self._seals(path, found))
        if not marks:
            yield _ignored(path, kind, why, found.bytes, found.entries)
            return
        entries = scan(os.path.join(self._root, path), None)
        for part, size, number in parts(path, entries, marks):
            own = marks.get(part)
            yield _ignored(part, own[0] if own else kind, own[1] if own else why, size, number)

    def _walk(self, path: bytes, found: Found) -> bool:
        """Tells whether the look was not at its end before the walk was.

        What a request may capture is counted to its end, so that its limit can hold.
        """
        counted = self._rules.asks_for(path, directory=True)
        for entry in scan(os.path.join(self._root, path), None):
            if found.entries < self._left:
                found.add(entry)
            elif not counted:
                found.content = True
                return False
            else:
                found.count(entry)
        return found.entries <= self._left

    def _class(self, path: bytes, found: Found, sealed: Seal) -> tuple[Class, str]:
        """Returns the class of a directory and the evidence; somebody's repository is never let go."""
        inner, rules = found.repository(), self._rules
        if inner is not None:
            return "unknown", f"a repository is in it: {pack(inner)}"
        why = rules.taken_back(path, directory=True)
        if why is not None:
            return "unknown", why
        why = sealed.why or self._bytecode(path, found) or rules.made_again(path, directory=True)
        if why is not None:
            return "rebuildable", why
        return "unknown", sealed.doubt or rules.why_unknown(path, directory=True)

    def _seals(self, path: bytes, found: Found) -> frozenset[bytes]:
        """Returns the directories at and below the path that a tool has made whole."""
        inner = (path, *found.sealable)
        return frozenset(each for each in inner if seal(self._root, each, self._rules).why is not None)

    def _bytecode(self, path: bytes, found: Found) -> str | None:
        if os.path.basename(path) != CACHE or not found.flat:
            return None
        proved = all(bytecode_of_a_source(self._root, each) for each in found.files)
        return "bytecode of present sources" if proved else None


def _ignored(path: bytes, kind: Class, why: str, size: int, entries: int) -> Ignored:
    return Ignored(pack(path), kind, why, size, entries)
