"""Times Laneyard side by side with plain git, bare SQLite and a Python that does nothing, in one run.

Every ratio is the median over the rounds of those within one pair; both of a pair run right after each other.
The journal is measured in the scratch directory and, as only a disk makes a commit durable, in the checkout.
On a tmpfs an fsync and an unlink cost next to nothing; `--dir` on a disk shows what they cost there. With
10,000 files and 5 rounds, the default, it takes about three minutes and two gigabytes; with 100,000
files about ten minutes and three gigabytes. `--growth` measures 1,000 and 100,000 files, too, and compares;
`--memory` measures the memory that lanes of 100,000 files and of a file of half a gigabyte take, and no time;
`--recovery` how long the service takes until it is ready, with journals that are open and with longer logs.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import trio

from tests.bench import log, memory, recovery, rounds, table
from tests.bench.scene import Scene, build
from tests.bench.served import served

MEMORY = Path("/dev/shm")
MANY, FEW = 128, 16  # lanes whose lives are written to the log: in the scratch directory, on the disk
GROWTH = (1_000, 10_000, 100_000)
LARGE_ROUNDS = 2  # each takes a few seconds
STARTS = 4  # of a whole process in each round: it is short, and its time scatters


def main() -> int:
    options = parsed()
    with tempfile.TemporaryDirectory(prefix="laneyard-bench-", dir=options.dir) as scratch:
        if options.recovery:
            rows = restarted(scratch, options)
        else:
            rows = remembered(scratch) if options.memory else measured(scratch, options)
    sys.stdout.write((table.encoded(rows) if options.json else table.drawn(rows)) + "\n")
    return 0


def remembered(scratch: str) -> list[table.Row]:
    """Returns the rows of memory."""
    rows = []
    for scene in memory.SCENES:
        tell(f"memory: {scene}")
        rows += table.of_memory(memory.peaks(Path(scratch) / scene.replace(" ", "-"), scene))
    return rows


def restarted(scratch: str, options: argparse.Namespace) -> list[table.Row]:
    """Returns the rows of starts."""
    spans: dict[recovery.Cell, list[float]] = {}
    for events in options.histories:
        tell(f"starts with {events:,} events")
        spans |= recovery.recovered(Path(scratch), (events,), lanes=options.lanes, rounds=options.rounds)
    return table.of_recovery(spans, options.lanes)


def measured(scratch: str, options: argparse.Namespace) -> list[table.Row]:
    """Returns the rows of time."""
    rows: list[table.Row] = []
    lived = {}
    for files in GROWTH if options.growth else options.files:
        tell(f"{files:,} files, {options.rounds} rounds")
        scene = build(Path(scratch) / str(files), files)
        lived[files] = trio.run(rounds.lived, scene, options.rounds)
        rows += table.of_lanes(files, lived[files])
        shutil.rmtree(scene.home)
    if options.growth:
        rows += table.of_growth(lived)
    tell(f"a file of {options.large} MB")
    scene = build(Path(scratch) / "large", FEW)
    rows.append(
        table.of_large(options.large, trio.run(rounds.with_large_file, scene, options.large, LARGE_ROUNDS))
    )
    shutil.rmtree(scene.home)
    return rows + others(scratch, options)


def others(scratch: str, options: argparse.Namespace) -> list[table.Row]:
    """Returns the rows of the program's start, the service and the log."""
    rows: list[table.Row] = []
    environment = Scene(Path(scratch)).environment
    tell("starts")
    rows.append(table.of_start(rounds.started(environment, STARTS * options.rounds)))
    tell(f"a service with {options.lanes} lanes")
    asked = served(
        Path(scratch) / "served", rounds.ROOT, options.lanes, 40 * options.rounds, STARTS * options.rounds
    )
    rows += table.of_served(options.lanes, asked)
    tell("the log")
    rows += table.of_journal("scratch", log.journalled(scratch, MANY, options.rounds))
    rows += table.of_journal("the checkout", on_disk(options.rounds))
    rows += table.of_folding(log.folded(options.rounds))
    return rows


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, nargs="+", default=[10_000], help="sizes of the repository")
    parser.add_argument("--growth", action="store_true", help="1,000, 10,000 and 100,000 files")
    parser.add_argument("--large", type=int, default=600, help="megabytes of a large file")
    parser.add_argument("--memory", action="store_true", help="measure memory instead of time")
    parser.add_argument("--recovery", action="store_true", help="measure starts of the service instead")
    parser.add_argument(
        "--histories", type=int, nargs="+", default=recovery.HISTORIES, help="events, for --recovery"
    )
    parser.add_argument("--lanes", type=int, default=500, help="of the service")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dir", default=str(MEMORY) if MEMORY.is_dir() else None)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def tell(what: str) -> None:
    sys.stderr.write(f"bench: {what}\n")


def on_disk(times: int) -> dict[int, list[log.Pair]]:
    """Returns the journal's pairs where the checkout is: only a disk makes a commit cost what it costs."""
    with tempfile.TemporaryDirectory(dir=rounds.ROOT / ".venv") as scratch:
        return log.journalled(scratch, FEW, times)


sys.exit(main())
