"""What a projection is made of: a table, and a function from an event to the rows that change."""

from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec
from msgspec.structs import force_setattr

from domain.envelope import Envelope
from domain.lane import pending
from domain.states import Lane

Value = str | int | None
Key = tuple[Value, ...]
Row = tuple[Value, ...]
Get = Callable[[Key], Row | None]
Change = tuple[Key, Row | None]  # a row to put under the key, or None to drop it


class Table(msgspec.Struct, frozen=True):
    """A table's name and its columns with their SQL types; the first `keys` columns are the key."""

    name: str
    columns: tuple[tuple[str, str], ...]
    keys: int

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the columns' names."""
        return tuple(name for name, _ in self.columns)


class Happening(msgspec.Struct, frozen=True):
    """An event together with the lane before and after it; `owed` names the effect that is owed after it."""

    event: Envelope
    before: Lane
    after: Lane
    owed: str | None = None

    def __post_init__(self) -> None:
        # Once for all projections: to work out what is owed costs as much as the rest of a row.
        effect = pending(self.after)
        if effect is not None:
            force_setattr(self, "owed", type(effect).__name__)


class Immediate(Protocol):
    """A projection kept in the transaction of the append. `VERSION` grows when its meaning changes."""

    TABLE: Table
    VERSION: int

    def apply(self, happening: Happening, get: Get) -> Iterable[Change]:
        """Returns the rows that change."""


class Eventual(Protocol):
    """A projection that follows behind a position, from facts alone."""

    TABLE: Table
    VERSION: int

    def apply(self, event: Envelope, get: Get) -> Iterable[Change]:
        """Returns the rows that change."""
