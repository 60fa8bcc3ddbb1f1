"""What the service is told by signals: to stop, to stop at once, to read its configuration again."""

from __future__ import annotations

import logging
import os
import signal
from typing import TYPE_CHECKING

import trio

from adapters.config import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.service.service import Service
    from adapters.service.systemd import Notifier

LOG = logging.getLogger("laneyard.service")


async def obey(
    service: Service,
    notifier: Notifier,
    stopping: trio.Event,
    leave: Callable[[], object],
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Sets `stopping` at the first SIGTERM or SIGINT, leaves at the second, reads settings at SIGHUP."""
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as received:
        task_status.started()
        async for number in received:
            if number == signal.SIGHUP:
                reload(service, notifier)
            elif stopping.is_set():
                LOG.warning("told to stop again: stopping at once")
                leave()
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
        service.retune(settings)
        LOG.info("the configuration was read again")
    notifier.ready("ready" if service.status == "ready" else service.status)
