"""The two ways of the command line, side by side: what is printed, told and returned is the same."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from adapters.cli import main
from adapters.cli.parser import FARTHEST
from adapters.service.web.parameters import POSITION
from tests.adapters.cli.conftest import Desk, Ran

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

VOLATILE = (
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{6})?"), "TIME"),
    (re.compile(r"(?<![0-9a-z])[0-9a-f]{7,64}(?![0-9a-z])"), "HEX"),
)
DATES = {f"GIT_{who}_DATE": "2026-01-02T03:04:05Z" for who in ("AUTHOR", "COMMITTER")}
AS = pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])


class Pair:
    """Two desks that are alike, one of them with a service."""

    def __init__(
        self, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self._patch, self._capsys = monkeypatch, capsys
        self.desks = [self._desk(home / "one", "engine"), self._desk(home / "two", "service")]

    def _desk(self, home: Path, way: str) -> Desk:
        home.mkdir()
        desk = Desk(home, way=way)
        desk.environment |= DATES
        return desk.begin()

    def __call__(self, *arguments: str, at: str = "app", lost: bool = False) -> Ran:
        """Runs a command at both desks, in a directory below their homes, and returns what both have said.

        HOME in an argument stands for a desk's home. A lost directory is deleted under our feet.
        """
        engine, service = (self._run(desk, arguments, at, lost=lost) for desk in self.desks)
        assert service == engine, (*arguments, at)
        return engine

    def _run(self, desk: Desk, arguments: tuple[str, ...], at: str, *, lost: bool) -> Ran:
        for name, value in desk.environment.items():
            self._patch.setenv(name, value)
        desk.open()
        place = desk.home / at
        if lost:
            place.mkdir()
        with self._patch.context() as patch:
            patch.chdir(place)
            if lost:
                place.rmdir()
            code = main([each.replace("HOME", str(desk.home)) for each in arguments])
        out, err = self._capsys.readouterr()
        return Ran(code, stable(out, desk), stable(err, desk))

    def each(self, do: Callable[[Desk], object]) -> None:
        """Does something at both desks."""
        for desk in self.desks:
            do(desk)


def stable(text: str, desk: Desk) -> str:
    """Returns the text without what differs from run to run."""
    text = text.replace(str(desk.home), "HOME")
    for pattern, word in VOLATILE:
        text = pattern.sub(word, text)
    return text


@pytest.fixture
def both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Pair]:
    pair = Pair(tmp_path, monkeypatch, capsys)
    yield pair
    pair.each(Desk.close)


LIFE = """
list
list --all
log
diff 0 0
create fix --owner session:7
create other --base HEAD --branch topic/x
create child --parent other
list
show fix
show child
snapshot fix
remove fix
remove fix
list
show fix
sweep
restore fix
remove fix --reap
list --all
show fix
restore fix
show primary
remove primary
review fix
log
log fix
log --type lane.*
log --after 5
replay fix
replay fix --to 9
replay fix --to 1
replay fix --to 9999
replay fix --dry-drive
replay fix --dry-drive --to 6
replay primary
replay nobody
diff 2 5
list --at 9
rebuild
sweep --apply
"""


def work(desk: Desk) -> None:
    """Leaves work in the lane, if its tree is there."""
    tree = desk.tree("fix")
    if tree.is_dir():
        (tree / "file").write_text("changed\n")
        (tree / "new").write_text("untracked\n")


@AS
def test_a_life_is_told_alike(both: Pair, form: tuple[str, ...]) -> None:
    codes = []
    for line in LIFE.strip().splitlines():
        codes.append(both(*form, *line.split()).code)
        both.each(work)
    assert set(codes) == {0, 1}


def ignored(desk: Desk) -> None:
    (desk.root / ".git/info/exclude").write_text("/.laneyard/\n.env\n")
    (desk.tree("fix") / ".env").write_text("secret\n")


def later(desk: Desk) -> None:
    """Writes something into the quarantine, behind the snapshot."""
    next((desk.root / ".laneyard/quarantine").iterdir()).joinpath("later").write_text("later\n")


def lock(desk: Desk) -> None:
    desk.git("worktree", "lock", "--reason", "mine ([x])", desk.tree("fix"))


def unlock(desk: Desk) -> None:
    desk.git("worktree", "unlock", desk.tree("fix"))


def detach(desk: Desk) -> None:
    desk.git("checkout", "-q", "--detach", cwd=desk.tree("fix"))


def lose(desk: Desk) -> None:
    desk.tree("fix").rename(desk.home / "elsewhere")


def misconfigure(desk: Desk) -> None:
    (desk.root / ".laneyard.toml").write_text("[git]\nprogram = 'x'\n")


TROUBLE: tuple[str | Callable[[Desk], None], ...] = (
    *("create fix", lock, "remove fix", "show fix", unlock, ignored, "remove fix", "show fix"),
    *("remove fix --force", later, "reap fix", "review fix", "list", "show fix", "review fix --resnapshot"),
    *("restore fix", detach, "list", "remove fix --delete-branch", "remove fix", "sweep", "restore fix"),
    *("remove fix --reap", "restore fix --edition 7", "restore fix --snapshot 00", "restore fix"),
    *(lose, "list", "show fix", "remove fix", "create fix --branch main", "create main", "create a --base b"),
    *(misconfigure, "sweep", "sweep --apply"),
)


@AS
def test_trouble_is_told_alike(both: Pair, form: tuple[str, ...]) -> None:
    codes = set()
    for step in TROUBLE:
        if isinstance(step, str):
            codes.add(both(*form, *step.split()).code)
        else:
            both.each(step)
    assert codes == {0, 1, 3}


LONG = "x" * 100_000
ODD = (
    "",
    "a\udcffb",
    "a\nb",
    "--",
    "-x",
    "../..",
    "/",
    "%41",
    "\U0001f600",
    "é" * 2000,
    "\udcff" * 4000,
    LONG,
)
OPTIONS = (
    *(
        "create x --base",
        "create x --branch",
        "create x --owner",
        "create x --parent",
        "restore fix --snapshot",
    ),
    *("restore fix --edition", "log --type", "sweep --state-dir"),
)


@AS
def test_odd_words_are_answered_alike(both: Pair, form: tuple[str, ...]) -> None:
    both("create", "fix")
    for word in ODD:
        for command in ("show", "snapshot", "remove", "restore", "reap", "review", "log", "replay", "create"):
            both(*form, command, *(("--", word) if word.startswith("-") else (word,)))
        for command in OPTIONS:
            *before, option = command.split()
            both(*form, *before, f"{option}={word}")
        for command in ("list", "show fix", "create y", "log fix", "sweep"):
            both(*form, *command.split(), "-C", word)


NUMBERS = (
    *("-1", "4", "5", "999", "+3", " 3", "1_0", "٣", "x", str(FARTHEST), str(FARTHEST + 1), "1" * 5000),
)


@AS
def test_odd_numbers_are_answered_alike(both: Pair, form: tuple[str, ...]) -> None:
    both("create", "fix")
    for number in NUMBERS:
        both(*form, "list", f"--at={number}")
        both(*form, "log", f"--after={number}")
        both(*form, "replay", "fix", f"--to={number}")
        both(*form, "replay", "fix", "--dry-drive", f"--to={number}")
        both(*form, "restore", "fix", f"--edition={number}")
        both(*form, "diff", "--", "5", number)
        both(*form, "diff", "--", number, "5")


def test_the_command_line_and_the_service_take_the_same_positions() -> None:
    assert FARTHEST == POSITION


ODD_NAME = os.fsdecode(b"caf\xe9 50%")
PLACES = (
    *("app", "app/deep/down", "elsewhere", "second", "app/.laneyard/worktrees/fix", "app/.git"),
    *(ODD_NAME, f"{ODD_NAME}/app"),
)
FROM_THERE = """
list
show fix
show .
show ..
show worktrees/fix
show .laneyard/worktrees/fix
show ./file
log fix
sweep
list -C ..
show fix -C .
list -C nowhere
show fix -C ../second
show fix -C HOME/second
show .laneyard/worktrees/fix -C ../app
create z --parent . -C ../app
create q --parent HOME/app/.laneyard/worktrees/fix
create z -C HOME/elsewhere
list --state-dir ../state
show fix --state-dir HOME/state
"""


def furnish(desk: Desk) -> None:
    """Makes more places to stand in."""
    (desk.home / "elsewhere").mkdir()
    (desk.root / "deep" / "down").mkdir(parents=True)
    for place in (desk.home / "second", desk.home / ODD_NAME / "app"):
        desk.git("clone", "-q", desk.root, place)


@AS
def test_paths_are_taken_from_where_one_stands(both: Pair, form: tuple[str, ...]) -> None:
    both.each(furnish)
    for repository in ("HOME/app", "../second", f"HOME/{ODD_NAME}/app"):
        both("-C", repository, "create", "fix")
    for place in PLACES:
        for line in FROM_THERE.strip().splitlines():
            both(*form, *line.split(), at=place)


IN_A_LOST_PLACE = """
list
show fix
show a/b
show HOME/app/.laneyard/worktrees/fix
list -C HOME/app
list -C app
show fix -C HOME/app
show a/b -C HOME/app
show nobody -C HOME/app
create w --parent fix -C HOME/app
create x
log
log fix
log fix -C HOME/app
replay fix -C HOME/app
sweep
sweep --apply
rebuild
diff 1 2
list --state-dir state
"""


@AS
def test_a_directory_that_was_deleted_is_told_alike(both: Pair, form: tuple[str, ...]) -> None:
    both("create", "fix")
    codes = {
        both(*form, *line.split(), at="lost", lost=True).code for line in IN_A_LOST_PLACE.strip().splitlines()
    }
    assert codes == {0, 1, 4}
