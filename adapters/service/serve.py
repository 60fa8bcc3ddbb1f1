"""The life of the service: recover, say that it is ready, serve, and stop within a bounded time."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import trio

from adapters.git.door import abandon_all
from adapters.service import app, connections, listening, systemd, tending
from adapters.service.building import open_service
from adapters.service.recovering import Recovery
from adapters.service.signals import obey
from adapters.service.token import Authorised

if TYPE_CHECKING:
    from adapters.config import Settings
    from adapters.service.listening import Listeners
    from adapters.service.service import Service
    from adapters.service.systemd import Notifier

LOG = logging.getLogger("laneyard.service")
DONE, HANGING = 0, 3  # exit codes: stopped in good order; begun, but not finished
LAST = 5.0  # seconds at the end: for what is cut short to write down where it was, and for the last answers


async def serve(settings: Settings, tcp: str | None) -> int:
    """Serves until it is told to stop, and returns the exit code.

    Raises StateLocked, StoreError, SocketError, UnsafeToken, OSError.
    """
    try:
        return await _serve(settings, tcp)
    except BaseExceptionGroup as group:
        raise _only(group) from None


def _only(error: BaseException) -> BaseException:
    """Returns what a group of one is about."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


async def _serve(settings: Settings, tcp: str | None) -> int:
    notifier = systemd.Notifier(settings.environment, LOG)
    with ExitStack() as held:
        service = held.enter_context(open_service(settings))
        # What was asked for beside our own socket is tried before anything else takes time.
        listeners = held.enter_context(listening.opened(settings, tcp))
        stopping = trio.Event()
        async with trio.open_nursery() as background:
            await background.start(obey, service, notifier, stopping, lambda: _leave(listeners))
            await background.start(service.tail.run)
            background.start_soon(tending.heartbeat, service, notifier)
            recovery = Recovery(service)
            await _recover(service, notifier, recovery, background, stopping)
            code = await _until_told(service, notifier, listeners, recovery, stopping)
            background.cancel_scope.cancel()
        LOG.info("stopped", extra={"fields": {"position": service.tail.head}})
    return code


async def _recover(
    service: Service,
    notifier: Notifier,
    recovery: Recovery,
    background: trio.Nursery,
    stopping: trio.Event,
) -> None:
    """Drives on what is owed until that has ended, or for so long, or until the service is told to stop."""
    notifier.status("recovering")
    wait, over = service.settings.configuration.service.recovery_wait, trio.Event()

    async def run() -> None:
        await recovery.run()
        over.set()

    background.start_soon(run)
    with trio.move_on_after(wait) as patience:
        async with trio.open_nursery() as either:
            for event in (over, stopping):
                either.start_soon(_cancel_after, event, either.cancel_scope)
    if patience.cancelled_caught:
        fields = {"seconds": wait, "lanes": len(service.recovering)}
        LOG.warning("serving while some lanes are still driven on", extra={"fields": fields})


async def _cancel_after(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _until_told(
    service: Service,
    notifier: Notifier,
    listeners: Listeners,
    recovery: Recovery,
    stopping: trio.Event,
) -> int:
    """Answers requests until the service is told to stop, and for as long as what runs has left."""
    if stopping.is_set():
        return await _end(service, notifier, listeners)
    async with trio.open_nursery() as serving:
        closing = trio.Event()
        await serving.start(_serve_http, service, listeners, closing)
        serving.start_soon(tending.tend, service, recovery)
        service.status = "ready"
        notifier.ready(f"ready at position {service.tail.head}")
        LOG.info("ready", extra={"fields": {"position": service.tail.head, "pid": os.getpid()}})
        await stopping.wait()
        code = await _end(service, notifier, listeners)
        closing.set()
        await service.connections.closed.wait()
        serving.cancel_scope.cancel()
    if code != DONE:
        _leave(listeners)
    return code
