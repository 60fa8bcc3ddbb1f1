"""The commands that only read. They need no lock; `list` first drives on what was interrupted."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from adapters import config
from adapters.cli import DONE, shapes
from adapters.cli.output import clock, legible, say, table
from adapters.cli.scope import scope
from adapters.clock import now
from adapters.lookup import GONE, find_lane
from adapters.store.errors import StoreMissing
from adapters.store.reader import Reader, records
from domain.envelope import lane_of, stream_of
from domain.errors import NoSuchLane, NoSuchPosition
from domain.naming import short_branch
from domain.paths import display
from projections import lanes as lanes_table
from projections.history import sentence

if TYPE_CHECKING:
    from argparse import Namespace

    from adapters.engine import Request
    from adapters.store.reader import Record
    from adapters.yard.yard import Yard
    from domain.envelope import Envelope


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
        from adapters.cli.changing import engine  # the engine is slow to import, and seldom needed here

        async def nothing(yard: Yard, request: Request) -> int:
            return DONE

        engine(arguments, nothing)


def run_list(arguments: Namespace) -> int:
    """Prints the lanes, now or as of a position."""
    if arguments.at is None:
        drive_on(arguments)
    key = scope(arguments)
    rows = _rows(arguments)
    rows = [row for row in rows if key is None or row["repository"] == key]
    rows.sort(key=lambda row: (str(row["created_at"]), str(row["id"])))
    if not arguments.all:
        rows = [row for row in rows if row["state"] not in GONE]
    if arguments.json:
        at = now()
        current = arguments.at is None
        say(shapes.encoded([shapes.lane(row, shapes.presence(row, at) if current else {}) for row in rows]))
        return DONE
    if not rows:
        say("no lanes; 'laneyard create NAME' makes one")
        return DONE
    table(
        ("LANE", "STATE", "BRANCH", "HEAD", "EDITION", "PATH"),
        [_cells(row) for row in rows],
    )
    return DONE


def _rows(arguments: Namespace) -> list[Record]:
    reader = open_reader(arguments)
    if reader is None:
        return []
    with reader:
        if arguments.at is None:
            return reader.lanes()
        _require_position(reader, arguments.at)
        return records(lanes_table.TABLE, reader.fold(arguments.at).table(lanes_table.TABLE))


def _require_position(reader: Reader, position: int) -> None:
    last = reader.head().position
    if not 0 <= position <= last:
        raise NoSuchPosition(position, last)


def _cells(row: Record) -> tuple[object, ...]:
    branch = short_branch(str(row["branch"])) if row["branch"] else "-"
    head = str(row["head"])[:12] if row["head"] else "-"
    path = display(str(row["path"])) if row["path"] else "-"
    return row["slug"], row["state"], branch, head, row["edition"] or "-", path


def run_log(arguments: Namespace) -> int:
    """Prints the audit log, and with `--follow` goes on with what comes."""
    reader = open_reader(arguments)
    if reader is None:
        if arguments.follow:
            raise StoreMissing("there is nothing to follow")
        if arguments.lane is not None:
            raise NoSuchLane(arguments.lane)
        return DONE
    with reader:
        stream = _stream(arguments, reader)
        slugs = {str(row["id"]): str(row["slug"]) for row in reader.lanes()}
        position = _print_events(arguments, reader, stream, arguments.after, slugs)
        if arguments.follow:
            _follow(arguments, reader, stream, position, slugs)
    return DONE


def _stream(arguments: Namespace, reader: Reader) -> str | None:
    if arguments.lane is None:
        return None
    stream = stream_of(arguments.lane)
    if any(True for _ in reader.events(stream=stream)):  # also of a lane that never came to be
        return stream
    return stream_of(str(find_lane(reader.lanes(), scope(arguments), arguments.lane)["id"]))


def _print_events(
    arguments: Namespace, reader: Reader, stream: str | None, after: int, slugs: dict[str, str]
) -> int:
    for event in reader.events(after=after, stream=stream):
        after = event.position
        if arguments.type is None or fnmatchcase(event.type, arguments.type):
            say(shapes.encoded(shapes.event(event)) if arguments.json else _line(event, slugs))
    return after


def _line(event: Envelope, slugs: dict[str, str]) -> str:
    lane = lane_of(event.stream)
    who = slugs.get(lane, lane[:8]) if lane else "-"
    return f"{event.position:>5}  {clock(event.time)}  {who:<16} {event.type:<24} {words(event)}"


def words(event: Envelope) -> str:
    """Returns what happened in one line."""
    return legible(sentence(event.fact))


def _follow(
    arguments: Namespace, reader: Reader, stream: str | None, position: int, slugs: dict[str, str]
) -> None:
    import sys

    from adapters.watcher import hints

    seen = -1
    for _ in hints(config.load(arguments.state_dir).state_dir):
        changed = reader.changed()
        if changed != seen:
            seen = changed
            slugs |= {str(row["id"]): str(row["slug"]) for row in reader.lanes()}
            position = _print_events(arguments, reader, stream, position, slugs)
            sys.stdout.flush()


def run_diff(arguments: Namespace) -> int:
    """Prints which lanes differ between two positions, and in what."""
    reader = open_reader(arguments)
    if reader is None:
        raise NoSuchPosition(arguments.after, 0)
    with reader:
        for position in (arguments.before, arguments.after):
            _require_position(reader, position)
        before, after = (_table_at(reader, at) for at in (arguments.before, arguments.after))
    changes = [_change(lane, before.get(lane), after.get(lane)) for lane in sorted({*before, *after})]
    changes = [each for each in changes if each["changed"]]
    if arguments.json:
        say(shapes.encoded({"from": arguments.before, "to": arguments.after, "lanes": changes}))
        return DONE
    for each in changes:
        say(f"{each['slug']}")
        for field, (old, new) in each["changed"].items():
            say(f"  {field.replace('_', ' '):<12} {_value(old)} -> {_value(new)}")
    if not changes:
        say("no lane differs")
    return DONE


def _value(value: object) -> str:
    return "-" if value is None else legible(str(value))


def _table_at(reader: Reader, position: int) -> dict[str, Record]:
    rows = records(lanes_table.TABLE, reader.fold(position).table(lanes_table.TABLE))
    return {str(row["id"]): row for row in rows}


def _change(lane: str, before: Record | None, after: Record | None) -> dict[str, Any]:
    names = [each for each in lanes_table.TABLE.names if each not in ("position", "version")]
    old, new = before or dict.fromkeys(names), after or dict.fromkeys(names)
    changed = {each: [old[each], new[each]] for each in names if old[each] != new[each]}
    return {"id": lane, "slug": new["slug"] or old["slug"], "changed": changed}
