"""The imperative shell: load, decide, append, then while something is owed: perform, learn, append.

It is the only loop there is. Recovery is the same loop: `recover` drives every lane whose journal is open.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

import msgspec
import trio

from adapters.store.journal import Entry
from domain import lane as lanes
from domain import retries
from domain.commands import RestoreLane
from domain.envelope import Actor, lane_of, stream_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from adapters.store.journal import Committed, Journal
    from domain import commands
    from domain.effects import Effect, Outcome
    from domain.events import Fact
    from domain.states import Lane

AT_ONCE = 8  # lanes that a recovery drives at the same time


class Performer(Protocol):
    """Looks before it acts, so that performing twice is performing once."""

    async def perform(self, effect: Effect) -> Outcome:
        """Does what the effect asks for and returns what a second look has seen."""

    async def settle(self, effect: Effect) -> None:
        """Makes durable what a process that has died may have done of it. Raises OSError."""


class NothingLearnt(Exception):
    """An outcome led to no fact: a chapter has forgotten a case. It stops this lane, and nothing else."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and under which id, the cause of all that follows; with `digest` it is idempotent."""

    id: str
    actor: Actor
    digest: bytes | None = None
    expected: int | None = None  # the version that the lane must have for the first command

    def aside(self) -> Request:
        """Returns the same request for a command on the way to the one that answers it."""
        return msgspec.structs.replace(self, digest=None)

    def beside(self) -> Request:
        """Returns the same request for another stream than that of the command that answers it."""
        return msgspec.structs.replace(self, digest=None, expected=None)

    def after(self, committed: Committed) -> Request:
        """Returns the same request for the command that follows: what is expected is how that one ended."""
        return self.at(committed.version)

    def at(self, version: int) -> Request:
        """Returns the same request with another version expected, if one was expected at all."""
        return self if self.expected is None else msgspec.structs.replace(self, expected=version)

    def because(self, cause: str) -> Request:
        """Returns what this process does about somebody's earlier request: his cause, our doing."""
        return Request(id=cause, actor=self.actor)


class Engine:
    """Runs lanes."""

    def __init__(
        self,
        journal: Journal,
        performer: Performer,
        notice: Callable[[str, str], None] = lambda moment, step: None,
    ) -> None:
        """`notice` hears of every moment between two steps: what a crash test dies in, and progress shows."""
        self._journal = journal
        self._performer = performer
        self._notice = notice
        self._turns: dict[str, trio.Lock] = {}

    @asynccontextmanager
    async def alone(self, stream: str) -> AsyncIterator[None]:
        """Lets nobody else decide for a lane or drive it until the block ends; who waits comes in order."""
        turn = self._turns.setdefault(stream, trio.Lock())
        try:
            async with turn:
                yield
        finally:
            if not turn.statistics().tasks_waiting and not turn.locked():
                self._turns.pop(stream, None)

    async def handle(self, lane_id: str, command: commands.AnyCommand, request: Request) -> Committed:
        """Decides, writes down, then does; returns what the decision led to with the lane as it is now.

        What was decided before is not done again here: whoever decided it does it, or the next recovery.
        Raises a Refusal, after which nothing has changed, or StoreError.
        """
        stream = stream_of(lane_id)
        async with self.alone(stream):
            return await self._handle(stream, command, request)

    async def _handle(self, stream: str, command: commands.AnyCommand, request: Request) -> Committed:
        entry = Entry(
            stream=stream,
            decide=lambda lane: lanes.decide(lane, command),
            actor=request.actor,
            cause=request.id,
            command_id=request.id if request.digest is not None else None,
            digest=request.digest or b"",
            claiming=True,
            vital=isinstance(command, RestoreLane),
            expected=request.expected,
        )
        committed = await self._append(entry, type(command).__name__)
        if committed.replayed:
            return committed
        async for step in self._steps(committed.stream, committed.lane, request):
            committed = msgspec.structs.replace(
                committed,
                lane=step.lane,
                version=step.version,
                last=step.last,
                facts=(*committed.facts, *step.facts),
            )
        return committed

    async def note(self, stream: str, facts: tuple[Fact, ...], request: Request) -> Committed:
        """Appends facts that are no lane's. Raises CommandReused, VersionMismatch, StoreError."""
        entry = Entry(
            stream=stream,
            decide=lambda lane: facts,
            actor=request.actor,
            cause=request.id,
            command_id=request.id if request.digest is not None else None,
            digest=request.digest or b"",
            claiming=True,
            expected=request.expected,
        )
        return await self._append(entry, "note")

    async def drive(self, stream: str, lane: Lane, request: Request) -> Lane:
        """Runs a lane until it owes the world nothing, for whoever is alone with it. Again is harmless.

        Raises OSError where what was done before cannot be made durable.
        """
        if (effect := lanes.pending(lane)) is not None:
            await self._performer.settle(effect)
        async for step in self._steps(stream, lane, request):
            lane = step.lane
        return lane

    async def _steps(self, stream: str, lane: Lane, request: Request) -> AsyncIterator[Committed]:
        """Performs and learns until nothing is owed, with a pause after what failed and is tried again.

        Nothing is held in a pause but the lane's turn; whoever stops in one leaves the journal open.
        """
        while (effect := lanes.pending(lane)) is not None:
            step = type(effect).__name__
            self._notice("before-effect", step)
            outcome = await self._performer.perform(effect)
            self._notice("after-effect", step)
            entry = Entry(
                stream=stream,
                decide=_learning(outcome),
                actor=request.actor,
                cause=request.id,
                vital=True,
            )
            committed = await self._append(entry, step)
            lane = committed.lane
            yield committed
            if (seconds := retries.pause(lane)) > 0:
                await trio.sleep(seconds)

    async def recover(
        self, streams: Iterable[str], read: Callable[[str], tuple[Lane, str]], request: Request
    ) -> dict[str, Exception]:
        """Drives lanes whose journal is open; returns what stopped which, and none stops another.

        `read` returns a stream's lane and the cause of its last event, which stays the cause of what follows:
        what a command led to is found by its id, whoever has finished it.
        """
        stopped: dict[str, Exception] = {}
        limit = trio.CapacityLimiter(AT_ONCE)

        async def one(stream: str) -> None:
            async with limit:
                try:
                    async with self.alone(stream):
                        lane, cause = read(stream)
                        await self.drive(stream, lane, request.because(cause))
                except Exception as error:
                    stopped[lane_of(stream) or stream] = error

        async with trio.open_nursery() as nursery:
            for stream in streams:
                nursery.start_soon(one, stream)
        return stopped

    async def _append(self, entry: Entry, step: str) -> Committed:
        """Writes down what is known, whatever happens to whoever asked for it."""
        self._notice("before-append", step)
        token, done = trio.lowlevel.current_trio_token(), trio.Event()
        future = self._journal.submit(entry)
        future.add_done_callback(lambda _: token.run_sync_soon(done.set))
        with trio.CancelScope(shield=True):
            await done.wait()
        self._notice("after-append", step)
        return future.result()


def _learning(outcome: Outcome) -> Callable[[Lane], tuple[Fact, ...]]:
    def learn(lane: Lane) -> tuple[Fact, ...]:
        facts = lanes.learn(lane, outcome)
        if not facts:  # the loop would do the same again for ever
            raise NothingLearnt(f"{type(outcome).__name__} means nothing to a lane in {type(lane).__name__}")
        return facts

    return learn
