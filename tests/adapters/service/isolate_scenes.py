"""What isolates work on in tests: a thing that is opened, and work that blocks a thread like a hung mount."""

from __future__ import annotations

import os
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from adapters.service.isolates.isolate import Isolate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class Thing:
    """What is opened: knows its thread, and whether it was closed."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.closed_in: int | None = None


class Things:
    """Opens things and remembers them."""

    def __init__(self) -> None:
        self.opened: list[Thing] = []

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Thing]:
        thing = Thing()
        self.opened.append(thing)
        try:
            yield thing
        finally:
            thing.closed_in = threading.get_ident()


class Pipe:
    """An empty pipe: a read of it blocks the thread until `release`."""

    def __init__(self) -> None:
        self._out, self._into = os.pipe()
        self.reached = threading.Event()

    async def block(self, thing: object) -> str:
        self.reached.set()
        os.read(self._out, 1)
        return "released"

    def release(self) -> None:
        os.write(self._into, b"x")

    def close(self) -> None:
        os.close(self._into)  # whoever still reads gets the end of the file

    async def blocks(self) -> None:
        """Returns when the thread hangs in the read."""
        await trio.to_thread.run_sync(self.reached.wait)


async def give(thing: Thing) -> Thing:
    return thing


async def sleep_until_cancelled(thing: Thing) -> None:
    await trio.sleep_forever()


async def answers(one: Isolate[Thing]) -> bool:
    return isinstance(await one.ask(give, 5), Thing)


def isolate(name: str = "a", things: Things | None = None, **limits: float) -> Isolate[Thing]:
    return Isolate(name, (things or Things()).open, **limits)  # type: ignore[arg-type]
