"""Everything about one lane: its state, what is seen of it now, its snapshots, its journal, the next step."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from adapters import config
from adapters.cli import DONE, shapes
from adapters.cli.output import WORDS, clock, count, legible, say, several
from adapters.cli.reading import drive_on, open_reader, words
from adapters.cli.scope import scope
from adapters.lookup import find_lane
from domain.envelope import stream_of
from domain.errors import NoSuchLane
from domain.naming import short_branch
from domain.paths import display, unpack
from domain.states import Active, Failed, NeedsReview, Nowhere, Quarantined, Reaped

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable

    from adapters.store.reader import Reader, Record
    from domain.envelope import Envelope
    from domain.evidence import Place, Snapshot
    from domain.states import Lane

LAST = 5  # events of the lane's journal that are shown


def run_show(arguments: Namespace) -> int:
    """Prints everything about a lane, after driving on what was interrupted."""
    drive_on(arguments)
    return show(arguments)


def show(arguments: Namespace) -> int:
    """Prints everything about a lane as the log has it, without driving anything on."""
    reader = open_reader(arguments)
    if reader is None:
        raise NoSuchLane(arguments.lane)
    with reader:
        row = find_lane(reader.lanes(), scope(arguments), arguments.lane)
        lane, _ = reader.lane(str(row["id"]))
        events = list(reader.events(stream=stream_of(str(row["id"]))))[-LAST:]
        parent = _parent(reader, row)
    observed = _look(arguments, lane)
    taken = getattr(getattr(lane, "record", None), "snapshots", ())
    if arguments.json:
        say(shapes.encoded(_shape(row, lane, observed, taken, events)))
        return DONE
    _print_state(row, lane, parent)
    _print_observed(observed)
    _print_snapshots(taken)
    _print_journal(row, events)
    say(f"next\n  {next_step(lane, row, observed)}")
    return DONE


def _parent(reader: Reader, row: Record) -> str | None:
    """Returns what people call the lane that this one was started from."""
    return next((str(each["slug"]) for each in reader.lanes() if each["id"] == row["parent"]), None)


def _look(arguments: Namespace, lane: Lane) -> dict[str, Any]:
    """Returns what an inspector sees of the lane, if it has a tree of ours to look at."""
    place = _place(lane)
    if place is None:
        return {}
    import trio

    from adapters.wiring import inspector

    return shapes.observations(trio.run(inspector(config.load(arguments.state_dir)).look, place))


def _place(lane: Lane) -> Place | None:
    match lane:
        case Active(record=record) if record.kind == "primary":
            return None
        case Active(place=place) | Quarantined(place=place):
            return place
        case NeedsReview(demolition=doomed):
            return doomed.place
        case _:
            return None


def _shape(
    row: Record, lane: Lane, observed: dict[str, Any], taken: Iterable[Snapshot], events: list[Envelope]
) -> dict[str, Any]:
    return shapes.lane(row, observed) | {
        "since": row["since"],
        "reason": getattr(lane, "reason", None),
        "snapshots": [_snapshot(each) for each in taken],
        "journal": {"owed": row["owed"], "last": [shapes.event(each) for each in events]},
        "next": next_step(lane, row, observed),
    }


def _snapshot(taken: Snapshot) -> dict[str, Any]:
    return {
        "id": taken.id,
        "ref": taken.ref,
        "commit": taken.commit,
        "entries": taken.entries,
        "bytes": taken.bytes,
        "omitted": list(taken.omitted),
    }


def next_step(lane: Lane, row: Record, observed: dict[str, Any]) -> str:
    """Returns what to do next about a lane: a command that would not be refused, or what to mend first."""
    slug = row["slug"]
    match lane:
        case _ if row["owed"] is not None:
            return "the next command finishes what was begun"
        case Active(record=record) if record.kind == "primary":
            return "nothing: the main checkout is never removed"
        case Active(place=place) | Quarantined(place=place) if not os.path.lexists(unpack(place.path)):
            return f"put its folder back: nothing is at {display(place.path)}"
        case Active() if any("unknown" in each for each in observed.values()):
            return f"mend what is unknown, then laneyard remove {slug}"
        case Active():
            return f"laneyard remove {slug}"
        case Quarantined():
            return f"laneyard restore {slug}, or laneyard reap {slug}"
        case NeedsReview():
            return f"laneyard review {slug}"
        case Reaped(record=record) if record.snapshots:
            return f"laneyard restore {slug}"
        case Failed() | Nowhere() | Reaped():
            return "nothing: no tree, branch or directory of it is left"
        case _:  # a deletion that has given up: reaping, a creation or a restore that is being undone
            return "laneyard sweep --apply"


def _print_state(row: Record, lane: Lane, parent: str | None) -> None:
    edition = f", edition {row['edition']}" if row["edition"] else ""
    say(f"{row['slug']} is {row['state']}{edition}, since {clock(str(row['since']))}")
    base = f"{row['base_ref']} at {row['base_commit']}" if row["base_commit"] else None
    line("reason", getattr(lane, "reason", None))
    line("name", row["name"])
    line("id", row["id"])
    line("kind", row["kind"])
    line("path", display(str(row["path"])) if row["path"] else None)
    line("branch", short_branch(row["branch"] if row["branch"] is None else str(row["branch"])))
    line("head", row["head"])
    line("base", base)
    line("parent", parent)
    line("owner", row["owner"])
    line("created", clock(str(row["created_at"])))


def line(label: str, value: object) -> None:
    """Prints a labelled value, if there is one."""
    if value is not None:
        say(f"  {label:<10} {legible(str(value))}")


def _print_observed(observed: dict[str, Any]) -> None:
    if not observed:
        return
    at = next((each["at"] for each in observed.values() if "at" in each), None)
    say(f"seen now, at {clock(at)}" if at else "seen now")
    for name, value in observed.items():
        line(name.removesuffix("_now"), _observed(name, value))


def _observed(name: str, value: dict[str, Any]) -> str:
    if "unknown" in value:
        return f"unknown: {value['unknown']}"
    seen = value["value"]
    match name:
        case "changed_now" | "untracked_now" | "ignored_now":
            return several([display(each) for each in seen])
        case "obstacles_now":
            return several([f"{each['kind']} {display(each['path'])}" for each in seen])
        case "branch_now":
            return short_branch(seen) or "none: HEAD is detached"
        case _:
            return "none" if seen is None else str(seen)


def _print_snapshots(taken: Iterable[Snapshot]) -> None:
    say("snapshots")
    for each in taken:
        size = f"{count(each.entries, 'entry')}, {count(each.bytes, 'byte')}"
        omitted = f", without {count(len(each.omitted), 'path')}" if each.omitted else ""
        say(f"  {each.id}  {size}{omitted}")
    if not taken:
        say("  none")


def _print_journal(row: Record, events: list[Envelope]) -> None:
    owed = row["owed"]
    say("journal")
    say(f"  owed: {WORDS.get(str(owed), str(owed))} ({owed})" if owed else "  owed: nothing")
    for each in events:
        say(f"  {each.position:>5}  {clock(each.time)}  {each.type:<24} {words(each)}")
