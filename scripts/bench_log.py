"""Times the journal against bare SQLite inserts of the same bytes, in turns, and the folding of 100,000 events."""

import argparse
import json
import sys
import tempfile
from collections import deque
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter as now

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from adapters.store import codec, connection, fold, journal  # noqa: E402
from domain.lane import INITIAL, Lane, evolve  # noqa: E402
from tests.adapters.store import lives  # noqa: E402


def appended(path: Path, waiting: int) -> float:
    requests, flight = list(lives.interleaved(128, 64)), deque[journal.Future[journal.Committed]]()
    with closing(journal.Journal(bytes(path), lives.noon)) as log:
        start = now()
        for request in requests:
            if len(flight) == waiting:
                flight.popleft().result()
            flight.append(log.submit(request))
        for promise in flight:
            promise.result()
        return len(requests) / (now() - start)


def inserted(path: Path, source: Path) -> float:
    with (
        closing(connection.connect(bytes(source))) as reader,
        closing(connection.connect(bytes(path))) as bare,
    ):
        connection.initialise(bare)
        events, start = reader.execute("SELECT * FROM event").fetchall(), now()
        for event in events:
            bare.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", event)
        return len(events) / (now() - start)


def one_round(folder: Path, rows: list[codec.Row]) -> dict[str, float]:
    rates = {f"at_{n}": appended(folder / f"{n}.db", n) for n in (1, 16, 64)}
    bare, lanes, start = inserted(folder / "bare.db", folder / "1.db"), dict[str, Lane](), now()
    for event in map(codec.decode, rows):
        lanes[event.stream] = evolve(lanes.get(event.stream, INITIAL), event.fact)
    between = now()
    fold.Fold().take_all(map(codec.decode, rows))
    each = {"fold_us": (between - start) / len(rows) * 1e6, "tables_us": (now() - between) / len(rows) * 1e6}
    return {"bare": bare, **rates, **{f"ratio_{name}": rate / bare for name, rate in rates.items()}, **each}


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--dir", default="/dev/shm" if Path("/dev/shm").is_dir() else None)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--json", action="store_true")
options, history, rounds = parser.parse_args(), list(lives.rows(6250)), []
for _ in range(options.rounds):
    with tempfile.TemporaryDirectory(dir=options.dir) as scratch:
        rounds.append(one_round(Path(scratch), history))
found = {name: round(median(each[name] for each in rounds), 3) for name in rounds[0]}
print(
    json.dumps(found)
    if options.json
    else "\n".join(f"{name:12} {value:>12,}" for name, value in found.items())
)
