"""Requests with an id, that may come again, and processes that die on the way to an answer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from adapters.wiring import new_request
from adapters.yard import create, ending, putting_away
from tests.sagas.crashes import DEAD, in_a_process

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from adapters.engine import Request
    from adapters.yard.yard import Done
    from domain.events import Mode
    from tests.sagas.worlds import Open, World

    Act = Callable[[Open, Request], Awaitable[Done]]


def once(world: World, digest: bytes = b"digest", expected: int | None = None) -> Request:
    """Returns a request with an id of its own, that may come again."""
    return new_request(world.settings, "once", digest, expected=expected)


async def creates(opened: Open, request: Request) -> Done:
    return await create.create(opened.yard, await opened.repository(), create.Wish(name="work"), request)


async def removes(
    opened: Open, request: Request, *, mode: Mode = "safe", delete_branch: bool = False, reap: bool = False
) -> Done:
    return await putting_away.remove(
        opened.yard,
        await opened.repository(),
        opened.row(),
        request,
        mode=mode,
        delete_branch=delete_branch,
        reap=reap,
    )


async def removes_and_reaps(opened: Open, request: Request) -> Done:
    return await removes(opened, request, reap=True)


async def forces_and_reaps(opened: Open, request: Request) -> Done:
    return await removes(opened, request, mode="force", reap=True)


async def restores(opened: Open, request: Request) -> Done:
    return await ending.restore(opened.yard, await opened.repository(), opened.row(), request)


def dies(
    world: World, act: Callable[[Open], Awaitable[object]], moment: str, step: str, nth: int = 1
) -> None:
    """Runs the act in a process of its own that dies in the n-th such moment."""

    async def main() -> None:
        left = nth

        def notice(*now: str) -> None:
            nonlocal left
            left -= now == (moment, step)
            if left == 0:
                os._exit(DEAD)

        async with world.open(notice) as opened:
            await act(opened)

    assert in_a_process(lambda: trio.run(main)) == DEAD
