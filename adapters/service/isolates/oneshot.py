"""What one thread sets once and any number of others wait for, each in its own trio loop."""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec
import trio

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Value(msgspec.Struct, Generic[T], frozen=True):
    """Work that has ended well."""

    value: T


class Failure(msgspec.Struct, frozen=True):
    """Work that has raised; each who asks raises it with the same traceback, which would grow otherwise."""

    error: Exception
    traceback: TracebackType | None = None


class Oneshot(Generic[T]):
    """A value or an exception, set once in any thread, and read and waited for in any other."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._outcome: Value[T] | Failure | None = None
        self._calls: dict[object, Callable[[], None]] = {}

    @property
    def outcome(self) -> Value[T] | Failure | None:
        """Returns what was set, or None before that."""
        return self._outcome

    def get(self) -> T:
        """Returns the value or raises the exception; RuntimeError when neither has been set.

        An exception keeps the frames that it was raised through: who remembers it longer than they should
        live looks at `outcome` instead.
        """
        outcome = self._outcome
        if outcome is None:
            raise RuntimeError("nothing has been set yet")
        if isinstance(outcome, Failure):
            raise outcome.error.with_traceback(outcome.traceback)
        return outcome.value

    def settle(self, outcome: Value[T] | Failure) -> None:
        """Sets the outcome and then makes the calls, oldest first; a second outcome is dropped."""
        with self._lock:
            if self._outcome is not None:
                return
            self._outcome = outcome
            calls, self._calls = self._calls, {}
        for call in calls.values():
            call()

    def then(self, call: Callable[[], None]) -> object:
        """Calls once there is an outcome, in the thread that sets it or now; returns a key for `forget`.

        The call must not raise.
        """
        key = object()
        with self._lock:
            if self._outcome is None:
                self._calls[key] = call
                return key
        call()
        return key

    def forget(self, key: object) -> None:
        """Takes back a call that has not been made."""
        with self._lock:
            self._calls.pop(key, None)

    async def wait(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds; returns whether there is an outcome."""
        if self._outcome is None:
            await self._woken(max(0.0, timeout))
        else:
            await trio.lowlevel.checkpoint()
        return self._outcome is not None

    async def _woken(self, timeout: float) -> None:
        token, woken = trio.lowlevel.current_trio_token(), trio.Event()

        def wake() -> None:
            with suppress(trio.RunFinishedError):  # the loop that waited is gone, and the waiter with it
                token.run_sync_soon(woken.set)

        key = self.then(wake)
        try:
            with trio.move_on_after(timeout):
                await woken.wait()
        finally:
            self.forget(key)  # who asks every second for an hour leaves nothing behind
