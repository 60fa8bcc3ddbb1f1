"""The service under mixed load for a given time: `scripts/soak [SECONDS] [--clients N] [--dir DIR]`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from time import monotonic

import msgspec
import trio

from tests.soak import load, table
from tests.soak.checks import complaints
from tests.soak.house import House, Running
from tests.soak.subscribers import NDJSON, Subscriber

EVERY = 1.0  # seconds between two samples of the process
SUBSCRIBERS = 8
PATIENCE = 60.0  # seconds for the subscribers to hear of the last event


class Sample(msgspec.Struct, frozen=True):
    """What the service's process takes at a moment."""

    seconds: float
    rss: int
    threads: int
    descriptors: int

    @classmethod
    def of(cls, pid: int, begun: float) -> Sample:
        """Looks at a process."""
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines)
        return cls(
            monotonic() - begun,
            int(status["VmRSS"].split()[0]) * 1024,
            int(status["Threads"]),
            len(os.listdir(f"/proc/{pid}/fd")),
        )


class Followers:
    """Subscribers in a thread of their own."""

    def __init__(self, socket: bytes) -> None:
        self.all = [
            Subscriber(socket, "", NDJSON) if each % 2 else Subscriber(socket) for each in range(SUBSCRIBERS)
        ]
        self._last = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=lambda: trio.run(self._run))
        self._thread.start()

    def finish(self, last: int) -> None:
        """Lets each hear of the last event, and ends."""
        self._last = last
        self._over.set()
        self._thread.join()

    async def _run(self) -> None:
        async with trio.open_nursery() as nursery:
            for each in self.all:
                nursery.start_soon(each.run)
            await trio.to_thread.run_sync(self._over.wait)
            with trio.move_on_after(PATIENCE):
                while min(each.last for each in self.all) < self._last:  # noqa: ASYNC110 (each is told apart)
                    await trio.sleep(0.01)
            nursery.cancel_scope.cancel()


def main() -> int:
    """Runs the service under load, prints what was met, and returns 0 only if all is well."""
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("seconds", type=float, nargs="?", default=60.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--dir", type=Path, help="where the scratch repositories are made")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.dir) as home:
        rows, wrong = soak(Path(home), given.seconds, given.clients)
    lines = [table.drawn(rows), *(f"WRONG: {each}" for each in wrong)]
    lines.append(f"{len(wrong)} things are wrong" if wrong else "all is well")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if wrong else 0


def soak(home: Path, seconds: float, count: int) -> tuple[list[tuple[str, ...]], list[str]]:
    """Returns what is told of a run, and what was wrong with it."""
    house, tally = House(home, "abcd"), load.Tally()
    with house.serving() as running:
        _warm(house)
        begun = monotonic()
        samples = [Sample.of(running.process.pid, begun)]
        followers = Followers(house.socket)
        clients, stop = load.start(count, house.socket, house.roots, tally)
        try:
            _watch(running, begun, seconds, samples)
            load.finish(clients, stop)
        finally:
            stop.set()
            tally.abandoned.set()
        taken = monotonic() - begun
        last = house.events()[-1].position
        followers.finish(last)
        samples.append(_settled(running, begun, samples[0]))
        code = running.stop()
    wrong = [
        *_wrong(tally, samples, code),
        *_unheard(followers.all, last),
        *complaints(house, tally.promises),
    ]
    return table.rows(tally, samples, taken, last, wrong), wrong


def _warm(house: House) -> None:
    """Uses everything once: what is kept open from then on is no leak."""
    tally, stop = load.Tally(), threading.Event()
    clients = [
        load.Client(1000 + each, house.socket, root, tally, stop) for each, root in enumerate(house.roots)
    ]
    for client in clients:
        for _ in range(WARM):
            client.turn()
        client.close()


def _watch(running: Running, begun: float, seconds: float, samples: list[Sample]) -> None:
    over = threading.Event()
    while monotonic() - begun < seconds:
        over.wait(min(EVERY, max(0.01, seconds - (monotonic() - begun))))
        assert running.process.poll() is None, running.log_text[-2000:]
        samples.append(Sample.of(running.process.pid, begun))


def _settled(running: Running, begun: float, before: Sample) -> Sample:
    """Returns the process once all clients have gone: their connections are closed a moment later."""
    end, over = monotonic() + 5, threading.Event()
    while (now := Sample.of(running.process.pid, begun)).descriptors > before.descriptors + SPARE:
        if monotonic() > end:
            return now
        over.wait(0.05)
    return now


def _wrong(tally: load.Tally, samples: list[Sample], code: int) -> list[str]:
    found = [f"{what}: {count} times" for what, count in tally.problems.items()]
    found += [f"a connection was lost: {what}, {count} times" for what, count in tally.lost.items()]
    if len(tally.promises) + sum(_refused(tally.problems).values()) != tally.keys:
        found.append(f"{tally.keys} commands, and {len(tally.promises)} answers")
    if code:
        found.append(f"the service's exit code was {code}")
    first, last = samples[0], samples[-1]
    if last.descriptors > first.descriptors + SPARE:
        found.append(f"descriptors grew from {first.descriptors} to {last.descriptors}")
    if len(samples) > 20:
        half, most = samples[len(samples) // 2].rss, max(each.rss for each in samples)
        if most > half * GROWTH + ROOM:
            found.append(f"memory grew from {half >> 20} MiB at half time to {most >> 20} MiB")
    return found


def _refused(problems: Counter[str]) -> Counter[str]:
    commands = ("create", "snapshot", "remove", "restore", "reap")
    return Counter({what: count for what, count in problems.items() if what.split(":")[0] in commands})


def _unheard(subscribers: list[Subscriber], last: int) -> list[str]:
    whole = list(range(1, last + 1))
    return [
        f"a subscriber heard {len(each.positions)} of {last}"
        for each in subscribers
        if each.positions != whole
    ]


WARM = 12  # turns of a client in each repository before anything is measured
SPARE = 16  # descriptors that are kept for the next who reads
GROWTH, ROOM = 1.2, 8 << 20  # the log's tables grow with the log
if __name__ == "__main__":
    sys.exit(main())
