"""The library's recorders over one SQLite file."""

from __future__ import annotations

from collections import deque
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, TypeVar, cast
from uuid import UUID

import apsw
from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    IntegrityError,
    Notification,
    ProcessRecorder,
    StoredEvent,
    Subscription,
    Tracking,
    TrackingRecorder,
    WaitInterruptedError,
)

from adapters.store.append import Row, append
from adapters.store.connection import initialise
from adapters.store.pool import BEAT, Store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import Event

    import apsw

R = TypeVar("R", bound="ApswRecorder")


class ApswRecorder:
    """What every recorder here has: a shared store, and the type of the ids that it gives back."""

    def __init__(self, store: Store, id_type: type[UUID] | type[str] = UUID) -> None:
        self.store = store
        self.id_type = id_type

    def create_table(self) -> None:
        """Creates the tables unless they are there."""
        with self.store.writing() as connection:
            self._create_table(connection)

    def _create_table(self, connection: apsw.Connection) -> None:
        initialise(connection)


class ApswAggregateRecorder(ApswRecorder, AggregateRecorder):
    """Keeps streams without positions, such as snapshots, each purpose in a table of its own."""

    def __init__(
        self, store: Store, id_type: type[UUID] | type[str] = UUID, purpose: str = "snapshots"
    ) -> None:
        super().__init__(store, id_type)
        self.table = '"stored_{}"'.format(purpose.replace('"', '""'))

    def insert_events(self, stored_events: Sequence[StoredEvent], **kwargs: object) -> Sequence[int] | None:
        """Writes the events in one transaction; raises `IntegrityError` for a version that is taken."""
        with self.store.writing() as connection:
            return self._insert_events(connection, _rows(stored_events), **kwargs)

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Returns the events of one stream in order of version."""
        # Open bounds are spelt as numbers: one prepared statement, and always a range of the index.
        bounds = (_stream(originator_id), -1 if gt is None else gt, _LAST if lte is None else lte)
        statement = _SELECT_STREAM.format(table=self.table, order="DESC" if desc else "ASC")
        with self.store.reading() as connection:
            cursor = connection.execute(statement, (*bounds, -1 if limit is None else limit))
            rows = cast("list[tuple[int, str, bytes]]", cursor.fetchall())
        return [StoredEvent(originator_id, version, type_, state) for version, type_, state in rows]

    def _create_table(self, connection: apsw.Connection) -> None:
        connection.execute(_AGGREGATE_TABLE.format(table=self.table))

    def _insert_events(
        self, connection: apsw.Connection, rows: list[Row], **_: object
    ) -> Sequence[int] | None:
        connection.executemany(f"INSERT INTO {self.table} VALUES (?, ?, ?, ?)", rows)
        return None


class ApswApplicationRecorder(ApswAggregateRecorder, ApplicationRecorder):
    """Keeps the log: streams of events that are also numbered as a whole, without gaps."""

    def __init__(self, store: Store, id_type: type[UUID] | type[str] = UUID) -> None:
        super().__init__(store, id_type)
        self.table = "event"

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Returns at most `limit` events from `start` on, up to and with `stop`, in order of position."""
        first = (start or 0) + (0 if inclusive_of_start else 1)
        choice = f"AND type IN ({', '.join('?' * len(topics))})" if topics else ""
        bounds = (first, _LAST if stop is None else stop, *topics, limit)
        with self.store.reading() as connection:
            cursor = connection.execute(_SELECT_LOG.format(choice=choice), bounds)
            rows = cast("list[tuple[str, int, str, bytes, int]]", cursor.fetchall())
        return [Notification(self.id_type(s), v, t, state, p) for s, v, t, state, p in rows]

    def max_notification_id(self) -> int | None:
        """Returns the last position, or None of an empty log."""
        with self.store.reading() as connection:
            return _number(connection.execute("SELECT max(position) FROM event"))

    def subscribe(self, gt: int | None = None, topics: Sequence[str] = ()) -> ApswSubscription:
        """Returns an iterator that goes on with what is committed later, by this process or another."""
        return ApswSubscription(self, gt, topics)

    def _create_table(self, connection: apsw.Connection) -> None:
        initialise(connection)

    def _insert_events(
        self, connection: apsw.Connection, rows: list[Row], **_: object
    ) -> Sequence[int] | None:
        return append(connection, rows)[0]


class ApswSubscription(Subscription[ApswApplicationRecorder]):
    """An endless reading of the log, in the thread that iterates; `stop` ends it at once from any other."""

    PAGE = 500

    def __init__(self, recorder: ApswApplicationRecorder, gt: int | None, topics: Sequence[str]) -> None:
        super().__init__(recorder, gt, topics)
        self._changes = recorder.store.changes
        self._page: deque[Notification] = deque()
        self._reading = Lock()

    def stop(self) -> None:
        """Ends the iteration, also one that waits."""
        super().stop()
        self._changes.notify()

    def __next__(self) -> Notification:
        with self._reading:
            while True:
                # First of all the mark: a commit, or a stop, after this line ends the wait below.
                seen = self._changes.seen()
                if self._has_been_stopped:
                    raise StopIteration
                if self._page or self._turn_page():
                    return self._page.popleft()
                self._changes.wait(seen)

    def _turn_page(self) -> bool:
        after = self._last_notification_id or 0
        end = self._recorder.max_notification_id() or 0
        page = self._recorder.select_notifications(
            after, self.PAGE, end, self._topics, inclusive_of_start=False
        )
        self._page.extend(page)
        # Positions are given under the write lock, so that none up to `end` can still turn up; and a rare
        # topic must not have the same stretch of the log read again at every commit.
        self._last_notification_id = page[-1].id if len(page) == self.PAGE else max(after, end)
        return bool(page)


class ApswTrackingRecorder(ApswRecorder, TrackingRecorder):
    """Keeps how far each application has been followed, and lets threads wait for it."""

    def insert_tracking(self, tracking: Tracking) -> None:
        """Records the position; raises `IntegrityError` unless it is greater than the one before."""
        with self.store.writing() as connection:
            self._insert_tracking(connection, tracking)

    def max_tracking_id(self, application_name: str) -> int | None:
        """Returns the last position recorded for the application, or None."""
        with self.store.reading() as connection:
            return _number(connection.execute(_SELECT_TRACKING, (application_name,)))

    def wait(
        self,
        application_name: str,
        notification_id: int | None,
        timeout: float = 1.0,
        interrupt: Event | None = None,
    ) -> None:
        """Blocks until the position is recorded; raises `TimeoutError` or `WaitInterruptedError`."""
        deadline = monotonic() + timeout
        while True:
            seen = self.store.changes.seen()
            if self.has_tracking_id(application_name, notification_id):
                return
            if interrupt is not None and interrupt.is_set():
                raise WaitInterruptedError
            left = deadline - monotonic()
            if left <= 0:
                raise TimeoutError(f"{application_name} is not at {notification_id} after {timeout} s")
            # The interrupt is the caller's event and wakes nobody here.
            self.store.changes.wait(seen, left if interrupt is None else min(left, BEAT))

    def _insert_tracking(self, connection: apsw.Connection, tracking: Tracking) -> None:
        entry = (tracking.application_name, tracking.notification_id)
        if not connection.execute(_TRACK, entry).fetchall():
            raise IntegrityError(f"{entry[0]} is already at {entry[1]} or beyond")


class ApswProcessRecorder(ApswTrackingRecorder, ApswApplicationRecorder, ProcessRecorder):
    """Writes events together with the position that caused them."""

    def _insert_events(
        self, connection: apsw.Connection, rows: list[Row], **kwargs: object
    ) -> Sequence[int] | None:
        tracking = kwargs.pop("tracking", None)
        if tracking is not None:
            self._insert_tracking(connection, cast("Tracking", tracking))
        return super()._insert_events(connection, rows, **kwargs)


def _number(cursor: apsw.Cursor) -> int | None:
    value = cursor.get
    return None if value is None else int(value)


def _stream(originator_id: UUID | str) -> str:
    return originator_id.hex if isinstance(originator_id, UUID) else originator_id


def _rows(events: Sequence[StoredEvent]) -> list[Row]:
    return [(_stream(e.originator_id), e.originator_version, e.topic, e.state) for e in events]


_LAST = 2**63 - 1

_AGGREGATE_TABLE = """
CREATE TABLE IF NOT EXISTS {table}(
  stream TEXT NOT NULL, version INTEGER NOT NULL CHECK(version >= 0), type TEXT NOT NULL, state BLOB NOT NULL,
  PRIMARY KEY(stream, version)) STRICT, WITHOUT ROWID
"""
_SELECT_STREAM = """
SELECT version, type, state FROM {table} WHERE stream = ? AND version > ? AND version <= ?
ORDER BY version {order} LIMIT ?
"""
_SELECT_LOG = """
SELECT stream, version, type, state, position FROM event WHERE position >= ? AND position <= ? {choice}
ORDER BY position LIMIT ?
"""
_SELECT_TRACKING = "SELECT position FROM tracking WHERE name = ?"
_TRACK = """
INSERT INTO tracking VALUES (?, ?)
ON CONFLICT(name) DO UPDATE SET position = excluded.position WHERE position < excluded.position
RETURNING position
"""
