"""The log in pages: bounded in what is returned and in what is looked through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from adapters.api.documents import Event, Events
from adapters.api.events import EVERYTHING, Filter, event_document, event_json, event_text
from domain.envelope import Envelope
from domain.errors import NoSuchPosition

if TYPE_CHECKING:
    from adapters.store.reader import Reader

LOOKED_THROUGH = 20_000  # events that are read for one page at most


class Page(msgspec.Struct, frozen=True):
    """Some events, up to where the log has been looked at for them, and whether it goes on there."""

    events: tuple[Envelope, ...]
    looked: int
    more: bool

    @property
    def next(self) -> int | None:
        """Returns the position to go on after, or None where the log ends."""
        return self.looked if self.more else None

    def document(self) -> Events:
        """Returns the page as a document."""
        found: tuple[Event, ...] = tuple(event_document(each) for each in self.events)
        return Events(events=found, next=self.next)

    def lines(self) -> bytes:
        """Returns an event of JSON on each line."""
        return b"".join(event_json(each) + b"\n" for each in self.events)

    def text(self, slugs: dict[str, str]) -> str:
        """Returns the lines that the log shows."""
        return "".join(event_text(each, slugs) + "\n" for each in self.events)


def page(reader: Reader, after: int, limit: int, wanted: Filter = EVERYTHING) -> Page:
    """Returns at most `limit` events after a position that are wanted.

    Raises NoSuchPosition where the log ends before it, and StoreUnreadable.
    """
    if after > (last := reader.head().position):
        raise NoSuchPosition(after, last)
    found: list[Envelope] = []
    for looked, event in enumerate(reader.events(after=after, stream=wanted.stream), 1):
        if len(found) == limit or looked > LOOKED_THROUGH:
            return Page(tuple(found), after, more=True)
        after = event.position
        if wanted.matches(event):
            found.append(event)
    return Page(tuple(found), after, more=False)
