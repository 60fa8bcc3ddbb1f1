"""The end of the log in memory, and subscriptions that follow it from any position.

Subscribers pull. There is no queue for any of them: a slow one costs nothing, and what has left the memory by
the time that it asks is read from the log again.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from contextlib import contextmanager, suppress
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING
from weakref import WeakSet

import msgspec
import trio
from eventsourcing.persistence import PersistenceError

from adapters.api.events import EVERYTHING, Filter, event_json
from adapters.store.reader import Reader
from domain.envelope import Envelope, lane_of
from domain.errors import NoSuchPosition
from domain.events import CreationPlanned, LaneAdopted, RestorePlanned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RING = 4096  # events kept in memory
GLANCE = 256  # events that the loop reads by itself, in 3 ms; more are read in a worker thread
PAGE = 512  # events to a read in a worker thread
BATCH = 256  # events that a subscriber is given at a time
READS = 2  # worker threads that read for the subscribers who are behind: more would only share the processors
REST = (
    50e-6  # seconds for each subscriber between two rounds: to wake one and have it send costs a third of it
)
RETRY = 1.0  # seconds until a log that could not be read is tried again, unless a commit comes before

_log = logging.getLogger(__name__)
_POSITION = attrgetter("position")


class Item(msgspec.Struct, frozen=True):
    """An event, and its line of JSON, which is made once for all subscribers."""

    position: int
    type: str
    json: bytes
    event: Envelope


class Tail:
    """The newest events of a log. Everything but `poke` belongs to the loop in which it runs."""

    def __init__(self, store: bytes, ring: int = RING) -> None:
        self.head = 0  # the last position that subscribers are given
        self.floor = 0  # the ring holds everything after it
        self._size = ring
        self._items: list[Item] = []
        self._slugs: dict[str, str] | None = None  # read when they are first asked for
        self._readers = _Readers(store)
        self._reading = trio.CapacityLimiter(READS)
        self._following = trio.CapacityLimiter(1)  # the tail itself never waits behind a subscriber's read
        self._waiting = trio.lowlevel.ParkingLot()
        self._poked = trio.Event()
        self._token: trio.lowlevel.TrioToken | None = None
        self._stopping = False
        self._ended = False
        self._open: WeakSet[Subscription] = WeakSet()

    @property
    def subscribers(self) -> int:
        """Returns how many subscriptions there are that have not ended."""
        return len(self._open)

    @property
    def slugs(self) -> Mapping[str, str]:
        """Returns the slugs by lane, as of the head or later; it changes as the log goes on."""
        if self._slugs is None:
            with self._readers.one() as reader:
                self._slugs = {str(row["id"]): str(row["slug"]) for row in reader.lanes()}
        return self._slugs

    def poke(self) -> None:
        """Tells from any thread that something may have been committed; it never blocks and never fails."""
        if self._token is not None:
            with suppress(trio.RunFinishedError):  # with the loop, everyone who could be told has ended
                self._token.run_sync_soon(self._look_again, idempotent=True)

    def stop(self) -> None:
        """Ends every subscription once it has delivered what is committed by now."""
        self._stopping = True
        self._look_again()

    def close(self) -> None:
        """Closes the readers, when no subscription is in use any more."""
        self._readers.close()

    def subscription(self, after: int, wanted: Filter = EVERYTHING) -> Subscription:
        """Returns the wanted events after a position; raises NoSuchPosition if the log ends before it."""
        # Whoever was answered with a position may ask for what follows it before it has been read here.
        if after > self.head and after > (last := self._last()):
            raise NoSuchPosition(after, last)
        subscription = Subscription(self, after, wanted)
        self._open.add(subscription)
        return subscription

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follows the log until `stop`; started once the newest events are in memory.

        Raises a PersistenceError if the log cannot be read at the start; later, it is logged and tried again.
        """
        self._token = trio.lowlevel.current_trio_token()
        try:
            await trio.to_thread.run_sync(self._begin, limiter=self._following)
            task_status.started()
            await self._follow()
        finally:
            self._ended = True
            self._waiting.unpark_all()

    def newer(self, after: int) -> list[Item]:
        """Returns the next events of the ring, at most BATCH."""
        start = bisect_right(self._items, after, key=_POSITION)
        return self._items[start : start + BATCH]

    async def page(self, after: int, wanted: Filter) -> tuple[list[Item], int]:
        """Returns the wanted ones of the next events of the log, and up to where it has been looked at."""
        return await trio.to_thread.run_sync(self._read, after, self.head, wanted, limiter=self._reading)

    async def beyond(self, position: int) -> bool:
        """Waits until there may be more after a position; returns False if there never will be."""
        if position < self.head:
            await trio.lowlevel.checkpoint()
        elif not self._ended:
            await self._waiting.park()
        return position < self.head or not self._ended

    def forget(self, subscription: Subscription) -> None:
        """Stops counting a subscription."""
        self._open.discard(subscription)

    def _look_again(self) -> None:
        self._poked.set()

    async def _follow(self) -> None:
        trouble = ""
        while True:
            # Both before reading: what comes after this moment leads to another round.
            self._poked, stopping = trio.Event(), self._stopping
            try:
                await self._catch_up()
                trouble = ""
            except PersistenceError as error:
                if trouble != (trouble := str(error)):
                    _log.error("the log cannot be followed", extra={"fields": {"error": trouble}})
            if stopping:
                return
            # While commits follow one another, each round takes several: with 200 subscribers, what comes
            # within 10 ms. Without this, waking them for each commit would take the whole loop.
            await trio.sleep(self.subscribers * REST)
            with trio.move_on_after(RETRY if trouble else inf):
                await self._poked.wait()

    async def _catch_up(self) -> None:
        """Takes what is committed by now."""
        last = self._last()
        while self.head < last:
            if last - self.head <= GLANCE:
                items, looked = self._read(self.head, last, EVERYTHING)
            else:
                items, looked = await trio.to_thread.run_sync(
                    self._read, self.head, last, EVERYTHING, limiter=self._following
                )
            self._take(items, looked)

    def _take(self, items: list[Item], looked: int) -> None:
        self._items += items
        for each in items:
            self._learn(each.event)
        surplus = len(self._items) - self._size
        if surplus > 0:
            self.floor = self._items[surplus - 1].position
            del self._items[:surplus]
        self.head = looked
        self._waiting.unpark_all()

    def _learn(self, event: Envelope) -> None:
        lane = lane_of(event.stream)
        if self._slugs is None or lane is None:
            return
        if isinstance(event.fact, CreationPlanned | LaneAdopted | RestorePlanned):
            self._slugs[lane] = event.fact.slug

    def _begin(self) -> None:
        with self._readers.one() as reader:
            self.head = reader.head().position
            self.floor = max(0, self.head - self._size)
            self._items = [_item(event) for event in reader.events(self.floor, self.head)]

    def _read(self, after: int, to: int, wanted: Filter) -> tuple[list[Item], int]:
        with self._readers.one() as reader:
            events = list(reader.events(after, to, wanted.stream, PAGE))
        looked = events[-1].position if len(events) == PAGE else to
        return [_item(event) for event in events if wanted.matches(event)], looked

    def _last(self) -> int:
        with self._readers.one() as reader:
            return reader.head().position


class Subscription:
    """The wanted events in batches, strictly in order, each once. Giving up waiting for one loses nothing."""

    def __init__(self, tail: Tail, after: int, wanted: Filter) -> None:
        self.position = after  # everything up to here has been looked at
        self._tail = tail
        self._wanted = wanted

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> list[Item]:
        """Waits for the next batch, which is never empty; ends when the tail was stopped."""
        while await self._tail.beyond(self.position):
            if batch := await self._look():
                return batch
        self.close()
        raise StopAsyncIteration

    def close(self) -> None:
        """Stops being counted; what is no longer referred to does so by itself."""
        self._tail.forget(self)

    async def _look(self) -> list[Item]:
        if self.position < self._tail.floor:
            items, self.position = await self._tail.page(self.position, self._wanted)
            return items
        items = self._tail.newer(self.position)
        if items:
            self.position = items[-1].position
        if self._wanted == EVERYTHING:
            return items
        return [item for item in items if self._wanted.matches(item.event)]


class _Readers:
    """Readers that are used again, one for each read in progress."""

    def __init__(self, store: bytes) -> None:
        self._store = store
        self._idle: list[Reader] = []
        self._closed = False

    @contextmanager
    def one(self) -> Iterator[Reader]:
        """Gives a reader that nobody else uses until the block ends."""
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = Reader(self._store)
        try:
            yield reader
        except BaseException:
            reader.close()
            raise
        self._idle.append(reader)
        if self._closed:
            self.close()

    def close(self) -> None:
        """Closes those that are idle, and the others when their read ends."""
        self._closed = True
        with suppress(IndexError):
            while True:
                self._idle.pop().close()


def _item(event: Envelope) -> Item:
    return Item(event.position, event.type, event_json(event), event)
