"""A store as a process shares it: its connections, and word of what others have committed."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager, suppress
from threading import Condition, Lock
from time import monotonic
from typing import TYPE_CHECKING

from adapters.store.connection import LOCK_TIMEOUT, connect, transaction
from adapters.store.errors import StoreError, translate

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

BEAT = 0.05  # seconds between two looks at what other processes have committed


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
