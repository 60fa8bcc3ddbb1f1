"""The composition root: from settings to a yard that works, by hand, from top to bottom."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from adapters.clock import now
from adapters.engine import Engine, Performer, Request
from adapters.git.door import Git
from adapters.inspector import Inspector
from adapters.ownership import own_state_dir
from adapters.performer.performer import GitPerformer
from adapters.performer.world import World
from adapters.store.journal import Journal
from adapters.store.reader import Reader
from adapters.yard.yard import Yard
from domain.envelope import Actor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from adapters.config import Settings


def new_request(settings: Settings, command_id: str | None = None, digest: bytes | None = None) -> Request:
    """Returns a request of this process."""
    actor = Actor(os.getuid(), os.getpid(), settings.client)
    return Request(id=command_id or str(uuid4()), actor=actor, digest=digest)


def git_door(settings: Settings) -> Git:
    """Returns the door to git."""
    chosen = settings.configuration.git
    return Git(
        os.fsencode(chosen.program),
        settings.environment,
        read_timeout=chosen.read_timeout,
        write_timeout=chosen.write_timeout,
    )


def inspector(settings: Settings) -> Inspector:
    """Returns an inspector, which only looks and needs no lock."""
    return Inspector(git_door(settings), now)


@asynccontextmanager
async def open_yard(
    settings: Settings,
    *,
    notice: Callable[[str, str], None] = lambda moment, step: None,
    wrap: Callable[[Performer], Performer] = lambda performer: performer,
) -> AsyncIterator[tuple[Yard, dict[str, Exception]]]:
    """Opens everything under the state directory's lock, and first drives on what was interrupted.

    Yields the yard, and which lanes could not be driven on and why. Raises StateLocked, StoreError.
    """
    lock = own_state_dir(settings)
    try:
        git = git_door(settings)
        journal = Journal(settings.store, now)
        try:
            performer = wrap(GitPerformer(World(git, settings.state_dir)))
            engine = Engine(journal, performer, notice)
            with Reader(settings.store) as reader:
                yard = Yard(settings, engine, reader, Inspector(git, now), git)
                stopped = await _recover(yard, new_request(settings))
                yield yard, stopped
        finally:
            journal.close()
    finally:
        lock.release()


async def _recover(yard: Yard, request: Request) -> dict[str, Exception]:
    streams = [str(row["stream"]) for row in yard.reader.open_journals()]
    if not streams:
        return {}
    lanes = ((stream, yard.reader.lane(stream.partition("-")[2])[0]) for stream in streams)
    return await yard.engine.recover(lanes, request)
