"""The command line and a real service: who is told, what outlives what, and who else may be at the socket."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest

from adapters.cli import asking, engine, looking
from adapters.cli.parser import build_parser
from adapters.client.wire import ADDRESS
from adapters.ownership import StateLocked
from tests.adapters.cli.conftest import PROGRAM, Desk, Ran
from tests.adapters.cli.test_trouble import another_process
from tests.adapters.services import Reply, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from tests.adapters.cli.running import Running

    Laneyard = Callable[..., Ran]

pytestmark = pytest.mark.slow
served = pytest.mark.service_only


def test_the_log_names_the_process_that_has_asked(desk: Desk) -> None:
    desk.environment["LANEYARD_CLIENT"] = " an ide\u00e9 " + "x" * 200
    with desk.start("create", "fix") as creating:
        assert creating.wait(30) == 0
    events = desk.program("--json", "log").lines
    assert {(each["actor"]["uid"], each["actor"]["pid"]) for each in events} == {(os.getuid(), creating.pid)}
    [name] = {each["actor"]["client"] for each in events}
    assert name == ("an ide? " + "x" * 200)[: len(name)]
    assert 90 < len(name) <= 100


@pytest.mark.parametrize("command", ["list", "show fix", "log", "create other", "sweep"])
def test_a_reader_who_has_gone_is_no_error(desk: Desk, command: str) -> None:
    desk.program("create", "fix")
    end, pipe = os.pipe()
    os.close(end)
    with os.fdopen(pipe, "wb") as broken:
        ran = printing_to(desk, broken, command)
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.parametrize("command", ["list", "show fix", "log", "create other", "sweep"])
def test_an_output_that_is_full_is_told(desk: Desk, command: str) -> None:
    desk.program("create", "fix")
    with open("/dev/full", "wb") as full:
        ran = printing_to(desk, full, command)
    assert ran.returncode == 4
    assert ran.stderr.startswith(b"laneyard: No space left on device.")
    assert ran.stderr.endswith(b"[disk_full]\n")
    assert ran.stderr.count(b"\n") == 1


def printing_to(desk: Desk, output: BinaryIO, command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PROGRAM, *command.split()],
        cwd=desk.root,
        env=desk.environment,
        stdout=output,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("closed", ["1", "2"])
@pytest.mark.parametrize("command", ["list", "show fix", "log", "create other", "show nobody", "doctor"])
def test_a_closed_output_is_written_nothing(desk: Desk, command: str, closed: str) -> None:
    desk.program("create", "fix")
    shell = f'exec "$@" {closed}>&-'
    ran = desk.program(*command.split(), under=("/bin/sh", "-c", shell, "sh"))
    assert ran.code == (1 if command == "show nobody" else 0)
    assert "Traceback" not in ran.err


def test_a_log_in_pages_is_the_same_log(
    desk: Desk, laneyard: Laneyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fix", "other"):
        laneyard("create", name)
    whole = laneyard("--json", "log"), laneyard("log"), laneyard("log", "other"), laneyard("log", "--type=l*")
    monkeypatch.setattr(looking, "PAGE", "2")
    paged = laneyard("--json", "log"), laneyard("log"), laneyard("log", "other"), laneyard("log", "--type=l*")
    assert paged == whole
    assert [each["position"] for each in whole[0].lines] == list(range(1, 9))


class Slow:
    """A checkout that waits in the middle until it may go on."""

    def __init__(self, desk: Desk) -> None:
        self.begun, self._go = desk.home / "begun", desk.home / "go"
        tell = f"echo $$ >{self.begun}.new; mv {self.begun}.new {self.begun}"
        wait = f"until test -e {self._go}; do sleep 0.02; done"
        desk.git("config", "filter.slow.smudge", f"{tell}; {wait}; cat")
        (desk.root / ".git/info/attributes").write_text("file filter=slow\n")

    def go_on(self) -> None:
        self._go.touch()

    def crash(self, service: Running) -> None:
        """Kills a service with the git that it has started, as a power cut would end both."""
        group = os.getpgid(int(self.begun.read_text()))
        assert group not in (os.getpgid(0), os.getpgid(service.pid))
        service.kill()
        os.killpg(group, signal.SIGKILL)
        self.go_on()

    def await_begin(self, creating: subprocess.Popen[str]) -> None:
        while not self.begun.exists():
            assert creating.poll() is None


@pytest.fixture
def slow(desk: Desk) -> Iterator[Slow]:
    made = Slow(desk)
    yield made
    made.go_on()


@served
def test_an_interrupt_ends_the_waiting_and_the_service_goes_on(desk: Desk, slow: Slow) -> None:
    with desk.start("create", "fix") as creating:
        slow.await_begin(creating)
        creating.send_signal(signal.SIGINT)
        assert creating.wait(30) == 130
        assert creating.stderr is not None
        assert creating.stderr.read() == ""
    with desk.start("--json", "log", "--follow", "--type", "lane.created@1") as following:
        slow.go_on()
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["type"] == "lane.created@1"
        following.send_signal(signal.SIGINT)
    assert (desk.tree("fix") / "file").read_text() == "one\n"


@served
def test_a_command_whose_service_dies_is_answered_by_the_next_service_and_done_once(
    desk: Desk, slow: Slow
) -> None:
    with desk.start("--json", "create", "fix") as creating:
        slow.await_begin(creating)
        slow.crash(desk.service)
        desk.restart()
        out, err = creating.communicate(timeout=60)
    # What git had left half done cannot be trusted: the next service has undone it.
    assert (creating.returncode, out, json.loads(err)["code"]) == (1, "", "wrong_checkout")
    planned = [each for each in desk.program("--json", "log").lines if each["type"] == "creation.planned@1"]
    assert len(planned) == 1
    assert not desk.tree("fix").exists()
    assert desk.program("verify").code == 0


@served
def test_a_command_whose_service_does_not_come_back_is_not_done_again(
    desk: Desk, laneyard: Laneyard, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "PATIENCE", 0.3)
    service = desk.service

    def kill() -> None:
        while not slow.begun.exists():
            assert service.process.poll() is None
        slow.crash(service)

    killing = threading.Thread(target=kill)
    killing.start()
    ran = laneyard("--json", "create", "fix")
    killing.join(30)
    assert (ran.code, ran.out, ran.error["code"]) == (4, "", "service_lost")
    assert "laneyard log" in ran.error["message"]
    desk.leave()
    assert [each["slug"] for each in laneyard("--json", "list").json] == ["primary"]  # and undoes the rest
    assert not desk.tree("fix").exists()
    assert laneyard("verify").code == 0


@served
def test_what_a_killed_service_has_left_at_its_socket_is_no_service(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    desk.service.kill()
    assert (desk.state / "laneyard.sock").is_socket()
    desk.leave()
    assert laneyard("create", "other").code == 0
    assert laneyard("show", "other").code == 0
    assert len(laneyard("--json", "list").json) == 3
    [check] = [each for each in laneyard("--json", "doctor").json if each["check"] == "service"]
    assert check["ok"]
    assert check["message"].startswith("not running, although a socket is there")


@served
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_followed_log_goes_on_without_the_service_and_with_the_next(
    desk: Desk, end: str, form: list[str]
) -> None:
    desk.program("create", "fix")
    with desk.start(*form, "log", "fix", "--type", "lane.*", "--follow") as following:
        assert following.stdout is not None
        lines = [following.stdout.readline()]
        desk.program("remove", "fix")
        lines.append(following.stdout.readline())
        getattr(desk.service, end)()
        desk.leave()
        desk.program("restore", "fix")
        lines.append(following.stdout.readline())
        desk.restart()
        desk.program("remove", "fix")
        lines.append(following.stdout.readline())
        following.send_signal(signal.SIGINT)
        rest, errors = following.communicate(timeout=30)
    assert (following.returncode, rest, errors) == (130, "", "")
    assert lines == desk.program(*form, "log", "fix", "--type", "lane.*").out.splitlines(keepends=True)


@pytest.mark.engine_only("a service comes up later")
def test_a_service_that_comes_up_while_the_lock_is_waited_for_is_asked(
    desk: Desk, laneyard: Laneyard, capsys: pytest.CaptureFixture[str]
) -> None:
    laneyard("create", "fix")
    arguments = build_parser().parse_args(["remove", "fix"])
    asked: list[int] = []

    def service() -> int | None:
        asked.append(1)
        return 7 if len(asked) == 2 else None

    with another_process(desk):
        assert engine.run(arguments, "remove", {}, service) == 7
        desk.configure("[lock]\nwait = 0.6\n")
        with pytest.raises(StateLocked):
            engine.run(arguments, "remove", {}, lambda: asked.append(1))
    assert len(asked) == 2 + 3
    assert desk.tree("fix").is_dir()


@pytest.mark.engine_only("a service comes up later")
def test_a_command_that_waits_for_the_lock_is_done_by_the_service_that_has_it(
    desk: Desk, laneyard: Laneyard
) -> None:
    laneyard("create", "fix")
    with another_process(desk), serving(desk.state / "laneyard.sock.new", lambda asked: ANSWER) as asked:
        with desk.start("sweep", "--apply") as sweeping:
            os.rename(desk.state / "laneyard.sock.new", desk.state / "laneyard.sock")
            out, err = sweeping.communicate(timeout=30)
        os.rename(desk.state / "laneyard.sock", desk.state / "laneyard.sock.new")
    assert (sweeping.returncode, out, err) == (0, "swept\n", "")
    assert len(asked) == 1


ANSWER = Reply(body=b"swept\n", headers={"Content-Type": "text/plain", "Laneyard-Outcome": "done"})


@served
def test_a_socket_with_a_long_path_is_served_and_asked(
    desk: Desk, laneyard: Laneyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.state = desk.home / ("d" * ADDRESS) / "st\u00e4te"
    monkeypatch.setenv("LANEYARD_STATE_DIR", str(desk.state))
    assert laneyard("create", "fix").code == 0
    assert laneyard("remove", "fix").code == 0
    done = [each for each in desk.service.lines("info") if each["message"] == "a command was done"]
    assert len(done) == 2


@served
def test_a_service_of_another_user_is_not_used(desk: Desk, laneyard: Laneyard) -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("only root may start a service as another user, by setpriv")
    powers = "+dac_override,+dac_read_search"  # to reach the test's directories, which are root's
    desk.under = (
        *("setpriv", "--reuid=65534", "--clear-groups"),
        *(f"--inh-caps={powers}", f"--ambient-caps={powers}"),
    )
    for command in (["list"], ["create", "fix"], ["show", "fix"], ["log"]):
        ran = laneyard(*command)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err == "laneyard: User 0 does not own this service. [foreign_user]\n"
        assert laneyard("--json", *command).error["details"] == {"uid": 0}
    assert not desk.tree("fix").exists()


@served
def test_the_doctor_says_who_serves(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    said = laneyard("doctor")
    assert said.code == 0
    assert f"ok   service          answers, pid {desk.service.pid}, ready, position 5\n" in said.out
    assert f"held by process {desk.service.pid}" in said.out


@pytest.mark.engine_only("nobody serves, or somebody else")
def test_the_doctor_finds_a_service_that_does_not_answer(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")

    def check() -> tuple[bool, str]:
        found = {each["check"]: each for each in laneyard("--json", "doctor").json}["service"]
        return found["ok"], found["message"]

    assert check() == (True, "not running")
    path = desk.state / "laneyard.sock"
    with serving(path, lambda asked: Reply(body=b"<html>")):
        assert check() == (False, f"what answers at {path} is no service of ours")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as left:
        left.bind(str(path))
    assert check()[0]
    with another_process(desk):
        assert not check()[0]


SLOW = {"trio", "msgspec", "litestar", "hypercorn", "eventsourcing", "apsw", "http", "http.client", "rich"}
IMPORTS = PROGRAM[3].replace(
    "sys.exit(main())", "code = main(); sys.stderr.write(' '.join(sys.modules) + '\\n'); sys.exit(code)"
)
ASKED = """
list
list --all --json
list --at 5
create other --parent fix
show fix
snapshot fix
remove fix
sweep
sweep --apply
restore fix
log
log fix --json
diff 0 3
rebuild
remove fix --reap
"""


@served
def test_nothing_slow_is_imported_where_a_service_does_the_work(desk: Desk) -> None:
    desk.program("create", "fix")
    for line in ASKED.strip().splitlines():
        ran = subprocess.run(
            [PROGRAM[0], "-I", "-S", "-c", IMPORTS, *line.split()],
            cwd=desk.root,
            env=desk.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert SLOW.isdisjoint(ran.stderr.split()), line
        if line == "list":
            assert {"argparse", "json", "re", "typing"}.isdisjoint(ran.stderr.split())


@served
def test_lanes_are_completed_by_the_service(desk: Desk, laneyard: Laneyard) -> None:
    for name in ("fix", "other"):
        laneyard("create", name)
    laneyard("remove", "other", "--reap")
    assert laneyard("completion", "lanes").out == "fix\nprimary\n"
    assert laneyard("completion", "every-lane").out == "fix\nother\nprimary\n"
