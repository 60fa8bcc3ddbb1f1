from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adapters.service.isolate_scenes import Pipe

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()
