"""`replay`: read by a service or by this process, stepped through on a terminal, and never a change."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from adapters.cli import REFUSED, USAGE
from tests.adapters.cli.conftest import PROGRAM, Desk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.adapters.cli.conftest import Ran

    Laneyard = Callable[..., Ran]

PROMPT = "q: end > "
AWAITED = 60  # seconds for what comes at once


def positions(text: str) -> list[int]:
    return [int(each) for each in re.findall(r"^ {0,4}(\d+)  \d{4}-", text, re.MULTILINE)]


def test_every_event_of_the_lane_is_told_once_and_nothing_is_written(laneyard: Laneyard, desk: Desk) -> None:
    laneyard("create", "fix")
    laneyard("create", "other")
    (desk.tree("fix") / "file").write_text("changed\n")
    laneyard("remove", "fix")
    before, traces = laneyard("log", "--json").out, desk.traces()
    logged = laneyard("log", "fix", "--json").lines
    told = laneyard("replay", "fix", "--json")
    assert [each["position"] for each in told.lines] == [each["position"] for each in logged]
    assert positions(laneyard("replay", "fix").out) == [each["position"] for each in logged]
    assert [{name: each[name] for name in logged[0]} for each in told.lines] == logged
    assert laneyard("replay", "fix", "--dry-drive").out.endswith("\nowes nothing: it is at rest\n")
    assert (laneyard("log", "--json").out, desk.traces()) == (before, traces)


def test_it_ends_where_it_is_told_to(laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    assert positions(laneyard("replay", "fix", "--to", "4").out) == [3, 4]
    drive = laneyard("replay", "fix", "--to", "4", "--dry-drive", "--json").json
    assert (drive["position"], drive["state"], drive["pending"]["step"]) == (4, "opening", "Unlock")
    early = laneyard("replay", "fix", "--to", "2", "--json")
    assert (early.code, early.error["code"]) == (REFUSED, "before_the_lane")
    assert early.error["details"] == {"position": 2, "first": 3}
    late = laneyard("replay", "fix", "--to", "99", "--json")
    assert (late.code, late.error["code"]) == (REFUSED, "no_such_position")


def test_an_abandoned_removal_is_told_with_why(laneyard: Laneyard, desk: Desk) -> None:
    laneyard("create", "fix")
    taken = desk.root / ".laneyard" / "quarantine"
    taken.write_text("in the way\n")
    assert laneyard("remove", "fix").code == REFUSED
    text = laneyard("replay", "fix").out
    assert re.search(r"ran +Move: .*\n +saw +it did not take: .*\[", text)
    assert re.search(r"removal\.abandoned@1  outcome\n +ran +Unlock: ", text)
    assert re.search(r"state +leaving -> active\n", text)


def test_a_lane_that_never_came_to_be_is_told_by_its_id(laneyard: Laneyard, desk: Desk) -> None:
    (desk.root / ".git/refs/heads/fix.lock").touch()
    assert laneyard("create", "fix").code != 0
    (planned,) = [each for each in laneyard("log", "--json").lines if each["type"] == "creation.planned@1"]
    text = laneyard("replay", planned["lane"]).out
    assert "creation.undone@1" in text
    assert re.search(r"state +opening -> failed\n", text)


def test_bytes_that_are_no_text_and_escapes_are_shown_safely(laneyard: Laneyard, desk: Desk) -> None:
    odd = desk.home / os.fsdecode(b"odd \xff\n\x1b[31m") / "app"
    shutil.copytree(desk.root, odd, symlinks=True)
    laneyard("-C", odd, "create", "fix")
    text = laneyard("-C", odd, "replay", "fix").out
    assert "\x1b" not in text
    assert "odd \ufffd\\n\\x1b[31m/app" in text
    assert "path: " in text
    assert "odd %FF\\n\\x1b[31m/app" in text  # a field is exact
    assert positions(text) == [3, 4, 5]


def test_without_a_terminal_nobody_can_step(laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    said = laneyard("replay", "fix", "--step")
    assert (said.code, said.out) == (USAGE, "")
    assert "--step needs a terminal" in said.err
    assert laneyard("replay", "fix", "--step", "--dry-drive").code == USAGE


class Terminal:
    """The program on a terminal of its own."""

    def __init__(self, desk: Desk, *arguments: str) -> None:
        desk.open()
        self._ours, theirs = os.openpty()
        self.process = subprocess.Popen(
            [*PROGRAM, *arguments],
            cwd=desk.root,
            env=desk.environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)

    def until(self, word: str) -> str:
        """Returns what is printed until a word."""
        text = ""
        while word not in text:
            text += os.read(self._ours, 1 << 12).decode()
        return text.replace("\r\n", "\n")

    def say(self, line: str) -> None:
        os.write(self._ours, f"{line}\n".encode())

    def close(self) -> None:
        self.process.kill()
        self.process.wait(AWAITED)
        os.close(self._ours)


@pytest.fixture
def terminal(desk: Desk, laneyard: Laneyard) -> Iterator[Terminal]:
    laneyard("create", "fix")
    laneyard("remove", "fix")
    made = Terminal(desk, "replay", "fix", "--step")
    yield made
    made.close()


@pytest.mark.slow
def test_on_a_terminal_it_waits_goes_on_jumps_and_ends(terminal: Terminal) -> None:
    assert positions(terminal.until(PROMPT)) == [3]
    terminal.say("")
    assert positions(terminal.until(PROMPT)) == [4]
    terminal.say("n")
    assert positions(terminal.until(PROMPT)) == [5]
    terminal.say("8")
    assert positions(terminal.until(PROMPT)) == [8]
    terminal.say("4")
    assert positions(terminal.until(PROMPT)) == [4]
    terminal.say("what")
    assert positions(terminal.until(PROMPT)) == []
    terminal.say("1")
    assert positions(terminal.until(PROMPT)) == [3]
    terminal.say("q")
    assert terminal.process.wait(AWAITED) == 0


@pytest.mark.slow
def test_on_a_terminal_it_ends_behind_the_last_event(terminal: Terminal) -> None:
    terminal.until(PROMPT)
    terminal.say("999")
    assert terminal.process.wait(AWAITED) == 0


@pytest.mark.slow
@pytest.mark.engine_only("a service has the store open, and needs to write")
@pytest.mark.skipif(
    os.geteuid() == 0 and not shutil.which("setpriv"),
    reason="root may write everywhere, and setpriv is missing",
)
def test_a_store_that_cannot_be_written_is_read(laneyard: Laneyard, desk: Desk) -> None:
    laneyard("create", "fix")
    bound = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--") if os.geteuid() == 0 else ()
    (desk.state / "journal.db").chmod(0o400)
    for arguments in (("replay", "fix"), ("replay", "fix", "--dry-drive")):
        ran = desk.program(*arguments, under=bound)
        assert (ran.code, ran.err) == (0, "")
