"""What is timed, in pairs: ours and git's, one right after the other, the next round the other way round."""

from __future__ import annotations

import inspect
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from adapters.config import load
from adapters.wiring import open_yard
from tests.bench.ours import Lane
from tests.bench.scene import captured_by_git, dirty, settle, write_large

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from adapters.yard.yard import Yard
    from tests.bench.scene import Scene

    Work = Callable[[], Awaitable[None] | object]

ROOT = Path(__file__).resolve().parents[2]

CHANGED, NEW = 500, 2_000  # files of a lane that is captured twice
DURABLE = ("-c", "core.fsync=all")

Pair = tuple[float, float]  # seconds: ours, git's


async def timed(work: Work) -> float:
    start = perf_counter()
    done = work()
    if inspect.isawaitable(done):
        await done
    return perf_counter() - start


async def lived(scene: Scene, rounds: int) -> dict[str, list[Pair]]:
    """Returns the pairs of everything that happens to a lane."""
    settings = load(str(scene.home / "state"), scene.environment)
    async with open_yard(settings) as (yard, _):
        course = Course(scene, yard)
        for number in range(rounds):
            await course.round(number)
    return dict(course.pairs)


async def with_large_file(scene: Scene, megabytes: int, rounds: int) -> list[Pair]:
    """Returns the pairs of a snapshot of one new file of this size, and of its copy."""
    pairs = []
    for number in range(rounds):
        state = scene.home / f"state-{number}"
        async with open_yard(load(str(state), scene.environment)) as (yard, _):
            lane = Lane(yard, scene.root, f"large-{number}")
            await lane.create()
            settle(scene, lane.path)
            copied = await timed(_copy(lane.path / "large", scene.home / "copy", megabytes))
            pairs.append((await timed(lane.snapshot), copied))
            shutil.rmtree(lane.path)
        (scene.home / "copy").unlink()
        shutil.rmtree(state)
    return pairs


def _copy(file: Path, copy: Path, megabytes: int) -> Work:
    """Writes the file, and returns what copies it."""
    write_large(file, megabytes)
    return lambda: subprocess.run(["cp", file, copy], check=True)


def started(environment: dict[str, str], times: int) -> list[Pair]:
    """Returns the pairs of our shortest command and of the shortest Python."""
    program, python = [str(ROOT / "scripts/laneyard"), "--help"], [sys.executable, "-c", "pass"]
    subprocess.run(program, env=environment, check=True, stdout=subprocess.DEVNULL)  # sets up what is not yet
    pairs = []
    for _ in range(times):
        spans = []
        for command in (program, python):
            start = perf_counter()
            subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
            spans.append(perf_counter() - start)
        pairs.append((spans[0], spans[1]))
    return pairs


@dataclass
class Course:
    """One lane of ours beside one worktree of git's, both led through the same life."""

    scene: Scene
    yard: Yard
    pairs: dict[str, list[Pair]] = field(default_factory=lambda: defaultdict(list))

    async def round(self, number: int) -> None:
        lane = Lane(self.yard, self.scene.root, f"lane-{number}")
        theirs = self.scene.home / f"worktree-{number}"
        branch = f"branch-{number}"
        turn = number % 2 == 1
        await self._pair("create", turn, lane.create, lambda: self._add("-b", branch, theirs))
        await self._pair("remove_fresh", turn, lane.remove, lambda: self._remove(theirs))
        await self._pair("restore", turn, lane.restore, lambda: self._add(theirs, branch))
        settle(self.scene, lane.path, theirs)
        await self._pair("look", turn, lane.look, lambda: self._status(theirs))
        await self._pair("remove", turn, lane.remove, lambda: self._remove(theirs))
        self.pairs["floor"].append((self.pairs["look"][-1][1], self.pairs["remove"][-1][1]))
        await lane.restore()
        self._add(theirs, branch)
        settle(self.scene, lane.path, theirs)
        await self._pair("clean", turn, lane.snapshot, lambda: self._status(theirs, "-uall"))
        await self._with_work(lane, theirs, branch, turn)

    async def _with_work(self, lane: Lane, theirs: Path, branch: str, turn: bool) -> None:
        dirty(lane.path, f"ours {branch}")
        dirty(theirs, f"git's {branch}")
        await self._pair("snapshot", turn, lane.snapshot, lambda: captured_by_git(self.scene, theirs))
        dirty(theirs, f"git's, durably {branch}")
        durable = await timed(lambda: captured_by_git(self.scene, theirs, *DURABLE))
        self.pairs["durable"].append((self.pairs["snapshot"][-1][0], durable))
        await lane.remove()
        await self._pair("reap", turn, lane.reap, lambda: subprocess.run(["rm", "-rf", theirs], check=True))
        self.scene.git(self.scene.root, "worktree", "prune")
        await self._pair("rebuild", turn, lane.restore, lambda: self._add(theirs, branch))
        await self._twice(lane, branch)
        shutil.rmtree(lane.path)  # its life is over: what follows is not timed, and nobody misses the lane
        shutil.rmtree(theirs)
        self.scene.git(self.scene.root, "worktree", "prune")

    async def _twice(self, lane: Lane, salt: str) -> None:
        settle(self.scene, lane.path)
        dirty(lane.path, f"often {salt}", CHANGED, NEW)
        first = await timed(lane.snapshot)
        self.pairs["again"].append((await timed(lane.snapshot), first))

    async def _pair(self, name: str, turn: bool, ours: Work, gits: Work) -> None:
        if turn:
            later = await timed(gits)
            self.pairs[name].append((await timed(ours), later))
        else:
            self.pairs[name].append((await timed(ours), await timed(gits)))

    def _status(self, theirs: Path, *options: str) -> None:
        self.scene.git(theirs, "status", "--porcelain", *options, GIT_OPTIONAL_LOCKS="0")

    def _add(self, *arguments: str | Path) -> None:
        self.scene.git(self.scene.root, "worktree", "add", *arguments)

    def _remove(self, theirs: Path) -> None:
        self.scene.git(self.scene.root, "worktree", "remove", theirs)
