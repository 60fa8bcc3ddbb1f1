"""The life of the service: recover, say that it is ready, serve, and stop within a bounded time."""

from __future__ import annotations

import logging
import os
import signal
import socket
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, cast

import trio

from adapters.config import load
from adapters.service import app, connections, recovering, sockets, systemd, tending
from adapters.service.bounded import Bounded
from adapters.service.building import open_service
from adapters.service.metrics import Requests
from adapters.service.token import Authorised, read_token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapters.config import Settings
    from adapters.service.http11 import App
    from adapters.service.service import Service
    from adapters.service.systemd import Notifier

LOG = logging.getLogger("laneyard.service")
SOCKET, TOKEN = b"laneyard.sock", b"token"
HANGING = 3  # the exit code: begun, but not finished
LAST = 5.0  # seconds at the end for what was cut short to write down where it was


async def serve(settings: Settings, tcp: str | None) -> None:
    """Serves until it is told to stop.

    Raises StateLocked, StoreError, SocketError, OSError.
    """
    notifier = systemd.Notifier(settings.environment, LOG)
    tcp = tcp or settings.configuration.service.tcp
    with open_service(settings) as service, ExitStack() as held:
        async with trio.open_nursery() as background:
            await background.start(service.tail.run)
            background.start_soon(tending.heartbeat, service, notifier)
            await _recover(service, notifier)
            listeners = held.enter_context(_listeners(settings, tcp))
            stopping = trio.Event()
            background.start_soon(_signals, service, notifier, stopping)
            background.start_soon(tending.tend, service)
            await background.start(_serve_http, service, listeners, stopping)
            service.status = "ready"
            notifier.ready(f"ready at position {service.tail.head}")
            LOG.info("ready", extra={"fields": {"position": service.tail.head, "pid": os.getpid()}})
            await stopping.wait()
            clean = await _stop(service, notifier)
            if not clean:
                _leave_hanging_threads()
            background.cancel_scope.cancel()
        LOG.info("stopped", extra={"fields": {"position": service.tail.head}})


async def _recover(service: Service, notifier: Notifier) -> None:
    notifier.status("recovering")
    wait = service.settings.configuration.service.recovery_wait
    if not await recovering.settled(recovering.begin(service), wait):
        LOG.warning("serving while some lanes are still driven on", extra={"fields": {"seconds": wait}})


async def _serve_http(
    service: Service,
    listeners: list[socket.socket],
    stopping: trio.Event,
    task_status: trio.TaskStatus[connections.Counters] = trio.TASK_STATUS_IGNORED,
) -> None:
    limits = service.settings.configuration.service
    inner = app.build(service, body_bytes=limits.body_bytes)
    whole = cast("App", inner)
    open_to_others = any(each.family != socket.AF_UNIX for each in listeners)
    counted = Requests(Bounded(whole, limits.body_timeout), inner.state.registry)
    await connections.serve(
        Authorised(counted, read_token(token_file(service.settings))) if open_to_others else counted,
        listeners,
        connections.Limits(
            connections=limits.connections,
            header_bytes=limits.header_bytes,
            head_seconds=limits.head_timeout,
            send_seconds=limits.send_timeout,
            idle_seconds=limits.idle_timeout,
        ),
        LOG,
        uid=os.getuid(),
        stopping=stopping,
        grace=limits.stop_timeout + LAST,
        counters=service.connections,
        task_status=task_status,
    )


async def _stop(service: Service, notifier: Notifier) -> bool:
    """Takes no new work, lets what runs end, cuts the rest short; returns whether every thread has ended."""
    service.status = "stopping"
    notifier.stopping()
    limits = service.settings.configuration.service
    service.commands.stop()
    service.tail.stop()
    drained = await service.commands.drain(limits.stop_timeout)
    LOG.info("stopping", extra={"fields": {"drained": drained}})
    return await service.isolates.stop_all(0 if drained else LAST)


def _leave_hanging_threads() -> None:
    """Ends the process while it has the lock: what hangs must not wake up beside a successor."""
    LOG.error("something still hangs; what is journaled is gone on with at the next start")
    logging.shutdown()
    os._exit(HANGING)


async def _signals(service: Service, notifier: Notifier, stopping: trio.Event) -> None:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
        async for number in received:
            if number == signal.SIGHUP:
                reload(service, notifier)
            elif stopping.is_set():
                LOG.warning("told to stop again: stopping at once")
                raise KeyboardInterrupt
            else:
                stopping.set()


def reload(service: Service, notifier: Notifier) -> None:
    """Reads the configuration again; what cannot be read leaves everything as it is."""
    notifier.reloading()
    before = service.settings
    try:
        settings = load(os.fsdecode(before.state_dir), before.environment)
    except Exception as error:  # a file that somebody is writing must not stop a service
        LOG.error("the configuration was not read again", extra={"fields": {"error": str(error)}})
    else:
        service.settings = settings
        service.isolates.renew()
        LOG.info("the configuration was read again")
    notifier.ready("ready")


def token_file(settings: Settings) -> bytes:
    """Returns where the token for TCP is kept."""
    return os.path.join(settings.state_dir, os.fsencode(settings.configuration.service.token_file) or TOKEN)


@contextmanager
def _listeners(settings: Settings, tcp: str | None) -> Iterator[list[socket.socket]]:
    """Yields the sockets to accept from: inherited ones, or our own, which is removed at the end."""
    inherited = sockets.inherited(settings.environment, os.getpid())
    with ExitStack() as held:
        found = list(inherited)
        if not any(each.family == socket.AF_UNIX for each in found):
            path = os.path.join(settings.state_dir, SOCKET)
            found.append(sockets.listen_unix(path))
            held.callback(sockets.unlink_if_ours, path, sockets.place_of(path))
        if tcp:
            found.append(sockets.listen_tcp(tcp))
        yield found
