"""Random lanes through removal, deletion and rebuilding: what comes back is what was there."""

from __future__ import annotations

import pytest
import trio
from hypothesis import HealthCheck, given, settings

from tests.adapters.snapshots.roundtrip import make_round_trip
from tests.adapters.snapshots.scenes import Scene, scenes

EXAMPLES = 80

pytestmark = pytest.mark.slow


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(scenes())
def test_a_reaped_lane_comes_back_identical_or_was_refused_untouched(scene: Scene) -> None:
    trio.run(make_round_trip, scene)
