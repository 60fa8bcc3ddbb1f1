"""What the program says where it cannot work: a code of its own each time, and nothing half done."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from adapters.processes import holder
from tests.adapters.cli.conftest import Desk, Ran
from tests.adapters.volumes import fill, read_only, volume

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Laneyard = Callable[..., Ran]

pytestmark = pytest.mark.slow

HOLD = """
import sys
sys.path.insert(0, {root!r})
from adapters.files.oslock import OsLock
with OsLock({path!r}).acquire(0):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def another_process(desk: Desk) -> Iterator[subprocess.Popen[str]]:
    """Another process, which holds the state directory until the end of the block."""
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
    code = HOLD.format(root=root, path=os.fsencode(desk.state / "laneyard.lock"))
    with subprocess.Popen(
        [sys.executable, "-I", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.communicate()


def unusable(ran: Ran, code: str, exit_code: int = 4) -> str:
    """Returns the message of a command that could not be run, under --json."""
    assert ran.out == ""
    assert (ran.code, ran.error["code"]) == (exit_code, code)
    return str(ran.error["message"])


@pytest.mark.engine_only("another process has the lock")
def test_a_held_state_directory_is_waited_for_and_its_holder_named(desk: Desk, laneyard: Laneyard) -> None:
    desk.configure("[lock]\nwait = 0.3\n")
    laneyard("create", "fix")
    before = desk.traces()
    with another_process(desk) as process:
        began = time.monotonic()
        ran = laneyard("--json", "create", "other")
        assert 0.3 <= time.monotonic() - began < 5
        message = unusable(ran, "state_locked")
        who = ran.error["details"]["holder"]
        assert (who["pid"], who["alive"]) == (process.pid, True)
        assert who["command"].startswith(sys.executable)
        assert f"process {process.pid}, running since {who['started']}" in message
        assert desk.traces() == before
        assert f"held by process {process.pid}" in laneyard("doctor").out
        assert len(laneyard("--json", "list").json) == 2  # reading needs no lock
    assert laneyard("create", "other").code == 0


def test_a_note_of_a_process_that_has_gone_is_told_from_one_that_lives() -> None:
    with open("/proc/self/stat", encoding="utf-8") as file:
        started = file.read().rpartition(")")[2].split()[19]
    mine = holder(f"{os.getpid()} {started} a program")
    assert mine is not None
    assert (mine.pid, mine.alive, mine.program) == (os.getpid(), True, "a program")
    reused = holder(f"{os.getpid()} {int(started) - 1000} a program")
    assert reused is not None
    assert (reused.alive, reused.started) == (False, None)
    assert holder("") is None
    assert holder("what is this") is None


@pytest.mark.engine_only("the log is damaged behind the program's back")
@pytest.mark.parametrize("command", ["list", "log", "create", "verify", "doctor", "rebuild"])
@pytest.mark.parametrize("damage", ["garbage", "half", "page"])
def test_a_damaged_log_is_told_and_not_touched(
    desk: Desk, laneyard: Laneyard, damage: str, command: str
) -> None:
    laneyard("create", "fix")
    store = desk.state / "journal.db"
    whole = store.read_bytes()
    broken = {"garbage": b"what is this?" * 500, "half": whole[: len(whole) // 2], "page": whole[:4096]}[
        damage
    ]
    store.write_bytes(broken)
    ran = laneyard("--json", command, *(["other"] if command == "create" else []))
    if command == "doctor":
        assert ran.code == 3
        assert [each["check"] for each in ran.json if not each["ok"]] == ["log"]
    else:
        unusable(ran, "journal_corrupt")
    assert store.read_bytes() == broken
    assert not desk.tree("other").exists()


def rewrite(desk: Desk, *statements: str) -> None:
    """Changes the store behind the program's back, as a newer program would have written it."""
    with contextlib.closing(sqlite3.connect(desk.state / "journal.db")) as store:
        for statement in statements:
            store.execute(statement)
        store.commit()


@pytest.mark.engine_only("the log is changed behind the program's back")
def test_a_store_that_needs_a_newer_reader_is_not_touched(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    rewrite(desk, "UPDATE store SET v = '99' WHERE k = 'min_reader'")
    before = desk.git("for-each-ref")
    for command in (["list"], ["create", "other"], ["verify"], ["log"], ["rebuild"]):
        assert unusable(laneyard("--json", *command), "journal_too_new").count("Update Laneyard.") == 1
    assert desk.git("for-each-ref") == before


READING = (["list"], ["show", "fix"], ["log"], ["diff", "0", "6"], ["list", "--at", "5"])


@pytest.mark.engine_only("the log is changed behind the program's back")
@pytest.mark.parametrize("tag", ["lane.teleported@1", "lane.created@9"])
def test_an_event_of_a_newer_program_that_is_no_lanes_is_named_and_nothing_goes_past_it(
    desk: Desk, laneyard: Laneyard, tag: str
) -> None:
    laneyard("create", "fix")
    rewrite(
        desk,
        "INSERT INTO event(stream, version, type, state, hash) "
        f"VALUES ('yard-x', 1, '{tag}', x'7b7d', zeroblob(32))",
    )
    before = desk.git("for-each-ref")
    for command in (*READING, ["create", "other"], ["remove", "fix"], ["rebuild"]):
        message = unusable(laneyard("--json", *command), "journal_too_new")
        assert tag in message
        assert message.casefold().count("update laneyard") == 1
    assert desk.git("for-each-ref") == before
    assert laneyard("verify").code == 4
    doctor = laneyard("--json", "doctor")
    assert doctor.code == 3
    [wrong] = [each for each in doctor.json if not each["ok"]]
    assert wrong["check"] == "log"
    assert tag in wrong["message"]


@pytest.mark.engine_only("a service has a log")
def test_a_directory_in_the_place_of_the_log_is_told(desk: Desk, laneyard: Laneyard) -> None:
    store = desk.state / "journal.db"
    store.mkdir(parents=True)
    for command in (["list"], ["create", "fix"], ["verify"]):
        message = unusable(laneyard("--json", *command), "journal_corrupt")
        assert message == f"The log cannot be used: {store} is a directory. Restore a copy of the log."
    assert list(store.iterdir()) == []


@pytest.mark.engine_only("a service has a log")
def test_an_empty_log_is_none_yet(desk: Desk, laneyard: Laneyard) -> None:
    desk.state.mkdir(mode=0o700)
    store = desk.state / "journal.db"
    store.touch()
    for command in (["verify"], ["log", "--follow"]):
        message = unusable(laneyard("--json", *command), "no_store")
        assert message == f"There is no log yet at {store}. Nothing has been recorded here so far."
    assert laneyard("list").out.startswith("no lanes")
    assert laneyard("create", "fix").code == 0


@pytest.mark.engine_only("a service has a state directory")
def test_a_state_directory_that_cannot_be_is_named_whole(desk: Desk, laneyard: Laneyard) -> None:
    for place in ("/proc/laneyard", "/proc/laneyard/state", str(desk.root / "file" / "state")):
        ran = laneyard("--state-dir", place, "create", "fix")
        assert (ran.code, ran.out) == (4, "")
        assert ran.err.startswith(f"laneyard: {os.path.commonpath([place, '/proc/laneyard'])}")
        assert "--state-dir" in ran.err


def test_a_table_that_was_tampered_with_is_found_and_made_anew(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    rewrite(desk, "UPDATE lane SET slug = 'mine' WHERE slug = 'fix'")
    ran = laneyard("verify")
    assert ran.code == 4
    assert "the log is NOT in order: 2 findings in 5 events\n" in ran.out
    assert "laneyard rebuild" in ran.out
    assert laneyard("rebuild").code == 0
    assert laneyard("verify").code == 0


def test_a_log_that_was_tampered_with_is_found(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    rewrite(
        desk,
        "DROP TRIGGER event_no_update",
        "UPDATE event SET state = CAST(replace(CAST(state AS TEXT), 'manual', 'nobody') AS BLOB) "
        "WHERE type = 'creation.planned@1'",
    )
    ran = laneyard("--json", "verify")
    assert ran.code == 4
    assert "chain" in {each["check"] for each in ran.json["log"]}


@pytest.mark.engine_only("a service does not start with it, nor read it again")
def test_an_unknown_configuration_key_is_named(desk: Desk, laneyard: Laneyard) -> None:
    for text, key in (
        ("[quarantine]\nretentoin = '1d'\n", "retentoin"),
        ("colour = true\n", "colour"),
        ("[quarantine]\nretention = 'soon'\n", "soon"),
        ("[lock]\nwait = 'long'\n", "lock.wait"),
        ("[lock\n", "config.toml"),
    ):
        desk.configure(text)
        ran = laneyard("--json", "create", "fix")
        assert (ran.code, ran.error["code"]) == (1, "invalid_configuration")
        assert key in ran.error["message"]
        assert str(desk.state / "config.toml") in ran.error["details"]["path"]
    assert not desk.tree("fix").exists()


def test_a_repository_may_not_set_what_is_not_its_own(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    laneyard("remove", "fix")
    (desk.root / ".laneyard.toml").write_text("[git]\nprogram = '/bin/true'\n")
    ran = laneyard("--json", "sweep")
    assert (ran.code, ran.error["code"]) == (1, "invalid_configuration")
    assert "git" in ran.error["message"]


def test_a_git_that_is_missing_is_told(desk: Desk, laneyard: Laneyard) -> None:
    desk.configure("[git]\nprogram = '/nonexistent/git'\n")
    before = desk.traces()
    assert "git.program" in unusable(laneyard("--json", "create", "fix"), "git_missing")
    assert desk.traces() == before
    doctor = laneyard("doctor")
    assert doctor.code == 3
    assert "BAD  git " in doctor.out


def test_a_lane_that_git_cannot_be_asked_about_is_not_removed(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    desk.configure("[git]\nprogram = '/nonexistent/git'\n")
    ran = laneyard("--json", "remove", "fix", "--force")
    assert (ran.code, ran.error["code"]) == (1, "evidence_unavailable")
    assert desk.tree("fix").is_dir()


def slow_git(desk: Desk, script: str) -> None:
    """Puts a program before git that is slow at adding a worktree, and gives it half a second."""
    program = desk.home / "slow-git"
    program.write_text(f'#!/bin/sh\ncase "$*" in *"worktree add"*) {script} ;; esac\nexec git "$@"\n')
    program.chmod(0o755)
    desk.configure(f"[git]\nprogram = '{program}'\nwrite_timeout = 0.5\n")


HANGING = {
    "before it begins": "sleep 60",
    "when it is done": 'git "$@"; sleep 60',
    "with the index missing": 'git "$@"; rm worktrees/other/index; sleep 60',
}


@pytest.mark.parametrize("script", HANGING.values(), ids=HANGING)
def test_a_git_that_hangs_in_the_checkout_is_ended_and_undone(
    desk: Desk, laneyard: Laneyard, script: str
) -> None:
    laneyard("create", "fix")
    before = desk.traces()
    slow_git(desk, script)
    ran = laneyard("--json", "create", "other")
    assert (ran.code, ran.out, ran.error["code"]) == (1, "", "git_timed_out")
    assert ran.error["details"]["state"] == "failed"
    assert desk.traces() == before
    assert "was undone" in laneyard("log", ran.error["details"]["lane"]).out
    assert laneyard("verify").code == 0


def test_a_checkout_that_hangs_half_way_is_undone(desk: Desk, laneyard: Laneyard) -> None:
    for number in range(20):
        (desk.root / f"more{number}").write_text("more\n")
    (desk.root / ".gitattributes").write_text("more10 filter=slow\n")
    desk.git("add", ".")
    desk.git("commit", "-q", "-m", "more")
    laneyard("create", "fix")
    desk.git("config", "filter.slow.smudge", "sleep 60; cat")
    desk.configure("[git]\nwrite_timeout = 0.5\n")
    before = desk.traces()
    ran = laneyard("--json", "create", "other")
    assert (ran.code, ran.error["code"]) == (1, "git_timed_out")
    assert desk.traces() == before


@pytest.fixture
def small(desk: Desk, tmp_path: Path) -> Iterator[Path]:
    with volume(tmp_path / "small") as path:
        try:
            yield path
        finally:
            desk.close()  # a service may have files open there


def use(desk: Desk, monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    desk.state = state
    monkeypatch.setenv("LANEYARD_STATE_DIR", str(state))


@pytest.mark.engine_only("what a service writes to cannot be made read-only")
def test_a_read_only_state_directory_is_told(
    desk: Desk, laneyard: Laneyard, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(desk, monkeypatch, small / "state")
    laneyard("create", "fix")
    before = desk.traces()
    with read_only(small):
        unusable(laneyard("--json", "create", "other"), "read_only")
        unusable(laneyard("--json", "remove", "fix"), "read_only")
        doctor = laneyard("doctor")
        assert doctor.code == 3
        assert "BAD  lock" in doctor.out
    assert desk.traces() == before
    assert laneyard("remove", "fix").code == 0


@pytest.mark.engine_only("a service has a state directory")
def test_a_state_directory_that_cannot_be_made_is_told(
    desk: Desk, laneyard: Laneyard, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(desk, monkeypatch, small / "state")
    with read_only(small):
        message = unusable(laneyard("--json", "create", "fix"), "read_only")
        assert message.startswith(f"{small / 'state'}: Read-only file system. Make")
        assert laneyard("--json", "list").json == []
    assert desk.git("worktree", "list").count("\n") == 1


def test_a_read_only_repository_is_refused_before_anything_is_planned(
    desk: Desk, laneyard: Laneyard, small: Path
) -> None:
    there = Desk(desk.home, small / "app").begin()
    laneyard("-C", there.root, "create", "fix")
    before = there.traces()
    with read_only(small):
        unusable(laneyard("-C", there.root, "--json", "create", "other"), "read_only", 1)
        ran = laneyard("-C", there.root, "--json", "remove", "fix")
        assert (ran.code, ran.out, ran.error["code"]) == (1, "", "read_only")
        assert len(laneyard("-C", there.root, "--json", "list").json) == 2
    assert there.traces() == before
    assert laneyard("-C", there.root, "remove", "fix").code == 0


@pytest.fixture
def ordinary() -> tuple[str, ...]:
    """What makes the permissions of files count: root has to give up its powers first."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root may write everywhere, and setpriv is not there to change that")
    return ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


@contextlib.contextmanager
def mode(path: Path, bits: int) -> Iterator[None]:
    """Gives a directory other permissions for a while."""
    before = path.stat().st_mode
    path.chmod(bits)
    try:
        yield
    finally:
        path.chmod(before)


@pytest.mark.parametrize("place", [".", ".git"])
def test_a_repository_that_may_not_be_written_is_refused(
    desk: Desk, ordinary: tuple[str, ...], place: str
) -> None:
    desk.under = ordinary
    before = desk.traces()
    with mode(desk.root / place, 0o555):
        unusable(desk.program("--json", "create", "fix", under=ordinary), "read_only", 1)
    assert desk.traces() == before


@pytest.mark.engine_only("a service has a state directory")
@pytest.mark.parametrize("bits", [0o500, 0o000], ids=["may-be-read", "may-not"])
def test_a_state_directory_that_may_not_be_written_is_told(
    desk: Desk, ordinary: tuple[str, ...], bits: int
) -> None:
    desk.state.mkdir()
    before = desk.traces()
    with mode(desk.state, bits):
        unusable(desk.program("--json", "create", "fix", under=ordinary), "read_only")
    assert desk.traces() == before
    assert list(desk.state.iterdir()) == []


def test_a_full_disk_under_the_log_refuses_and_lets_read(
    desk: Desk, laneyard: Laneyard, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(desk, monkeypatch, small / "state")
    laneyard("create", "fix")
    before, log = desk.traces(), laneyard("--json", "log").out
    ballast = fill(small)
    unusable(laneyard("--json", "create", "other"), "disk_full")
    assert desk.traces() == before
    assert laneyard("--json", "log").out == log
    assert len(laneyard("--json", "list").json) == 2
    ballast.unlink()
    assert laneyard("create", "other").code == 0
    assert laneyard("verify").code == 0


def test_a_full_disk_under_the_repository_undoes_the_creation_and_lets_remove(
    desk: Desk, laneyard: Laneyard, small: Path
) -> None:
    there = Desk(desk.home, small / "app").begin()
    (there.root / "large").write_bytes(os.urandom(1 << 20))
    there.git("add", ".")
    there.git("commit", "-q", "-m", "large")
    laneyard("-C", there.root, "create", "small", "--base", "main~1")
    ballast = fill(small, leave=256 << 10)
    before = there.traces()
    ran = laneyard("-C", there.root, "--json", "create", "other")
    assert (ran.code, ran.out, ran.error["code"]) == (1, "", "disk_full"), ran.err
    assert ran.error["message"].startswith("The disk is full; free some space and try again. Everything was")
    assert there.traces() == before
    assert laneyard("-C", there.root, "remove", "small").code == 0
    assert laneyard("-C", there.root, "restore", "small").code == 0
    ballast.unlink()
    assert laneyard("-C", there.root, "create", "other").code == 0
    assert laneyard("verify").code == 0


def test_a_repository_without_a_byte_of_room_loses_nothing(
    desk: Desk, laneyard: Laneyard, small: Path
) -> None:
    there = Desk(desk.home, small / "app").begin()
    laneyard("-C", there.root, "create", "fix")
    ballast = fill(small)
    before = there.traces()
    for command in (["create", "other"], ["remove", "fix"], ["snapshot", "fix"]):
        ran = laneyard("-C", there.root, "--json", *command)
        assert ran.code == 0 or (ran.code, ran.error["code"]) == (1, "disk_full")
        assert ran.code == 0 or "ree some space and try again" in ran.error["message"]
        assert ran.code == 0 or "git " not in ran.error["message"]
    ballast.unlink()
    assert laneyard("verify").code == 0
    after = there.traces()
    assert after["refs"] == before["refs"]
    assert (there.tree("fix") / "file").read_text() == "one\n"
