"""The commands that only read. They need no lock; `list` first drives on what was interrupted."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters import config
from adapters.api import lanes, resolve
from adapters.api.comparing import compared, diff
from adapters.api.events import Filter, event_json, event_text
from adapters.cli import DONE
from adapters.cli.output import say
from adapters.cli.scope import scope
from adapters.cli.telling import told
from adapters.cli.whereabouts import near
from adapters.clock import now
from adapters.glances import glance
from adapters.store.errors import StoreMissing
from adapters.store.reader import Reader
from domain.envelope import stream_of
from domain.errors import NoSuchLane, NoSuchPosition

if TYPE_CHECKING:
    from argparse import Namespace

    from adapters.engine import Request
    from adapters.store.reader import Record
    from adapters.yard.yard import Yard


def open_reader(arguments: Namespace) -> Reader | None:
    """Returns a reader, or None where nothing has been recorded yet."""
    try:
        return Reader(config.load(arguments.state_dir).store)
    except StoreMissing:
        return None


def drive_on(arguments: Namespace) -> None:
    """Finishes what was interrupted, if anything was: opening the yard does it."""
    reader = open_reader(arguments)
    if reader is None:
        return
    with reader:
        owed = reader.open_journals()
    if owed:
        from adapters.cli.engine import engine  # the engine is slow to import, and seldom needed here

        async def nothing(yard: Yard, request: Request) -> int:
            return DONE

        engine(arguments, nothing)


def run_list(arguments: Namespace) -> int:
    """Prints the lanes, now or as of a position."""
    if arguments.at is None:
        drive_on(arguments)
    key = scope(arguments)
    rows = lanes.chosen(_rows(arguments), key, include_gone=arguments.all)
    seen = None if arguments.at is not None else {str(row["id"]): glance(row, now()) for row in rows}
    return told(arguments, lanes.list_lanes(rows, seen, key, arguments.all))


def _rows(arguments: Namespace) -> list[Record]:
    reader = open_reader(arguments)
    if reader is None:
        _require_beginning(arguments.at or 0)
        return []
    with reader:
        return reader.lanes() if arguments.at is None else lanes.lanes_at(reader, arguments.at)


def run_log(arguments: Namespace) -> int:
    """Prints the audit log, and with `--follow` goes on with what comes."""
    reader = open_reader(arguments)
    if reader is None:
        if arguments.follow:
            raise StoreMissing(os.fsdecode(config.load(arguments.state_dir).store))
        if arguments.lane is not None:
            scope(arguments)
            raise NoSuchLane(arguments.lane)
        return DONE
    with reader:
        wanted = Filter(_stream(arguments, reader), arguments.type)
        if arguments.after > (last := reader.head().position):
            raise NoSuchPosition(arguments.after, last)
        slugs = _slugs(reader)
        position = _print_events(arguments, reader, wanted, arguments.after, slugs)
        if arguments.follow:
            _follow(arguments, reader, wanted, position, slugs)
    return DONE


def _stream(arguments: Namespace, reader: Reader) -> str | None:
    """Returns the stream of the lane that is meant, also of one that never came to be."""
    if arguments.lane is None:
        return None
    return stream_of(resolve.find(reader, arguments.lane, scope(arguments), near(), undone=True).id)


def _slugs(reader: Reader) -> dict[str, str]:
    return {str(row["id"]): str(row["slug"]) for row in reader.lanes()}


def _print_events(
    arguments: Namespace, reader: Reader, wanted: Filter, after: int, slugs: dict[str, str]
) -> int:
    """Prints the events after a position, and returns the position of the last one, wanted or not."""
    for event in reader.events(after=after, stream=wanted.stream):
        after = event.position
        if wanted.matches(event):
            say(event_json(event).decode() if arguments.json else event_text(event, slugs))
    return after


def _follow(
    arguments: Namespace, reader: Reader, wanted: Filter, position: int, slugs: dict[str, str]
) -> None:
    import sys

    from adapters.watcher import hints

    seen = -1
    for _ in hints(config.load(arguments.state_dir).state_dir):
        changed = reader.changed()
        if changed != seen:
            seen = changed
            slugs |= _slugs(reader)
            position = _print_events(arguments, reader, wanted, position, slugs)
            sys.stdout.flush()


def run_diff(arguments: Namespace) -> int:
    """Prints which lanes differ between two positions, and in what."""
    reader = open_reader(arguments)
    if reader is None:
        for position in (arguments.before, arguments.after):
            _require_beginning(position)
        return told(arguments, compared(arguments.before, arguments.after, [], []))
    with reader:
        return told(arguments, diff(reader, arguments.before, arguments.after))


def _require_beginning(position: int) -> None:
    """Refuses every position but the one before the first event. Raises NoSuchPosition."""
    if position != 0:
        raise NoSuchPosition(position, 0)
