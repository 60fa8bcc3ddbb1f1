"""A command runs once, however often it is asked for, and is found by its id."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
import trio

from adapters.service.commands import Commands, Counts
from adapters.service.refusals import Overloaded, RepositoryBusy, Stopping
from domain.errors import CommandReused, WrongState
from tests.adapters.service.front import until
from tests.adapters.service.isolate_scenes import Pipe, Thing, isolate

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.service.isolates.isolate import Isolate, Job


@pytest.fixture
def one() -> Isolate[Thing]:
    return isolate(waiting=1000)


class Runs:
    """Counts how often it was run."""

    def __init__(self, one: Isolate[Thing], *failures: Exception) -> None:
        self.one, self.failures, self.count = one, list(failures), 0

    def start(self) -> Job[int]:
        return self.one.submit(self.run)

    async def run(self, thing: Thing) -> int:
        self.count += 1
        if self.failures:
            raise self.failures.pop(0)
        return self.count


def starting(one: Isolate[Thing], pipe: Pipe) -> Callable[[], Job[str]]:
    return lambda: one.submit(pipe.block)


async def test_the_same_request_joins_the_one_that_runs_and_the_one_that_has_succeeded(
    one: Isolate[Thing], pipe: Pipe
) -> None:
    commands = Commands()
    first = commands.submit("id", b"d", None, starting(one, pipe))
    await pipe.blocks()
    assert commands.submit("id", b"d", None, starting(one, pipe)) is first
    assert commands.find("id") is first
    pipe.release()
    assert await first.wait(5)
    again = commands.submit("id", b"d", None, starting(one, pipe))
    assert again is first
    assert again.result() == "released"
    assert commands.find("other") is None


async def test_another_request_under_the_same_id_is_a_conflict(one: Isolate[Thing]) -> None:
    commands, runs = Commands(), Runs(one, WrongState("removed", "reaped"))
    command = commands.submit("id", b"d", None, runs.start)
    with pytest.raises(CommandReused):
        commands.submit("id", b"other", None, runs.start)
    assert await command.wait(5)
    with pytest.raises(CommandReused):
        commands.submit("id", b"other", None, runs.start)
    assert runs.count == 1


async def test_what_failed_is_found_and_runs_again_when_it_is_asked_again(one: Isolate[Thing]) -> None:
    refusal = WrongState("removed", "reaped")
    commands, runs = Commands(), Runs(one, refusal)
    first = commands.submit("id", b"d", None, runs.start)
    assert await first.wait(5)
    found = commands.find("id")
    assert found is first
    assert (found.state, found.error) == ("failed", refusal)
    second = commands.submit("id", b"d", None, runs.start)
    assert second is not first
    assert await second.wait(5)
    assert second.result() == 2
    assert commands.find("id") is second
    assert commands.counts() == Counts(running=0, waiting=0, done=1, failed=1)


async def test_a_request_that_could_not_be_queued_is_not_remembered(pipe: Pipe) -> None:
    commands, full = Commands(), isolate(running=1, waiting=0)
    commands.submit("first", b"d", None, starting(full, pipe))
    with pytest.raises(RepositoryBusy):
        commands.submit("id", b"d", None, Runs(full).start)
    assert commands.find("id") is None
    assert commands.unfinished == 1
    pipe.release()
    assert await commands.drain(5)


async def test_more_commands_than_the_service_takes_are_refused_and_known_ones_are_not(
    pipe: Pipe,
) -> None:
    commands, one = Commands(most=2), isolate(running=1)
    first = commands.submit("1", b"d", None, starting(one, pipe))
    commands.submit("2", b"d", None, Runs(one).start)
    await pipe.blocks()
    with pytest.raises(Overloaded) as caught:
        commands.submit("3", b"d", None, Runs(one).start)
    assert (caught.value.status, caught.value.retry_after > 0) == (503, True)
    assert commands.submit("1", b"d", None, starting(one, pipe)) is first
    assert commands.counts() == Counts(running=1, waiting=1, done=0, failed=0)
    pipe.release()
    assert await commands.drain(5)
    assert await commands.submit("3", b"d", None, Runs(one).start).wait(5)


async def test_what_ended_is_forgotten_oldest_first_and_failures_push_out_no_success(
    one: Isolate[Thing],
) -> None:
    commands = Commands(done=3, failed=2)
    for number in range(5):
        assert await commands.submit(f"good {number}", b"d", None, Runs(one).start).wait(5)
    for number in range(5):
        failing = Runs(one, ValueError("no"))
        assert await commands.submit(f"bad {number}", b"d", None, failing.start).wait(5)
    kept = [f"{kind} {number}" for kind in ("good", "bad") for number in range(5)]
    assert [each for each in kept if commands.find(each)] == [
        *("good 2", "good 3", "good 4"),
        *("bad 3", "bad 4"),
    ]


async def test_what_is_remembered_weighs_no_more_than_it_may(one: Isolate[Thing]) -> None:
    commands = Commands(weight=10, weigh=lambda command: int(command.id.split()[1]))
    for name in ("a 4", "b 4", "c 3", "d 11", "e 7"):
        assert await commands.submit(name, b"d", None, Runs(one).start).wait(5)
    kept = [each for each in ("a 4", "b 4", "c 3", "d 11", "e 7") if commands.find(each)]
    assert kept == ["c 3", "e 7"]


async def test_while_it_stops_nothing_new_begins_and_what_is_known_is_joined(
    one: Isolate[Thing], pipe: Pipe
) -> None:
    commands = Commands()
    known = commands.submit("known", b"d", None, starting(one, pipe))
    commands.stop()
    assert commands.stopping
    with pytest.raises(Stopping):
        commands.submit("new", b"d", None, Runs(one).start)
    assert commands.submit("known", b"d", None, starting(one, pipe)) is known
    assert not await commands.drain(0.01)
    pipe.release()
    assert await commands.drain(5)
    assert known.state == "done"


async def test_many_threads_that_send_the_same_request_run_it_once(one: Isolate[Thing]) -> None:
    commands, runs = Commands(), Runs(one)
    barrier = threading.Barrier(8)

    def send() -> None:
        barrier.wait()
        for number in range(50):
            commands.submit(str(number), b"d", None, runs.start)

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(trio.to_thread.run_sync, send)
    assert await commands.drain(10)
    assert runs.count == 50
    await until(lambda: commands.counts() == Counts(running=0, waiting=0, done=50, failed=0))


async def test_a_failure_that_was_made_good_is_not_remembered_beside_the_success(one: Isolate[Thing]) -> None:
    commands, runs = Commands(done=1, failed=1), Runs(one, ValueError("once"))
    for _ in range(2):
        assert await commands.submit("id", b"d", None, runs.start).wait(5)
    assert await commands.submit("next", b"d", None, runs.start).wait(5)
    assert commands.find("id") is None
