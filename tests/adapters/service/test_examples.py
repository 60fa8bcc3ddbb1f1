"""The examples for authors of tools, run as they stand on the page against a real service."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.adapters.cli.conftest import ROOT, Desk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EXAMPLES = ROOT / "docs/examples"
PAGE = (ROOT / "docs/http.md").read_text(encoding="utf-8")
RUNNERS = {"life.sh": "/bin/sh", "life.py": sys.executable}
SLUGS = {"life.sh": "a-life-in-sh", "life.py": "a-life"}
PLACE = 'it\'s "50%41" \\ of é'  # nothing that JSON and addresses take literally
NOTES = "half a thought\n"
LIFE = ["created", "snapshotted", "quarantined", "restored", "quarantined", "reaped", "restored"]
LINES = 20


class Lived(NamedTuple):
    """What an example has printed, and where its lane was."""

    desk: Desk
    out: str
    slug: str

    @property
    def tree(self) -> Path:
        """Returns the lane's directory."""
        return self.desk.tree(self.slug)


@pytest.fixture(params=RUNNERS)
def lived(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lived]:
    """Runs an example on a repository whose path has what JSON and addresses must not take literally."""
    if request.param == "life.sh" and shutil.which("curl") is None:
        pytest.skip("this example is for curl, which is not installed")
    desk = Desk(tmp_path, root=tmp_path / PLACE, way="service").begin()
    try:
        yield Lived(desk, run(request.param, desk.open()), SLUGS[request.param])
    finally:
        desk.close()


def run(example: str, desk: Desk) -> str:
    """Returns what an example has printed."""
    ran = subprocess.run(
        [RUNNERS[example], EXAMPLES / example, desk.state / "laneyard.sock", desk.root],
        cwd=desk.home,
        env={**desk.environment, "TMPDIR": str(desk.home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


@pytest.mark.slow
def test_an_example_leads_a_lane_through_its_whole_life_and_brings_it_back(lived: Lived) -> None:
    told = lived.desk.program("log", lived.slug, "--type", "lane.*", "--json").lines
    milestones = [each["type"].removeprefix("lane.").partition("@")[0] for each in told]
    assert list(without_repeats(milestones)) == list(with_snapshots(LIFE))
    assert told[-1]["fact"]["source"] == "snapshot"
    assert (lived.tree / "notes.txt").read_bytes() == NOTES.encode()
    assert (lived.tree / "file").read_bytes() == (lived.desk.root / "file").read_bytes()
    assert lived.desk.git("status", "--porcelain", cwd=lived.tree) == "?? notes.txt\n"
    assert lived.desk.program("verify").code == 0
    assert [each["slug"] for each in lived.desk.program("list", "--json").json] == ["primary", lived.slug]
    assert re.findall(r"\blane\.[a-z]+@\d+$", lived.out, re.MULTILINE) == [each["type"] for each in told]
    left_behind = set(os.listdir(lived.desk.home)) - {lived.desk.root.name, "service.log", "state"}
    assert left_behind == set()


def without_repeats(words: list[str]) -> Iterator[str]:
    """Yields each word that is not the one before it."""
    for before, word in zip(["", *words], words, strict=False):
        if word != before:
            yield word


def with_snapshots(life: list[str]) -> Iterator[str]:
    """Yields the milestones with a snapshot before each removal, as there is work in the lane."""
    last = ""
    for word in life:
        if word == "quarantined" and last != "snapshotted":
            yield "snapshotted"
        yield (last := word)


@pytest.mark.parametrize(("name", "language"), [("life.sh", "sh"), ("life.py", "python")])
def test_the_page_shows_the_examples_as_they_are(name: str, language: str) -> None:
    shown = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert (EXAMPLES / name).read_text(encoding="utf-8") in shown


def test_the_script_in_python_is_short_and_needs_nothing_but_python() -> None:
    text = (EXAMPLES / "life.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    documentation = ast.get_docstring(tree) or ""
    lines = [line for line in text.splitlines() if line.strip() and documentation not in line]
    assert len(lines) <= LINES
    names = {
        alias.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert {each.partition(".")[0] for each in names} <= sys.stdlib_module_names
