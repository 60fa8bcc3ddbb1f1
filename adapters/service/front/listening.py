"""Where the service listens: what systemd has handed over, a TCP port when asked for, and its own socket."""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from adapters.config.place import SOCKET
from adapters.service.front import sockets
from adapters.service.front.token import read_token

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapters.config import Settings
    from adapters.service.front.sockets import Place

LOG = logging.getLogger("laneyard.service")
TOKEN = b"token"
PATIENCE = 1.0  # seconds in which a service that serves lets somebody connect


class Listeners:
    """The sockets to accept from, and the token that is asked for where others than the owner reach one."""

    def __init__(self, settings: Settings, found: list[socket.socket]) -> None:
        self.found = found
        self._path = os.path.join(settings.state_dir, SOCKET)
        self._place: Place | None = None
        self.own = all(each.family != socket.AF_UNIX for each in found)
        open_to_others = any(each.family != socket.AF_UNIX for each in found)
        self.token = read_token(token_file(settings)) if open_to_others else None

    def open_own(self) -> None:
        """Listens in the state directory, unless one was handed over. Raises SocketError, OSError."""
        if self.own:
            self.found.append(sockets.listen_unix(self._path))
            self._place = sockets.place_of(self._path)

    def remove(self) -> None:
        """Removes our own socket's file. Raises OSError."""
        if self._place is not None:
            sockets.unlink_if_ours(self._path, self._place)


@contextmanager
def opened(settings: Settings, tcp: str | None) -> Iterator[Listeners]:
    """Yields what was handed over and the TCP port that is asked for; at the end our own file is removed.

    Raises SocketError, UnsafeToken, OSError.
    """
    found = sockets.inherited(settings.environment, os.getpid())
    try:
        if address := tcp or settings.configuration.service.tcp:
            found.append(sockets.listen_tcp(address))
        listeners = Listeners(settings, found)
        for each in found:
            _tell(each)
        try:
            yield listeners
        finally:
            listeners.remove()
    finally:
        for each in found:
            each.close()


def token_file(settings: Settings) -> bytes:
    """Returns where the token for TCP is kept."""
    return os.path.join(settings.state_dir, os.fsencode(settings.configuration.service.token_file) or TOKEN)


def activated(settings: Settings) -> bool:
    """Tells whether this process was handed its sockets."""
    return settings.environment.get("LISTEN_PID") == str(os.getpid())


def served(settings: Settings) -> bool:
    """Tells whether a service of this state directory takes connections at its own socket."""
    with suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.settimeout(PATIENCE)
        with sockets.connectable(os.path.join(settings.state_dir, SOCKET)) as address:
            client.connect(address)
            return True
    return False


def _tell(listener: socket.socket) -> None:
    """Writes down where a TCP socket listens, with a warning where that is not only this machine."""
    if listener.family == socket.AF_UNIX:
        return
    host, port = listener.getsockname()[:2]
    fields = {"fields": {"host": host, "port": port}}
    LOG.info("listening", extra=fields)
    if not ipaddress.ip_address(host.partition("%")[0]).is_loopback:
        LOG.warning(
            "listening beyond this machine: the token and all that is said can be read on the way",
            extra=fields,
        )
