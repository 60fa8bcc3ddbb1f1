"""The journal: the only writer. One thread, one writing connection, many commands to a transaction.

What waits is committed together (group commit): while one transaction is being synced, the next one gathers.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import groupby
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import cast

import apsw
import msgspec

from adapters.store import views
from adapters.store.commit import Answer, ClaimTaken, Committed, Committer, Entry
from adapters.store.connection import connect, reserve, transaction
from adapters.store.errors import StoreError, StoreFull

__all__ = ["ClaimTaken", "Committed", "Entry", "Journal", "Promise"]

BATCH = 256  # commands to a transaction: bounds the wait of the first one

_log = logging.getLogger(__name__)


class Promise(Future[Committed]):
    """An answer to come. What is queued may be in a transaction already, so it is never taken back."""

    def cancel(self) -> bool:
        """Returns False."""
        return False


class _Waiting(msgspec.Struct, frozen=True):
    entry: Entry
    promise: Promise


class _Chore(msgspec.Struct, frozen=True):
    work: Callable[[apsw.Connection], None]
    promise: Future[None]


class _End(msgspec.Struct, frozen=True):
    """The last item of the queue."""


_Item = _Waiting | _Chore | _End


class Journal:
    """Appends facts, keeps the tables beside them, and answers when both are durable.

    `committed` is called on the writer's thread once something more is in the log and durable, and before the
    promises of it are kept: whoever has an answer knows that the listener was told.
    """

    def __init__(
        self, path: bytes, clock: Callable[[], str], committed: Callable[[], None] | None = None
    ) -> None:
        self._connection = connect(path)
        self._reserve = reserve(path)
        self._reserve.keep()
        try:
            views.ensure(self._connection)
        except BaseException:
            self._connection.close()
            raise
        self._committer = Committer(self._connection, clock)
        self._committed = committed
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        self._open = True
        self._gate = Lock()  # nothing is queued behind the end
        self._thread = Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def submit(self, entry: Entry) -> Promise:
        """Queues a request; the future is done when it is durable or refused, and cannot be cancelled.

        The future raises a Refusal of the decision, ClaimTaken, CommandReused, VersionMismatch, or
        StoreError.
        Raises StoreError at once when the journal is closed.
        """
        promise = Promise()
        self._put(_Waiting(entry, promise))
        return promise

    def maintain(self, work: Callable[[apsw.Connection], None]) -> Future[None]:
        """Runs maintenance of the tables on the writing connection, in a transaction of its own."""
        promise: Future[None] = Future()
        promise.set_running_or_notify_cancel()
        self._put(_Chore(work, promise))
        return promise

    @property
    def alive(self) -> bool:
        """Tells whether the writer is there to write what is submitted."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Finishes what waits, and closes."""
        with self._gate:
            if self._open:
                self._open = False
                self._queue.put(_End())
        self._thread.join()

    def _put(self, item: _Waiting | _Chore) -> None:
        with self._gate:
            if not self._open:
                raise StoreError("the journal is closed")
            self._queue.put(item)

    def _run(self) -> None:
        ended = False
        while not ended:
            for kind, items in groupby(self._gather(), type):
                if kind is _Waiting:
                    self._commit(cast("list[_Waiting]", list(items)))
                elif kind is _Chore:
                    self._work(cast("list[_Chore]", list(items)))
                else:
                    ended = True
        # What follows the log may stay behind it: the next who looks catches up.
        self._work([_Chore(views.catch_up, Future())])
        self._connection.close()

    def _gather(self) -> list[_Item]:
        """Returns what waits, at least one item, in order."""
        items = [self._queue.get()]
        with suppress(Empty):
            while len(items) < BATCH:
                items.append(self._queue.get_nowait())
        return items

    def _commit(self, waiting: Sequence[_Waiting], *, lent: bool = False) -> None:
        answers: Sequence[Answer]
        try:
            answers = self._committer.commit([each.entry for each in waiting])
        except BaseException as error:
            if isinstance(error, StoreFull) and not lent:
                self._commit_vital(waiting, error)
                return
            if len(waiting) > 1 and not isinstance(error, StoreError):
                # Something that one command led to cannot be written, and nobody else is to fail with it.
                for each in waiting:
                    self._commit([each])
                return
            answers = [error] * len(waiting)
        if self._committed and any(_appended(answer) for answer in answers):
            self._tell(self._committed)
        for each, answer in zip(waiting, answers, strict=True):
            if isinstance(answer, BaseException):
                each.promise.set_exception(answer)
            else:
                each.promise.set_result(answer)

    def _commit_vital(self, waiting: Sequence[_Waiting], full: StoreFull) -> None:
        """Writes only what may use the room that is set aside: what was done, and what brings a lane back."""
        for each in waiting:
            if not each.entry.vital:
                each.promise.set_exception(full)
        if vital := [each for each in waiting if each.entry.vital]:
            with self._reserve.lent():
                self._commit(vital, lent=True)

    def _tell(self, listener: Callable[[], None]) -> None:
        try:
            listener()
        except BaseException:  # whatever it is, the writer goes on: everybody waits for it
            _log.exception("a listener of the journal failed")

    def _work(self, chores: Iterable[_Chore]) -> None:
        for chore in chores:
            try:
                with transaction(self._connection):
                    chore.work(self._connection)
            except BaseException as error:
                chore.promise.set_exception(error)
            else:
                chore.promise.set_result(None)
            self._committer.reread()


def _appended(answer: Answer) -> bool:
    return isinstance(answer, Committed) and bool(answer.facts) and not answer.replayed
