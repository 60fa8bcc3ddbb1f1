"""Ignored paths by the directories that hold nothing else.

Git names what a pattern matches: where a cache ignores itself (a `.gitignore` that says `*`), or a pattern
means files, it names every file, and not the directory that is ignored in effect.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from domain.evidence import Ignored
from domain.paths import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Gathered:
    """The paths that git names in a lane, of which it tracks or reports as `changed` the others."""

    def __init__(self, root: bytes, ignored: Iterable[bytes], changed: Iterable[bytes]) -> None:
        self._root = root
        self._ignored = {path.rstrip(b"/"): None for path in ignored}  # in git's order
        self._closed = {above for path in changed for above in _above(path)}
        self._holds: dict[bytes, bool] = {}

    def tops(self, is_sealed: Callable[[bytes], bool]) -> Iterator[bytes]:
        """Yields the paths, or in their place the topmost directory that is sealed and all ignored."""
        told, sealed = set[bytes](), dict[bytes, bool]()
        for path in self._ignored:
            for above in reversed(list(_above(path))):
                if above not in sealed:
                    sealed[above] = self.holds_nothing_else(above) and is_sealed(above)
                if sealed[above]:
                    if above not in told:
                        told.add(above)
                        yield above
                    break
            else:
                yield path

    def holds_nothing_else(self, path: bytes) -> bool:
        """Tells whether a directory has ignored content, empty directories, and nothing that git tracks."""
        if path not in self._holds:
            self._holds[path] = path not in self._closed and self._look(path)
        return self._holds[path]

    def _look(self, path: bytes) -> bool:
        inner = []
        try:
            with os.scandir(os.path.join(self._root, path)) as entries:
                for entry in entries:
                    full = path + b"/" + entry.name
                    if full in self._ignored:
                        continue
                    if not entry.is_dir(follow_symlinks=False):
                        return False
                    inner.append(full)
        except OSError:
            return False  # what cannot be seen is not vouched for
        return all(self.holds_nothing_else(each) for each in inner)

    def together(self, told: list[Ignored], is_asked: Callable[[bytes], bool]) -> list[Ignored]:
        """Returns rebuildable paths by the directories that hold nothing else, and all others as they are.

        Not what a request asks for: that is told singly.
        """
        by_path = {unpack(each.path): each for each in told}
        within: dict[bytes, list[bytes]] = {}
        for path in by_path:
            for above in _above(path):
                within.setdefault(above, []).append(path)
        place = {path: at for at, path in enumerate(by_path)}
        for above in sorted(within, key=len, reverse=True):
            each = [path for path in within[above] if path in by_path]
            if len(each) > 1 and self._is_one(above, [by_path[path] for path in each], is_asked):
                place[above] = min(place[path] for path in each)
                by_path[above] = _sum(above, [by_path.pop(path) for path in each])
                for higher in _above(above):
                    within[higher].append(above)
        return [by_path[path] for path in sorted(by_path, key=place.__getitem__)]

    def _is_one(self, above: bytes, told: list[Ignored], is_asked: Callable[[bytes], bool]) -> bool:
        if any(each.kind != "rebuildable" or is_asked(unpack(each.path)) for each in told):
            return False
        return self.holds_nothing_else(above)


def _sum(path: bytes, told: list[Ignored]) -> Ignored:
    size, number = sum(each.bytes for each in told), sum(each.entries for each in told)
    whys = dict.fromkeys(each.why for each in told)
    more = f" and {len(whys) - 1} more" if len(whys) > 1 else ""
    return Ignored(pack(path), "rebuildable", next(iter(whys)) + more, size, number + 1)


def _above(path: bytes) -> Iterator[bytes]:
    """Yields the directories that a path lies in, the nearest first, and not the root."""
    while path := path.rpartition(b"/")[0]:
        yield path
