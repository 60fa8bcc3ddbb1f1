"""Times Laneyard side by side with plain git, bare SQLite and a Python that does nothing, in one run.

Every ratio is the median over the rounds of those within one pair; both of a pair run right after each other.
The journal is measured in the scratch directory and, as only a disk makes a commit durable, in the checkout.
On a tmpfs an fsync and an unlink cost next to nothing; `--dir` on a disk shows what they cost there. With
10,000 files and 5 rounds, the default, it takes about two minutes and half a gigabyte; with 100,000
files about ten minutes and three gigabytes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import trio

from tests.bench import log, rounds, table
from tests.bench.scene import Scene, build
from tests.bench.served import served

MEMORY = Path("/dev/shm")
MANY, FEW = 128, 16  # lanes whose lives are written to the log: in the scratch directory, on the disk
STARTS = 4  # of a whole process in each round: it is short, and its time scatters


def main() -> int:
    options = parsed()
    rows: list[table.Row] = []
    with tempfile.TemporaryDirectory(prefix="laneyard-bench-", dir=options.dir) as scratch:
        for files in options.files:
            tell(f"{files:,} files, {options.rounds} rounds")
            scene = build(Path(scratch) / str(files), files)
            rows += table.of_lanes(files, trio.run(rounds.lived, scene, options.rounds))
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
    sys.stdout.write((table.encoded(rows) if options.json else table.drawn(rows)) + "\n")
    return 0


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, nargs="+", default=[10_000], help="sizes of the repository")
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
