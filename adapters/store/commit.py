"""One transaction: requests decided one by one, each on what those before it led to, then written at once.

While deciding nothing is written, so that a refusal, or a bug in one decision, takes nothing of the others
along. With the events go the tables that must never be behind them: lanes, claims, open journals,
repositories. A decision is a pure function of the lane, so it is made here, on the state that is current;
git is never run here.
"""

from collections.abc import Callable, Sequence
from typing import cast

import apsw
import msgspec

from adapters.store import views
from adapters.store.append import Row as Event
from adapters.store.append import append, read_head
from adapters.store.chain import Head
from adapters.store.codec import Row, decode, encode
from adapters.store.connection import transaction
from adapters.store.errors import translate
from adapters.store.tables import Rows
from domain.envelope import Actor, Envelope
from domain.errors import CommandReused, PathInUse, VersionMismatch
from domain.events import Fact
from domain.lane import INITIAL, evolve
from domain.paths import display
from domain.states import Lane
from projections import claims
from projections.catalogue import IMMEDIATE
from projections.table import Happening, Key

REMEMBERED = 10_000  # lanes kept folded in memory


class ClaimTaken(PathInUse):
    """A slug, a path or a branch is another lane's. The caller may try the next name."""

    def __init__(self, kind: str, value: str, holder: str) -> None:
        super().__init__(f"the {kind} {display(value)}")
        self.kind, self.value, self.holder = kind, value, holder


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A request to append what `decide` makes of the stream's lane.

    `decide` is pure, and may be asked twice. With `command_id` the request is idempotent: the same id and
    digest are answered with what they led to, whatever is expected. With `expected` any other version of the
    stream is a VersionMismatch, before anything is decided.
    `claiming` refuses what would claim what another lane holds; an outcome is written down regardless.
    What is `vital` may use the room that is set aside for a full disk.
    """

    stream: str
    decide: Callable[[Lane], tuple[Fact, ...]]
    actor: Actor
    cause: str
    command_id: str | None = None
    digest: bytes = b""
    claiming: bool = False
    vital: bool = False
    expected: int | None = None


class Committed(msgspec.Struct, frozen=True, kw_only=True):
    """What a request has led to, durable."""

    stream: str
    lane: Lane
    version: int
    first: int
    last: int
    facts: tuple[Fact, ...]
    replayed: bool = False


Answer = Committed | BaseException


class _Held(msgspec.Struct, frozen=True):
    lane: Lane
    version: int


class _Batch:
    """What a transaction is going to write."""

    def __init__(self, head: Head, time: str) -> None:
        self.head = head
        self.time = time
        self.events: list[Event] = []
        self.lanes: dict[str, _Held] = {}
        self.commands: dict[str, tuple[bytes, Committed]] = {}

    @property
    def position(self) -> int:
        """Returns the position of the last event."""
        return self.head.position + len(self.events)


class Committer:
    """Turns requests into events and rows; what it keeps in memory is never ahead of what is durable."""

    def __init__(self, connection: apsw.Connection, clock: Callable[[], str]) -> None:
        self._connection = connection
        self._clock = clock
        self._rows = {each.TABLE.name: Rows(connection, each.TABLE) for each in IMMEDIATE}
        self._projections = tuple((each.apply, self._rows[each.TABLE.name]) for each in IMMEDIATE)
        self._lanes: dict[str, _Held] = {}
        self._head: Head | None = None

    def commit(self, entries: Sequence[Entry]) -> list[Answer]:
        """Returns an answer to each request, all durable; if it raises, nothing at all has happened."""
        committed = False
        try:
            with transaction(self._connection):
                batch = self._begin()
                answers = [self._answer(batch, entry) for entry in entries]
                head = self._write(batch)
            committed = True
        finally:
            for rows in self._rows.values():
                rows.settle(committed=committed)
        self._remember(batch, head)
        return answers

    def reread(self) -> None:
        """Drops all that was read: somebody else has written."""
        self._head = None
        self._lanes.clear()
        for rows in self._rows.values():
            rows.reread()

    def _begin(self) -> _Batch:
        head = read_head(self._connection)
        if head != self._head:
            self.reread()
        return _Batch(head, self._clock())

    def _answer(self, batch: _Batch, entry: Entry) -> Answer:
        try:
            answer = self._earlier(batch, entry) or self._decide(batch, entry)
        except BaseException as error:
            for rows in self._rows.values():
                rows.forget()
            return _typed(error)
        for rows in self._rows.values():
            rows.keep()
        return answer

    def _decide(self, batch: _Batch, entry: Entry) -> Committed:
        held = self._lane(batch, entry.stream)
        if entry.expected not in (None, held.version):
            raise VersionMismatch(entry.expected or 0, held.version)
        facts = entry.decide(held.lane)
        first = batch.position + 1
        events, lane = self._events(batch, entry, held, facts)
        version, last = held.version + len(facts), batch.position + len(facts)
        answer = Committed(
            stream=entry.stream, lane=lane, version=version, first=first, last=last, facts=facts
        )
        batch.events += events
        batch.lanes[entry.stream] = _Held(lane, version)
        if entry.command_id is not None:
            batch.commands[entry.command_id] = (entry.digest, answer)
        return answer

    def _events(
        self, batch: _Batch, entry: Entry, held: _Held, facts: tuple[Fact, ...]
    ) -> tuple[list[Event], Lane]:
        """Returns the rows of the log, and the lane after them; the tables' rows are changed along."""
        lane, events = held.lane, []
        for n, fact in enumerate(facts, 1):
            envelope = Envelope(
                position=batch.position + n,
                stream=entry.stream,
                version=held.version + n,
                type=fact.TAG,
                time=batch.time,
                actor=entry.actor,
                cause=entry.cause,
                fact=fact,
            )
            state = encode(fact, batch.time, entry.actor, entry.cause)
            events.append((entry.stream, envelope.version, fact.TAG, state))
            after = evolve(lane, fact)
            self._project(Happening(envelope, lane, after), entry.claiming)
            lane = after
        return events, lane

    def _project(self, happening: Happening, claiming: bool) -> None:
        if claiming:
            taken = claims.conflicts(happening, self._rows[claims.TABLE.name].get)
            if taken:
                raise self._taken(taken[0])
        for apply, rows in self._projections:
            if changes := apply(happening, rows.get):
                rows.put(changes)

    def _taken(self, key: Key) -> ClaimTaken:
        holder = self._rows[claims.TABLE.name].get(key)
        _, kind, value = key
        return ClaimTaken(str(kind), str(value), str(holder[-1]) if holder else "")

    def _lane(self, batch: _Batch, stream: str) -> _Held:
        return batch.lanes.get(stream) or self._lanes.get(stream) or self._load(stream)

    def _load(self, stream: str) -> _Held:
        rows = cast("list[Row]", self._connection.execute(_STREAM, (stream,)).fetchall())
        lane, version = INITIAL, 0
        for row in rows:
            event = decode(row)
            lane, version = evolve(lane, event.fact), event.version
        held = self._lanes[stream] = _Held(lane, version)
        return held

    def _earlier(self, batch: _Batch, entry: Entry) -> Committed | None:
        """Returns what the command led to the first time, if there was one."""
        if entry.command_id is None:
            return None
        known = batch.commands.get(entry.command_id) or self._recall(batch, entry.command_id)
        if known is None:
            return None
        digest, answer = known
        if digest != entry.digest:
            raise CommandReused(entry.command_id)
        held = self._lane(batch, answer.stream)
        return msgspec.structs.replace(answer, lane=held.lane, version=held.version, replayed=True)

    def _recall(self, batch: _Batch, command: str) -> tuple[bytes, Committed] | None:
        found = self._connection.execute(_RECALL, (command,)).fetchone()
        if found is None:
            return None
        digest, stream, first, last = cast("tuple[bytes, str, int, int]", found)
        rows = cast("list[Row]", self._connection.execute(_RANGE, (first, last, stream)).fetchall())
        held = self._lane(batch, stream)
        answer = Committed(
            stream=stream,
            lane=held.lane,
            version=held.version,
            first=first,
            last=last,
            facts=tuple(decode(row).fact for row in rows),
        )
        return digest, answer

    def _write(self, batch: _Batch) -> Head:
        head = batch.head
        if batch.events:
            _, head = append(self._connection, batch.events, head)
            for rows in self._rows.values():
                rows.write()
            views.track(self._connection, views.IMMEDIATELY, head.position)
            views.understand_also(self._connection, batch.head.position, head.position)
        if batch.commands:
            self._connection.executemany(
                _REMEMBER,
                [
                    (command, digest, answer.stream, answer.first, answer.last)
                    for command, (digest, answer) in batch.commands.items()
                ],
            )
        return head

    def _remember(self, batch: _Batch, head: Head) -> None:
        if len(self._lanes) > REMEMBERED:
            self._lanes.clear()
        self._lanes.update(batch.lanes)
        self._head = head


def _typed(error: BaseException) -> BaseException:
    if not isinstance(error, apsw.Error):
        return error
    try:
        with translate():
            raise error
    except Exception as typed:
        return typed


_REMEMBER = "INSERT INTO command VALUES (?, ?, ?, ?, ?)"
_RECALL = "SELECT digest, stream, first, last FROM command WHERE id = ?"
_STREAM = "SELECT position, stream, version, type, state FROM event WHERE stream = ? ORDER BY version"
_RANGE = """
SELECT position, stream, version, type, state FROM event
WHERE position BETWEEN ? AND ? AND stream = ? ORDER BY position
"""
