import configparser
import logging
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters.service.systemd import Notifier, watchdog_seconds

UNITS = Path(__file__).parents[3] / "docs/systemd"
LOG = logging.getLogger("tests.systemd")


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """Systemd's end of the conversation, and the name that it goes by."""
    name = (
        str(tmp_path / "notify") if request.param == "path" else f"@laneyard-test-{os.getpid()}-{id(request)}"
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(name.replace("@", "\0", 1) if name.startswith("@") else name)
        listener.settimeout(5)
        yield listener, name


def test_each_word_is_told_as_the_protocol_has_it(manager: tuple[socket.socket, str]) -> None:
    listener, name = manager
    notifier = Notifier({"NOTIFY_SOCKET": name}, LOG)
    notifier.ready("12 lanes in 3 repositories")
    assert listener.recv(4096) == b"READY=1\nSTATUS=12 lanes in 3 repositories"
    notifier.status("two\nlines\x00and \udcff")
    assert listener.recv(4096) == b"STATUS=two lines\x00and ?"
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    notifier.reloading()
    word, _, moment = listener.recv(4096).decode().partition("\nMONOTONIC_USEC=")
    assert word == "RELOADING=1"
    assert before <= int(moment) <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    notifier.watchdog()
    assert listener.recv(4096) == b"WATCHDOG=1"
    notifier.stopping()
    assert listener.recv(4096) == b"STOPPING=1"


@pytest.mark.parametrize("environment", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1"}])
def test_without_systemd_nothing_is_told(
    environment: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    notifier = Notifier(environment, LOG)
    notifier.ready("x")
    notifier.watchdog()
    assert caplog.records == []


@pytest.mark.parametrize("name", ["/nowhere/notify", "/" + "x" * 300, "/nul\0l"])
def test_what_cannot_be_told_is_logged_once_and_never_raised(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": name}, LOG)
    for _ in range(3):
        notifier.watchdog()
    assert [record.message for record in caplog.records] == ["systemd cannot be told"]


def test_a_manager_that_does_not_listen_never_blocks(manager: tuple[socket.socket, str]) -> None:
    _, name = manager
    notifier = Notifier({"NOTIFY_SOCKET": name}, LOG)
    for _ in range(2000):
        notifier.status("x" * 1000)


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "-1"}, None),
        ({"WATCHDOG_USEC": "²"}, None),
        ({"WATCHDOG_USEC": "soon", "WATCHDOG_PID": "7"}, None),
    ],
)
def test_the_watchdog_is_fed_twice_as_often_as_it_barks(
    environment: dict[str, str], seconds: float | None
) -> None:
    assert watchdog_seconds(environment, 7) == seconds


def unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNITS / name, encoding="utf-8")
    return parser


def test_the_unit_has_what_the_service_relies_on() -> None:
    service = unit("laneyard.service")["Service"]
    assert service["Type"] == "notify-reload"
    assert service["Restart"] == "on-failure"
    assert service["WatchdogSec"]
    assert service["KillMode"] == "mixed"
    assert service["ExecStart"] == "laneyard --state-dir %S/laneyard serve"


def test_the_socket_is_where_the_service_would_make_it_and_its_owners_alone() -> None:
    listening = unit("laneyard.socket")["Socket"]
    assert listening["ListenStream"] == "%S/laneyard/laneyard.sock"
    assert (listening["SocketMode"], listening["DirectoryMode"]) == ("0600", "0700")


def test_nothing_hides_a_worktree_or_changes_what_git_creates() -> None:
    hiding = (
        "Protect",
        "Private",
        "ReadOnly",
        "Inaccessible",
        "TemporaryFileSystem",
        "UMask",
        "RestrictSUIDSGID",
    )
    assert [key for key in unit("laneyard.service")["Service"] if key.startswith(hiding)] == []


@pytest.mark.slow
def test_systemd_finds_no_mistake_in_the_units(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    for name in ("laneyard.service", "laneyard.socket"):
        text = (UNITS / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace("ExecStart=laneyard", f'ExecStart="{sys.executable}"'))
    done = subprocess.run(
        [program, "verify", "--user", "--man=no", *sorted(tmp_path.glob("laneyard.*"))],
        env={"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path), "PATH": os.defpath},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if "laneyard" in line]
    assert [line for line in said if "notify-reload" not in line] == []  # unknown before systemd 253
