"""Starts the program in an instant: one process has everything imported, and forks.

It adopts what outlives the program that started it, so that the death of a whole machine can be played.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import subprocess
import sys
import traceback
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGKILL
from threading import Lock
from time import monotonic, sleep
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).parents[2]
HEAVY = (
    *("adapters.cli.parser", "adapters.cli.failures", "adapters.cli.serving", "adapters.cli.engine"),
    *("adapters.cli.looking", "adapters.cli.upkeep", "adapters.cli.doctor", "adapters.cli.thin"),
)
SUBREAPER = 36  # prctl(2)
TURN = 0.002  # seconds between two looks at whether a process has ended


class Started:
    """A process of the starter's; as much of `subprocess.Popen` as the tests use."""

    def __init__(self, starter: Starter, pid: int) -> None:
        self._starter, self.pid = starter, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Returns the exit code, negative for a signal, or None while it runs."""
        if self.returncode is None:
            self.returncode = self._starter.ask(verb="poll", pid=self.pid)
        return self.returncode

    def wait(self, timeout: float = 60.0) -> int:
        """Waits for the end and returns the exit code."""
        end = monotonic() + timeout
        while (code := self.poll()) is None:
            if monotonic() > end:
                raise subprocess.TimeoutExpired("laneyard", timeout)
            sleep(TURN)
        return code

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless it has ended: its id is its own until `poll` has said so."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kills it, and nothing that it has started."""
        self.send_signal(SIGKILL)


class Starter:
    """The process that forks. Any thread may ask it."""

    def __init__(self) -> None:
        self._gate = Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.starting"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **said: object) -> Any:  # noqa: ANN401
        """Asks, and returns what is answered."""
        given, taken = self._process.stdin, self._process.stdout
        assert given is not None
        assert taken is not None
        with self._gate:
            given.write(json.dumps(said) + "\n")
            given.flush()
            return json.loads(taken.readline())

    def launch(
        self, argv: Sequence[str], place: Path, environment: Mapping[str, str], log: IO[bytes]
    ) -> Started:
        """Runs the program with these arguments in a fork, in this directory and environment only."""
        where = os.readlink(f"/proc/self/fd/{log.fileno()}")
        pid = self.ask(
            verb="start", argv=list(argv), place=str(place), environment=dict(environment), log=where
        )
        return Started(self, pid)

    def storm(self, keeping: Sequence[int] = ()) -> int:
        """Kills whatever was started and whatever that has started; returns how many were not the program."""
        return int(self.ask(verb="storm", keeping=list(keeping)))

    def close(self) -> None:
        """Kills what is left, and ends."""
        self.storm()
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()


@contextmanager
def starter() -> Iterator[Starter]:
    """Lends a starter, and leaves nothing that it has started."""
    lent = Starter()
    try:
        yield lent
    finally:
        lent.close()


def _serve() -> None:
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    for name in HEAVY:
        importlib.import_module(name)
    ended: dict[int, int] = {}
    mine: set[int] = set()
    answer: int | None
    for line in sys.stdin:
        said = json.loads(line)
        match said["verb"]:
            case "start":
                mine.add(answer := _fork(said))
                ended.pop(answer, None)  # that was another's, which had the number before
            case "storm":
                answer = _storm(ended, mine, set(said["keeping"]))
            case _:
                _reap(ended)
                answer = ended.get(said["pid"])
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _fork(said: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        os.setsid()
        nothing, log = os.open(os.devnull, os.O_RDONLY), os.open(said["log"], os.O_WRONLY | os.O_APPEND)
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.closerange(3, 64)
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
        os.chdir(said["place"])
        os.environ.clear()
        os.environ.update(said["environment"])
        from adapters.cli import main

        code = main(said["argv"])
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError, AttributeError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _reap(ended: dict[int, int]) -> None:
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = os.waitstatus_to_exitcode(found[1])


def _storm(ended: dict[int, int], mine: set[int], keeping: set[int]) -> int:
    """Kills until nothing is left: what a dead process has started comes to us."""
    others: set[int] = set()
    while found := _children() - keeping:
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, SIGKILL)
        others |= found - mine
        sleep(TURN / 4)
        _reap(ended)
    return len(others)


def _children() -> set[int]:
    """Returns our children that have not ended."""
    with open(f"/proc/self/task/{os.getpid()}/children", "rb") as file:
        return {int(each) for each in file.read().split()}


if __name__ == "__main__":
    _serve()
