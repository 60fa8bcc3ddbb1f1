"""Looks at lanes for whoever lists them: at most one at a time in a repository, shared by all who wait.

A look is told again for as long as is asked for, each value with its own time; who wants to know what is so
now gets a look that began after he asked.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING

import msgspec
import trio

from adapters.api.documents import ObservedFlag, ObservedText
from adapters.clock import now
from adapters.files.errors import words
from adapters.glances import Glance
from adapters.service.refusals import RepositorySilent, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.service.service import Service, Station
    from adapters.store.reader import Record


TIMELY = 0.75  # of the time for which a look is told: when it has passed, the next one begins
REPOSITORIES = 32  # that are looked at at the same time
LOG = logging.getLogger("laneyard.looks")


class Sighting(msgspec.Struct, frozen=True):
    """One look at a repository's lanes; `began` is before anything was looked at, and no two share a number.

    By the lane's id: its position in the log when it was looked at, and what was seen.
    """

    number: int
    began: float
    lanes: dict[str, tuple[int, Glance]]


class Seen(msgspec.Struct, frozen=True):
    """What was seen of lanes, by their ids; the oldest look at them began `since`. One stamp, one content."""

    lanes: Mapping[str, Glance]
    stamp: tuple[int, ...]
    since: float


class _Look:
    """A look that has not begun, for everyone who asks until it does."""

    def __init__(self) -> None:
        self.ended = trio.Event()
        self.sighting: Sighting | None = None


class Observer:
    """Looks at lanes by way of their repositories' isolates."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._numbers = count(1)
        self._last: dict[str, Sighting] = {}
        self._next: dict[str, _Look] = {}
        self._renewing: set[str] = set()
        self._turns: dict[str, trio.Lock] = {}
        self._limit = trio.CapacityLimiter(REPOSITORIES)

    async def observe(self, rows: Sequence[Record], seconds: float) -> Seen:
        """Returns what was seen of lanes, at most so many seconds ago.

        Where a repository does not answer in time, its own lanes are unknown, and why.
        """
        of: dict[str, list[Record]] = {}
        for row in rows:
            of.setdefault(str(row["repository"]), []).append(row)
        found = {key: self._recent(key, some, seconds) for key, some in of.items()}
        async with trio.open_nursery() as nursery:
            for key, sighting in list(found.items()):
                if sighting is None:
                    nursery.start_soon(self._find, key, found)
        seen: dict[str, Glance] = {}
        for key, some in of.items():
            lanes = found[key].lanes  # type: ignore[union-attr]
            seen |= {str(row["id"]): lanes.get(str(row["id"]), NEW)[1] for row in some}
        looks = [each for each in found.values() if each is not None]
        oldest = min((each.began for each in looks), default=monotonic())
        return Seen(seen, tuple(each.number for each in looks), oldest)

    def renew(self, repository: str | None, seconds: float) -> None:
        """Begins to look again where the last look will soon be too old, so that nobody waits for it."""
        for key in [repository] if repository is not None else list(self._last):
            last = self._last.get(key)
            if last is None or key in self._renewing or monotonic() - last.began < TIMELY * seconds:
                continue
            self._renewing.add(key)
            trio.lowlevel.spawn_system_task(self._renew, key)

    async def _renew(self, repository: str) -> None:
        try:
            await self._look(repository)
        except Exception:  # nobody asked for it, and whoever asks next looks for himself
            LOG.exception("a look ahead has failed", extra={"fields": {"repository": repository}})
        finally:
            self._renewing.discard(repository)

    def _recent(self, repository: str, rows: Sequence[Record], seconds: float) -> Sighting | None:
        """Returns the last look if it is young enough, and no lane has changed in the log since."""
        last = self._last.get(repository)
        if last is None or monotonic() - last.began > seconds:
            return None
        known = last.lanes
        fresh = all(known.get(str(row["id"]), NEW)[0] == row["position"] for row in rows)
        return last if fresh else None

    async def _find(self, repository: str, found: dict[str, Sighting | None]) -> None:
        found[repository] = await self._look(repository)

    async def _look(self, repository: str) -> Sighting:
        """Returns a look that begins after now: one's own, or one that waits to begin already."""
        look = self._next.get(repository)
        if look is None:
            look = self._next[repository] = _Look()
            with trio.CancelScope(shield=True):  # others may wait for it by now; it is bounded by itself
                async with self._turns.setdefault(repository, trio.Lock()), self._limit:
                    del self._next[repository]
                    look.sighting = await self._begin(repository)
                    look.ended.set()
        await look.ended.wait()
        assert look.sighting is not None
        return look.sighting

    async def _begin(self, repository: str) -> Sighting:
        """Looks at every lane of the repository."""
        rows = [row for row in self._service.tables.lanes() if row["repository"] == repository]
        began, timeout = monotonic(), self._service.settings.configuration.service.look_timeout

        async def look(station: Station) -> dict[str, Glance]:
            return station.glances.look(rows, now())

        seen: Mapping[str, Glance] = {}
        blind = NEW[1]
        try:
            isolate = self._service.isolate(repository)
            if isolate.silent:  # it has kept others waiting already
                raise RepositorySilent(repository, timeout)
            seen = await isolate.ask(look, timeout)
        except Unavailable as error:
            blind = unseen(words(error))
        except Exception as error:  # a bug, or a disk that fails: these lanes are unknown, and no others
            LOG.error("a look has failed", exc_info=error, extra={"fields": {"repository": repository}})
            blind = unseen(words(error))
        lanes = {str(row["id"]): (int(row["position"] or 0), seen.get(str(row["id"]), blind)) for row in rows}
        found = self._last[repository] = Sighting(next(self._numbers), began, lanes)
        return found


def unseen(why: str) -> Glance:
    """Returns what is known of a lane that could not be looked at."""
    return Glance(ObservedFlag(unknown=why), ObservedText(unknown=why), ObservedText(unknown=why))


NEW = (-1, unseen("the lane has only just come to be"))
