"""One isolate a repository: made when it is needed, let go when it is not."""

from __future__ import annotations

from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING

import pytest

from adapters.service.isolates.isolate import Isolate, Isolates
from adapters.service.refusals import Overloaded, RepositoryBusy, Stopping
from tests.adapters.service.front import until
from tests.adapters.service.isolate_scenes import (
    Pipe,
    Thing,
    answers,
    give,
    isolate,
    sleep_until_cancelled,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def test_the_same_key_has_the_same_isolate() -> None:
    isolates = Isolates(isolate)
    assert isolates.get("a") is isolates.get("a")
    assert isolates.get("a") is not isolates.get("b")
    assert await isolates.stop_all(5)


async def test_what_could_not_open_is_opened_anew_for_the_next_who_asks() -> None:
    opened: list[None] = []

    @asynccontextmanager
    async def open_at_last() -> AsyncIterator[Thing]:
        opened.append(None)
        if len(opened) < 3:
            raise OSError("not mounted yet")
        yield Thing()

    isolates: Isolates[Thing] = Isolates(lambda key: Isolate(key, open_at_last))
    for _ in range(2):
        with pytest.raises(OSError, match="not mounted yet"):
            await isolates.get("a").ask(give, 5)
    assert await answers(isolates.get("a"))
    assert len(opened) == 3
    assert await isolates.stop_all(5)


async def test_an_idle_isolate_is_retired_and_a_busy_one_is_not() -> None:
    isolates = Isolates(isolate, idle_seconds=0.02)
    idle, busy = isolates.get("idle"), isolates.get("busy")
    job = busy.submit(sleep_until_cancelled)
    assert await answers(idle)
    isolates.retire_idle()
    assert not idle.retired

    def let_go() -> bool:
        isolates.retire_idle()
        return idle.ended

    await until(let_go)
    assert not busy.retired
    assert job.state == "running"
    assert isolates.get("idle") is not idle
    await isolates.stop_all(0)


async def test_asking_for_another_repository_lets_the_idle_go_now_and_then() -> None:
    isolates = Isolates(isolate, idle_seconds=0.02)
    idle = isolates.get("idle")

    def let_go() -> bool:
        isolates.get("other")
        return idle.ended

    await until(let_go)
    assert await isolates.stop_all(5)


async def test_new_limits_hold_for_isolates_that_have_work(pipe: Pipe) -> None:
    isolates = Isolates(lambda key: isolate(key, running=1, waiting=1))
    one = isolates.get("a")
    running, waiting = one.submit(sleep_until_cancelled), one.submit(sleep_until_cancelled)
    await until(lambda: running.state == "running")
    with pytest.raises(RepositoryBusy):
        one.submit(give)
    isolates.limit(2, 2, 64)
    await until(lambda: waiting.state == "running")
    more = [one.submit(give), one.submit(give)]
    assert [each.state for each in more] == ["waiting", "waiting"]
    isolates.limit(1, 0, 64)
    with pytest.raises(RepositoryBusy):
        one.submit(give)
    assert isolates.get("a") is one
    await isolates.stop_all(0)


async def test_idle_isolates_make_room_and_busy_ones_do_not() -> None:
    isolates = Isolates(isolate, most=2)
    first, second = isolates.get("a"), isolates.get("b")
    await isolates.get("a").ask(give, 5)
    third = isolates.get("c")
    assert (first.retired, second.retired) == (False, True)  # the least recently used goes first
    jobs = [each.submit(sleep_until_cancelled) for each in (first, third)]
    await until(lambda: all(job.state == "running" for job in jobs))
    with pytest.raises(Overloaded):
        isolates.get("b")
    assert isolates.get("a") is first
    await first.stop(0)
    assert await answers(isolates.get("b"))
    assert jobs[1].state == "running"
    await isolates.stop_all(0)


async def test_a_stuck_thread_that_was_replaced_still_counts(pipe: Pipe) -> None:
    isolates = Isolates(isolate, most=1)
    old = isolates.get("a")
    stuck = old.submit(pipe.block)
    await pipe.blocks()
    old.retire()
    with pytest.raises(Overloaded):
        isolates.get("a")
    pipe.release()
    assert await stuck.wait(5)
    await until(lambda: not isolates.states())
    assert await answers(isolates.get("a"))
    assert await isolates.stop_all(5)


async def test_a_stuck_repository_is_told_by_name(pipe: Pipe) -> None:
    isolates = Isolates(lambda key: isolate(key, silent_after=0.02))
    isolates.get("stuck").submit(pipe.block)
    await isolates.get("well").ask(give, 5)
    await until(lambda: isolates.silent() == ("stuck",))
    pipe.release()
    await until(lambda: isolates.silent() == ())
    assert await isolates.stop_all(5)


@pytest.mark.slow
async def test_all_are_stopped_at_the_same_time_whatever_one_does(pipe: Pipe) -> None:
    isolates = Isolates(isolate)
    stuck = isolates.get("stuck").submit(pipe.block)
    jobs = [isolates.get(str(number)).submit(sleep_until_cancelled) for number in range(20)]
    await pipe.blocks()
    await until(lambda: all(job.state == "running" for job in jobs))
    begun = monotonic()
    assert not await isolates.stop_all(0.2, more=0.1)
    assert monotonic() - begun < 2
    assert {job.state for job in jobs} == {"failed"}
    assert stuck.state == "running"
    with pytest.raises(Stopping):
        isolates.get("new")


async def test_a_busy_isolate_is_not_let_go_to_make_room_however_long_ago_it_was_used() -> None:
    isolates = Isolates(isolate, most=2)
    busy, idle = isolates.get("busy"), isolates.get("idle")
    job = busy.submit(sleep_until_cancelled)
    assert await answers(isolates.get("new"))
    assert (busy.retired, idle.retired, job.state) == (False, True, "running")
    await isolates.stop_all(0)


async def test_an_isolate_that_is_handed_out_counts_as_used() -> None:
    isolates = Isolates(isolate)
    before = isolates.get("a").idle_since
    after = isolates.get("a").idle_since
    assert before is not None
    assert after is not None
    assert after > before
    assert await isolates.stop_all(5)
