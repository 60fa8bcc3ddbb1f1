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
from tests.bench.scene import captured_by_git, dirty, settle

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from adapters.yard.yard import Yard
    from tests.bench.scene import Scene

    Work = Callable[[], Awaitable[None] | object]

ROOT = Path(__file__).resolve().parents[2]

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
        await self._with_work(lane, theirs, branch, turn)

    async def _with_work(self, lane: Lane, theirs: Path, branch: str, turn: bool) -> None:
        dirty(lane.path)
        dirty(theirs)
        await self._pair("snapshot", turn, lane.snapshot, lambda: captured_by_git(self.scene, theirs))
        await lane.remove()
        await self._pair("reap", turn, lane.reap, lambda: subprocess.run(["rm", "-rf", theirs], check=True))
        self.scene.git(self.scene.root, "worktree", "prune")
        await self._pair("rebuild", turn, lane.restore, lambda: self._add(theirs, branch))
        shutil.rmtree(lane.path)  # its life is over: what follows is not timed, and nobody misses the lane
        shutil.rmtree(theirs)
        self.scene.git(self.scene.root, "worktree", "prune")

    async def _pair(self, name: str, turn: bool, ours: Work, gits: Work) -> None:
        if turn:
            later = await timed(gits)
            self.pairs[name].append((await timed(ours), later))
        else:
            self.pairs[name].append((await timed(ours), await timed(gits)))

    def _status(self, theirs: Path) -> None:
        self.scene.git(theirs, "status", "--porcelain", GIT_OPTIONAL_LOCKS="0")

    def _add(self, *arguments: str | Path) -> None:
        self.scene.git(self.scene.root, "worktree", "add", *arguments)

    def _remove(self, theirs: Path) -> None:
        self.scene.git(self.scene.root, "worktree", "remove", theirs)
