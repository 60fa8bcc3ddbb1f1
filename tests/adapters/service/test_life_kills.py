"""A service that is killed again and again under load: what was acknowledged is there, once."""

from __future__ import annotations

import random
from time import sleep
from typing import TYPE_CHECKING

import pytest

from tests.soak import load
from tests.soak.checks import complaints
from tests.soak.house import House

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
KILLS = 6


def test_what_was_acknowledged_survives_and_what_is_retried_is_done_once(tmp_path: Path) -> None:
    house, tally, chance = House(tmp_path, "abc"), load.Tally(), random.Random(7)
    clients, stop = load.start(16, house.socket, house.roots, tally)
    try:
        for _ in range(KILLS):
            with house.serving() as running:
                sleep(chance.uniform(0.5, 3.0))  # the moment is what is left to chance
                running.kill()
        with house.serving() as running:
            load.finish(clients, stop)
            assert running.stop() == 0
    finally:
        stop.set()
        tally.abandoned.set()
    assert tally.lost["service_lost"] >= KILLS
    assert tally.problems == {}
    assert len(tally.promises) == tally.keys > 100
    assert complaints(house, tally.promises) == []
