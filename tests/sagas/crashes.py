"""Stopping dead at a chosen moment: by an exception that nobody expects, or by the death of the process."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import trio

from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from tests.sagas.worlds import Open

    Act = Callable[[Open], Awaitable[object]]


class Prepared(Protocol):
    """What a world is made for."""

    @property
    def prepare(self) -> Act:
        """Returns what comes before."""

    @property
    def retention(self) -> str:
        """Returns how long what was put away rests."""

    @property
    def program(self) -> str:
        """Returns what git does in its place, if anything."""


DEAD = 77  # how a process ends that has died where it was told to


class Stopped(BaseException):
    """Everything ends here, as far as anybody can tell."""


@contextmanager
def scratch() -> Iterator[Path]:
    """Lends a directory, in memory where that can be."""
    memory = Path("/dev/shm")
    home = Path(tempfile.mkdtemp(prefix="laneyard-", dir=memory if memory.is_dir() else None))
    try:
        yield home
    finally:
        shutil.rmtree(home)


def made(home: Path, scenario: Prepared) -> tuple[World, int]:
    """Returns a world where the scenario can begin, and the position where its log does."""
    world = World(home, retention=scenario.retention)

    async def prepare() -> None:
        async with world.open() as opened:
            await scenario.prepare(opened)

    trio.run(prepare)
    if scenario.program:
        world.fake(scenario.program)
    return world, len(world.tags())


def moments(world: World, act: Act) -> list[tuple[str, str]]:
    """Runs to the end and returns the moments of the act in which a crash could have come."""
    heard: list[tuple[str, str]] = []

    async def main() -> None:
        async with world.open(lambda moment, step: heard.append((moment, step))) as opened:
            await act(opened)

    trio.run(main)
    return heard


def stop(world: World, act: Act, moment: int, *, dies: bool) -> None:
    """Runs until the moment of that number and stops dead; `dies` leaves journal and locks to the kernel."""
    if dies:
        _die(world, act, moment)
        return
    try:
        trio.run(_run_until, world, act, moment, _raise)
    except Stopped:
        return
    except BaseExceptionGroup as several:
        if several.split(Stopped)[1] is not None:
            raise
        return
    raise AssertionError(f"there is no moment {moment}")


async def _run_until(world: World, act: Act, moment: int, end: Callable[[], None]) -> None:
    left = moment

    def notice(when: str, step: str) -> None:
        nonlocal left
        if left == 0:
            end()
        left -= 1

    async with world.open(notice) as opened:
        await act(opened)


def _raise() -> None:
    raise Stopped


def _die(world: World, act: Act, moment: int) -> None:
    ended = in_a_process(lambda: trio.run(_run_until, world, act, moment, lambda: os._exit(DEAD)))
    assert ended == DEAD, f"there is no moment {moment}"


def in_a_process(work: Callable[[], object]) -> int:
    """Runs the work in a process of its own and returns how that ended: 0, its code, or a signal below 0."""
    return ended(begun(work))


def begun(work: Callable[[], object]) -> int:
    """Begins the work in a process of its own and returns its id, for `ended`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads that wait for work are of no concern
        child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    """Waits for a process's end and returns how it ended."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class _Cancel(trio.abc.Instrument):
    """Cancels the scope before the task's step of that number, so that its next checkpoint raises."""

    def __init__(self, scope: trio.CancelScope, step: int) -> None:
        self._task = trio.lowlevel.current_task()
        self._scope = scope
        self._left = step
        self.passed = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is self._task:
            if self._left == 0:
                self._scope.cancel()
            self._left -= 1
            self.passed += 1


async def cancel(world: World, act: Act, checkpoint: int) -> bool:
    """Runs the command until its checkpoint of that number and cancels it; tells whether it came so far."""
    async with world.open() as opened:
        with trio.CancelScope() as scope:
            instrument = _Cancel(scope, checkpoint)
            trio.lowlevel.add_instrument(instrument)
            try:
                await act(opened)
            finally:
                trio.lowlevel.remove_instrument(instrument)
    return scope.cancel_called
