"""What is being done for clients, and what has been, by the id that they gave it."""

from __future__ import annotations

from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from adapters.service.isolate_jobs import Job
from adapters.service.refusals import Overloaded, Stopping
from domain.errors import CommandReused

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.service.isolate_jobs import State

MOST = 256  # unfinished commands
REMEMBERED = 10_000


class Command(msgspec.Struct, frozen=True, eq=False):
    """A request that was taken: wait for its job, or come back later.

    `created` says that it is about no lane yet, and its answer may be one.
    """

    id: str
    digest: bytes
    lane: str | None
    job: Job[Any]
    created: bool = False

    @property
    def state(self) -> State:
        """Returns how far it is."""
        return self.job.state

    @property
    def error(self) -> Exception | None:
        """Returns what it failed with."""
        return self.job.error

    async def wait(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds, in any trio loop; returns whether it has ended."""
        return await self.job.wait(timeout)

    def result(self) -> Any:  # noqa: ANN401 (whatever the job makes)
        """Returns what came of it or raises what it failed with; RuntimeError before the end."""
        return self.job.result()


class Counts(msgspec.Struct, frozen=True):
    """How many commands there are, and how many have ended since the start."""

    running: int
    waiting: int
    done: int
    failed: int


class Commands:
    """Runs a command once, however often it is asked for. Safe in any thread."""

    def __init__(self, *, most: int = MOST, remembered: int = REMEMBERED) -> None:
        """Takes `most` unfinished commands; remembers so many that ended well, and as many that failed."""
        self._most, self._remembered = most, remembered
        self._lock = Lock()
        self._unfinished: dict[str, Command] = {}
        self._done: dict[str, Command] = {}
        self._failed: dict[str, Command] = {}
        self._ended_well = self._ended_badly = 0
        self._stopping = False

    def submit(
        self,
        id: str,  # noqa: A002
        digest: bytes,
        lane: str | None,
        start: Callable[[], Job[Any]],
        *,
        created: bool = False,
    ) -> Command:
        """Starts a command, or returns the one of that id that runs or succeeded; one that failed runs again.

        Raises CommandReused for another digest, then Stopping or Overloaded, or what `start` raises, after
        which nothing is remembered. `start` must not wait.
        """
        with self._lock:
            known = self._known(id)
            if known is not None and known.digest != digest:
                raise CommandReused(id)
            if known is not None and known.state != "failed":
                return known
            if self._stopping:
                raise Stopping()
            if len(self._unfinished) >= self._most:
                raise Overloaded("commands", self._most)
            command = Command(id, digest, lane, start(), created)
            self._failed.pop(id, None)
            self._unfinished[id] = command
        command.job.on_end(lambda: self._ended(command))
        return command

    def find(self, id: str) -> Command | None:  # noqa: A002
        """Returns the command of that id, running or ended, or None when it is not or no longer known."""
        with self._lock:
            return self._known(id)

    def counts(self) -> Counts:
        """Returns what metrics tell."""
        with self._lock:
            states = [command.state for command in self._unfinished.values()]
            return Counts(
                states.count("running"), states.count("waiting"), self._ended_well, self._ended_badly
            )

    @property
    def unfinished(self) -> int:
        """Returns how many have not ended."""
        with self._lock:
            return sum(not command.job.ended for command in self._unfinished.values())

    @property
    def stopping(self) -> bool:
        """Returns whether new commands are refused; known ones are still found and joined."""
        return self._stopping

    def stop(self) -> None:
        """Refuses new commands from now on."""
        with self._lock:
            self._stopping = True

    async def drain(self, timeout: float) -> bool:
        """Waits up to `timeout` seconds for all commands to end; returns whether they have."""
        deadline = monotonic() + timeout
        while (command := self._first_unfinished()) is not None:
            if not await command.job.wait(deadline - monotonic()):
                return False
        return True

    def _known(self, id: str) -> Command | None:  # noqa: A002
        return self._unfinished.get(id) or self._done.get(id) or self._failed.get(id)

    def _first_unfinished(self) -> Command | None:
        with self._lock:
            return next((each for each in self._unfinished.values() if not each.job.ended), None)

    def _ended(self, command: Command) -> None:
        with self._lock:
            if self._unfinished.get(command.id) is command:
                del self._unfinished[command.id]
            well = command.state == "done"
            self._ended_well += well
            self._ended_badly += not well
            if not well and command.id in self._unfinished:
                return  # it runs again already
            kept = self._done if well else self._failed
            kept[command.id] = command
            if len(kept) > self._remembered:
                del kept[next(iter(kept))]
