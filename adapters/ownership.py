"""One process owns a state directory: the lock that says so, and what the next one hears."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters.files.durable import make_directories
from adapters.files.errors import LockHeld
from adapters.files.oslock import OsLock

if TYPE_CHECKING:
    from adapters.config import Settings


class StateLocked(Exception):
    """Another process uses the state directory."""

    code = "state_locked"

    def __init__(self, path: bytes, holder: str) -> None:
        super().__init__(
            f"the state directory {os.fsdecode(path)} is in use by another process ({holder or 'unknown'}). "
            "Wait until it has finished and try again."
        )
        self.path, self.holder = path, holder

    @property
    def details(self) -> dict[str, object]:
        """Returns who holds it."""
        return {"path": os.fsdecode(self.path), "holder": self.holder}


def own_state_dir(settings: Settings) -> OsLock:
    """Takes the state directory for this process alone. Raises StateLocked, OSError."""
    make_directories(settings.state_dir)
    lock = OsLock(os.path.join(settings.state_dir, b"laneyard.lock"))
    try:
        return lock.acquire(settings.configuration.lock.wait)
    except LockHeld as error:
        raise StateLocked(settings.state_dir, error.holder) from error
