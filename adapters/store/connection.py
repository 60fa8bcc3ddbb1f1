"""The only place that opens SQLite: how a store is opened, made and validated."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING
from urllib.parse import quote_from_bytes
from uuid import uuid4

import apsw

from adapters.files.reserve import Reserve
from adapters.store.errors import (
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreMissing,
    StoreReadOnly,
    StoreTooNew,
    translate,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

APPLICATION_ID = 0x4C414E45  # "LANE"
SCHEMA = 1
READER = 1  # what this code can read: the greatest `min_reader` that it accepts
LOCK_TIMEOUT = 5.0  # seconds
RESERVE = 1 << 20  # bytes; a restore from quarantine takes a fifth of it


def connect(
    path: bytes | str,
    *,
    read_only: bool = False,
    lock_timeout: float = LOCK_TIMEOUT,
    vfs: str | None = None,
) -> apsw.Connection:
    """Opens the store, made first if need be; what it acknowledges as committed survives a power cut.

    Where the disk is full, room is lent from the reserve beside it, as even reading needs some.
    `lock_timeout` is in seconds. Raises a child of `StoreError`; `StoreMissing` only when `read_only`.
    """
    name = os.path.abspath(os.fsencode(path))
    try:
        return _connect(name, read_only, lock_timeout, vfs)
    except StoreFull:
        with reserve(name).lent():
            return _connect(name, read_only, lock_timeout, vfs)


def reserve(path: bytes) -> Reserve:
    """Returns the room that is set aside for the store at a path."""
    return Reserve(os.path.dirname(path), RESERVE)


def _connect(name: bytes, read_only: bool, lock_timeout: float, vfs: str | None) -> apsw.Connection:
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


def _open(name: bytes, read_only: bool, vfs: str | None) -> apsw.Connection:
    if not read_only:
        # mknod, not open: closing a descriptor would drop the locks that other connections of this process
        # hold on the file (sqlite.org/howtocorrupt.html, 2.2).
        with suppress(FileExistsError):
            os.mknod(name, 0o600)
    elif not os.path.exists(name):
        raise StoreMissing(os.fsdecode(name))
    if not os.path.isfile(name):
        what = "a directory" if os.path.isdir(name) else "no regular file"
        raise StoreCorrupt(f"{os.fsdecode(name)} is {what}")
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


def _admit(connection: apsw.Connection, name: bytes, read_only: bool) -> None:
    writable = not connection.readonly("main")
    try:
        for pragma in _PRAGMAS:
            connection.execute(pragma)
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
-- REPLACE deletes without asking the trigger above, unless a connection has switched that on, as ours do.
CREATE TRIGGER IF NOT EXISTS event_no_replace BEFORE INSERT ON event
  WHEN EXISTS(SELECT 1 FROM event WHERE position = NEW.position)
    OR EXISTS(SELECT 1 FROM event WHERE stream = NEW.stream AND version = NEW.version)
  BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TABLE IF NOT EXISTS tracking(name TEXT PRIMARY KEY, position INTEGER NOT NULL) STRICT;
"""
