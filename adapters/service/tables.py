"""The small tables as the log has them now, in memory: read again only after something was appended."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapters.store.reader import Reader, Record


class Tables:
    """Lanes and repositories, always as of the last commit."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._seen: int | None = None
        self._lanes: list[Record] = []
        self._by_id: dict[str, Record] = {}
        self._repositories: list[Record] = []

    def lanes(self) -> list[Record]:
        """Returns the lanes table. The rows are shared: nobody changes them."""
        self._refresh()
        return self._lanes

    def lane(self, lane: str) -> Record | None:
        """Returns one lane's row, or None."""
        self._refresh()
        return self._by_id.get(lane)

    def repositories(self) -> list[Record]:
        """Returns the repositories under our care."""
        self._refresh()
        return self._repositories

    def states(self) -> Counter[str]:
        """Returns how many lanes are in each state."""
        return Counter(str(row["state"]) for row in self.lanes())

    def _refresh(self) -> None:
        changed = self.reader.changed()
        if changed == self._seen:
            return
        self._lanes = self.reader.lanes()
        self._by_id = {str(row["id"]): row for row in self._lanes}
        self._repositories = self.reader.repositories()
        self._seen = changed
