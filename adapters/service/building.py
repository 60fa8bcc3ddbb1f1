"""From settings to a service: what its parts are made of, by hand."""

from __future__ import annotations

from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from adapters.glances import Glances
from adapters.service.commands import Commands
from adapters.service.isolates.isolate import Isolate
from adapters.service.isolates.registry import Isolates
from adapters.service.service import Service, Station
from adapters.service.stream.tail import Tail
from adapters.service.tables import Tables
from adapters.service.web.commanding import weight
from adapters.snapshots.reading.recent import Recent
from adapters.store.reader import Reader
from adapters.wiring import open_store, yard_over

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from adapters.config import Settings


@contextmanager
def open_service(settings: Settings) -> Iterator[Service]:
    """Opens the log under the state directory's lock, and what serves it. Raises StateLocked, StoreError."""
    limits = settings.configuration.service
    followers: list[Tail] = []

    def committed() -> None:
        for each in followers:
            each.poke()

    with open_store(settings, committed) as journal, Reader(settings.store) as reader:
        tail = Tail(settings.store)
        followers.append(tail)
        commands = Commands(most=limits.commands, weigh=weight)
        service = Service(settings, journal, Tables(reader), tail, commands)
        service.isolates = Isolates(partial(isolate, service), most=limits.repositories)
        try:
            yield service
        finally:
            tail.close()


def isolate(service: Service, key: str) -> Isolate[Station]:
    """Returns a new isolate for a repository, by its key; it follows the service's settings."""
    limits = service.settings.configuration.service
    opening = partial(station, service)
    return Isolate(key, opening, running=limits.running, waiting=limits.waiting)


@asynccontextmanager
async def station(service: Service) -> AsyncIterator[Station]:
    """Opens what an isolate works with, in its own thread."""
    async with yard_over(service.settings, service.journal) as yard:
        opened = Station(yard, Glances(), Recent())
        with service.at_work(opened):
            yield opened
