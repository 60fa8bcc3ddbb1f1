"""What the service does by itself: it shows that it lives, sweeps, and comes back to what was left behind."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import trio
from eventsourcing.persistence import PersistenceError

from adapters.service import systemd
from adapters.service.refusals import Unavailable
from adapters.service.web import sweeping
from adapters.store.errors import StoreError

if TYPE_CHECKING:
    from adapters.api.answers import Answer
    from adapters.service.isolates.jobs import Job
    from adapters.service.recovering import Recovery
    from adapters.service.service import Service
    from adapters.service.systemd import Notifier

LOG = logging.getLogger("laneyard.service")
BEAT = 5.0  # seconds between two looks at the writer, where nobody has named another time
TURN = 30.0  # seconds between two looks at what is idle, or was left behind


async def heartbeat(service: Service, notifier: Notifier) -> None:
    """Tells the service manager that this loop turns and the writer lives, as often as it wants to know.

    Raises StoreError once nobody writes the log any more: everyone who waits for it would wait for ever.
    """
    seconds = systemd.watchdog_seconds(service.settings.environment, os.getpid()) or BEAT
    while True:
        if not service.journal.alive:
            raise StoreError("the thread that writes the log has ended")
        notifier.watchdog()
        await trio.sleep(seconds)


async def tend(service: Service, recovery: Recovery, turn: float = TURN) -> None:
    """Lets go of idle repositories, drives on lanes that were left behind, and sweeps now and then."""
    swept, sweep = trio.current_time(), None
    async with trio.open_nursery() as nursery:
        while True:
            await trio.sleep(turn)
            service.isolates.retire_idle()
            nursery.start_soon(_again, recovery)
            every = service.settings.configuration.service.sweep_every
            idle = sweep is None or sweep.ended
            if every and idle and trio.current_time() - swept >= every:
                swept, sweep = trio.current_time(), _sweep(service)


async def _again(recovery: Recovery) -> None:
    try:
        await recovery.again()
    except PersistenceError as error:  # whoever needs the log is told; the next turn looks again
        LOG.error("what was left behind cannot be read", extra={"fields": {"error": str(error)}})


def _sweep(service: Service) -> Job[Answer] | None:
    try:
        return sweeping.start(service)
    except Unavailable as error:  # the next turn but one may find room
        LOG.warning("a sweep was put off", extra={"fields": {"error": str(error)}})
        return None
