"""Times the journal against bare SQLite inserts of the same bytes, in turns, and the folding of a log."""

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
from adapters.store import codec, connection, fold, journal
from domain.lane import INITIAL, evolve
from tests.adapters.store import lives


def appended(path: Path, waiting: int) -> float:
    requests, flight = list(lives.interleaved(128, 64)), deque[journal.Promise]()
    with closing(journal.Journal(bytes(path), lives.noon)) as log:
        start = now()
        for request in requests:
            if len(flight) == waiting:
                flight.popleft().result()
            flight.append(log.submit(request))
        while flight:
            flight.popleft().result()
        return len(requests) / (now() - start)


def inserted(path: Path, source: Path) -> float:
    with closing(connection.connect(bytes(source))) as full, closing(connection.connect(bytes(path))) as bare:
        connection.initialise(bare)
        events, start = full.execute("SELECT * FROM event").fetchall(), now()
        for event in events:
            bare.execute("INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)", event)
        return len(events) / (now() - start)


def one_round(folder: Path, log: list[codec.Row]) -> dict[str, float]:
    rates = {f"journal_{waiting}": appended(folder / f"{waiting}.db", waiting) for waiting in (1, 16, 64)}
    bare, lanes, start = inserted(folder / "bare.db", folder / "1.db"), dict.fromkeys([""], INITIAL), now()
    for event in map(codec.decode, log):
        lanes[event.stream] = evolve(lanes.get(event.stream, INITIAL), event.fact)
    lanes_us, start = (now() - start) / len(log) * 1e6, now()
    fold.Fold().take_all(map(codec.decode, log))
    folding = {"fold_lanes_us": lanes_us, "fold_tables_us": (now() - start) / len(log) * 1e6}
    return rates | {"bare": bare} | {f"{name}_ratio": rate / bare for name, rate in rates.items()} | folding


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--dir", default="/dev/shm" if Path("/dev/shm").is_dir() else None)
parser.add_argument("--json", action="store_true")
options, history = parser.parse_args(), list(lives.rows(6250))
with tempfile.TemporaryDirectory(dir=options.dir) as scratch:
    rounds = [one_round(Path(tempfile.mkdtemp(dir=scratch)), history) for _ in range(5)]
found = {name: round(median(each[name] for each in rounds), 3) for name in rounds[0]}
print(json.dumps(found) if options.json else "\n".join(f"{name:18} {found[name]:>12,}" for name in found))
