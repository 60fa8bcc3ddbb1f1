"""What is being done for clients, and what has been, by the id that they gave it."""

from __future__ import annotations

from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from adapters.service.isolates.jobs import Job
from adapters.service.refusals import Overloaded, Stopping
from domain.errors import CommandReused

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.service.isolates.jobs import State

MOST = 256  # unfinished commands
DONE, FAILED = 10_000, 1_000  # commands that are remembered
WEIGHT = 1 << 24  # of what is remembered of either


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

    def __init__(
        self,
        *,
        most: int = MOST,
        done: int = DONE,
        failed: int = FAILED,
        weight: int = WEIGHT,
        weigh: Callable[[Command], int] = lambda _: 0,
    ) -> None:
        """Takes `most` unfinished commands; remembers so many that ended well, and so many that failed.

        What is remembered of either weighs at most `weight` together; `weigh` is asked at a command's end.
        """
        self._most, self._weigh = most, weigh
        self._lock = Lock()
        self._unfinished: dict[str, Command] = {}
        self._done, self._failed = _Ended(done, weight), _Ended(failed, weight)
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
            self._failed.forget(id)
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
        weight = self._weigh(command)
        with self._lock:
            if self._unfinished.get(command.id) is command:
                del self._unfinished[command.id]
            well = command.state == "done"
            self._ended_well += well
            self._ended_badly += not well
            if not well and command.id in self._unfinished:
                return  # it runs again already
            (self._done if well else self._failed).remember(command, weight)


class _Ended:
    """Commands that have ended; the oldest are forgotten when they are too many or weigh too much."""

    def __init__(self, most: int, heaviest: int) -> None:
        self._most, self._heaviest = most, heaviest
        self._commands: dict[str, tuple[Command, int]] = {}
        self._weight = 0

    def get(self, id: str) -> Command | None:  # noqa: A002
        """Returns the command of that id, if it is remembered."""
        found = self._commands.get(id)
        return None if found is None else found[0]

    def remember(self, command: Command, weight: int) -> None:
        """Takes a command as the newest, unless it alone weighs too much."""
        self.forget(command.id)
        if weight > self._heaviest:
            return
        self._commands[command.id] = (command, weight)
        self._weight += weight
        while len(self._commands) > self._most or self._weight > self._heaviest:
            self.forget(next(iter(self._commands)))

    def forget(self, id: str) -> None:  # noqa: A002
        """Lets go of a command; of one that is not remembered that is nothing."""
        _, weight = self._commands.pop(id, (None, 0))
        self._weight -= weight
