"""Doing several things at once whose errors are plain errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

import trio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


@overload
async def together(
    first: Callable[[], Awaitable[A]], second: Callable[[], Awaitable[B]], /
) -> tuple[A, B]: ...


@overload
async def together(
    first: Callable[[], Awaitable[A]],
    second: Callable[[], Awaitable[B]],
    third: Callable[[], Awaitable[C]],
    /,
) -> tuple[A, B, C]: ...


async def together(*jobs: Callable[[], Awaitable[Any]]) -> tuple[Any, ...]:
    """Returns the results of all. Raises what the first of them, in this order, raised."""
    results: dict[int, Any] = {}
    errors: dict[int, Exception] = {}

    async def run(number: int, job: Callable[[], Awaitable[Any]]) -> None:
        try:
            results[number] = await job()
        except Exception as error:  # a nursery would make a group of it
            errors[number] = error

    async with trio.open_nursery() as nursery:
        for number, job in enumerate(jobs):
            nursery.start_soon(run, number, job)
    if errors:
        raise errors[min(errors)]
    return tuple(results[number] for number in range(len(jobs)))
