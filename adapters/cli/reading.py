"""The commands that only read. They need no lock; `list` first drives on what was interrupted."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from adapters import config
from adapters.cli import DONE, shapes
from adapters.cli.glance import glance
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

CHANGED = "*"  # after a value that has changed since it was recorded


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
    seen = [glance(row, now()) if arguments.at is None else {} for row in rows]
    if arguments.json:
        say(shapes.encoded([shapes.lane(*each) for each in zip(rows, seen, strict=True)]))
    elif not rows:
        say("no lanes; 'laneyard create NAME' makes one")
    else:
        _print_lanes([_cells(*each) for each in zip(rows, seen, strict=True)])
    return DONE


def _print_lanes(rows: list[tuple[str, ...]]) -> None:
    table(("LANE", "STATE", "BRANCH", "HEAD", "EDITION", "PATH"), rows)
    if any(cell.endswith(CHANGED) for _, _, branch, head, *_ in rows for cell in (branch, head)):
        say(f"{CHANGED} as it is now; 'laneyard list --json' has what was recorded beside it")


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


def _cells(row: Record, seen: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    branch, moved = _current(row, seen, "branch")
    head, grown = _current(row, seen, "head")
    shown = "(detached)" if branch is None and moved else short_branch(branch) or "-"
    path = display(str(row["path"])) if row["path"] else "-"
    cells = (shown + moved, (head or "-")[:12] + grown, str(row["edition"] or "-"), path)
    return str(row["slug"]), str(row["state"]), *cells


def _current(row: Record, seen: dict[str, dict[str, Any]], name: str) -> tuple[str | None, str]:
    """Returns what is to be shown, and a mark where that is not what was last recorded.

    Only of a lane that is worked in: one that was put away is meant to have left its branch.
    """
    recorded = None if row[name] is None else str(row[name])
    now_ = seen.get(f"{name}_now", {})
    if row["state"] != "active" or now_.get("value", recorded) == recorded:
        return recorded, ""
    return now_["value"], CHANGED


def run_log(arguments: Namespace) -> int:
    """Prints the audit log, and with `--follow` goes on with what comes."""
    reader = open_reader(arguments)
    if reader is None:
        if arguments.follow:
            raise StoreMissing(os.fsdecode(config.load(arguments.state_dir).store))
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
