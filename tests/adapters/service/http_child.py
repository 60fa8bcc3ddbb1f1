"""A service in a process of its own, on its socket and on TCP, over a desk's repository."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from contextlib import contextmanager
from time import monotonic, sleep
from typing import TYPE_CHECKING, NamedTuple

import httpx

from tests.adapters.cli.conftest import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.adapters.cli.conftest import Desk

READY = 20.0  # seconds


class Child(NamedTuple):
    """Where it serves, who it is, what it writes, and the token for TCP."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path
    token: str

    def client(self, desk: Desk) -> httpx.Client:
        """Returns a client of its socket."""
        transport = httpx.HTTPTransport(uds=str(desk.state / "laneyard.sock"))
        return httpx.Client(transport=transport, base_url="http://laneyard", timeout=30)


def free_port() -> int:
    """Returns a port of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@contextmanager
def child(desk: Desk) -> Iterator[Child]:
    """Starts the program, waits until it is ready, and ends it as an administrator would."""
    address, log = f"127.0.0.1:{free_port()}", desk.home / "serve.log"
    with log.open("ab") as written:
        process = subprocess.Popen(
            [*PROGRAM, "serve", "--tcp", address],
            cwd=desk.root, env=desk.environment, stdin=subprocess.DEVNULL, stderr=written,
        )  # fmt: skip
    try:
        _await_socket(os.fsencode(desk.state / "laneyard.sock"), process)
        yield Child(f"http://{address}", process, log, (desk.state / "token").read_text().strip())
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0, log.read_text()


def _await_socket(path: bytes, process: subprocess.Popen[bytes]) -> None:
    end = monotonic() + READY
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as asked:
                asked.connect(path)
                return
        except OSError:
            assert process.poll() is None, "the service has ended"
            assert monotonic() < end, "the service is not ready"
            sleep(0.01)  # there is nothing to wait on: the socket does not exist yet
