from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adapters.snapshots.lanes import Lane
from tests.sagas.conftest import home as home
from tests.sagas.conftest import world as world

if TYPE_CHECKING:
    from tests.sagas.worlds import World


@pytest.fixture
def lane(world: World) -> Lane:
    return Lane(world)
