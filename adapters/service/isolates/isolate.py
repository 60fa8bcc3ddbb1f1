"""One repository's own thread and trio loop: what hangs, crawls or breaks there holds up nobody else."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from threading import Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from adapters.service.isolates.jobs import Job, Task, presentable
from adapters.service.isolates.oneshot import Oneshot, Value
from adapters.service.isolates.pulse import Pulse
from adapters.service.isolates.registry import Isolates
from adapters.service.isolates.turns import Queue
from adapters.service.refusals import RepositoryBusy, RepositorySilent, Stopping

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

__all__ = ["Isolate", "Isolates", "Job"]

ASKS = 32  # reads at once
SILENT_AFTER = 5.0  # seconds that one turn of the loop may take
MORE = 2.0  # seconds that cancelled work has to let go

T = TypeVar("T")
Y = TypeVar("Y")


class Isolate(Generic[Y]):
    """Runs work on what it opens, in a daemon thread of its own. Everything here may be called in any thread.

    An isolate that could not open is `retired` and gives that error to everyone who asks it.
    """

    def __init__(
        self,
        name: str,
        open: Callable[[], AbstractAsyncContextManager[Y]],  # noqa: A002
        *,
        running: int = 4,
        waiting: int = 64,
        asks: int = ASKS,
        silent_after: float = SILENT_AFTER,
    ) -> None:
        """Takes `running` commands at once with `waiting` behind them, and `asks` reads at once."""
        self.name = name
        self._open, self._most_asks, self._silent_after = open, asks, silent_after
        self._gate = Lock()  # over all that follows; never held while somebody else's code runs
        self._queue: Queue[Job[Any]] = Queue(running, waiting)
        self._asked: deque[Task[Any]] = deque()
        self._unfinished: set[Task[Any]] = set()
        self._asks = 0
        self._closing = self._cut = self._opened = False
        self._failure: Exception | None = None
        self._used = monotonic()
        self._token: trio.lowlevel.TrioToken | None = None
        self._bell = trio.Event()
        self._life = trio.CancelScope()
        self._ended: Oneshot[None] = Oneshot()
        self._pulse = Pulse()
        Thread(target=self._run, name=f"isolate {name}", daemon=True).start()

    async def ask(self, work: Callable[[Y], Awaitable[T]], timeout: float) -> T:
        """Reads at once and returns the answer, or raises what the work raised, unchanged.

        Raises RepositorySilent after `timeout` seconds, RepositoryBusy when too many ask, and Stopping. The
        work is cancelled when its asker goes.
        """
        task = Task(work)
        with self._gate:
            self._check_open()
            if self._asks >= self._most_asks:
                raise RepositoryBusy(self.name, self._most_asks)
            self._asks += 1
            self._asked.append(task)
            self._unfinished.add(task)
        self._call(self._ring)
        try:
            if not await task.wait(timeout):
                raise RepositorySilent(self.name, timeout)
            return task.result()
        finally:
            if not task.ended:
                task.abandoned = True
                self._call(task.scope.cancel)

    def submit(self, work: Callable[[Y], Awaitable[T]], lane: str | None = None) -> Job[T]:
        """Queues a command behind the others of its lane.

        Raises RepositoryBusy when too many wait, and Stopping.
        """
        job = Job(work, lane)
        with self._gate:
            self._check_open()
            if not self._queue.put(job):
                raise RepositoryBusy(self.name, self._queue.most_waiting)
            self._unfinished.add(job)
        self._call(self._ring)
        return job

    @property
    def silent(self) -> bool:
        """Returns whether the loop has been in one turn for too long: something there blocks the thread."""
        return self._pulse.held_for() > self._silent_after

    @property
    def running(self) -> int:
        """Returns how many commands run."""
        return self._queue.running

    @property
    def waiting(self) -> int:
        """Returns how many commands have not started."""
        return self._queue.waiting

    @property
    def busy(self) -> bool:
        """Returns whether it has work, or a thread that is stuck."""
        return bool(self._unfinished) or self.silent

    @property
    def idle_since(self) -> float | None:
        """Returns the monotonic time of its last use, or None while it has work."""
        with self._gate:
            return None if self._unfinished else self._used

    @property
    def retired(self) -> bool:
        """Returns whether it takes no new work."""
        return self._closing

    @property
    def ended(self) -> bool:
        """Returns whether its thread has done all that it will do."""
        return self._ended.outcome is not None

    @property
    def failure(self) -> Exception | None:
        """Returns what opening, closing or the loop itself has raised."""
        return self._failure

    def touch(self) -> None:
        """Counts as used now."""
        self._used = monotonic()

    def retire(self, unused_for: float | None = None) -> bool:
        """Takes no new work, and ends when it has none; returns whether it does so.

        With `unused_for` it does so only when it has no work and had none for that many seconds.
        """
        with self._gate:
            if unused_for is not None and (self._unfinished or monotonic() - self._used < unused_for):
                return self._closing
            self._closing = True
        self._call(self._ring)
        return True

    def limit(self, running: int, waiting: int) -> None:
        """Takes so many commands at once, and so many behind them, from now on; what was taken stays."""
        with self._gate:
            self._queue.limit(running, waiting)
        self._call(self._ring)

    async def stop(self, grace: float, more: float = MORE) -> bool:
        """Takes no new work, lets what runs end for `grace` seconds, then cancels it and waits `more`.

        Jobs that never started end with Stopping. Returns False if the thread is still stuck after that.
        """
        with self._gate:
            self._closing = True
            dropped = self._queue.clear()
            self._unfinished.difference_update(dropped)
        self._call(self._ring)
        for job in dropped:
            job.finish(job.interrupted())
        if await self._ended.wait(grace):
            return True
        self._cut = True
        self._call(self._cancel_all)
        return await self._ended.wait(more)

    def _check_open(self) -> None:
        if self._failure is not None and not self._opened:
            raise self._failure.with_traceback(None)
        if self._closing:
            raise Stopping()

    def _call(self, function: Callable[[], object]) -> None:
        """Calls in the isolate's loop. Before there is one nothing need be: it looks at everything first."""
        if self._token is not None:
            with suppress(trio.RunFinishedError):  # `_end` gives everyone who is left an answer
                self._token.run_sync_soon(function, idempotent=True)

    def _ring(self) -> None:
        self._bell.set()

    def _cancel_all(self) -> None:
        with self._gate:
            tasks = tuple(self._unfinished)
        for task in tasks:
            task.scope.cancel()
        if not self._opened:
            self._life.cancel()

    def _run(self) -> None:
        try:
            trio.run(self._main, instruments=[self._pulse])
        except BaseException as error:
            self._end(error)
        else:
            self._end(None)

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        with self._life:
            if self._cut:  # it was stopped before the thread had come so far
                self._life.cancel()
            async with self._open() as opened, trio.open_nursery() as nursery:
                self._opened = True
                while self._begin(nursery, opened):
                    await self._bell.wait()

    def _begin(self, nursery: trio.Nursery, opened: Y) -> bool:
        """Starts what may start; returns whether there is or may come more."""
        self._bell = trio.Event()  # before the look: what comes after it rings the new one
        with self._gate:
            asked, self._asked = self._asked, deque()
            jobs = tuple(iter(self._queue.take, None))
            more = bool(self._unfinished) or not self._closing
        for task in asked:
            nursery.start_soon(self._do, task, opened)
        for job in jobs:
            job.started = True
            nursery.start_soon(self._do, job, opened)
        return more

    async def _do(self, task: Task[Any], opened: Y) -> None:
        outcome = await task.run(opened)
        with self._gate:
            self._unfinished.discard(task)
            if isinstance(task, Job):
                self._queue.release(task.lane)
            else:
                self._asks -= 1
            self._used = monotonic()
        task.finish(outcome)
        self._bell.set()

    def _end(self, error: BaseException | None) -> None:
        with self._gate:
            self._closing = True
            left, self._unfinished = self._unfinished, set()
            self._queue.clear()
            self._asked.clear()
            if error is not None:
                self._failure = presentable(error)
        for task in left:
            task.finish(task.interrupted() if error is None else task.failure(error))
        self._pulse.stop()
        self._ended.settle(Value(None))
