"""The life of the service: recover, say that it is ready, serve, and stop within a bounded time."""

from __future__ import annotations

import logging
import os
import resource
import sys
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, NoReturn

import msgspec
import trio

from adapters.git.door import abandon_all
from adapters.service import systemd, tending
from adapters.service.building import open_service
from adapters.service.front import connections, listening
from adapters.service.front.token import Authorised
from adapters.service.recovering import Recovery
from adapters.service.signals import obey
from adapters.service.web import app

if TYPE_CHECKING:
    from adapters.config import Settings
    from adapters.service.front.listening import Listeners
    from adapters.service.service import Service
    from adapters.service.systemd import Notifier

LOG = logging.getLogger("laneyard.service")
DONE, HANGING = 0, 3  # exit codes: stopped in good order; begun, but not finished
DESCRIPTORS = 65_536  # open files: a connection takes one, a repository with work about seven
# Seconds for which a thread keeps the interpreter. At every look at a file an isolate gives it up, and would
# wait five milliseconds, by default, for whoever encodes an answer.
SWITCH = 0.0005
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


def _allow_descriptors() -> None:
    """Raises the soft limit of open files, which is often too low for connections and many repositories."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


async def _serve(settings: Settings, tcp: str | None) -> int:
    _allow_descriptors()
    sys.setswitchinterval(SWITCH)
    notifier = systemd.Notifier(settings.environment, LOG)
    with ExitStack() as held:
        service = held.enter_context(open_service(_patient(settings)))
        # What may be wrong with an address or a token is told before recovery, which may take long.
        listeners = held.enter_context(listening.opened(settings, tcp))
        stopping = trio.Event()
        async with trio.open_nursery() as background:
            await background.start(obey, service, notifier, stopping, partial(leave, listeners))
            await background.start(service.tail.run)
            background.start_soon(tending.heartbeat, service, notifier)
            recovery = Recovery(service)
            await _recover(service, notifier, recovery, background, stopping)
            clean = await _until_told(service, notifier, listeners, recovery, stopping)
            if not clean:
                leave(listeners)
            background.cancel_scope.cancel()
        LOG.info("stopped", extra={"fields": {"position": service.tail.head}})
    return DONE


def _patient(settings: Settings) -> Settings:
    """Returns the settings with which the lock is waited for: not at all where somebody serves already.

    Whatever else has the lock will let go of it. Behind an inherited socket nobody else can serve.
    """
    if not listening.activated(settings) and listening.served(settings):
        lock = msgspec.structs.replace(settings.configuration.lock, wait=0.0)
        configuration = msgspec.structs.replace(settings.configuration, lock=lock)
        return msgspec.structs.replace(settings, configuration=configuration)
    return settings


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
        await _either(over, stopping)
    if patience.cancelled_caught:
        fields = {"seconds": wait, "lanes": len(service.recovering)}
        LOG.warning("serving while some lanes are still driven on", extra={"fields": fields})


async def _either(*events: trio.Event) -> None:
    async with trio.open_nursery() as waiting:

        async def wait(event: trio.Event) -> None:
            await event.wait()
            waiting.cancel_scope.cancel()

        for event in events:
            waiting.start_soon(wait, event)


async def _until_told(
    service: Service, notifier: Notifier, listeners: Listeners, recovery: Recovery, stopping: trio.Event
) -> bool:
    """Answers requests until the service is told to stop and what runs has ended.

    Returns whether every thread has.
    """
    if stopping.is_set():
        return await _stop(service, notifier)
    listeners.open_own()
    closing = trio.Event()
    async with trio.open_nursery() as serving:
        await serving.start(_serve_http, service, listeners, closing)
        async with trio.open_nursery() as tended:
            tended.start_soon(tending.tend, service, recovery)
            service.status = "ready"
            notifier.ready(f"ready at position {service.tail.head}")
            LOG.info("ready", extra={"fields": {"position": service.tail.head, "pid": os.getpid()}})
            await stopping.wait()
            tended.cancel_scope.cancel()
        clean = await _stop(service, notifier)
        closing.set()  # what has been answered is still sent
    return clean


async def _serve_http(
    service: Service,
    listeners: Listeners,
    closing: trio.Event,
    task_status: trio.TaskStatus[connections.Counters] = trio.TASK_STATUS_IGNORED,
) -> None:
    limits = service.settings.configuration.service
    whole = app.whole(service)
    await connections.serve(
        whole if listeners.token is None else Authorised(whole, listeners.token, service.connections.refuse),
        listeners.found,
        connections.Limits(
            connections=limits.connections,
            header_bytes=limits.header_bytes,
            body_bytes=limits.body_bytes,
            head_seconds=limits.head_timeout,
            send_seconds=limits.send_timeout,
            idle_seconds=limits.idle_timeout,
        ),
        LOG,
        uid=os.getuid(),
        stopping=closing,
        grace=LAST,
        counters=service.connections,
        task_status=task_status,
    )


async def _stop(service: Service, notifier: Notifier) -> bool:
    """Takes no new work, lets what runs end, cuts the rest short; returns whether every thread has ended."""
    service.status = "stopping"
    notifier.stopping()
    service.commands.stop()
    service.tail.stop()
    drained = await service.commands.drain(service.settings.configuration.service.stop_timeout)
    LOG.info("stopping", extra={"fields": {"drained": drained}})
    return await service.isolates.stop_all(0, LAST)


def leave(listeners: Listeners) -> NoReturn:
    """Ends the process while it has the lock: what hangs must not wake up beside a successor."""
    LOG.error("something has not ended; what is journaled is gone on with at the next start")
    listeners.remove()
    abandon_all()
    logging.shutdown()
    os._exit(HANGING)
