"""All the kills there are: which they are, and what came of them."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

import msgspec

from tests.faults import served
from tests.faults.judging import Judgement, reference
from tests.faults.lives import LIVES
from tests.faults.points import loaded
from tests.faults.running import Kill
from tests.faults.trials import both, points_of_recovery, trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Task = TypeVar("Task")
PARTS = 4  # of a recovery, in each of which it is killed again
SEVERAL = 4  # times: a point that comes more often is killed at the first two, in the middle and at the last


class Killed(msgspec.Struct, frozen=True):
    """One kill of a life, or one after another, and what came of it."""

    life: str
    kills: tuple[Kill, ...]
    judgement: Judgement

    def __str__(self) -> str:
        then = ", then ".join(f"{each.point} #{each.time}" for each in self.kills)
        return f"{self.life}: {then}: {self.judgement.end} {' | '.join(self.judgement.faults)}"


def points(names: str = "*", *, by_service: bool = False) -> dict[str, dict[str, int]]:
    """Returns of each life its points and how often each comes, in a command or in the service."""
    loaded()
    wanted = [each.name for each in LIVES if fnmatchcase(each.name, names)]
    return {each: served.usual(each)[1] if by_service else reference(each).points for each in wanted}


def kills(found: dict[str, int], which: str = "*") -> list[Kill]:
    """Returns the kills of one life: with every other one the whole machine stops."""
    wanted = [Kill(name, time) for name, times in found.items() for time in chosen(times)]
    return [
        Kill(each.point, each.time, number % 2 == 0)
        for number, each in enumerate(wanted)
        if fnmatchcase(each.point, which)
    ]


def chosen(times: int) -> list[int]:
    """Returns which times of so many."""
    return list(range(times)) if times <= SEVERAL else [0, 1, times // 2, times - 1]


def once(task: tuple[str, Kill]) -> list[Killed]:
    """Kills a command."""
    life, kill = task
    return [Killed(life, (kill,), _tried(lambda: trial(life, kill)))]


def deep(task: tuple[str, Kill]) -> list[Killed]:
    """Kills a command and, where that leaves something to do, its recovery at several points."""
    life, kill = task
    second = kills(points_of_recovery(life, kill))
    at = sorted({len(second) * part // PARTS + len(kill.point) % 3 for part in range(PARTS)})
    pairs = [(kill, second[each]) for each in at if each < len(second)]
    return [Killed(life, pair, _tried(lambda pair=pair: trial(life, *pair))) for pair in pairs]  # type: ignore[misc]


def at_once(task: tuple[str, Kill]) -> list[Killed]:
    """Kills a command and starts two recoveries at the same time."""
    life, kill = task
    return [Killed(life, (kill,), _tried(lambda: both(life, kill)))]


def service(task: tuple[str, Kill]) -> list[Killed]:
    """Kills a service."""
    life, kill = task
    return [Killed(life, (kill,), _tried(lambda: served.trial(life, kill)))]


def _tried(work: Callable[[], Judgement]) -> Judgement:
    """Judges, also what nobody came to the end of."""
    try:
        return work()
    except AssertionError as error:
        return Judgement("stuck", stuck=(" ".join(str(error).split())[:400],))


def killed(work: Callable[[Task], Sequence[Killed]], tasks: Sequence[Task], jobs: int) -> Iterator[Killed]:
    """Does the work, so many at a time, and yields what came of each in the order of the tasks."""
    if jobs == 1:
        for task in tasks:
            yield from work(task)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), loaded) as pool:
        for found in pool.map(work, tasks):
            yield from found
