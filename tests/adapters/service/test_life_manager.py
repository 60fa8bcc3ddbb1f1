"""The real service under a service manager, and over TCP."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from signal import Signals
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import trio

from adapters.config import load
from adapters.service import tending
from adapters.service.building import open_service
from adapters.service.systemd import Notifier
from adapters.store.errors import StoreError
from tests.soak.house import PROGRAM, House, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What systemd does between fork and exec: the listening socket becomes descriptor 3, and the pid is named.
LAUNCHER = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.execve(sys.argv[2], sys.argv[2:], {**os.environ, "LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())})
"""


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.mark.slow
def test_the_manager_is_told_of_every_turn_of_the_services_life(house: House) -> None:
    house.environment["WATCHDOG_USEC"] = "100000"
    with house.serving(ready=False) as running:
        running.until("STATUS=recovering")
        running.until("READY=1")
        for _ in range(3):
            running.until("WATCHDOG=1", 5)
        running.tell(Signals.SIGHUP)
        running.until("RELOADING=1")
        running.until("READY=1")
        running.tell(Signals.SIGTERM)
        running.until("STOPPING=1")
        assert running.ended() == 0


async def test_the_service_ends_and_feeds_no_watchdog_when_the_writer_has_died(house: House) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        place = str(house.home / "manager")
        manager.bind(place)
        manager.setblocking(False)
        fed = trio.socket.from_stdlib_socket(manager)
        environment = {**house.environment, "NOTIFY_SOCKET": place, "WATCHDOG_USEC": "20000"}
        ended = pytest.RaisesGroup(pytest.RaisesExc(StoreError, match="writes the log has ended"))
        with trio.fail_after(20), open_service(load(str(house.state), environment)) as service, ended:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(tending.heartbeat, service, Notifier(environment, tending.LOG))
                for _ in range(3):
                    assert await fed.recv(100) == b"WATCHDOG=1"
                service.journal.close()  # its thread has ended, as by a bug


@pytest.mark.slow
def test_a_socket_that_is_handed_over_is_served_and_stays(house: House) -> None:
    house.state.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(house.socket)
        listener.listen()
        place = os.lstat(house.socket)
        with open(house.home / "service.log", "wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", LAUNCHER, str(listener.fileno()), *PROGRAM, "serve"],
                pass_fds=[listener.fileno()],
                env=house.environment,
                stdout=log,
                stderr=log,
            )
        try:
            assert house.health()["pid"] == process.pid  # asked before anybody accepts, answered when ready
            assert house.create("one")["state"] == "active"
            process.send_signal(Signals.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
            process.wait()
        assert os.path.samestat(os.lstat(house.socket), place)


def logged(text: str, message: str) -> Iterator[dict[str, Any]]:
    """The lines of a service's log that say so."""
    for line in text.splitlines():
        entry = json.loads(line)
        if entry["message"].startswith(message):
            yield entry


@pytest.mark.slow
@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_a_port_is_chosen_and_answers_to_the_token_alone(house: House, host: str) -> None:
    with house.serving("serve", "--tcp", f"{host}:0") as running:
        eventually(lambda: next(logged(running.log_text, "listening"), None))
        port = next(logged(running.log_text, "listening"))["port"]
        path = house.state / "token"
        assert path.stat().st_mode & 0o777 == 0o600
        token, address = path.read_text().strip(), f"http://{host}:{port}/v1/health"
        assert httpx.get(address).status_code == 401
        assert httpx.get(address, headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert httpx.get(address, headers={"Authorization": f"Bearer {token}"}).status_code == 200
        assert house.health()["status"] == "ready"  # the socket needs none
        assert list(logged(running.log_text, "listening beyond")) == []
        assert running.stop() == 0


@pytest.mark.slow
def test_listening_beyond_this_machine_is_warned_of(house: House) -> None:
    with house.serving("serve", "--tcp", "0.0.0.0:0") as running:
        eventually(lambda: next(logged(running.log_text, "listening beyond"), None))
        assert next(logged(running.log_text, "listening beyond"))["level"] == "warning"
        assert running.stop() == 0
