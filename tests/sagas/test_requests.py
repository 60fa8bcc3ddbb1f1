"""A request that comes twice is answered once, whatever it was made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapters.wiring import new_request
from adapters.yard import create, ending, putting_away
from domain.errors import CommandReused
from domain.states import name
from tests.sagas.scenarios import clean, dirty, removed, removed_clean
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from adapters.engine import Request
    from adapters.yard.yard import Done
    from tests.sagas.worlds import Open

    Act = Callable[[Open, Request], Awaitable[Done]]

pytestmark = pytest.mark.slow


async def creates(opened: Open, request: Request) -> Done:
    return await create.create(opened.yard, await opened.repository(), create.Wish(name="work"), request)


async def removes(opened: Open, request: Request) -> Done:
    return await putting_away.remove(
        opened.yard, await opened.repository(), opened.row(), request, mode="safe", delete_branch=False
    )


async def nothing(opened: Open) -> None:
    """The repository is not known yet."""


ACTS: dict[str, tuple[Callable[[Open], Awaitable[object]], Act, str]] = {
    "create": (nothing, creates, "active"),
    "snapshot": (dirty, lambda o, r: putting_away.snapshot(o.yard, o.row(), r), "active"),
    "remove a clean lane": (clean, removes, "quarantined"),
    "remove a dirty lane": (dirty, removes, "quarantined"),
    "reap": (removed, lambda o, r: ending.reap(o.yard, o.row(), r), "reaped"),
    "reap without a snapshot": (removed_clean, lambda o, r: ending.reap(o.yard, o.row(), r), "reaped"),
}


@pytest.mark.parametrize("case", ACTS)
async def test_the_second_time_changes_nothing_and_answers_with_the_same_lane(
    tmp_path: Path, case: str
) -> None:
    prepare, act, state = ACTS[case]
    world = World(tmp_path)
    async with world.open() as opened:
        await prepare(opened)
        first = await act(opened, new_request(world.settings, "once", b"digest"))
        before = world.tags()
        second = await act(opened, new_request(world.settings, "once", b"digest"))
    assert (name(first.lane), first.problem) == (state, None)
    assert (second.lane_id, second.lane) == (first.lane_id, first.lane)
    assert world.tags() == before


async def test_the_answer_is_still_there_after_a_restart(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        first = await creates(opened, new_request(world.settings, "once", b"digest"))
    async with world.open() as opened:
        second = await creates(opened, new_request(world.settings, "once", b"digest"))
    assert second.lane_id == first.lane_id


async def test_the_same_id_for_another_request_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await creates(opened, new_request(world.settings, "once", b"digest"))
        with pytest.raises(CommandReused):
            await creates(opened, new_request(world.settings, "once", b"another"))
