"""Thousands of round trips by hand: `python -m tests.adapters.snapshots.fuzz EXAMPLES [SEED]`.

Runs in the checkout, with its environment. Another seed tries other scenes; a failing one is shrunk and
printed as the value that `make_round_trip` takes. Several may run at once.
"""

from __future__ import annotations

import sys
from collections import Counter

import hypothesis
import trio
from hypothesis import HealthCheck, given, settings

from tests.adapters.snapshots.roundtrip import make_round_trip
from tests.adapters.snapshots.scenes import Scene, scenes


def main() -> None:
    """Runs the property on as many scenes as were asked for, and tells how they ended."""
    examples, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    answers: Counter[str] = Counter()

    @hypothesis.seed(seed)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(scenes(most=24))
    def try_scene(scene: Scene) -> None:
        answers[trio.run(make_round_trip, scene)] += 1

    try:
        try_scene()
    finally:
        sys.stdout.write(f"{dict(answers)}\n")


if __name__ == "__main__":
    main()
