"""What every handler needs: the tables, the isolates, the commands on their way, and the stream of events."""

from __future__ import annotations

import math
import os
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Literal, TypeVar

import trio

from adapters import repositories
from adapters.files.errors import words
from adapters.service.front.connections import Counters
from adapters.service.kept import Kept
from adapters.service.looking import Lookers
from adapters.service.observing import Observer
from adapters.service.web.misuse import InvalidRequest
from adapters.store.reader import Reader
from domain.errors import NoSuchLane, NotARepository
from domain.paths import display, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adapters.config import Settings
    from adapters.engine import Request as Asked
    from adapters.glances import Glances
    from adapters.service.commands import Commands
    from adapters.service.isolates.isolate import Isolate, Isolates
    from adapters.service.stream.tail import Tail
    from adapters.service.tables import Tables
    from adapters.snapshots.reading.recent import Recent
    from adapters.store.journal import Journal
    from adapters.store.reader import Record
    from adapters.yard.yard import Yard

T = TypeVar("T")
SCOPES = 1000  # places that lists have been asked about, and that are remembered


@dataclass(frozen=True, slots=True, eq=False)
class Station:
    """What an isolate works with: a yard of its own, and what it has seen of its repository."""

    yard: Yard
    glances: Glances
    recent: Recent

    def retune(self, settings: Settings) -> None:
        """Works with other settings from the next step on; may be called in any thread."""
        chosen = settings.configuration.git
        self.yard.settings = settings
        self.yard.git.retune(
            os.fsencode(chosen.program), read_timeout=chosen.read_timeout, write_timeout=chosen.write_timeout
        )


class Service:
    """The service as its handlers see it. Everything here belongs to the loop that speaks HTTP."""

    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        tables: Tables,
        tail: Tail,
        commands: Commands,
    ) -> None:
        self.settings = settings
        self.journal = journal
        self.tables = tables
        self.tail = tail
        self.isolates: Isolates[Station]
        self.commands = commands
        self.status: Literal["recovering", "ready", "stopping"] = "recovering"
        self.connections = Counters()
        self.stopped: dict[str, str] = {}  # why a lane could not be driven on; any thread may write it
        self.recovering: set[str] = set()  # lanes that are driven on, or wait for that
        self.observer = Observer(self)
        self.kept = Kept()
        self._lookers = Lookers()
        self._scopes: dict[tuple[str | None, str | None], tuple[float, str | None]] = {}
        self._stations: set[Station] = set()
        self._gate = Lock()  # over the stations, which come and go in threads of their own

    def row(self, lane: str) -> Record:
        """Returns a lane's row. Raises NoSuchLane."""
        row = self.tables.lane(lane)
        if row is None:
            raise NoSuchLane(lane)
        return row

    def isolate(self, repository: str) -> Isolate[Station]:
        """Returns the isolate of a repository, given its key."""
        return self.isolates.get(repository)

    async def scope(self, repository: str | None, near: str | None, age: float = 0.0) -> str | None:
        """Returns the key of the repository that is meant, or None if that could be any.

        What was found at most `age` seconds ago is not looked for again. Raises NotARepository where
        `repository` names none, InvalidRequest where `near` is not absolute, and RepositorySilent where the
        path does not answer.
        """
        asked = (repository, near)
        at, key = self._scopes.get(asked, (-math.inf, None))
        if monotonic() - at > age:
            at, key = monotonic(), await self._scope(repository, near)
            if len(self._scopes) >= SCOPES:
                self._scopes.clear()
            self._scopes[asked] = (at, key)
        return key

    async def _scope(self, repository: str | None, near: str | None) -> str | None:
        if repository is not None:
            return await self.repository_at(repository)
        if near is None:
            return None
        if not os.path.isabs(unpack(near)):  # no repository around it would mean all of them
            raise InvalidRequest(f"near must be an absolute path, and {near!r} is not")
        try:
            return await self.repository_at(near)
        except NotARepository:
            return None

    async def repository_at(self, path: str) -> str:
        """Returns the key of the repository around a packed path. Raises NotARepository, RepositorySilent."""
        place = unpack(path)
        if b"\0" in place or not os.path.isabs(place):
            raise NotARepository(path)
        found = await self.aside(lambda: repositories.find(place), path)
        return pack(found.common_dir)

    async def aside(self, look: Callable[[], T], what: str) -> T:
        """Returns what a look at a packed path gives, from a thread that may hang without us.

        Raises RepositorySilent, Overloaded.
        """
        known = [str(each["root"]) for each in self.tables.repositories()]
        seconds = self.settings.configuration.service.look_timeout
        return await self._lookers.look(look, what, known, seconds)

    def reader(self) -> Reader:
        """Returns a reader that the caller closes, for a thread of its own."""
        return Reader(self.settings.store)

    def slugs(self) -> dict[str, str]:
        """Returns what people call each lane."""
        return {str(row["id"]): str(row["slug"]) for row in self.tables.lanes()}

    async def reading(self, read: Callable[[Reader], T]) -> T:
        """Returns what a longer read of the store gives, from a thread with a reader of its own."""

        def work() -> T:
            with self.reader() as reader:
                return read(reader)

        return await trio.to_thread.run_sync(work)

    async def drive_on(self, station: Station, lane: str, asked: Asked) -> None:
        """Finishes what was interrupted in a lane; runs in its isolate. What stops it is told in health."""
        with self.watching(station, lane):
            row = station.yard.reader.row(lane)
            # What is gone or not mounted says nothing about how far the lane has come.
            if row is not None and row["owed"] is not None and not _is_there(str(row["repository"])):
                raise NotARepository(f"{display(str(row['repository']))} (it is not there)")
            await station.yard.drive_on(lane, asked)
        self.stopped.pop(lane, None)

    @contextmanager
    def watching(self, station: Station, lane: str) -> Iterator[None]:
        """Takes note of a lane that an error leaves with something owed; runs in its isolate."""
        try:
            yield
        except Exception as error:
            row = station.yard.reader.row(lane)
            if row is not None and row["owed"] is not None:
                self.stopped[lane] = words(error)
            raise

    @contextmanager
    def at_work(self, station: Station) -> Iterator[None]:
        """Keeps a station's settings the service's while it is open; runs in its isolate."""
        with self._gate:
            self._stations.add(station)
            station.retune(self.settings)
        try:
            yield
        finally:
            with self._gate:
                self._stations.discard(station)

    def retune(self, settings: Settings) -> None:
        """Works with other settings from now on, also in repositories where something is under way."""
        limits = settings.configuration.service
        with self._gate:
            self.settings = settings
            for station in self._stations:
                station.retune(settings)
        self.isolates.limit(limits.running, limits.waiting, limits.repositories)


def _is_there(repository: str) -> bool:
    return os.path.isdir(unpack(repository))
