"""A log as an earlier program would have written it: the same life, told in the shapes of that time."""

from __future__ import annotations

import json
import os
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from adapters.store.append import append
from adapters.store.connection import connect, initialise, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.sagas.worlds import World

Row = tuple[str, int, str, bytes]  # stream, version, tag, state
UNRECORDED = (
    *("mode", "snapshot_id", "snapshot_ref", "snapshot_commit", "snapshot_tree"),
    *("provisioned_ignored", "consent", "evidence", "delete_branch"),
)


def rows(world: World) -> list[Row]:
    """Returns the log as it is on disk."""
    with closing(connect(world.settings.store, read_only=True)) as connection:
        found = connection.execute("SELECT stream, version, type, state FROM event ORDER BY position")
        return [(str(stream), int(version), str(tag), bytes(state)) for stream, version, tag, state in found]


def older(row: Row) -> Row:
    """Returns an event as it was written before its shape had changed; a removal becomes one of format 3."""
    stream, version, tag, data = row
    state = json.loads(data)
    fact: dict[str, Any] = state["fact"]
    match tag:
        case "removal.planned@4":
            fact = {name: value for name, value in fact.items() if name not in UNRECORDED}
            tag, fact["journal_format"] = "removal.planned@3", 3
        case "snapshot.planned@2":
            tag = "snapshot.planned@1"
            del fact["apart"]
        case "lane.snapshotted@2":
            tag = "lane.snapshotted@1"
            del fact["snapshot"]["ignored"]
        case "restore.applied@2":
            tag = "restore.applied@1"
            del fact["differences"]
        case _:
            pass
    return stream, version, tag, json.dumps(state | {"fact": fact}).encode()


def rewrite(world: World, told: Sequence[Row]) -> None:
    """Makes the world's store anew, with exactly these events; who opens it makes the tables."""
    for suffix in (b"", b"-wal", b"-shm"):
        with suppress(FileNotFoundError):
            os.unlink(world.settings.store + suffix)
    with closing(connect(world.settings.store)) as connection:
        initialise(connection)
        with transaction(connection):
            append(connection, list(told))


def retold(world: World, change: Callable[[Row], Row]) -> None:
    """Tells the world's log in other words."""
    rewrite(world, [change(row) for row in rows(world)])
