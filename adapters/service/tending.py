"""What the service does by itself: it shows that it lives, sweeps, and lets go of what is idle."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import trio

from adapters.service import sweeping, systemd

if TYPE_CHECKING:
    from adapters.service.service import Service
    from adapters.service.systemd import Notifier

LOG = logging.getLogger("laneyard.service")
TURN = 30.0  # seconds between two looks at what is idle


async def heartbeat(service: Service, notifier: Notifier) -> None:
    """Tells the service manager that this loop turns and the writer lives, as often as it wants to know."""
    seconds = systemd.watchdog_seconds(service.settings.environment, os.getpid())
    while seconds is not None:
        if service.journal.alive:
            notifier.watchdog()
        await trio.sleep(seconds)


async def tend(service: Service) -> None:
    """Lets go of idle repositories, and sweeps as often as is configured."""
    swept = trio.current_time()
    while True:
        await trio.sleep(TURN)
        service.isolates.retire_idle()
        every = service.settings.configuration.service.sweep_every
        if every and trio.current_time() - swept >= every:
            swept = trio.current_time()
            sweeping.start(service)
