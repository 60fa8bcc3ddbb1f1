"""Thousands of round trips by hand: counts per class and outcome, and every difference, shrunk."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import groupby

from tests.roundtrip.cases import Case, Outcome, composed, tried
from tests.roundtrip.scene import CLASSES, MOVES


def main() -> int:
    """Runs what was asked for; returns 1 if anything differs."""
    asked = _asked()
    begun, cases = time.monotonic(), _cases(asked)
    counts: Counter[tuple[int, str]] = Counter()
    differing = []
    with ProcessPoolExecutor(asked.jobs, multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(tried, case, shrink=not asked.raw) for case in cases]
        for number, each in enumerate(as_completed(waiting), 1):
            case, outcome = each.result()
            _count(counts, case, outcome)
            if outcome.kind == "different":
                differing.append(case)
                _tell(case, outcome)
            elif asked.verbose or (outcome.declined and len(case.moves) == 1):
                _tell(case, outcome)
            if number % 25 == 0:
                sys.stderr.write(f"{number} of {len(cases)}, {time.monotonic() - begun:.0f} s\n")
    _table(counts)
    _say(f"{len(cases)} cases, {len(differing)} different, {time.monotonic() - begun:.0f} s")
    return 1 if differing else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/roundtrip", description=__doc__)
    parser.add_argument("--cases", type=int, default=100, metavar="N", help="how many random lanes")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the first case's seed")
    parser.add_argument("--class", type=int, dest="number", choices=CLASSES, help="at least one move of it")
    parser.add_argument("--moves", metavar="A,B", help="one case of these moves; `each`: every move alone")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="how many at a time")
    parser.add_argument("--raw", action="store_true", help="do not make what differs smaller")
    parser.add_argument("--verbose", action="store_true", help="tell of every case")
    return parser.parse_args()


def _cases(asked: argparse.Namespace) -> list[Case]:
    if asked.moves == "each":
        return [Case(asked.seed, (name,)) for name in MOVES if asked.number in (None, MOVES[name].number)]
    if asked.moves:
        return [Case(asked.seed, tuple(asked.moves.split(",")))]
    return [composed(asked.seed + number, asked.number) for number in range(asked.cases)]


def _count(counts: Counter[tuple[int, str]], case: Case, outcome: Outcome) -> None:
    told = outcome.kind if outcome.kind != "held" else f"held: {' '.join(outcome.codes)}"
    if outcome.kind == "not here":
        told = f"not here: {outcome.codes[0]}"
    for number in {MOVES[name].number for name in case.moves}:
        counts[number, told] += 1


def _tell(case: Case, outcome: Outcome) -> None:
    _say(f"{outcome.kind} {' '.join(outcome.codes)}: scripts/roundtrip {case}")
    if outcome.said:
        _say(f"    ({outcome.said})")
    for _, found in groupby(outcome.found, key=lambda each: each.aspect):
        first, *rest = found
        _say(f"    {first}" + (f" and {len(rest)} more" if rest else ""))
    for declined in outcome.declined:
        _say(f"    (left out: {declined})")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _table(counts: Counter[tuple[int, str]]) -> None:
    for number, title in CLASSES.items():
        _say(f"{number}. {title}")
        for (of, told), count in sorted(counts.items()):
            if of == number:
                _say(f"    {count:6} {told}")


if __name__ == "__main__":
    sys.exit(main())
