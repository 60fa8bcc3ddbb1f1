"""Lists as they were sent, for as long as nothing in them has changed: many agents ask for the same."""

from __future__ import annotations

from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

MOST = 32  # bodies; one of 500 lanes has 350 kB


class Stamp(msgspec.Struct, frozen=True):
    """What a list is made of: the log up to a position, and looks; with one stamp it is the same."""

    position: int
    looks: tuple[int, ...]


class _Body(msgspec.Struct, frozen=True):
    stamp: Stamp
    since: float  # when the oldest look at what it tells began
    data: bytes


class Kept:
    """The last bodies, by what was asked for."""

    def __init__(self) -> None:
        self._bodies: OrderedDict[Hashable, _Body] = OrderedDict()

    def recent(self, asked: Hashable, position: int, age: float) -> bytes | None:
        """Returns what was answered if the log has not grown, and no look in it is older than `age` s."""
        known = self._bodies.get(asked)
        if known is None or known.stamp.position != position or monotonic() - known.since > age:
            return None
        self._bodies.move_to_end(asked)
        return known.data

    def body(self, asked: Hashable, stamp: Stamp, since: float, make: Callable[[], bytes]) -> bytes:
        """Returns the body that was made for the same question at the same stamp, else makes it."""
        known = self._bodies.pop(asked, None)
        if known is None or known.stamp != stamp:
            known = _Body(stamp, since, make())
        self._bodies[asked] = known
        if len(self._bodies) > MOST:
            self._bodies.popitem(last=False)
        return known.data
