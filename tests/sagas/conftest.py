"""A directory of its own for each test, in memory where the system has such a place."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    memory = Path("/dev/shm")
    if not (memory.is_dir() and os.access(memory, os.W_OK)):
        yield tmp_path
        return
    place = Path(tempfile.mkdtemp(prefix="laneyard-", dir=memory))
    try:
        yield place
    finally:
        shutil.rmtree(place)


@pytest.fixture
def world(home: Path) -> World:
    return World(home)
