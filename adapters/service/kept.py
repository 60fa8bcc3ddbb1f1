"""Lists as they were sent, for as long as nothing in them has changed: many agents ask for the same."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

MOST = 32  # bodies; one of 500 lanes has 350 kB


class Kept:
    """The last bodies, by what was asked for."""

    def __init__(self) -> None:
        self._bodies: OrderedDict[Hashable, tuple[Hashable, bytes]] = OrderedDict()

    def body(self, asked: Hashable, stamp: Hashable, make: Callable[[], bytes]) -> bytes:
        """Returns the body that was made for the same question at the same stamp, else makes it."""
        known = self._bodies.pop(asked, None)
        if known is None or known[0] != stamp:
            known = stamp, make()
        self._bodies[asked] = known
        if len(self._bodies) > MOST:
            self._bodies.popitem(last=False)
        return known[1]
