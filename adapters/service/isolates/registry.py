"""The isolates of a service, by repository."""

from __future__ import annotations

from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec
import trio

from adapters.service.refusals import Overloaded, Stopping

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.service.isolates.isolate import Isolate

Y = TypeVar("Y")


class IsolateState(msgspec.Struct, frozen=True):
    """What metrics and health tell of one repository."""

    key: str
    running: int
    waiting: int
    silent: bool


class Isolates(Generic[Y]):
    """Makes an isolate when one is needed, and retires it when it has been idle. Safe in any thread."""

    def __init__(
        self, make: Callable[[str], Isolate[Y]], *, idle_seconds: float = 300.0, most: int = 64
    ) -> None:
        """`most` isolates may have work at once, or a thread that is stuck."""
        self._make, self._idle_seconds, self._most = make, idle_seconds, most
        self._lock = Lock()
        self._current: dict[str, Isolate[Y]] = {}  # the least recently used first
        self._leaving: list[tuple[str, Isolate[Y]]] = []
        self._look_at = monotonic() + idle_seconds
        self._stopping = False

    def get(self, key: str) -> Isolate[Y]:
        """Returns the repository's isolate; ask it before anything else is awaited, lest it is retired.

        Raises Overloaded and Stopping.
        """
        with self._lock:
            if self._stopping:
                raise Stopping()
            if monotonic() >= self._look_at:
                self._retire_idle()
            isolate = self._current.pop(key, None)
            if isolate is None or isolate.retired:
                self._leave(key, isolate)
                self._make_room()
                isolate = self._make(key)
            self._current[key] = isolate
            isolate.touch()
            return isolate

    def retire_idle(self) -> None:
        """Retires what has been idle for `idle_seconds`; `get` does so too, now and then."""
        with self._lock:
            self._retire_idle()

    def limit(self, running: int, waiting: int, most: int) -> None:
        """Gives every isolate, also those with work, new limits; `most` is as at the making."""
        with self._lock:
            self._most = most
            for _, isolate in self._all():
                isolate.limit(running, waiting)

    async def stop_all(self, grace: float, more: float = 2.0) -> bool:
        """Stops all of them at once, as `Isolate.stop` does; returns whether every thread has ended."""
        with self._lock:
            self._stopping = True
            isolates = [isolate for _, isolate in self._all()]
        ended: list[bool] = []

        async def stop(isolate: Isolate[Y]) -> None:
            ended.append(await isolate.stop(grace, more))

        async with trio.open_nursery() as nursery:
            for isolate in isolates:
                nursery.start_soon(stop, isolate)
        return all(ended)

    def states(self) -> tuple[IsolateState, ...]:
        """Returns one state a repository, by key; those that are leaving count as long as they have work."""
        with self._lock:
            isolates = self._all()
        states: dict[str, IsolateState] = {}
        for key, isolate in isolates:
            before = states.get(key, IsolateState(key, 0, 0, False))
            states[key] = IsolateState(
                key,
                before.running + isolate.running,
                before.waiting + isolate.waiting,
                before.silent or isolate.silent,
            )
        return tuple(states[key] for key in sorted(states))

    def silent(self) -> tuple[str, ...]:
        """Returns the repositories whose thread is stuck, by key."""
        return tuple(state.key for state in self.states() if state.silent)

    def _all(self) -> list[tuple[str, Isolate[Y]]]:
        self._leaving = [each for each in self._leaving if not each[1].ended]
        return [*self._current.items(), *self._leaving]

    def _leave(self, key: str, isolate: Isolate[Y] | None) -> None:
        if isolate is not None and not isolate.ended:
            self._leaving.append((key, isolate))

    def _retire_idle(self) -> None:
        self._look_at = monotonic() + self._idle_seconds / 10
        for key, isolate in list(self._current.items()):
            if isolate.retire(unused_for=self._idle_seconds):
                self._leave(key, self._current.pop(key))

    def _make_room(self) -> None:
        """Lets idle isolates go, the least recently used first, until there is a place for one more."""
        if sum(isolate.busy for _, isolate in self._all()) >= self._most:
            raise Overloaded("repositories", self._most)
        for key, isolate in list(self._current.items()):
            if len(self._current) < self._most:
                return
            if isolate.retire(unused_for=0):
                self._leave(key, self._current.pop(key))
