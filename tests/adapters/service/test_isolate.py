"""What hangs, crawls or breaks in one repository's thread holds up nobody else."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import defaultdict
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from adapters.api.answers import NotReached
from adapters.service.isolates.isolate import Isolate
from adapters.service.isolates.jobs import WorkBroke
from adapters.service.isolates.oneshot import Oneshot, Value
from adapters.service.refusals import RepositoryBusy, RepositorySilent, Stopping
from domain.errors import WrongState
from tests.adapters.service.front import until
from tests.adapters.service.isolate_scenes import (
    Pipe,
    Thing,
    Things,
    answers,
    give,
    isolate,
    sleep_until_cancelled,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from adapters.service.isolates.isolate import Job


async def test_work_runs_in_the_isolates_own_thread_on_what_it_opened() -> None:
    things = Things()
    one = isolate(things=things)
    thing = await one.ask(give, 5)
    assert things.opened == [thing]
    assert thing.thread != threading.get_ident()
    assert await one.stop(5)
    assert thing.closed_in == thing.thread


async def test_what_the_work_raises_comes_out_of_ask_unchanged() -> None:
    refusal = WrongState("removed", "reaped")

    async def refuse(thing: Thing) -> None:
        raise refusal

    one = isolate()
    with pytest.raises(WrongState) as caught:
        await one.ask(refuse, 5)
    assert caught.value is refusal
    assert "refuse" in [entry.name for entry in caught.traceback]
    assert await answers(one)


@pytest.mark.parametrize(
    "bug",
    [
        ValueError("a bug"),
        StopIteration(),
        KeyboardInterrupt(),
        SystemExit(3),
        GeneratorExit(),
        ExceptionGroup("some", [ValueError("a"), KeyError("b")]),
        BaseExceptionGroup("worse", [KeyboardInterrupt(), ValueError("a")]),
    ],
    ids=lambda bug: type(bug).__name__,
)
async def test_whatever_a_job_raises_is_its_own_result(bug: BaseException) -> None:
    async def break_down(thing: Thing) -> None:
        raise bug

    one = isolate()
    neighbour = one.submit(sleep_until_cancelled)
    job = one.submit(break_down)
    assert await job.wait(5)
    assert job.state == "failed"
    with pytest.raises(Exception) as caught:  # noqa: PT011 (which one is asserted below)
        job.result()
    assert bug in (caught.value, caught.value.__cause__, job.error)
    assert isinstance(bug, Exception) or isinstance(caught.value, WorkBroke)
    assert "break_down" in job.trace
    assert neighbour.state == "running"
    assert await answers(one)
    await one.stop(0)


async def test_a_cancellation_that_leaks_out_of_a_job_cancels_nobody_else() -> None:
    async def leak(thing: Thing) -> None:
        kept: list[trio.Cancelled] = []
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled as cancelled:
                kept.append(cancelled)
                raise
        raise kept[0]

    one = isolate()
    job = one.submit(leak)
    assert await job.wait(5)
    with pytest.raises(NotReached):
        job.result()
    assert await answers(one)


async def test_an_asker_of_a_blocked_repository_waits_no_longer_than_it_said(pipe: Pipe) -> None:
    hung, well = isolate("hung"), isolate("well")
    job = hung.submit(pipe.block)
    await pipe.blocks()
    begun = monotonic()
    with pytest.raises(RepositorySilent, match=r"hung has not answered for 0\.1 seconds"):
        await hung.ask(give, 0.1)
    assert 0.1 <= monotonic() - begun < 1
    assert await answers(well)
    assert job.state == "running"
    pipe.release()
    assert await job.wait(5)
    assert job.result() == "released"
    assert await answers(hung)


async def test_work_whose_asker_went_before_it_began_is_never_done(pipe: Pipe) -> None:
    done = []

    async def note(thing: Thing) -> None:
        done.append(thing)

    one = isolate()
    job = one.submit(pipe.block)
    await pipe.blocks()
    with pytest.raises(RepositorySilent):
        await one.ask(note, 0)
    pipe.release()
    assert await job.wait(5)
    await one.ask(give, 5)
    assert done == []


@pytest.mark.parametrize("goes", ["cancelled", "out of time"])
async def test_work_whose_asker_goes_is_cancelled(goes: str) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def work(thing: Thing) -> None:
        begun.set()
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            cancelled.set()
            raise

    one = isolate()
    if goes == "cancelled":
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.ask, work, 60)
            await until(begun.is_set)
            nursery.cancel_scope.cancel()
    else:
        with pytest.raises(RepositorySilent):
            await one.ask(work, 0.05)
    await until(cancelled.is_set)
    await until(lambda: one.idle_since is not None)


async def test_more_reads_than_an_isolate_takes_at_once_are_refused_until_one_ends(pipe: Pipe) -> None:
    one = isolate(asks=2)
    job = one.submit(pipe.block)
    await pipe.blocks()
    for _ in range(2):
        with pytest.raises(RepositorySilent):
            await one.ask(give, 0)
    with pytest.raises(RepositoryBusy) as caught:
        await one.ask(give, 5)
    assert caught.value.retry_after > 0
    pipe.release()
    assert await job.wait(5)
    await until(lambda: not one.busy)
    assert await answers(one)


async def test_a_loop_that_something_blocks_is_silent_and_one_that_waits_is_not(pipe: Pipe) -> None:
    one = isolate(silent_after=0.05)
    waits = one.submit(sleep_until_cancelled)
    assert await answers(one)
    await trio.sleep(0.1)  # longer than a silent loop may be: it is the wait itself that is tested
    assert not one.silent
    one.submit(pipe.block)
    await until(lambda: one.silent)
    pipe.release()
    await until(lambda: not one.silent)
    assert waits.state == "running"
    await one.stop(0)


async def test_a_thousand_jobs_keep_the_order_of_their_fifty_lanes() -> None:
    order: dict[str, list[int]] = defaultdict(list)
    at_once: dict[str, int] = defaultdict(int)
    running: list[int] = [0, 0]

    def work(lane: str, number: int) -> Job[int]:
        async def turn(thing: Thing) -> int:
            running[0] += 1
            at_once[lane] += 1
            running[1] = max(running)
            assert at_once[lane] == 1
            for _ in range(number % 3):
                await trio.lowlevel.checkpoint()
            order[lane].append(number)
            at_once[lane] -= 1
            running[0] -= 1
            return number

        return one.submit(turn, lane)

    one = isolate(waiting=1000)
    jobs = [work(str(number % 50), number) for number in range(1000)]
    for job in jobs:
        assert await job.wait(20)
    assert [job.result() for job in jobs] == list(range(1000))
    assert order == {str(lane): list(range(lane, 1000, 50)) for lane in range(50)}
    assert running == [0, 4]
    assert (one.running, one.waiting, one.busy) == (0, 0, False)


async def test_a_lane_that_waits_holds_up_no_other(pipe: Pipe) -> None:
    one = isolate()
    first = one.submit(sleep_until_cancelled, "a")
    second = one.submit(give, "a")
    other = one.submit(give, "b")
    free = one.submit(give)
    assert await other.wait(5)
    assert await free.wait(5)
    assert (first.state, second.state) == ("running", "waiting")
    with pytest.raises(RuntimeError):
        second.result()
    assert not await second.wait(0)
    await one.stop(0)


async def test_more_jobs_than_may_wait_are_refused(pipe: Pipe) -> None:
    one = isolate(running=2, waiting=3)
    blocked = one.submit(pipe.block)
    await pipe.blocks()
    jobs = [one.submit(give) for _ in range(4)]
    with pytest.raises(RepositoryBusy, match="3 requests wait"):
        one.submit(give)
    pipe.release()
    assert await blocked.wait(5)
    for job in [*jobs, one.submit(give)]:
        assert await job.wait(5)


async def test_a_full_lane_is_refused_while_places_are_free() -> None:
    one = isolate(waiting=1)
    one.submit(sleep_until_cancelled, "a")
    one.submit(give, "a")
    with pytest.raises(RepositoryBusy):
        one.submit(give, "a")
    job = one.submit(give, "b")
    assert await job.wait(5)
    await one.stop(0)


async def test_a_waiter_that_goes_away_cancels_nothing(pipe: Pipe) -> None:
    one = isolate()
    job = one.submit(pipe.block)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(job.wait, 60)
        await pipe.blocks()
        nursery.cancel_scope.cancel()
    assert not await job.wait(0.01)
    pipe.release()
    assert await job.wait(5)
    assert job.result() == "released"


async def test_a_job_is_waited_for_and_read_in_many_loops_at_once(pipe: Pipe) -> None:
    one = isolate()
    job = one.submit(pipe.block)
    await pipe.blocks()

    async def wait() -> str:
        assert await job.wait(10)
        return job.result()

    async def give_up() -> None:
        assert not await job.wait(0.01)  # this loop is gone when the job ends

    seen: list[str] = []
    threads = [threading.Thread(target=lambda: seen.append(trio.run(wait))) for _ in range(8)]
    for thread in threads:
        thread.start()
    await trio.to_thread.run_sync(trio.run, give_up)
    pipe.release()
    seen.append(await wait())
    for thread in threads:
        await trio.to_thread.run_sync(thread.join)
    assert seen == ["released"] * 9


async def test_an_exception_that_is_read_often_does_not_grow() -> None:
    async def fail(thing: Thing) -> None:
        raise ValueError("again")

    job = isolate().submit(fail)
    assert await job.wait(5)
    depths = set()
    for _ in range(5):
        with pytest.raises(ValueError, match="again") as caught:
            job.result()
        depths.add(len(caught.traceback))
    assert len(depths) == 1


async def test_a_failed_job_does_not_keep_what_was_opened_alive() -> None:
    things = Things()

    async def fail(thing: Thing) -> None:
        try:
            raise KeyError(thing)
        except KeyError:
            raise ValueError("again") from None

    one = isolate(things=things)
    job = one.submit(fail)
    assert await job.wait(5)
    assert await one.stop(5)
    del one
    seen = weakref.ref(things.opened.pop())
    job_error = job.error
    assert job_error is not None
    assert job_error.__context__ is not None
    job_error.__context__.args = ()  # the error's own argument is the test's doing
    gc.collect()
    assert seen() is None


@pytest.mark.slow
@pytest.mark.parametrize("round_", range(3))
async def test_no_wake_up_is_lost_over_thousands_of_quick_jobs(round_: int) -> None:
    one = isolate(waiting=5000)
    with trio.fail_after(30):
        for number in range(500):
            job = one.submit(give, str(number % 3))
            assert await job.wait(5)
            await one.ask(give, 5)
        jobs = [one.submit(give, str(number % 7) if number % 2 else None) for number in range(2000)]
        async with trio.open_nursery() as nursery:
            for job in jobs:
                nursery.start_soon(job.wait, 20)
    assert {job.state for job in jobs} == {"done"}
    assert await one.stop(5)


async def test_a_stop_lets_what_runs_end_and_starts_nothing_more() -> None:
    go_on: list[tuple[trio.lowlevel.TrioToken, trio.Event]] = []

    async def work(thing: Thing) -> str:
        event = trio.Event()
        go_on.append((trio.lowlevel.current_trio_token(), event))
        await event.wait()
        return "whole"

    one = isolate(running=1)
    running, waiting = one.submit(work), one.submit(give)
    await until(lambda: bool(go_on))
    stopped: list[bool] = []

    async def stop() -> None:
        stopped.append(await one.stop(10))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(stop)
        assert await waiting.wait(5)
        with pytest.raises(Stopping):
            waiting.result()
        with pytest.raises(Stopping):
            one.submit(give)
        with pytest.raises(Stopping):
            await one.ask(give, 5)
        assert running.state == "running"
        token, event = go_on[0]
        token.run_sync_soon(event.set)
    assert stopped == [True]
    assert running.result() == "whole"
    assert await one.stop(0)


async def test_what_still_runs_after_the_grace_is_cancelled_and_says_that_it_is_unfinished() -> None:
    seen: list[str] = []

    async def work(thing: Thing) -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            seen.append("cancelled")
            raise

    async def ask() -> None:
        with pytest.raises(Stopping):
            await one.ask(sleep_until_cancelled, 60)

    one = isolate()
    job = one.submit(work)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await until(lambda: job.state == "running")
        assert await one.stop(0.05)
    assert seen == ["cancelled"]
    with pytest.raises(NotReached) as caught:
        job.result()
    assert (caught.value.code, caught.value.outcome) == ("cut_short", "unfinished")


async def test_work_that_is_shielded_while_it_writes_is_let_finish_within_the_bound() -> None:
    async def write(thing: Thing) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(0.1)
        return "written"

    one = isolate()
    job = one.submit(write)
    await until(lambda: job.state == "running")
    assert await one.stop(0)
    assert job.result() == "written"


@pytest.mark.slow
async def test_a_thread_that_is_stuck_does_not_hold_up_a_stop(pipe: Pipe) -> None:
    one = isolate(running=1)
    stuck, waiting = one.submit(pipe.block), one.submit(give)
    await pipe.blocks()
    begun = monotonic()
    assert not await one.stop(0.2, more=0.1)
    assert monotonic() - begun < 2
    assert (stuck.state, waiting.state, one.ended) == ("running", "failed", False)
    pipe.release()
    assert await stuck.wait(5)
    await until(lambda: one.ended)


async def test_an_error_on_opening_is_given_to_everyone_who_asked() -> None:
    error = OSError("no such mount")
    go = threading.Event()

    @asynccontextmanager
    async def open_badly() -> AsyncIterator[Thing]:
        go.wait()
        raise error
        yield Thing()

    async def ask() -> None:
        with pytest.raises(OSError, match="no such mount") as caught:
            await one.ask(give, 5)
        assert caught.value is error

    one = Isolate("a", open_badly)
    job = one.submit(give)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        go.set()
    assert await job.wait(5)
    assert job.error is error
    assert one.retired
    assert one.failure is error
    await ask()


@pytest.mark.parametrize("how", ["waits", "blocks"])
async def test_a_stop_while_it_opens_ends_everyone_who_waits(how: str, pipe: Pipe) -> None:
    @asynccontextmanager
    async def open_slowly() -> AsyncIterator[Thing]:
        if how == "blocks":
            await pipe.block(None)
        await trio.sleep_forever()
        yield Thing()

    async def ask() -> None:
        with pytest.raises(Stopping):
            await one.ask(give, 5)

    one = Isolate("a", open_slowly)
    job = one.submit(give)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert await one.stop(0, more=5 if how == "waits" else 0.1) == (how == "waits")
        pipe.release()
    with pytest.raises(Stopping):
        job.result()
    await until(lambda: one.ended)


async def test_a_crash_of_what_was_opened_ends_its_work_with_an_answer_and_retires_it() -> None:
    crash: list[trio.Event] = []

    @asynccontextmanager
    async def open_fragile() -> AsyncIterator[Thing]:
        async def watch() -> None:
            await crash[0].wait()
            raise ValueError("the watcher broke")

        crash.append(trio.Event())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            yield Thing()

    one = Isolate("a", open_fragile)
    job = one.submit(sleep_until_cancelled)
    await until(lambda: job.state == "running")

    async def set_off(thing: Thing) -> None:
        crash[0].set()
        await trio.sleep_forever()

    with pytest.raises(Stopping):
        await one.ask(set_off, 5)
    assert await job.wait(5)
    assert isinstance(job.error, NotReached)
    await until(lambda: one.ended)
    assert isinstance(one.failure, ExceptionGroup)
    with pytest.raises(Stopping):
        one.submit(give)


async def test_an_ended_job_lets_go_of_its_work() -> None:
    things = Things()
    held = Thing()

    async def compare(other: Thing, thing: Thing) -> bool:
        return other is thing

    one = isolate(things=things)
    job = one.submit(partial(compare, held))
    assert await job.wait(5)
    assert await one.stop(5)
    seen = weakref.ref(held)
    del held
    gc.collect()
    assert seen() is None
    assert job.result() is False


async def test_a_waiter_whose_loop_ends_while_it_is_woken_does_no_harm() -> None:
    oneshot: Oneshot[str] = Oneshot()
    waiting, settling = threading.Event(), threading.Event()
    called: list[None] = []

    async def wait() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(oneshot.wait, 60)
            await trio.testing.wait_all_tasks_blocked()
            waiting.set()
            await trio.to_thread.run_sync(settling.wait)
            nursery.cancel_scope.cancel()

    loop = threading.Thread(target=trio.run, args=(wait,))

    def outlive() -> None:
        settling.set()
        loop.join()

    oneshot.then(outlive)
    loop.start()
    await until(waiting.is_set)
    oneshot.then(lambda: called.append(None))
    await trio.to_thread.run_sync(oneshot.settle, Value("late"))
    assert called == [None]
    assert oneshot.get() == "late"


async def test_a_waiter_that_gave_up_leaves_nothing_behind() -> None:
    oneshot: Oneshot[str] = Oneshot()
    for _ in range(3):
        assert not await oneshot.wait(0)
    assert gc.get_referents(oneshot._calls) == []
