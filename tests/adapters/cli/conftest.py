"""A user's desk: a repository, a state directory and a home of its own, and the program to use on them.

Every test that has a desk is run twice: the engine works in the program's own process, or a service does.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from adapters.cli import main
from adapters.store.reader import Reader
from tests.adapters.cli.running import PROGRAM, ROOT, Running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["PROGRAM", "ROOT", "Desk", "Ran"]
WAYS: dict[str, tuple[pytest.MarkDecorator, ...]] = {"engine": (), "service": (pytest.mark.slow,)}


class Ran(msgspec.Struct, frozen=True):
    """What a command has said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401
        """Returns what was printed, which is one JSON value."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Returns what was printed, a JSON value on each line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> Any:  # noqa: ANN401
        """Returns the error, which is the only line of standard error."""
        assert self.err.count("\n") == 1, self.err
        return json.loads(self.err)


class Desk:
    """A repository with one commit, beside an empty state directory.

    A desk with a service starts it before its first command.
    """

    def __init__(self, home: Path, root: Path | None = None, way: str = "engine") -> None:
        self.home, self.way = home, way
        self.running: Running | None = None
        self.under: tuple[str, ...] = ()  # the program under which the service is started
        self.root = root or home / "app"
        self.state = home / "state"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_STATE_HOME": str(home / "xdg-state"),
            "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Ada",
            "GIT_AUTHOR_EMAIL": "ada@example.org",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.org",
            "LANEYARD_STATE_DIR": str(self.state),
        }

    def begin(self) -> Desk:
        """Makes the repository."""
        self.root.mkdir()
        self.git("init", "-q", "-b", "main")
        (self.root / "file").write_text("one\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "first")
        return self

    def git(self, *arguments: str | Path, cwd: Path | None = None) -> str:
        ran = subprocess.run(
            ["git", *arguments],
            cwd=cwd or self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def open(self) -> Desk:
        """Starts the service where one is to do the work and none runs; comes back when it is ready."""
        if self.way == "service" and self.running is None:
            self.running = Running(self.state, self.home, self.environment, self.under)
        return self

    @property
    def service(self) -> Running:
        """Returns the service, which runs from now on."""
        assert self.way == "service"
        running = self.open().running
        assert running is not None
        return running

    def leave(self) -> None:
        """Does without the service from now on."""
        self.close()
        self.way = "engine"

    def restart(self) -> None:
        """Starts a service where the last one has ended."""
        self.running, self.way = None, "service"
        self.open()

    def close(self) -> None:
        """Ends the service, which must have met nothing that it calls an error."""
        if self.running is not None:
            running, self.running = self.running, None
            running.end()

    def program(
        self, *arguments: str | bytes | Path, cwd: Path | None = None, under: tuple[str, ...] = ()
    ) -> Ran:
        """Runs the real program as a child process, perhaps under another program."""
        self.open()
        ran = subprocess.run(
            [*under, *PROGRAM, *arguments],
            cwd=cwd or self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )
        return Ran(ran.returncode, ran.stdout.decode("utf-8"), ran.stderr.decode("utf-8"))

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Starts the real program and does not wait for it."""
        self.open()
        return subprocess.Popen(
            [*PROGRAM, *arguments],
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def configure(self, text: str) -> None:
        self.state.mkdir(mode=0o700, exist_ok=True)
        (self.state / "config.toml").write_text(text)
        if self.running is not None:
            self.running.reload()

    def tree(self, slug: str) -> Path:
        return self.root / ".laneyard" / "worktrees" / slug

    def traces(self) -> dict[str, object]:
        """Returns everything that a command which was refused must have left as it was."""
        managed = self.root / ".laneyard"
        return {
            "worktrees": sorted(str(path) for path in (self.root / ".git/worktrees").glob("*/*")),
            "refs": self.git("for-each-ref"),
            "configuration": (self.root / ".git/config").read_text(),
            "exclude": (self.root / ".git/info/exclude").read_text(),
            "managed": sorted(str(path) for path in managed.rglob("*")) if managed.is_dir() else [],
            "status": self.git("--no-optional-locks", "status", "--porcelain=v2"),
            "lanes": self.lanes(),
        }

    def lanes(self) -> list[tuple[object, ...]]:
        store = os.fsencode(self.state / "journal.db")
        if not os.path.exists(store):
            return []
        with Reader(store) as reader:
            rows = sorted(reader.lanes(), key=lambda row: str(row["created_at"]))
        return [(row["slug"], row["state"], row["path"], row["branch"]) for row in rows]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs what has a desk both ways, but for what is marked as making sense in one of them only."""
    if "way" not in metafunc.fixturenames:
        return
    only = {
        way for way in WAYS if metafunc.definition.get_closest_marker(f"{way}_only") is not None
    } or WAYS.keys()
    ways = [pytest.param(way, marks=marks) for way, marks in WAYS.items() if way in only]
    metafunc.parametrize("way", ways)


@pytest.fixture
def desk(tmp_path: Path, way: str, request: pytest.FixtureRequest) -> Iterator[Desk]:
    made = Desk(tmp_path, way=way).begin()
    yield made
    try:
        made.close()
    finally:
        if (log := tmp_path / "service.log").exists():  # shown where the test has failed
            request.node.add_report_section("teardown", "service", log.read_text("utf-8", "replace"))


@pytest.fixture
def laneyard(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Runs the program in this process, from the repository's root."""
    for name, value in desk.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(desk.root)

    def run(*arguments: str | Path) -> Ran:
        desk.open()
        code = main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return run
