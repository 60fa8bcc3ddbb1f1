"""A service that is told to stop, at once or while it works, and what the next one makes of it."""

from __future__ import annotations

import json
import os
import socket
import threading
from contextlib import closing
from signal import Signals
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from adapters.client.connection import Connection
from adapters.client.wire import NoService
from adapters.files.oslock import OsLock
from tests.adapters.service.burning import key_that_takes
from tests.soak.checks import complaints
from tests.soak.house import House, document, eventually

if TYPE_CHECKING:
    from pathlib import Path

    from adapters.client.connection import Response

pytestmark = pytest.mark.slow


@pytest.fixture
def house(tmp_path: Path) -> House:
    made = House(tmp_path)
    configured(made)
    return made


def configured(house: House, stop: float = 20.0) -> None:
    house.configure(f'git.program = "{house.holding()}"\nservice.stop_timeout = {stop}\n')


class Asking:
    """A request whose answer is waited for in a thread of its own."""

    def __init__(self, house: House, *request: Any) -> None:  # noqa: ANN401
        self.answer: Response | None = None
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(house, request))
        self._thread.start()

    def _run(self, house: House, request: tuple[Any, ...]) -> None:
        try:
            self.answer = house.ask(*request)
        except Exception as error:
            self.error = error

    def result(self) -> Response:
        self._thread.join(60)
        assert self.answer is not None, self.error
        return self.answer


def state_of(house: House, key: str) -> str:
    return str(document(house.ask("GET", f"/v1/commands/{key}", wait=0)).get("state"))


def removing(house: House, lane: str) -> Asking:
    """Begins a removal that git holds up."""
    house.hold("a")
    asking = Asking(house, "POST", f"/v1/lanes/{lane}/remove", {}, "slow")
    house.until_held("a")
    assert state_of(house, "slow") == "running"
    return asking


@pytest.mark.parametrize("number", [Signals.SIGTERM, Signals.SIGINT])
def test_what_runs_is_answered_and_what_is_new_is_not_taken(house: House, number: Signals) -> None:
    with house.serving() as running:
        lane = house.create("one")["id"]
        asking = removing(house, lane)
        running.tell(number)
        running.until("STOPPING=1")
        refused = house.ask("POST", f"/v1/lanes/{lane}/snapshot")
        assert (refused.status, document(refused)["code"]) == (503, "stopping")
        assert int(refused.headers["retry-after"]) > 0
        assert house.health()["status"] == "stopping"
        house.release("a")
        assert (asking.result().status, document(asking.result())["state"]) == (200, "quarantined")
        assert running.ended() == 0
    assert not os.path.lexists(house.socket)
    assert complaints(house, []) == []


def test_what_does_not_end_in_time_is_cut_short_and_gone_on_with(house: House) -> None:
    configured(house, 0.3)
    with house.serving() as running:
        lane = house.create("one")["id"]
        asking = removing(house, lane)
        assert running.stop() == 0
        assert document(asking.result())["code"] == "cut_short"
        assert asking.result().headers["laneyard-outcome"] == "unfinished"
    house.release("a")
    with house.serving() as running:
        answer = house.ask("POST", f"/v1/lanes/{lane}/remove", {}, "slow")
        assert (answer.status, document(answer)["state"]) == (200, "quarantined")
        assert running.stop() == 0
    assert complaints(house, []) == []


def test_a_thread_that_hangs_for_ever_is_left_behind_in_a_bounded_time(house: House) -> None:
    """A configuration file that takes too long to read blocks its reader, as a dead file system would."""
    configured(house, 0.3)
    with house.serving() as running:
        lane = house.create("one")["id"]
        assert house.ask("POST", f"/v1/lanes/{lane}/remove", {}).status == 200
        (house.roots[0] / ".laneyard.toml").write_text(key_that_takes(300.0))
        swept = Asking(house, "POST", "/v1/sweeps", {}, "", 0)
        eventually(lambda: house.health()["silent"])
        begun = monotonic()
        assert running.stop() == 3
        assert monotonic() - begun < 20
        assert swept.result().status == 202
    assert not os.path.lexists(house.socket)
    os.unlink(house.roots[0] / ".laneyard.toml")
    listed = house.program("list")
    assert listed.returncode == 0
    assert "quarantined" in listed.stdout
    assert house.program("verify").returncode == 0


def test_a_second_signal_ends_the_service_at_once(house: House) -> None:
    with house.serving() as running:
        lane = house.create("one")["id"]
        asking = removing(house, lane)
        running.tell(Signals.SIGTERM)
        running.until("STOPPING=1")
        running.tell(Signals.SIGTERM)
        assert running.ended(5) == 3
        asking._thread.join(5)
        assert asking.error is not None
    house.release("a")
    with house.serving() as running:
        answer = house.ask("POST", f"/v1/lanes/{lane}/remove", {}, "slow")
        assert document(answer)["state"] == "quarantined"
        assert running.stop() == 0
    assert complaints(house, []) == []


def test_streams_of_events_end_with_the_first_signal(house: House) -> None:
    with house.serving() as running, Connection(house.socket) as connection:
        lane = house.create("one")["id"]
        stream = connection.stream("GET", "/v1/events/stream?after=0", {"Accept": "application/x-ndjson"})
        removing(house, lane)
        running.tell(Signals.SIGTERM)
        running.until("STOPPING=1")
        said = b"".join(stream).splitlines()  # ends although the removal does not
        assert [json.loads(line)["position"] for line in said if line] == [1, 2, 3, 4, 5]
        assert running.process.poll() is None
        house.release("a")
        assert running.ended() == 0


def test_a_stale_socket_of_a_killed_service_is_replaced(house: House) -> None:
    with house.serving() as running:
        running.kill()
    assert os.path.lexists(house.socket)
    with pytest.raises(NoService):
        house.health()
    with house.serving() as running:
        assert house.health()["status"] == "ready"
        assert running.stop() == 0


def test_a_second_service_is_refused_at_once_and_told_who_is_there(house: House) -> None:
    house.configure("lock.wait = 600.0\n")
    with house.serving() as running:
        refused = house.program("--json", "serve")
        assert refused.returncode == 4
        told = json.loads(refused.stderr)
        assert (told["code"], told["details"]["holder"]["pid"]) == ("state_locked", running.process.pid)
        assert house.health()["pid"] == running.process.pid
        assert running.stop() == 0


def test_a_service_waits_for_a_command_that_has_the_lock(house: House) -> None:
    house.configure("lock.wait = 600.0\n")
    with house.serving() as running:
        house.create("one")
        assert running.stop() == 0
    lock = OsLock(os.fsencode(house.state / "laneyard.lock")).acquire(0)
    with house.serving(ready=False) as running:
        with closing(socket.socket(socket.AF_UNIX)) as client, pytest.raises(FileNotFoundError):
            client.connect(house.socket)
        lock.release()
        running.until("READY=1")
        assert running.stop() == 0


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:99999", "256.0.0.1:1"])
def test_an_address_that_cannot_be_used_is_told_as_other_commands_tell(house: House, address: str) -> None:
    ran = house.program("--json", "serve", "--tcp", address)
    assert ran.returncode == 4
    assert json.loads(ran.stderr.splitlines()[-1])["code"] == "socket_unusable"
