"""How much memory a lane's life takes does not depend on how large its files are, and little on how many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.bench.memory import peaks
from tests.bench.table import MEMORY_GOAL

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SLACK = 16  # MiB
# MiB that a process which has captured a tree needs for the rest of its life: 255 by measurement, and twice
# as much would be noticed. The goal is held against it in `scripts/bench --memory`.
TREE = 320
LARGE = "a file of 512 MB"


def test_a_file_of_any_size_takes_the_same_memory(home: Path) -> None:
    small, large = (peaks(home / str(size), LARGE, size) for size in (32, 512))
    assert {step: peak for step, peak in large.items() if peak >= MEMORY_GOAL} == {}
    assert {step: large[step] - small[step] for step in small if large[step] - small[step] >= SLACK} == {}


@pytest.mark.parametrize("scene", ["100,000 committed files", "100,000 new files"])
def test_a_tree_of_a_hundred_thousand_files_takes_a_bounded_memory(home: Path, scene: str) -> None:
    found = peaks(home / "scene", scene)
    assert {step: peak for step, peak in found.items() if peak >= TREE} == {}
