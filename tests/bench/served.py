"""The service timed: its list of lanes against git's own, and our shortest command against a bare Python."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

from adapters.client.connection import Connection
from adapters.client.targets import packed, target
from tests.bench.scene import build

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.bench.rounds import Pair
    from tests.bench.scene import Scene

FILES = 20  # of the repository: what is timed does not depend on them
MAKERS = 4  # threads that make lanes
PROGRAM = "import sys; sys.path.insert(0, {root!r}); from adapters.cli import main; sys.exit(main())"
LIST = "-C {root} --state-dir {state} list"


def served(home: Path, root: Path, lanes: int, requests: int, starts: int) -> dict[str, list[Pair]]:
    """Returns the pairs of a list of so many lanes, and of the whole command, with one lane and with all."""
    scene = build(home, FILES)
    pairs: dict[str, list[Pair]] = {}
    with running(scene, root) as state:
        _make(scene, state, 1)
        pairs["list_command"] = _commands(scene, root, state, starts)
        _make(scene, state, lanes - 1)
        pairs["list"] = _lists(scene, state, requests)
        pairs["list_command_all"] = _commands(scene, root, state, starts)
    return pairs


@contextmanager
def running(scene: Scene, root: Path) -> Iterator[Path]:
    """Runs the service on a state directory of its own."""
    state = scene.home / "state"
    command = [sys.executable, "-I", "-c", PROGRAM.format(root=str(root)), "--state-dir", str(state), "serve"]
    with (scene.home / "log").open("wb") as log:
        process = subprocess.Popen(command, env=scene.environment, stderr=log)
    try:
        while not (state / "laneyard.sock").is_socket():
            if process.poll() is not None:
                raise RuntimeError((scene.home / "log").read_text())
            time.sleep(0.01)
        yield state
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _make(scene: Scene, state: Path, lanes: int) -> None:
    """Makes lanes, by several clients at the same time."""

    def some(numbers: range) -> None:
        with Connection(bytes(state / "laneyard.sock")) as connection:
            for _ in numbers:
                said = json.dumps({"repository": packed(bytes(scene.root)), "name": "bench"}).encode()
                headers = {"Content-Type": "application/json", "Prefer": "wait=60"}
                answer = connection.request("POST", "/v1/lanes", headers, said)
                if answer.status != 201:
                    raise RuntimeError(answer.body.decode())

    with ThreadPoolExecutor(MAKERS) as pool:
        shares = [range(number, lanes, MAKERS) for number in range(MAKERS)]
        list(pool.map(some, shares))
    time.sleep(0.1)  # what is younger than this is read twice, by design


def _lists(scene: Scene, state: Path, requests: int) -> list[Pair]:
    """Returns the pairs of one request on a connection that is kept, and of git's list as a process."""
    address = target("/v1/lanes", repository=packed(bytes(scene.root)))
    pairs = []
    with Connection(bytes(state / "laneyard.sock")) as connection:
        for _ in range(requests):
            start = perf_counter()
            answer = connection.request("GET", address, {"Accept": "application/json"})
            middle = perf_counter()
            scene.git(scene.root, "worktree", "list", "--porcelain", "-z")
            pairs.append((middle - start, perf_counter() - middle))
            if answer.status != 200:
                raise RuntimeError(answer.body.decode())
    return pairs


def _commands(scene: Scene, root: Path, state: Path, times: int) -> list[Pair]:
    """Returns the pairs of the whole command, as it is installed, and of a Python that does nothing."""
    program = [str(root / "scripts/laneyard"), *LIST.format(root=scene.root, state=state).split()]
    pairs = []
    for _ in range(times):
        spans = []
        for command in (program, [sys.executable, "-c", "pass"]):
            start = perf_counter()
            subprocess.run(command, env=scene.environment, check=True, stdout=subprocess.DEVNULL)
            spans.append(perf_counter() - start)
        pairs.append((spans[0], spans[1]))
    return pairs
