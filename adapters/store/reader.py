"""Reading the store without writing it: tables, lanes, the log, and both as of an earlier position."""

from collections.abc import Iterator
from types import TracebackType
from typing import Self, cast

from adapters.store import log, tables, views
from adapters.store.append import read_head
from adapters.store.chain import Head
from adapters.store.connection import connect
from adapters.store.errors import translate
from adapters.store.fold import Fold
from domain.envelope import Envelope, stream_of
from domain.lane import INITIAL, evolve
from domain.states import Lane
from projections import journals, lanes, repositories
from projections.table import Row, Table, Value

Record = dict[str, Value]


class Reader:
    """One reading connection. Every method reads what is committed at that moment."""

    def __init__(self, path: bytes) -> None:
        """Opens the store; raises StoreNewer if what is no lane's holds a kind of fact that is not known."""
        self._connection = connect(path, read_only=True)
        try:
            with translate():
                views.require_understood(self._connection)
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()

    def lanes(self) -> list[Record]:
        """Returns the lanes table."""
        return self._records(lanes.TABLE)

    def row(self, lane_id: str) -> Record | None:
        """Returns one lane's row of the lanes table, or None."""
        with translate():
            if not views.are_ours(self._connection):
                return next((row for row in self.lanes() if row["id"] == lane_id), None)
            found = tables.one(self._connection, lanes.TABLE, (lane_id,))
        return None if found is None else records(lanes.TABLE, [found])[0]

    def repositories(self) -> list[Record]:
        """Returns the repositories under our care."""
        return self._records(repositories.TABLE)

    def open_journals(self) -> list[Record]:
        """Returns the lanes to which the world owes something."""
        return self._records(journals.TABLE)

    def lane(self, lane_id: str) -> tuple[Lane, int]:
        """Returns a lane folded from its stream, and the stream's version."""
        return self.story(lane_id)[:2]

    def story(self, lane_id: str) -> tuple[Lane, int, str]:
        """Returns a lane folded from its stream, the stream's version, and the cause of its last event."""
        lane, version, cause = INITIAL, 0, ""
        for event in self.events(stream=stream_of(lane_id)):
            lane, version, cause = evolve(lane, event.fact), event.version, event.cause
        return lane, version, cause

    def events(
        self, after: int = 0, to: int | None = None, stream: str | None = None, limit: int | None = None
    ) -> Iterator[Envelope]:
        """Yields the events after a position, at most `limit`."""
        with translate():
            yield from log.events(self._connection, after, to, stream, limit)

    def fold(self, to: int | None = None) -> Fold:
        """Returns every table as it was at a position, by default the last."""
        return Fold().take_all(self.events(to=to))

    def head(self) -> Head:
        """Returns the last position and its hash."""
        with translate():
            return read_head(self._connection)

    def command(self, command_id: str) -> tuple[bytes, str, int] | None:
        """Returns the digest of a command that was given this id, its stream, and its last position."""
        with translate():
            row = self._connection.execute(_COMMAND, (command_id,)).fetchone()
        return cast("tuple[bytes, str, int] | None", row)

    def changed(self) -> int:
        """Returns a number that differs once somebody else has committed."""
        with translate():
            return cast("int", self._connection.pragma("data_version"))

    def _records(self, table: Table) -> list[Record]:
        """Returns a table's rows; where another program has made it, as this one would from the same log."""
        with translate():
            if views.are_ours(self._connection):
                return records(table, tables.read(self._connection, table))
            return records(table, self.fold().table(table)) if views.has_log(self._connection) else []


def records(table: Table, rows: list[Row]) -> list[Record]:
    """Returns rows as dictionaries by column."""
    return [dict(zip(table.names, row, strict=True)) for row in rows]


_COMMAND = "SELECT digest, stream, last FROM command WHERE id = ?"
