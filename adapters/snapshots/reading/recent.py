"""Snapshots that were opened a moment ago: whoever extracts many paths asks for one again and again."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapters.snapshots.reading.reading import Opened
    from domain.evidence import Snapshot

KEPT = 2  # opened snapshots that are kept, which may be large
SECONDS = 10.0  # for which one that nobody asks for is kept


class Recent:
    """The last opened snapshots, for one thread. Contents are compared with their digests when read."""

    def __init__(self) -> None:
        self._opened: dict[str, tuple[float, Opened]] = {}

    def get(self, taken: Snapshot) -> Opened | None:
        """Returns a snapshot that was opened or asked for in the last seconds."""
        now = monotonic()
        self._opened = {name: each for name, each in self._opened.items() if now - each[0] < SECONDS}
        found = self._opened.get(taken.manifest)
        return None if found is None else found[1]

    def put(self, taken: Snapshot, opened: Opened) -> None:
        """Keeps it for the next seconds, and lets go of all but the last ones."""
        self._opened.pop(taken.manifest, None)
        self._opened[taken.manifest] = monotonic(), opened
        while len(self._opened) > KEPT:
            del self._opened[next(iter(self._opened))]
