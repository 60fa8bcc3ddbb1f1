"""The small tables as the log has them now, in memory: only what was appended since is read again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from domain.envelope import lane_of

if TYPE_CHECKING:
    from adapters.store.reader import Reader, Record

MANY = 512  # events since the last look, from which on whole tables are read: that is quicker


class Tables:
    """Lanes and repositories, always as of the last commit."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._seen: int | None = None
        self._position = 0
        self._by_id: dict[str, Record] = {}
        self._lanes: list[Record] | None = None
        self._repositories: list[Record] = []

    def lanes(self) -> list[Record]:
        """Returns the lanes table. The list and its rows are shared: nobody changes them."""
        self._refresh()
        if self._lanes is None:
            self._lanes = list(self._by_id.values())
        return self._lanes

    def lane(self, lane: str) -> Record | None:
        """Returns one lane's row, or None."""
        self._refresh()
        return self._by_id.get(lane)

    def repositories(self) -> list[Record]:
        """Returns the repositories under our care."""
        self._refresh()
        return self._repositories

    @property
    def position(self) -> int:
        """Returns the position that the tables are as of."""
        self._refresh()
        return self._position

    def states(self) -> Counter[str]:
        """Returns how many lanes are in each state."""
        return Counter(str(row["state"]) for row in self.lanes())

    def _refresh(self) -> None:
        # First the number, then the log's end, then the rows: what is committed between two of these is
        # read twice and never missed.
        changed = self.reader.changed()
        if changed == self._seen:
            return
        after, self._position = self._position, self.reader.head().position
        if not self._take(after):
            self._read_all()
        self._lanes = None
        self._seen = changed

    def _take(self, after: int) -> bool:
        """Reads again what the log tells of since a position; tells whether that was enough."""
        # Where a commit has appended nothing, somebody has made the tables anew.
        if self._seen is None or not 0 < self._position - after < MANY:
            return False
        streams = {event.stream for event in self.reader.events(after, self._position)}
        for lane in map(lane_of, streams):
            if lane is None:
                self._repositories = self.reader.repositories()
                continue
            row = self.reader.row(lane)
            if row is None:
                self._by_id.pop(lane, None)
            else:
                self._by_id[lane] = row
        return True

    def _read_all(self) -> None:
        self._by_id = {str(row["id"]): row for row in self.reader.lanes()}
        self._repositories = self.reader.repositories()
