"""The only place that opens SQLite: how a store is opened, made, validated, shared and watched."""

from __future__ import annotations

import errno
import os
from collections import deque
from contextlib import contextmanager, nullcontext, suppress
from threading import Condition, Lock
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import quote_from_bytes
from uuid import uuid4

import apsw
from eventsourcing.persistence import IntegrityError, OperationalError, PersistenceError, ProgrammingError

if TYPE_CHECKING:
    from collections.abc import Iterator

APPLICATION_ID = 0x4C414E45  # "LANE"
SCHEMA = 1
READER = 1  # what this code can read: the greatest `min_reader` that it accepts
LOCK_TIMEOUT = 5.0  # seconds
BEAT = 0.05  # seconds between two looks at what other processes have committed


class StoreError(OperationalError):
    """The store cannot be used."""


class StoreMissing(StoreError):
    """There is no store at this path yet."""


class StoreBusy(StoreError):
    """Another process held the lock for longer than the lock timeout."""


class StoreFull(StoreError):
    """The disk is full; nothing of the transaction was written."""


class StoreReadOnly(StoreError):
    """The file, its directory or its medium cannot be written."""


class StoreCorrupt(StoreError):
    """The file is no store of ours, or is damaged."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class StoreTooNew(StoreError):
    """The store needs a reader of version `found`; this one is `known`."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(f"the store needs a reader of version {found}, this one is {known}")
        self.found = found
        self.known = known


@contextmanager
def translate() -> Iterator[None]:
    """Turns an error of SQLite or the system into `StoreError`, `IntegrityError` or `ProgrammingError`."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise _typed(error) from error


def connect(
    path: bytes | str,
    *,
    read_only: bool = False,
    lock_timeout: float = LOCK_TIMEOUT,
    vfs: str | None = None,
) -> apsw.Connection:
    """Opens the store, made first if need be; what it acknowledges as committed survives a power cut.

    `lock_timeout` is in seconds. Raises a child of `StoreError`; `StoreMissing` only when `read_only`.
    """
    name = os.path.abspath(os.fsencode(path))
    with translate():
        connection = _open(name, read_only, vfs)
        try:
            _configure(connection, lock_timeout)
            _admit(connection, name, read_only)
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def transaction(connection: apsw.Connection) -> Iterator[None]:
    """Takes the write lock, and commits if, and only if, the block succeeds; errors are translated."""
    with translate():
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            # A full disk or a failed write has SQLite roll back by itself; a second rollback would raise and
            # hide why (as APSW's own context manager does).
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def sqlite_version() -> str:
    """Returns the version of SQLite."""
    return apsw.sqlite_lib_version()


def initialise(connection: apsw.Connection) -> None:
    """Creates the event and tracking tables unless they are there, in the caller's transaction or its own."""
    with translate():
        if connection.execute(_COUNT_TABLES).get == 2:
            return
        with nullcontext() if connection.in_transaction else transaction(connection):
            connection.execute(_TABLES)


class Changes:
    """Tells that somebody may have committed: at once within this process, within a beat from any other."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed = Condition()
        self._count = 0
        self._connection: apsw.Connection | None = None
        self._version = -1

    def seen(self) -> int:
        """Returns a mark to be taken before reading: what is committed after it ends a `wait` for it."""
        with self._changed:
            if self._connection is None:
                self._look()
            return self._count

    def notify(self) -> None:
        """Wakes every waiter."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait(self, seen: int, timeout: float | None = None) -> None:
        """Blocks until something may have been committed after `seen`, or for `timeout` seconds."""
        deadline = None if timeout is None else monotonic() + timeout
        with self._changed:
            while self._count == seen:
                left = BEAT if deadline is None else min(BEAT, deadline - monotonic())
                if left <= 0:
                    return
                if not self._changed.wait(left):
                    self._look()

    def close(self) -> None:
        """Closes the watching connection and wakes every waiter."""
        with self._changed:
            if self._connection is not None:
                self._connection.close()
        self.notify()

    def _look(self) -> None:
        with translate():
            if self._connection is None:
                self._connection = self._store.open_reader()
            # The pragma, not Connection.data_version(), which sees nothing until the connection next reads.
            version = int(self._connection.pragma("data_version"))
        if version != self._version:
            self._version = version
            self.notify()


class Store:
    """One file as a process shares it: one writing connection, and a reading one for each read in progress.

    Readers are pooled rather than locked, so that a slow page holds nobody up, and rather than kept per
    thread, because they would outlive the worker threads that come and go.
    """

    def __init__(self, path: bytes | str, *, lock_timeout: float = LOCK_TIMEOUT) -> None:
        self.path = path
        self.lock_timeout = lock_timeout
        self.changes = Changes(self)
        self._turn = Lock()
        self._writer: apsw.Connection | None = None
        self._idle: deque[apsw.Connection] = deque()
        self._closed = False

    @contextmanager
    def writing(self) -> Iterator[apsw.Connection]:
        """Gives the writing connection in a transaction that commits if, and only if, the block succeeds."""
        with self._turn:
            self._refuse_closed()
            if self._writer is None:
                self._writer = connect(self.path, lock_timeout=self.lock_timeout)
            with transaction(self._writer):
                yield self._writer
        self.changes.notify()

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """Gives a reading connection that nobody else uses until the block ends."""
        self._refuse_closed()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self.open_reader()
        try:
            with translate():
                yield connection
        finally:
            self._idle.append(connection)
            if self._closed:
                self._drain()

    def open_reader(self) -> apsw.Connection:
        """Opens a reading connection that the caller closes; raises `StoreError` once the store is closed."""
        self._refuse_closed()
        return connect(self.path, read_only=True, lock_timeout=self.lock_timeout)

    def close(self) -> None:
        """Closes every connection, the writing one after its transaction."""
        self._closed = True
        self.changes.close()
        with self._turn:
            if self._writer is not None:
                self._writer.close()
        self._drain()

    def _drain(self) -> None:
        while self._idle:
            with suppress(IndexError):  # a reader may be draining too
                self._idle.pop().close()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise StoreError("the store is closed")


def _open(name: bytes, read_only: bool, vfs: str | None) -> apsw.Connection:
    if not read_only:
        # mknod, not open: closing a descriptor would drop the locks that other connections of this process
        # hold on the file (sqlite.org/howtocorrupt.html, 2.2).
        with suppress(FileExistsError):
            os.mknod(name, 0o600)
    elif not os.path.exists(name):
        raise StoreMissing(os.fsdecode(name))
    access = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE
    # A URI, because a plain file name must be UTF-8 and a path need not be.
    uri = f"file:{quote_from_bytes(name)}"
    return apsw.Connection(uri, flags=access | apsw.SQLITE_OPEN_URI, vfs=vfs)


def _configure(connection: apsw.Connection, lock_timeout: float) -> None:
    connection.set_busy_timeout(int(lock_timeout * 1000))
    connection.transaction_mode = (
        "IMMEDIATE"  # a deferred one that turns writer fails at once when it is late
    )
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _admit(connection: apsw.Connection, name: bytes, read_only: bool) -> None:
    writable = not connection.readonly("main")
    try:
        blank = _is_blank(connection)
    except apsw.CantOpenError as error:
        # A write-ahead log without its -shm cannot be read where that cannot be made.
        if os.access(os.path.dirname(name), os.W_OK):
            raise
        raise StoreReadOnly(f"{os.fsdecode(name)}: the directory cannot be written") from error
    if not read_only and not writable:
        raise StoreReadOnly(os.fsdecode(name))
    if blank and read_only:
        raise StoreMissing(os.fsdecode(name))
    if blank:
        _make(connection)
    _validate(connection)
    if read_only:
        connection.pragma("query_only", 1)
    else:
        _enter_wal(connection)


def _is_blank(connection: apsw.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) = 0 FROM sqlite_schema").get)


def _make(connection: apsw.Connection) -> None:
    with transaction(connection):
        # Again, now under the write lock: of many that start at once, one makes the store.
        if not _is_blank(connection) or connection.pragma("application_id"):
            return
        connection.execute("CREATE TABLE store(k TEXT PRIMARY KEY, v TEXT NOT NULL) STRICT")
        facts = {"store_id": str(uuid4()), "schema": str(SCHEMA), "min_reader": str(READER)}
        connection.executemany("INSERT INTO store VALUES (?, ?)", facts.items())
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", SCHEMA)


def _validate(connection: apsw.Connection) -> None:
    found = connection.pragma("application_id")
    if found != APPLICATION_ID:
        raise StoreCorrupt(f"the file's application id is {found:#x}, not {APPLICATION_ID:#x}")
    try:
        least = int(connection.execute("SELECT v FROM store WHERE k = 'min_reader'").get)
    except (apsw.SQLError, TypeError, ValueError) as error:
        raise StoreCorrupt(f"the store does not say who may read it: {error}") from error
    if least > READER:
        raise StoreTooNew(least, READER)


def _enter_wal(connection: apsw.Connection) -> None:
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode = wal").get
        except apsw.BusyError:
            # SQLite fails at once, busy timeout or not, if another connection is writing as the mode changes;
            # a transaction waits for it.
            connection.execute("BEGIN IMMEDIATE; COMMIT")
            continue
        if mode != "wal":
            raise StoreError(f"the file system cannot keep a write-ahead log (journal mode {mode})")
        return


def _typed(error: apsw.Error | OSError) -> PersistenceError:
    if isinstance(error, OSError):
        return _SYSTEM.get(error.errno or 0, StoreError)(str(error))
    return next((ours for theirs, ours in _SQLITE if isinstance(error, theirs)), StoreError)(str(error))


_SYSTEM: dict[int, type[StoreError]] = {
    errno.ENOSPC: StoreFull,
    errno.EDQUOT: StoreFull,
    errno.EROFS: StoreReadOnly,
    errno.EACCES: StoreReadOnly,
}

_SQLITE: tuple[tuple[type[apsw.Error] | tuple[type[apsw.Error], ...], type[PersistenceError]], ...] = (
    (apsw.ConstraintError, IntegrityError),
    ((apsw.BusyError, apsw.LockedError), StoreBusy),
    (apsw.FullError, StoreFull),
    (apsw.ReadOnlyError, StoreReadOnly),
    ((apsw.CorruptError, apsw.NotADBError, apsw.FormatError), StoreCorrupt),
    ((apsw.SQLError, apsw.MisuseError, apsw.BindingsError, apsw.ThreadingViolationError), ProgrammingError),
)

_PRAGMAS = (
    "PRAGMA synchronous = FULL",  # NORMAL loses acknowledged commits in a power cut
    "PRAGMA fullfsync = ON",  # macOS: fsync alone stops at the disk's own cache
    "PRAGMA foreign_keys = ON",
    "PRAGMA recursive_triggers = ON",  # else INSERT OR REPLACE deletes without asking the triggers
)

_COUNT_TABLES = "SELECT count(*) FROM sqlite_schema WHERE name IN ('event', 'tracking')"

# Versions count from 0, because the library's own conformance cases do.
_TABLES = """
CREATE TABLE IF NOT EXISTS event(
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  stream TEXT NOT NULL,
  version INTEGER NOT NULL CHECK(version >= 0),
  type TEXT NOT NULL,
  state BLOB NOT NULL,
  hash BLOB NOT NULL CHECK(length(hash) = 32),
  UNIQUE(stream, version)
) STRICT;
CREATE TRIGGER IF NOT EXISTS event_no_update BEFORE UPDATE ON event
  BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER IF NOT EXISTS event_no_delete BEFORE DELETE ON event
  BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TABLE IF NOT EXISTS tracking(name TEXT PRIMARY KEY, position INTEGER NOT NULL) STRICT;
"""
