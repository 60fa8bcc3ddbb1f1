"""Pieces of work for an isolate, and how each of them ends, whatever it does."""

from __future__ import annotations

from traceback import format_exception
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import trio

from adapters.api.answers import NotReached
from adapters.service.isolates.oneshot import Failure, Oneshot, Value
from adapters.service.refusals import Stopping
from domain.errors import Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
State = Literal["waiting", "running", "done", "failed"]


class WorkBroke(Exception):
    """The work raised what would end a whole program, such as KeyboardInterrupt: its cause says what."""


class Task(Generic[T]):
    """Work with its outcome to come; its scope is cancelled in the isolate's own thread only."""

    def __init__(self, work: Callable[[Any], Awaitable[T]]) -> None:
        self.scope = trio.CancelScope()
        self.abandoned = False
        self._work: Callable[[Any], Awaitable[T]] | None = work
        self._end: Oneshot[T] = Oneshot()

    async def run(self, argument: object) -> Value[T] | Failure:
        """Returns what came of the work and never raises, not even trio.Cancelled."""
        if self.abandoned or self._work is None:
            return self.interrupted()
        try:
            with self.scope:
                return Value(await self._work(argument))
        except BaseException as error:
            return self.failure(error)
        return self.interrupted()

    def failure(self, error: BaseException) -> Failure:
        """Returns an exception as the outcome."""
        kept = presentable(error)
        return self.interrupted() if kept is None else Failure(kept, kept.__traceback__)

    def interrupted(self) -> Failure:
        """Returns the outcome of work that was cancelled, or never begun."""
        return Failure(Stopping())

    def finish(self, outcome: Value[T] | Failure) -> None:
        """Hands the outcome to who waits, and lets go of the work and all that it holds."""
        self._work = None
        self._end.settle(outcome)

    @property
    def ended(self) -> bool:
        """Returns whether there is an outcome."""
        return self._end.outcome is not None

    async def wait(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds, in any trio loop; returns whether there is an outcome."""
        return await self._end.wait(timeout)

    def result(self) -> T:
        """Returns the value or raises the exception; RuntimeError before the end."""
        return self._end.get()


class Job(Task[T]):
    """A command: whoever waits for it may go, and it goes on.

    The exception that it ended with has no frames, which would keep a closed repository alive; `trace` has
    them as text where the exception is no Refusal.
    """

    def __init__(self, work: Callable[[Any], Awaitable[T]], lane: str | None) -> None:
        super().__init__(work)
        self.lane = lane
        self.started = False
        self.trace = ""

    @property
    def state(self) -> State:
        """Returns how far it is."""
        match self._end.outcome:
            case None:
                return "running" if self.started else "waiting"
            case Failure():
                return "failed"
            case _:
                return "done"

    @property
    def error(self) -> Exception | None:
        """Returns what it failed with."""
        outcome = self._end.outcome
        return outcome.error if isinstance(outcome, Failure) else None

    def on_end(self, call: Callable[[], None]) -> None:
        """Calls at the end, in whatever thread that is, or now if it has ended; the call must not raise."""
        self._end.then(call)

    def interrupted(self) -> Failure:
        """Returns Stopping for what had not begun; what had may have written something down."""
        if not self.started:
            return Failure(Stopping())
        message = "the service stopped while the command ran; it is gone on with when the service is back"
        return Failure(NotReached("cut_short", message, {}, "unfinished"))

    def finish(self, outcome: Value[T] | Failure) -> None:
        """Hands the outcome to who waits, and lets go of the work and all that it holds."""
        if isinstance(outcome, Failure):
            if not isinstance(outcome.error, Refusal):
                self.trace = "".join(format_exception(outcome.error))
            _drop_frames(outcome.error)
            outcome = Failure(outcome.error)
        super().finish(outcome)


def presentable(error: BaseException) -> Exception | None:
    """Returns an exception that is safe to raise in another loop, or None where all of it is trio.Cancelled.

    What is an Exception stays as it is; any other would end the whole service there.
    """
    kept: BaseException | None = error
    if isinstance(error, BaseExceptionGroup):
        ours, rest = error.split(trio.Cancelled)
        kept = error if ours is None else rest  # a group that is split is another group, even if whole
    elif isinstance(error, trio.Cancelled):
        kept = None
    if kept is None or isinstance(kept, Exception):
        return kept
    broke = WorkBroke(f"{type(kept).__name__}: {kept}")
    broke.__cause__ = kept
    return broke


def _drop_frames(error: BaseException) -> None:
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        each.__traceback__ = None
        waiting += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
