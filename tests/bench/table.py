"""From pairs of times to rows with a goal, and from rows to the table that people read."""

from __future__ import annotations

import json
from statistics import median
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tests.bench.rounds import Pair

SIZE = 10_000  # files from which the goals hold: below, the start of a process is all that one sees
WORDS = {
    "create": "create / worktree add -b",
    "remove": "remove, clean and settled / worktree remove",
    "remove_fresh": "remove, right after its checkout / worktree remove",
    "look": "look at a settled lane / status",
    "floor": "git's own status / worktree remove",
    "restore": "restore from quarantine / worktree add",
    "clean": "snapshot of a clean lane / status -uall",
    "snapshot": "durable snapshot, 10 changes / add -A, write-tree",
    "durable": "durable snapshot, 10 changes / the same with core.fsync=all",
    "again": "snapshot, 500 changed and 2,000 new files, again / first",
    "reap": "reap, with its proof / rm -rf",
    "rebuild": "verified restore from snapshot / worktree add",
}
LANE_GOALS = {
    "create": 1.1,
    "remove": 0.25,
    "restore": 0.1,
    "clean": 1.2,
    "snapshot": 2.0,
    "durable": 1.3,
    "again": 0.5,
    "reap": 2.0,
    "rebuild": 1.9,
}
MEMORY_GOAL = 200  # MiB
JOURNAL_GOAL = 0.5  # of bare SQLite, with 16 commands waiting
FOLD_GOAL = 10.0  # microseconds of an event
START_GOAL = 4.0  # times a Python that does nothing
ASK_GOAL = 2.5  # the same, for a list that a service answers
LIST_GOAL = 0.2  # of git's own list of worktrees
HISTORY_GOAL = 1.3  # times the start with the shortest history
JOURNAL_GROWTH_GOAL = 1.5  # times what each of the first half of the open journals adds to a start


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison; `theirs` is git's, bare SQLite's or Python's, `ratio` the median over the pairs.

    `least` and `most` are of the ratio, or of `ours` where nothing is compared.
    """

    what: str
    unit: str
    ours: float
    theirs: float | None = None
    ratio: float | None = None
    least: float | None = None
    most: float | None = None
    goal: str = ""
    met: bool | None = None


def of_pairs(what: str, pairs: list[Pair], goal: float | None) -> Row:
    """Returns the row of pairs of seconds; at most the goal is good."""
    row = _compared(what, "ms", 1e3, pairs)
    if goal is None:
        return row
    return msgspec.structs.replace(row, goal=f"<= {goal:g}", met=(row.ratio or 0) <= goal)


def _compared(what: str, unit: str, scale: float, pairs: list[Pair]) -> Row:
    ratios = [ours / theirs for ours, theirs in pairs]
    return Row(
        what=what,
        unit=unit,
        ours=median(ours for ours, _ in pairs) * scale,
        theirs=median(theirs for _, theirs in pairs) * scale,
        ratio=median(ratios),
        least=min(ratios),
        most=max(ratios),
    )


def of_lanes(files: int, pairs: dict[str, list[Pair]]) -> list[Row]:
    """Returns a row for everything that was timed at this size, in the order of WORDS."""
    goals = LANE_GOALS | ({"remove": 0.2} if files >= 10 * SIZE else {})
    due = goals if files >= SIZE else {}
    return [of_pairs(f"{files:,} files: {WORDS[name]}", pairs[name], due.get(name)) for name in WORDS]


def of_large(megabytes: int, pairs: list[Pair]) -> Row:
    """Returns the row of a large file; what its ratio may be depends on the file system."""
    return of_pairs(f"snapshot of a new file of {megabytes} MB / cp", pairs, None)


def of_growth(measured: dict[int, dict[str, list[Pair]]]) -> list[Row]:
    """Returns how many times longer everything takes with the most files than with the fewest."""
    few, many = min(measured), max(measured)
    return [_growth(f"{few:,} to {many:,} files: {WORDS[name]}", name, measured) for name in WORDS]


def _growth(what: str, name: str, measured: dict[int, dict[str, list[Pair]]]) -> Row:
    few, many = (measured[size][name] for size in (min(measured), max(measured)))
    ours, theirs = (
        median(pair[side] for pair in many) / median(pair[side] for pair in few) for side in (0, 1)
    )
    return Row(what=what, unit="times", ours=ours, theirs=theirs, ratio=ours / theirs)


def of_memory(peaks: dict[str, float]) -> list[Row]:
    """Returns a row for each peak, in MiB, of a whole process."""
    goal = f"< {MEMORY_GOAL} MiB"
    return [
        Row(what=f"memory: {what}", unit="MiB", ours=peak, goal=goal, met=peak < MEMORY_GOAL)
        for what, peak in peaks.items()
    ]


def of_start(pairs: list[Pair]) -> Row:
    return of_pairs("laneyard --help / python -c pass", pairs, START_GOAL)


def of_served(lanes: int, pairs: dict[str, list[Pair]]) -> list[Row]:
    """Returns the rows of a service with so many lanes."""
    listed = pairs["list"]
    return [
        of_pairs(f"GET /v1/lanes, {lanes} lanes / worktree list", listed, LIST_GOAL),
        at_worst(f"GET /v1/lanes, {lanes} lanes / worktree list, 99th percentiles", listed),
        of_pairs("laneyard list, 1 lane, with a service / python -c pass", pairs["list_command"], ASK_GOAL),
        of_pairs(
            f"laneyard list, {lanes} lanes, with a service / python -c pass", pairs["list_command_all"], None
        ),
    ]


def of_recovery(spans: dict[tuple[int, int], list[float]], lanes: int) -> list[Row]:
    """Returns a row for each start, by events and open journals, beside that with the shortest history."""
    shortest = min(events for events, _ in spans)
    rows = [
        of_pairs(
            f"start, {lanes} lanes, {count} open journals: {events:,} / {shortest:,} events",
            list(zip(taken, spans[shortest, count], strict=True)),
            None if events == shortest else HISTORY_GOAL,
        )
        for (events, count), taken in spans.items()
    ]
    return [*rows, *_by_journal(spans)]


def _by_journal(spans: dict[tuple[int, int], list[float]]) -> list[Row]:
    """Returns what each open journal adds to a start, in the upper half of their numbers and in the lower."""
    counts = sorted({count for _, count in spans})
    least, middle, most = counts[0], counts[-2], counts[-1]

    def each(events: int, low: int, high: int) -> list[float]:
        pairs = zip(spans[events, low], spans[events, high], strict=True)
        return [(after - before) / (high - low) for before, after in pairs]

    return [
        of_pairs(
            f"each open journal, {events:,} events: from {middle} to {most} / from {least} to {middle}",
            [
                (median(each(events, middle, most)), median(each(events, least, middle))),
            ],
            JOURNAL_GROWTH_GOAL,
        )
        for events in sorted({events for events, _ in spans})
    ]


def at_worst(what: str, pairs: list[Pair]) -> Row:
    """Returns the row of the 99th percentiles of either side."""
    ours, theirs = (sorted(each)[len(pairs) * 99 // 100] for each in zip(*pairs, strict=True))
    return Row(what=what, unit="ms", ours=ours * 1e3, theirs=theirs * 1e3, ratio=ours / theirs)


def of_journal(where: str, pairs: dict[int, list[Pair]]) -> list[Row]:
    """Returns a row for each number of waiting commands, from pairs of events a second; more is better."""
    return [_journal(where, waiting, each) for waiting, each in pairs.items()]


def _journal(where: str, waiting: int, pairs: list[Pair]) -> Row:
    row = _compared(f"journal in {where}, {waiting} waiting / bare SQLite inserts", "events/s", 1, pairs)
    if waiting != 16:
        return row
    return msgspec.structs.replace(row, goal=f">= {JOURNAL_GOAL:g}", met=(row.ratio or 0) >= JOURNAL_GOAL)


def of_folding(spent: dict[str, list[float]]) -> list[Row]:
    """Returns a row for each thing that a log is folded into, from the microseconds that an event takes."""
    return [
        Row(
            what=f"folding an event into {name}",
            unit="us",
            ours=median(each),
            least=min(each),
            most=max(each),
            goal=f"< {FOLD_GOAL:g} us",
            met=median(each) < FOLD_GOAL,
        )
        for name, each in spent.items()
    ]


def drawn(rows: list[Row]) -> str:
    """Returns the table as text."""
    lines = [HEAD, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            f"{cell:{side}{width}}" for cell, side, width in zip(line, SIDES, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.what,
        f"{row.ours:,.1f}",
        "" if row.theirs is None else f"{row.theirs:,.1f}",
        row.unit,
        "" if row.ratio is None else f"{row.ratio:.3f}",
        "" if row.least is None else f"{row.least:.3f}-{row.most:.3f}",
        row.goal,
        {None: "", True: "yes", False: "NO"}[row.met],
    )


def encoded(rows: list[Row]) -> str:
    """Returns the rows as a JSON array."""
    return json.dumps(msgspec.to_builtins(rows), indent=1)


HEAD = ("what: ours / theirs", "ours", "theirs", "unit", "ratio", "min-max", "goal", "met")
SIDES = "<>><>><<"
