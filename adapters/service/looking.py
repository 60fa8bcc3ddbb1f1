"""Looks at the disk from threads of their own: a file system that hangs keeps some of them, never all."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

import trio

from adapters.service.refusals import Overloaded, RepositorySilent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")
LOOKERS = 64  # looks at the same time
LATE = 4  # looks that may hang below one directory before no more are begun there


class Lookers:
    """Follows paths for the loop that speaks HTTP, which never waits for a disk."""

    def __init__(self) -> None:
        self._limit = trio.CapacityLimiter(LOOKERS)
        self._late: Counter[str] = Counter()
        self._gate = Lock()

    async def look(self, look: Callable[[], T], path: str, known: Iterable[str], seconds: float) -> T:
        """Returns what a look at a packed path gives; `known` are packed directories that may hang.

        Raises RepositorySilent when it takes too long, or when several hang there already, and Overloaded.
        """
        place = _place(path, known)
        if self._late[place] >= LATE:
            raise RepositorySilent(place, seconds)
        one = _Look(look, self, place)
        with trio.move_on_after(seconds):
            return await trio.to_thread.run_sync(one.run, abandon_on_cancel=True, limiter=self._limit)
        if not one.abandon():
            raise Overloaded("looks at the disk", LOOKERS)
        raise RepositorySilent(path, seconds)

    def late(self, place: str, more: int) -> None:
        """Counts a look that hangs, or that has come back at last; may be called in any thread."""
        with self._gate:
            self._late[place] += more
            if not self._late[place]:
                del self._late[place]


class _Look(Generic[T]):
    """One look, which its asker may leave alone."""

    def __init__(self, look: Callable[[], T], lookers: Lookers, place: str) -> None:
        self._look, self._lookers, self._place = look, lookers, place
        self._gate = Lock()
        self._begun = self._ended = self._abandoned = False

    def run(self) -> T:
        self._begun = True
        try:
            return self._look()
        finally:
            with self._gate:
                self._ended = True
                if self._abandoned:
                    self._lookers.late(self._place, -1)

    def abandon(self) -> bool:
        """Leaves the look alone; tells whether it had begun."""
        with self._gate:
            self._abandoned = self._begun and not self._ended
            if self._abandoned:
                self._lookers.late(self._place, 1)
        return self._begun


def _place(path: str, known: Iterable[str]) -> str:
    """Returns the innermost known directory around a path, else the path's own first three parts."""
    inside = [each for each in known if path == each or path.startswith(each + "/")]
    return max(inside, key=len, default="/".join(path.split("/")[:4]))
