"""What can be wrong with a store, and the one place that says which error of SQLite means what."""

from __future__ import annotations

import errno
from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw
from eventsourcing.persistence import IntegrityError, OperationalError, PersistenceError, ProgrammingError

if TYPE_CHECKING:
    from collections.abc import Iterator


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


def _typed(error: apsw.Error | OSError) -> PersistenceError:
    if isinstance(error, OSError):
        return _SYSTEM.get(error.errno or 0, StoreError)(str(error))
    if getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHMSIZE:
        return StoreFull("there is no room for the write-ahead log's index")
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
