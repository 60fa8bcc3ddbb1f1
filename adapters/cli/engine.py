"""The engine in this process, under the state directory's lock: what runs where no service does."""

from __future__ import annotations

import os
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

import msgspec
import trio

from adapters import config, repositories
from adapters.api import bodies, operations, resolve, sweeps
from adapters.cli.failures import tell
from adapters.cli.output import progress
from adapters.cli.scope import scope
from adapters.cli.telling import told
from adapters.cli.whereabouts import here, near
from adapters.ownership import StateLocked
from adapters.wiring import new_request, open_yard
from domain.errors import NoSuchLane

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Awaitable, Callable

    from adapters.api.answers import Answer
    from adapters.config import Settings
    from adapters.engine import Request
    from adapters.yard.yard import Yard

    Work = Callable[[Yard, Request], Awaitable[int]]
    Listener = Callable[[str, str], None]

TURN = 0.25  # seconds of waiting for the lock between two looks at whether a service has come up


def run(arguments: Namespace, verb: str, body: dict[str, Any], otherwise: Callable[[], int | None]) -> int:
    """Does what a command line asks for; `otherwise` is asked while another process has the lock."""
    work = working(arguments, verb, body)
    settings = config.load(arguments.state_dir)
    deadline = monotonic() + settings.configuration.lock.wait
    while True:
        left = max(deadline - monotonic(), 0.0)
        try:
            return engine(arguments, work, settings=waiting(settings, min(left, TURN)))
        except StateLocked:
            code = otherwise()
            if code is not None:
                return code
            if left <= TURN:
                raise


def waiting(settings: Settings, seconds: float) -> Settings:
    """Returns the settings with another time to wait for the lock."""
    lock = msgspec.structs.replace(settings.configuration.lock, wait=seconds)
    configuration = msgspec.structs.replace(settings.configuration, lock=lock)
    return msgspec.structs.replace(settings, configuration=configuration)


def engine(
    arguments: Namespace, work: Work, listener: Listener | None = None, settings: Settings | None = None
) -> int:
    """Opens the yard, tells what could not be driven on, and runs the work in it.

    `listener` hears of every moment between two steps, in place of the terminal.
    """
    chosen = settings or config.load(arguments.state_dir)
    _require_beginning(arguments, chosen.store)

    async def session() -> int:
        with progress(arguments.json) as shown:
            async with open_yard(chosen, notice=listener or shown) as (yard, stopped):
                for lane, error in stopped.items():
                    message = f"lane {lane} could not be driven on: {error}"
                    tell(arguments, "not_recovered", message, {"lane": lane}, "unfinished")
                return await work(yard, new_request(chosen))

    return trio.run(session)


def _require_beginning(arguments: Namespace, store: bytes) -> None:
    """Refuses what is refused wherever nothing is recorded yet, before a state directory is made for it.

    Raises NotARepository, NoSuchLane.
    """
    try:
        os.lstat(store)
    except FileNotFoundError:
        if arguments.command == "create":
            repositories.find(here(arguments))
        elif getattr(arguments, "lane", None) is not None:
            scope(arguments)
            raise NoSuchLane(arguments.lane) from None


def working(arguments: Namespace, verb: str, body: dict[str, Any]) -> Work:
    """Returns the work of a command: the operation of that name, with what is said of it."""

    async def work(yard: Yard, request: Request) -> int:
        return told(arguments, await _answered(arguments, verb, body, yard, request))

    return work


async def _answered(
    arguments: Namespace, verb: str, body: dict[str, Any], yard: Yard, request: Request
) -> Answer:
    if verb == "create":
        if body["parent"] is not None:
            body = body | {"parent": resolve.find(yard.reader, body["parent"], scope(arguments), near()).id}
        said = msgspec.convert(body, bodies.CreateBody)
        return await operations.create(yard, said, request)
    if verb == "candidates":
        return sweeps.candidates(yard, scope(arguments))
    if verb == "sweep":
        return await sweeps.sweep(yard, scope(arguments), request)
    lane = resolve.find(yard.reader, arguments.lane, scope(arguments), near()).id
    if verb == "review":
        return operations.review(yard, lane)
    kind, operation = operations.ON_LANES[verb]
    return cast("Answer", await cast("Any", operation)(yard, lane, msgspec.convert(body, kind), request))
