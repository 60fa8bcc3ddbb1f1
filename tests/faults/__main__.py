"""Kills the program wherever it can be killed, and tells what the next start makes of it."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.faults import page, random_kills
from tests.faults.matrix import Killed, at_once, deep, killed, kills, once, points, service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.faults.running import Kill

SELDOM = 25
PAGE = Path(__file__).parents[2] / "docs/crash-matrix.md"


def main() -> int:
    """Does what was asked for; returns 1 if anything is lost, stuck, left about or wrong."""
    asked = _asked()
    if asked.random:
        return random_kills.main(["--kills", str(asked.random)])
    found = points(asked.scenario, by_service=asked.service)
    if not found:
        sys.stderr.write(f"there is no scenario {asked.scenario}\n")
        return 2
    if asked.list:
        _list(found)
        return 0
    parts: tuple[page.Part, ...]
    if asked.write:
        parts = every = _every_way(asked)
        PAGE.write_text(page.page(*every), encoding="utf-8")
    else:
        work = deep if asked.deep else at_once if asked.both else service if asked.service else once
        parts = (_part(asked, found, work, asked.deep or asked.both or asked.sample),)
    for part in parts:
        sys.stdout.write(f"{part}\n{page.places(part.found)}\n")
    return 1 if any(each.judgement.faults for part in parts for each in part.found) else 0


def _every_way(asked: argparse.Namespace) -> tuple[page.Part, page.Part, page.Part, page.Part]:
    found, by_service = points(), points(by_service=True)
    return (
        _part(asked, found, once),
        _part(asked, found, deep, SELDOM),
        _part(asked, found, at_once, SELDOM),
        _part(asked, by_service, service),
    )


def _part(
    asked: argparse.Namespace,
    found: dict[str, dict[str, int]],
    work: Callable[[tuple[str, Kill]], list[Killed]],
    every: int = 1,
) -> page.Part:
    tasks = [(life, each) for life, times in found.items() for each in kills(times, asked.point)][::every]
    return page.Part(found, _watched(killed(work, tasks, asked.jobs), len(tasks)))


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/crash-matrix", description=__doc__)
    parser.add_argument("--list", action="store_true", help="only name the points, and how often each comes")
    parser.add_argument("--scenario", default="*", metavar="NAME", help="only this one, or those of a GLOB")
    parser.add_argument("--point", default="*", metavar="GLOB", help="only points with such a name")
    parser.add_argument("--sample", type=int, default=1, metavar="N", help="only every Nth kill")
    ways = parser.add_mutually_exclusive_group()
    for way, told in (("--deep", "kill the recovery, too"), ("--both", "start two recoveries at once")):
        ways.add_argument(
            way, type=int, nargs="?", const=SELDOM, metavar="N", help=f"{told}, after every Nth kill"
        )
    ways.add_argument("--random", type=int, metavar="N", help="kill at N random moments, under load")
    ways.add_argument("--service", action="store_true", help="kill the service instead of the command line")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="how many at a time")
    parser.add_argument("--write", action="store_true", help=f"in every way, and write {PAGE.name}")
    asked = parser.parse_args()
    in_part = (asked.deep, asked.both, asked.random, asked.service, asked.sample > 1)
    if asked.write and (any(in_part) or (asked.scenario, asked.point) != ("*", "*")):
        parser.error("--write is for the whole matrix: the page does not say what was left out")
    return asked


def _watched(results: Iterable[Killed], count: int) -> list[Killed]:
    begun = time.monotonic()
    seen: list[Killed] = []
    for number, each in enumerate(results, 1):
        seen.append(each)
        if each.judgement.faults or each.judgement.end == "not reached":
            sys.stderr.write(f"{each}\n")
        if number % 100 == 0:
            sys.stderr.write(f"{number} of {count}, {time.monotonic() - begun:.0f} s\n")
    return seen


def _list(found: dict[str, dict[str, int]]) -> None:
    for life, times in found.items():
        for name, count in times.items():
            sys.stdout.write(f"{life}: {name} ({count})\n")
    total = sum(sum(times.values()) for times in found.values())
    sys.stdout.write(f"{total} points, {sum(map(len, found.values()))} places, {len(found)} scenarios\n")


if __name__ == "__main__":
    sys.exit(main())
