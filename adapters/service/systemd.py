"""The conversation with systemd: readiness, reload, stop and watchdog, as sd_notify(3) has it."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging
    from collections.abc import Mapping


class Notifier:
    """Tells systemd how the service is; does nothing without systemd, and logs what it could not tell."""

    def __init__(self, environment: Mapping[str, str], log: logging.Logger) -> None:
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._log = log
        self._failing = False

    def ready(self, status: str) -> None:
        """Says that the service answers, at first and after each reload."""
        self._tell("READY=1", f"STATUS={_line(status)}")

    def status(self, text: str) -> None:
        """Says in one line what the service does."""
        self._tell(f"STATUS={_line(text)}")

    def reloading(self) -> None:
        """Says that the configuration is read again; `ready` says that it was."""
        self._tell("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """Says that the service is on its way out."""
        self._tell("STOPPING=1")

    def watchdog(self) -> None:
        """Says that the service is alive."""
        self._tell("WATCHDOG=1")

    def _tell(self, *lines: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto("\n".join(lines).encode("utf-8", "replace"), self._address)
            self._failing = False
        except (OSError, ValueError) as error:
            if not self._failing:  # once: a watchdog would say so for ever
                self._log.warning("systemd cannot be told", extra={"fields": {"error": error}})
            self._failing = True


def watchdog_seconds(environment: Mapping[str, str], pid: int) -> float | None:
    """Returns how often `watchdog` must be called, half of what systemd waits for; None for never."""
    period = environment.get("WATCHDOG_USEC", "")
    if environment.get("WATCHDOG_PID", str(pid)) != str(pid):
        return None
    if not period.isascii() or not period.isdecimal() or int(period) == 0:
        return None
    return int(period) / 2_000_000


def _address(value: str) -> bytes:
    """Returns where to send: a path, or a name that no file has, which begins with `@`."""
    if value[:1] not in {"/", "@"}:
        return b""
    address = value.encode("utf-8", "surrogateescape")
    return b"\0" + address[1:] if value.startswith("@") else address


def _line(text: str) -> str:
    return " ".join(text.split())
