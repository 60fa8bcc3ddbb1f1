"""Kills of the command line: once, again while it recovers, and with two that recover at the same time."""

from __future__ import annotations

from tests.faults.judging import Judgement, judged, owing
from tests.faults.running import KILLED, RECOVER, Kill, killing, record, recorded, run, say, scene
from tests.sagas.crashes import ended

UNREACHED = Judgement("not reached")


def trial(name: str, *kills: Kill) -> Judgement:
    """Kills a command, then each recovery but the last, and judges what that makes of it."""
    with scene(name) as found:
        lines = (found.life.line, *(RECOVER for _ in kills[1:]))
        for line, kill in zip(lines, kills, strict=True):
            if run(found.world, line, killing(kill)) != KILLED:
                return UNREACHED
        return judged(found, run(found.world, RECOVER))


def points_of_recovery(name: str, kill: Kill) -> dict[str, int]:
    """Returns the points of a recovery from a kill, where that leaves something to do."""
    with scene(name) as found:
        if run(found.world, found.life.line, killing(kill)) != KILLED or not owing(found.world):
            return {}
        run(found.world, RECOVER, record(found.world.home))
        return recorded(found.world.home)


def both(name: str, kill: Kill) -> Judgement:
    """Kills a command, starts two recoveries at once, and judges what they make of it."""
    with scene(name) as found:
        if run(found.world, found.life.line, killing(kill)) != KILLED:
            return UNREACHED
        processes = [say(found.world, RECOVER) for _ in range(2)]
        return judged(found, max(map(ended, processes), key=abs))
