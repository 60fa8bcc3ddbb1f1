"""The composition root: from settings to a yard that works, by hand, from top to bottom."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from adapters.clock import now
from adapters.engine import Engine, Performer, Request
from adapters.files.durable import sync_file_systems
from adapters.git.door import Git
from adapters.inspector import Inspector
from adapters.ownership import own_state_dir
from adapters.performer.performer import GitPerformer
from adapters.performer.world import World
from adapters.snapshots.files import clear_beginnings
from adapters.store.journal import Journal
from adapters.store.reader import Reader
from adapters.yard.yard import Yard
from domain.envelope import Actor, lane_of, stream_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from adapters.config import Settings
    from domain.states import Lane


def new_request(
    settings: Settings,
    command_id: str | None = None,
    digest: bytes | None = None,
    *,
    uid: int | None = None,
    pid: int | None = None,
    client: str | None = None,
    expected: int | None = None,
) -> Request:
    """Returns a request of this process, or of the process that is named."""
    actor = Actor(
        os.getuid() if uid is None else uid,
        os.getpid() if pid is None else pid,
        settings.client if client is None else client,
    )
    return Request(id=command_id or str(uuid4()), actor=actor, digest=digest, expected=expected)


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


@contextmanager
def open_store(settings: Settings, committed: Callable[[], None] | None = None) -> Iterator[Journal]:
    """Opens the log under the state directory's lock. Raises StateLocked, StoreError, OSError.

    What a killed process had begun to keep goes first; nobody else has the directory now.
    `committed` hears on the writer's thread of everything that has become durable.
    """
    lock = own_state_dir(settings)
    try:
        clear_beginnings(settings.state_dir)
        if not os.path.exists(settings.store):  # a start that was killed may have made the directory
            sync_file_systems(settings.state_dir)
        journal = Journal(settings.store, now, committed)
        try:
            yield journal
        finally:
            journal.close()
    finally:
        lock.release()


@asynccontextmanager
async def yard_over(
    settings: Settings,
    journal: Journal,
    *,
    notice: Callable[[str, str], None] = lambda moment, step: None,
    wrap: Callable[[Performer], Performer] = lambda performer: performer,
) -> AsyncIterator[Yard]:
    """Opens a yard over a log that is open: for one thread, of which any number may share the log.

    Raises StoreError.
    """
    git = git_door(settings)
    performer = wrap(GitPerformer(World(git, settings.state_dir)))
    with Reader(settings.store) as reader:
        yield Yard(settings, Engine(journal, performer, notice), reader, Inspector(git, now), git)


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
    with open_store(settings) as journal:
        async with yard_over(settings, journal, notice=notice, wrap=wrap) as yard:
            yield yard, await recover(yard, unfinished(yard.reader))


def unfinished(reader: Reader, repository: str | None = None) -> list[str]:
    """Returns the streams with an open journal, of one repository, by its key, or of all."""
    owed = [str(row["stream"]) for row in reader.open_journals()]
    if repository is None or not owed:
        return owed
    here = {stream_of(str(row["id"])) for row in reader.lanes() if row["repository"] == repository}
    return [stream for stream in owed if stream in here]


async def recover(yard: Yard, streams: Iterable[str]) -> dict[str, Exception]:
    """Drives interrupted lanes on, each under the cause that it was begun with.

    Returns what stopped which lane; none stops another.
    """

    def read(stream: str) -> tuple[Lane, str]:
        lane, _, cause = yard.reader.story(lane_of(stream) or "")
        return lane, cause

    return await yard.engine.recover(streams, read, new_request(yard.settings))
