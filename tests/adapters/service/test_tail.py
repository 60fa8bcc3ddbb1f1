"""Following the log: every event once and in order, from any position, whoever else is slow."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager, closing
from fnmatch import fnmatchcase
from random import Random
from threading import Thread
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from adapters.api.events import EVERYTHING, Filter
from adapters.service.stream.tail import BATCH, GLANCE, PAGE, Tail
from adapters.store.append import append
from adapters.store.codec import encode
from adapters.store.connection import connect, transaction
from adapters.store.journal import Journal
from adapters.store.log import PAGE as LOG_PAGE
from adapters.store.reader import Reader
from domain.envelope import stream_of
from domain.errors import NoSuchPosition
from tests.adapters.store.lives import ACTOR, NOON, entry, interleaved, life, noon, planned

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from pathlib import Path

    from adapters.service.stream.tail import Subscription
    from adapters.store.journal import Entry

PATIENCE = 60.0  # seconds; only a failing test waits as long
STEPS = 16  # events in a life


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return bytes(tmp_path / "journal.db")


@asynccontextmanager
async def following(
    path: bytes, ring: int = 4096, *, told: bool = True
) -> AsyncIterator[tuple[Journal, Tail]]:
    """A journal and the tail of its log; without `told` the tail hears of commits only from the test."""
    tail = Tail(path, ring)
    with closing(tail), closing(Journal(path, noon, tail.poke if told else None)) as journal:
        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                await nursery.start(tail.run)
                yield journal, tail
                tail.stop()


def write(journal: Journal, requests: Iterable[Entry]) -> int:
    """Submits requests, waits until they are durable, and returns the last position."""
    promises = [journal.submit(request) for request in requests]
    return max(promise.result(PATIENCE).last for promise in promises)


def hammer(journal: Journal, writers: int, lanes: int) -> None:
    """Has several threads write lives at the same time, two of them waiting for each commit."""

    def one_by_one(prefix: str) -> None:
        for request in interleaved(lanes, 5, prefix):
            journal.submit(request).result(PATIENCE)

    def at_once(prefix: str) -> None:
        write(journal, interleaved(lanes, 5, prefix))

    threads = [Thread(target=at_once if n % 2 else one_by_one, args=(f"writer{n}",)) for n in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


async def positions(subscription: Subscription, last: int) -> list[int]:
    """Returns the positions that a subscription gives, up to and with the last."""
    seen: list[int] = []
    while not seen or seen[-1] < last:
        seen += [item.position for item in await anext(subscription)]
    return seen


async def rest(subscription: Subscription) -> list[int]:
    """Returns the positions that a subscription gives until it ends."""
    return [item.position async for batch in subscription for item in batch]


def in_the_log(path: bytes, wanted: Filter = EVERYTHING, after: int = 0) -> list[int]:
    with Reader(path) as reader:
        return [
            event.position
            for event in reader.events(after)
            if wanted.stream in (None, event.stream) and fnmatchcase(event.type, wanted.type or "*")
        ]


# Everything, once, in order --------------------------------------------------------------------------------


@pytest.mark.slow
async def test_two_hundred_subscribers_each_get_every_event_once_and_in_order(path: bytes) -> None:
    seen: list[list[int]] = []
    async with following(path) as (journal, tail), trio.open_nursery() as nursery:

        async def follow(subscription: Subscription) -> None:
            seen.append(await positions(subscription, 2048))

        for _ in range(200):
            nursery.start_soon(follow, tail.subscription(0))
        await trio.to_thread.run_sync(hammer, journal, 4, 2048 // STEPS // 4)
    assert seen == [list(range(1, 2049))] * 200


@pytest.mark.slow
@pytest.mark.parametrize("ring", [4096, 100])
async def test_who_comes_late_gets_what_follows_its_position(path: bytes, ring: int) -> None:
    chance = Random(3)
    async with following(path, ring) as (journal, tail), trio.open_nursery() as nursery:

        async def follow(after: int) -> None:
            assert await positions(tail.subscription(after), 1920) == list(range(after + 1, 1921))

        async def join() -> None:
            while tail.head < 1900:
                nursery.start_soon(follow, chance.randint(0, tail.head))
                await trio.sleep(0.02)  # about a hundred come while it is written

        nursery.start_soon(join)
        await trio.to_thread.run_sync(hammer, journal, 4, 1920 // STEPS // 4)


async def test_a_burst_that_the_ring_does_not_hold_reaches_a_subscriber_whole(path: bytes) -> None:
    async with following(path, 50) as (journal, tail):
        subscription = tail.subscription(0)
        last = await trio.to_thread.run_sync(write, journal, interleaved(60, 10))
        assert last > PAGE + GLANCE
        assert await positions(subscription, last) == list(range(1, last + 1))
        assert (tail.head, tail.floor) == (last, last - 50)


async def test_no_wake_up_is_lost_between_two_commits(path: bytes) -> None:
    async with following(path) as (journal, tail):
        subscription = tail.subscription(0)
        for n in range(100):
            journal.submit(entry(f"{n}", planned(f"{n}")))
            assert [item.position for item in await anext(subscription)] == [n + 1]


async def test_a_log_that_is_there_already_is_in_memory_from_its_end_on(path: bytes) -> None:
    with closing(Journal(path, noon)) as journal:
        last = write(journal, interleaved(40, 10))
    async with following(path, 100) as (_, tail):
        assert (tail.head, tail.floor) == (last, last - 100)
        assert [item.position for item in tail.newer(tail.floor)] == list(range(last - 99, last + 1))
        assert await positions(tail.subscription(0), last) == list(range(1, last + 1))


async def test_a_batch_is_bounded_and_never_empty(path: bytes) -> None:
    with closing(Journal(path, noon)) as journal:
        write(journal, interleaved(100, 10))
    for ring in (4096, 10):
        async with following(path, ring) as (_, tail):
            subscription = tail.subscription(0)
            tail.stop()
            sizes = [len(batch) async for batch in subscription]
            assert sum(sizes) == 1600
            assert 0 < min(sizes) <= max(sizes) <= max(BATCH, PAGE)


async def test_an_item_has_the_event_and_its_json(path: bytes) -> None:
    async with following(path) as (journal, tail):
        journal.submit(entry("a", planned("a")))
        (item,) = await anext(tail.subscription(0))
    with Reader(path) as reader:
        assert [item.event] == list(reader.events())
    assert (item.position, item.type) == (1, "creation.planned@1")
    assert item.json.startswith(b'{"position":1,"type":"creation.planned@1","lane":"a",')


@pytest.mark.slow
async def test_giving_up_waiting_loses_nothing(path: bytes) -> None:
    chance = Random(7)
    seen: list[int] = []
    async with following(path, 200) as (journal, tail), trio.open_nursery() as nursery:
        subscription = tail.subscription(0)
        nursery.start_soon(trio.to_thread.run_sync, hammer, journal, 2, 30)
        while len(seen) < 960:
            with trio.move_on_after(chance.choice((0, 0.0005, 0.002))):
                seen += [item.position for item in await anext(subscription)]
    assert seen == list(range(1, 961))


# Filters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ring", [4096, 20])
@pytest.mark.parametrize(
    "wanted",
    [
        Filter(),
        Filter(stream=stream_of("lane-7")),
        Filter(type="lane.*"),
        Filter(type="reaping.planned@?"),
        Filter(stream=stream_of("lane-3"), type="*@1"),
        Filter(stream=stream_of("nobody")),
        Filter(type="[!lane"),
    ],
)
async def test_a_filter_gives_what_the_log_has_of_it(path: bytes, ring: int, wanted: Filter) -> None:
    with closing(Journal(path, noon)) as journal:
        write(journal, interleaved(40, 10))
    async with following(path, ring) as (journal, tail):
        subscriptions = [tail.subscription(after, wanted) for after in (0, 77, 640)]
        write(journal, interleaved(10, 10, "later"))
        tail.stop()
        seen = [await rest(subscription) for subscription in subscriptions]
    assert seen == [in_the_log(path, wanted, after) for after in (0, 77, 640)]
    assert {subscription.position for subscription in subscriptions} == {800}


async def test_a_subscriber_knows_up_to_where_nothing_was_for_it(path: bytes) -> None:
    async with following(path, 20) as (journal, tail):
        subscription = tail.subscription(0, Filter(type="nothing"))
        write(journal, interleaved(40, 10))
        while subscription.position < 640:
            with trio.move_on_after(0.01):
                await anext(subscription)
        assert subscription.position == 640


# Slow ones, and positions ----------------------------------------------------------------------------------


async def test_a_subscriber_that_never_reads_holds_nobody_up_and_misses_nothing(path: bytes) -> None:
    async with following(path, 30) as (journal, tail):
        never, stuck, quick = (tail.subscription(0) for _ in range(3))
        write(journal, [entry("first", planned("first"))])
        assert [item.position for item in await anext(stuck)] == [1]
        last = write(journal, interleaved(40, 10))
        assert await positions(quick, last) == list(range(1, last + 1))
        assert len(tail.newer(0)) == 30  # nothing is kept for those who do not ask
        assert await positions(stuck, last) == list(range(2, last + 1))
        assert await positions(never, last) == list(range(1, last + 1))


async def test_a_position_beyond_the_log_is_refused(path: bytes) -> None:
    async with following(path) as (journal, tail):
        write(journal, [entry("a", *life("a")[:3])])
        with pytest.raises(NoSuchPosition) as refusal:
            tail.subscription(4)
        assert refusal.value.details == {"position": 4, "last": 3}
        assert tail.subscribers == 0


async def test_a_position_that_is_durable_is_known_before_the_tail_has_read_it(path: bytes) -> None:
    async with following(path, told=False) as (journal, tail):
        last = write(journal, [entry("a", *life("a")[:3])])
        assert tail.head == 0
        subscription = tail.subscription(last)
        write(journal, [entry("a", *life("a")[3:5])])
        tail.poke()
        assert await positions(subscription, 5) == [4, 5]


async def test_subscribers_are_counted_until_they_end_are_closed_or_are_dropped(path: bytes) -> None:
    async with following(path) as (_, tail):
        ended, closed, dropped = (tail.subscription(0) for _ in range(3))
        assert tail.subscribers == 3
        closed.close()
        assert tail.subscribers == 2
        del dropped
        assert tail.subscribers == 1
        tail.stop()
        assert await rest(ended) == []
        assert tail.subscribers == 0


# The end ---------------------------------------------------------------------------------------------------


async def test_stopping_delivers_what_is_committed_and_ends_those_who_wait(path: bytes) -> None:
    seen: list[list[int]] = []
    async with following(path, told=False) as (journal, tail), trio.open_nursery() as nursery:

        async def follow(subscription: Subscription) -> None:
            seen.append(await rest(subscription))

        for _ in range(5):
            nursery.start_soon(follow, tail.subscription(0))
        await trio.testing.wait_all_tasks_blocked()
        write(journal, interleaved(1, 1))
        tail.stop()
    assert seen == [list(range(1, STEPS + 1))] * 5


async def test_who_is_far_behind_when_it_stops_still_gets_everything(path: bytes) -> None:
    with closing(Journal(path, noon)) as journal:
        last = write(journal, interleaved(80, 10))
    async with following(path, 10) as (_, tail):
        subscription = tail.subscription(0)
        tail.stop()
        assert await rest(subscription) == list(range(1, last + 1))
        assert await rest(tail.subscription(last - 3)) == [last - 2, last - 1, last]
        assert await rest(tail.subscription(last)) == []


@pytest.mark.slow
async def test_stopping_ends_while_others_go_on_writing(path: bytes) -> None:
    async with following(path, 100) as (journal, tail), trio.open_nursery() as nursery:
        subscription = tail.subscription(0)
        nursery.start_soon(trio.to_thread.run_sync, hammer, journal, 2, 20)
        first = await anext(subscription)
        tail.stop()
        seen = [item.position for item in first] + await rest(subscription)
        assert seen == list(range(1, len(seen) + 1))
        assert len(seen) == tail.head


async def test_a_tail_that_is_cancelled_leaves_nobody_waiting(path: bytes) -> None:
    tail = Tail(path)
    with closing(tail), closing(Journal(path, noon)):
        async with trio.open_nursery() as nursery:
            await nursery.start(tail.run)
            subscription = tail.subscription(0)
            nursery.cancel_scope.cancel()
        assert await rest(subscription) == []


def test_a_poke_without_a_running_loop_harms_nobody(path: bytes) -> None:
    tail = Tail(path)
    with closing(Journal(path, noon, tail.poke)) as journal:
        write(journal, [entry("a", planned("a"))])

        async def once() -> None:
            async with trio.open_nursery() as nursery:
                await nursery.start(tail.run)
                tail.stop()

        trio.run(once)
        assert tail.head == 1
        assert write(journal, [entry("b", planned("b"))]) == 2
    tail.close()


# A log that cannot be read ---------------------------------------------------------------------------------


async def test_an_event_that_cannot_be_read_is_told_once_and_followed_when_it_can(
    path: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with following(path) as (journal, tail):
        subscription = tail.subscription(0)
        with closing(connect(path)) as other, transaction(other):
            append(other, [("lane-a", 1, "lane.created@1", b"{}")])
        for _ in range(3):
            tail.poke()
            await trio.testing.wait_all_tasks_blocked(0.01)
        told = [record for record in caplog.records if record.levelno == logging.ERROR]
        assert [record.getMessage() for record in told] == ["the log cannot be followed"]
        mend(path)
        write(journal, [entry("b", planned("b"))])
        assert await positions(subscription, 2) == [1, 2]


def mend(path: bytes) -> None:
    state = encode(life("a")[2], NOON, ACTOR, "-")
    with closing(connect(path)) as other, transaction(other):
        other.execute("DROP TRIGGER event_no_update")
        other.execute("UPDATE event SET state = ? WHERE position = 1", (state,))


# Names, and pages ------------------------------------------------------------------------------------------


async def test_the_slugs_are_those_of_the_table_and_of_what_comes(path: bytes) -> None:
    with closing(Journal(path, noon)) as journal:
        write(journal, [entry("old", *life("old"))])
    async with following(path) as (journal, tail):
        assert dict(tail.slugs) == {"old": "fix-old"}
        last = write(journal, [entry("new", planned("new", "fresh"))])
        await positions(tail.subscription(0), last)
        assert dict(tail.slugs) == {"old": "fix-old", "new": "fresh"}


@pytest.mark.parametrize("limit", [0, 1, LOG_PAGE - 1, LOG_PAGE, LOG_PAGE + 1, 5000])
def test_a_read_of_the_log_is_limited(path: bytes, limit: int) -> None:
    with closing(Journal(path, noon)) as journal:
        last = write(journal, interleaved(90, 10))
    with Reader(path) as reader:
        found = [event.position for event in reader.events(after=10, limit=limit)]
    assert found == list(range(11, min(11 + limit, last + 1)))
