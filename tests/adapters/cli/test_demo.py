"""The demo shows the whole life of a lane, quickly, anywhere, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.adapters.cli.conftest import PROGRAM, ROOT, Ran

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
PATIENCE = 15  # seconds that somebody watches

STEPS = [
    *(
        "create",
        "git",
        "snapshot",
        "remove",
        "list",
        "restore",
        "git",
        "remove",
        "show",
        "list",
        "reap",
        "list",
    ),
    *("restore", "git", "verify", "rebuild", "verify", "list", "diff", "log"),
]


def demo(tmp_path: Path, *arguments: str) -> Ran:
    """Runs the demo in an empty home, without a git identity, a terminal or anything to read from."""
    home, scratch = tmp_path / "home", tmp_path / "scratch"
    for directory in (home, scratch):
        directory.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TMPDIR": str(scratch),
        "LANEYARD_STATE_DIR": str(home / "mine"),
    }
    ran = subprocess.run(
        [*PROGRAM, "demo", *arguments],
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert list(home.iterdir()) == []
    assert list(scratch.iterdir()) == []
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def test_the_demo_shows_every_step_with_its_output(tmp_path: Path) -> None:
    began = time.monotonic()
    ran = demo(tmp_path)
    assert time.monotonic() - began < PATIENCE
    assert (ran.code, ran.err) == (0, "")
    commands = [line.split() for line in ran.out.splitlines() if line.startswith("$ ")]
    assert [words[2] if words[1] == "laneyard" else "git" for words in commands] == STEPS
    assert ran.out.count("identical to the status before the removal\n") == 2
    assert "DIFFERENT" not in ran.out
    assert "fix-login is leaving, edition 1" in ran.out
    assert "owed: moving (Move)" in ran.out
    assert "Simulated" in ran.out
    assert ran.out.count("git and the disk are as the log says\n") == 2
    assert "lane.restored@1" in ran.out.splitlines()[-1]
    assert "\x1b" not in ran.out


def test_the_demo_as_json_is_one_object_a_step(tmp_path: Path) -> None:
    ran = demo(tmp_path, "--json")
    assert (ran.code, ran.err) == (0, "")
    assert all(list(each) == ["step", "command", "exit", "output"] for each in ran.lines)
    assert [each["command"].split()[1] if each["command"][0] == "l" else "git" for each in ran.lines] == STEPS
    assert {each["exit"] for each in ran.lines} == {0}
    states = [each["output"][0]["state"] for each in ran.lines if each["command"].startswith("laneyard show")]
    assert states == ["leaving"]


def test_a_list_loads_neither_the_demo_nor_what_it_does_not_need(tmp_path: Path) -> None:
    told = "import sys; from adapters.cli import main; main(); print(*sys.modules, file=sys.stderr)"
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {told}"
    ran = subprocess.run(
        [sys.executable, "-I", "-c", start, "--state-dir", str(tmp_path / "none"), "list"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    modules = set(ran.stderr.split())
    assert "adapters.cli.reading" in modules
    assert not modules & {"adapters.cli.demo", "psutil", "watchfiles", "rich"}
