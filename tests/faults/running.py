"""The real command line in a process of its own, which may be told at which point to die."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from adapters.cli import main
from adapters.git import door
from tests.faults.accounts import owned
from tests.faults.lives import BY_NAME, Life
from tests.faults.points import Point, install
from tests.sagas.crashes import begun, ended, made, scratch
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Hear = Callable[[Point], None]

RECOVER = "sweep"  # only looks, once what was interrupted is driven on
SECONDS = 180  # after which a process is stuck
KILLED = -signal.SIGKILL


class Kill(msgspec.Struct, frozen=True):
    """A point by its name, which of its times, and whether all that we started dies with us."""

    point: str
    time: int = 0
    machine: bool = False


class Scene(msgspec.Struct, frozen=True):
    """A world in which a command can be said: where its log begins, and what the user has before it."""

    life: Life
    world: World
    begins: int
    had: dict[bytes, str]


@contextmanager
def scene(name: str) -> Iterator[Scene]:
    """Makes the world of a life, in a directory of its own, and takes it away again."""
    life = BY_NAME[name]
    with scratch() as home:
        world, begins = made(home, life)
        state = home / "state"
        state.mkdir(mode=0o700, exist_ok=True)
        settings = f'quarantine.retention = "{life.retention}"\ngit.program = "{world.program}"\n'
        (state / "config.toml").write_text(settings)
        yield Scene(life, world, begins, owned(world))


def run(world: World, line: str, hear: Hear | None = None) -> int:
    """Says a line to the real command line and returns how that ended."""
    return ended(say(world, line, hear))


def say(world: World, line: str, hear: Hear | None = None) -> int:
    """Says a line to the real command line in a process of its own, and returns that process's id."""
    return begun(lambda: os._exit(as_a_user(world, line, hear)))


def as_a_user(world: World, line: str, hear: Hear | None) -> int:
    """Says a line in this process, which is for nothing else, and returns the exit code."""
    signal.alarm(SECONDS)
    os.environ.clear()
    os.environ.update(world.environment, LANEYARD_STATE_DIR=str(world.home / "state"))
    os.chdir(world.root)
    said = os.open(world.home / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor, instead in ((0, os.open(os.devnull, os.O_RDONLY)), (1, said), (2, said)):
        os.dup2(instead, descriptor)
    if hear is not None:
        install(hear)
    code = main(line.split())
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def said(world: World) -> str:
    """Returns the last that was told to the user."""
    return " ".join((world.home / "said").read_text(errors="replace").split()[-40:])


def record(home: Path) -> Hear:
    """Returns what writes down every point that is heard of."""
    file = os.open(home / "points", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    write = os.write  # before it is one of those that are listened to

    def hear(point: Point) -> None:
        write(file, f"{point.name}\n".encode())

    return hear


def recorded(home: Path) -> dict[str, int]:
    """Returns what was written down: each point in the order of its first time, and how often it came."""
    return dict(Counter((home / "points").read_text().splitlines()))


def killing(kill: Kill) -> Hear:
    """Returns what kills its own process when the point comes."""
    times = itertools.count()

    def hear(point: Point) -> None:
        if point.name == kill.point and next(times) == kill.time:
            if kill.machine:
                door.abandon_all()
            os.kill(os.getpid(), signal.SIGKILL)

    return hear
