"""The journal: the only writer. One thread, one writing connection, many commands to a transaction.

What waits is taken together: one `BEGIN IMMEDIATE`, a savepoint for each command, one COMMIT (group
commit). In the same transaction go the tables that must never be behind: lanes, claims, open journals,
repositories. A decision is a pure function of the lane, so it is made here, on the state that is current;
git is never run here.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import cast

import apsw
import msgspec

from adapters.store import tables, views
from adapters.store.chain import Head
from adapters.store.codec import Row, decode, encode
from adapters.store.connection import StoreError, connect, initialise, translate
from adapters.store.recorder import append, read_head
from domain.envelope import Actor, Envelope
from domain.errors import CommandReused, PathInUse
from domain.events import Fact
from domain.lane import INITIAL, evolve
from domain.paths import display
from domain.states import Lane
from projections import claims
from projections.catalogue import IMMEDIATE, TABLES
from projections.table import Happening, Key

BATCH = 256  # commands to a transaction: bounds the wait of the first one
CACHE = 10_000  # lanes kept folded in memory


class ClaimTaken(PathInUse):
    """A slug, a path or a branch is another lane's. The caller may try the next name."""

    def __init__(self, kind: str, value: str, holder: str) -> None:
        super().__init__(f"the {kind} {display(value)}")
        self.kind, self.value, self.holder = kind, value, holder


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A request to append what `decide` makes of the stream's lane.

    With `command_id` the request is idempotent: the same id and digest are answered with what they led to.
    `claiming` refuses what would claim what another lane holds; an outcome is written down regardless.
    """

    stream: str
    decide: Callable[[Lane], tuple[Fact, ...]]
    actor: Actor
    cause: str
    command_id: str | None = None
    digest: bytes = b""
    claiming: bool = False


class Committed(msgspec.Struct, frozen=True, kw_only=True):
    """What a request has led to, durable."""

    stream: str
    lane: Lane
    version: int
    first: int
    last: int
    facts: tuple[Fact, ...]
    replayed: bool = False


class _Held(msgspec.Struct, frozen=True):
    lane: Lane
    version: int


class _Waiting(msgspec.Struct, frozen=True):
    entry: Entry
    future: "Future[Committed]"


class _Chore(msgspec.Struct, frozen=True):
    work: Callable[[apsw.Connection], None]
    future: "Future[None]"


class Journal:
    """Appends facts, keeps the tables beside them, and answers when both are durable."""

    def __init__(self, path: bytes, clock: Callable[[], str]) -> None:
        self._connection = connect(path)
        self._clock = clock
        self._queue: SimpleQueue[_Waiting | _Chore | None] = SimpleQueue()
        self._cache: dict[str, _Held] = {}
        try:
            with translate():
                _create_tables(self._connection)
                views.ensure(self._connection)
        except BaseException:
            self._connection.close()
            raise
        self._get = {each.TABLE.name: tables.getter(self._connection, each.TABLE) for each in IMMEDIATE}
        self._thread = Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def submit(self, entry: Entry) -> "Future[Committed]":
        """Queues a request; the future is done when it is durable or refused.

        The future raises a Refusal of the decision, ClaimTaken, CommandReused, or StoreError.
        """
        future: Future[Committed] = Future()
        if not self._thread.is_alive():
            raise StoreError("the journal is closed")
        self._queue.put(_Waiting(entry, future))
        return future

    def maintain(self, work: Callable[[apsw.Connection], None]) -> "Future[None]":
        """Runs maintenance of the tables on the writing connection, between two transactions."""
        future: Future[None] = Future()
        self._queue.put(_Chore(work, future))
        return future

    def close(self) -> None:
        """Finishes what waits, and closes."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while True:
            waiting, other = self._gather()
            if waiting:
                self._commit(waiting)
            if isinstance(other, _Chore):
                self._work(other)
            elif not waiting:
                self._work(_Chore(views.catch_up, Future()))
                self._connection.close()
                return

    def _gather(self) -> "tuple[list[_Waiting], _Chore | None]":
        """Returns what waits, up to something else; nothing at all when it is time to close."""
        waiting: list[_Waiting] = []
        item = self._queue.get()
        while isinstance(item, _Waiting):
            waiting.append(item)
            try:
                item = self._queue.get_nowait() if len(waiting) < BATCH else None
            except Empty:
                return waiting, None
        if item is None and waiting and len(waiting) < BATCH:
            self._queue.put(None)
        return waiting, item

    def _work(self, chore: "_Chore") -> None:
        try:
            with translate(), self._connection:
                chore.work(self._connection)
        except BaseException as error:
            chore.future.set_exception(error)
        else:
            chore.future.set_result(None)

    def _commit(self, waiting: "Sequence[_Waiting]") -> None:
        """Runs one transaction; if it fails as a whole, nothing of it has happened and everyone hears why."""
        results: list[Committed | BaseException] = []
        fresh: dict[str, _Held] = {}
        try:
            with translate(), self._connection:
                head = read_head(self._connection)
                start = head
                for each in waiting:
                    head, result = self._try(each.entry, head, fresh)
                    results.append(result)
                if head != start:
                    views.track(self._connection, views.IMMEDIATELY, head.position)
        except BaseException as error:
            results = [error] * len(waiting)
        else:
            self._remember(fresh)
        for each, result in zip(waiting, results, strict=True):
            if isinstance(result, BaseException):
                each.future.set_exception(result)
            else:
                each.future.set_result(result)

    def _try(
        self, entry: Entry, head: Head, fresh: dict[str, _Held]
    ) -> tuple[Head, Committed | BaseException]:
        """Runs one command in a savepoint of its own, so that a refusal takes nothing of the others along."""
        self._connection.execute("SAVEPOINT command")
        try:
            head, result, held = self._decide(entry, head, fresh)
        except apsw.Error:
            raise
        except Exception as error:
            self._connection.execute("ROLLBACK TO command")
            self._connection.execute("RELEASE command")
            return head, error
        self._connection.execute("RELEASE command")
        fresh[entry.stream] = held
        return head, result

    def _decide(self, entry: Entry, head: Head, fresh: dict[str, _Held]) -> tuple[Head, Committed, _Held]:
        held = fresh.get(entry.stream) or self._load(entry.stream)
        if entry.command_id is not None:
            earlier = self._earlier(entry, held)
            if earlier is not None:
                return head, earlier, held
        facts = entry.decide(held.lane)
        head, held = self._append(entry, facts, head, held)
        first = head.position - len(facts) + 1
        if entry.command_id is not None:
            row = (entry.command_id, entry.digest, entry.stream, first, head.position)
            self._connection.execute(_REMEMBER, row)
        result = Committed(
            stream=entry.stream,
            lane=held.lane,
            version=held.version,
            first=first,
            last=head.position,
            facts=facts,
        )
        return head, result, held

    def _append(self, entry: Entry, facts: tuple[Fact, ...], head: Head, held: _Held) -> tuple[Head, _Held]:
        time = self._clock()
        lane, version, first = held.lane, held.version, head.position + 1
        rows = [
            (entry.stream, version + n, fact.TAG, encode(fact, time, entry.actor, entry.cause))
            for n, fact in enumerate(facts, 1)
        ]
        _, head = append(self._connection, rows, head)
        for n, fact in enumerate(facts):
            event = Envelope(
                position=first + n,
                stream=entry.stream,
                version=version + n + 1,
                type=fact.TAG,
                time=time,
                actor=entry.actor,
                cause=entry.cause,
                fact=fact,
            )
            after = evolve(lane, fact)
            self._project(Happening(event, lane, after), entry.claiming)
            lane = after
        return head, _Held(lane, version + len(facts))

    def _project(self, happening: Happening, claiming: bool) -> None:
        if claiming:
            taken = claims.conflicts(happening, self._get[claims.TABLE.name])
            if taken:
                raise self._taken(taken[0])
        for each in IMMEDIATE:
            changes = list(each.apply(happening, self._get[each.TABLE.name]))
            tables.write(self._connection, each.TABLE, changes)

    def _taken(self, key: Key) -> ClaimTaken:
        holder = self._get[claims.TABLE.name](key)
        _, kind, value = key
        return ClaimTaken(str(kind), str(value), str(holder[-1]) if holder else "")

    def _load(self, stream: str) -> _Held:
        if stream in self._cache:
            return self._cache[stream]
        rows = cast("list[Row]", self._connection.execute(_STREAM, (stream,)).fetchall())
        lane, version = INITIAL, 0
        for row in rows:
            event = decode(row)
            lane, version = evolve(lane, event.fact), event.version
        return _Held(lane, version)

    def _earlier(self, entry: Entry, held: _Held) -> Committed | None:
        """Returns what the command led to the first time, if there was one."""
        found = self._connection.execute(_RECALL, (entry.command_id,)).fetchone()
        if found is None:
            return None
        digest, stream, first, last = found
        if digest != entry.digest:
            raise CommandReused(str(entry.command_id))
        rows = cast("list[Row]", self._connection.execute(_RANGE, (first, last, stream)).fetchall())
        facts = tuple(decode(row).fact for row in rows)
        lane = held if stream == entry.stream else self._load(stream)
        return Committed(
            stream=stream,
            lane=lane.lane,
            version=lane.version,
            first=first,
            last=last,
            facts=facts,
            replayed=True,
        )

    def _remember(self, fresh: dict[str, _Held]) -> None:
        if len(self._cache) > CACHE:
            self._cache.clear()
        self._cache.update(fresh)


def _create_tables(connection: apsw.Connection) -> None:
    initialise(connection)
    with connection:
        connection.execute(_COMMANDS)
        for table in TABLES:
            tables.create(connection, table)


_COMMANDS = """
CREATE TABLE IF NOT EXISTS command(
  id TEXT PRIMARY KEY, digest BLOB NOT NULL, stream TEXT NOT NULL, first INTEGER, last INTEGER
) STRICT, WITHOUT ROWID
"""
_REMEMBER = "INSERT INTO command VALUES (?, ?, ?, ?, ?)"
_RECALL = "SELECT digest, stream, first, last FROM command WHERE id = ?"
_STREAM = "SELECT position, stream, version, type, state FROM event WHERE stream = ? ORDER BY version"
_RANGE = """
SELECT position, stream, version, type, state FROM event
WHERE position BETWEEN ? AND ? AND stream = ? ORDER BY position
"""
