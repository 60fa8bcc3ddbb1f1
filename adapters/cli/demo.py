"""The whole life of a lane on a scratch repository, by the very commands that a user would type."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import msgspec
import trio

from adapters import config
from adapters.api.answers import encoded
from adapters.cli import DONE, UNFINISHED, changing, engine, showing
from adapters.cli.failures import guarded
from adapters.cli.output import say
from adapters.cli.parser import build_parser
from adapters.git.door import Location
from adapters.store.reader import Reader
from adapters.wiring import git_door

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

LANE = "fix-login"
# The scratch repository's commits need a name, and none of the user's own habits.
IDENTITY = (b"-c", b"user.name=Demo", b"-c", b"user.email=demo@localhost", b"-c", b"commit.gpgsign=false")


class Died(BaseException):
    """The process is thought to have ended here. No handler of the program catches it."""


class Scratch:
    """A repository and a state directory of its own, and everything that is done and shown in them."""

    def __init__(self, directory: str, *, as_json: bool) -> None:
        self.root = os.path.join(directory, "app")
        self.state = os.path.join(directory, "state")
        self.lane = os.path.join(self.root, ".laneyard", "worktrees", LANE)
        self.as_json = as_json
        self.failed = 0
        self._git = git_door(config.load(self.state))

    def git(self, place: str, *arguments: bytes) -> bytes:
        """Runs git in the scratch repository and returns what it says."""

        async def run() -> bytes:
            where = Location(None, os.fsencode(place))
            return (await self._git.run(*IDENTITY, *arguments, repository=where, write=True)).out

        return trio.run(run)

    def write(self, name: str, text: str, *, root: str | None = None) -> None:
        """Writes a file of the lane, or of another tree."""
        with open(os.path.join(root or self.lane, name), "w", encoding="utf-8") as file:
            file.write(text)

    def status(self) -> bytes:
        """Returns what git says of the lane: the index and the tree, each change with its objects."""
        said = self.git(self.lane, b"status", b"--porcelain=v2", b"--branch", b"-z")
        return said + self.git(self.lane, b"diff", b"--no-ext-diff", b"--binary")

    def position(self) -> int:
        """Returns where the log ends."""
        with Reader(config.load(self.state).store) as reader:
            return reader.head().position

    def arguments(self, *typed: str) -> Namespace:
        """Returns what is typed after `laneyard`, in the scratch repository."""
        common = ["-C", self.root, "--state-dir", self.state, *(["--json"] if self.as_json else [])]
        return build_parser().parse_args([*common, *typed])

    def laneyard(self, why: str, *typed: str, run: Callable[[Namespace], int] = guarded) -> None:
        """Runs a command and shows it with its output."""
        self.told(why, f"laneyard {' '.join(typed)}", lambda: run(self.arguments(*typed)))

    def told(self, why: str, command: str, run: Callable[[], int]) -> None:
        """Runs one step and shows it; a step that did not end with 0 makes the demo end with 3."""
        said = io.StringIO()
        with redirect_stdout(said):
            code = run()
        self.failed += code != DONE
        if self.as_json:
            output: list[Any] = [_decoded(line) for line in said.getvalue().splitlines()]
            say(encoded({"step": why, "command": command, "exit": code, "output": output}).decode())
        else:
            say(f"\n# {why}\n$ {command}")
            sys.stdout.write(said.getvalue())


def _decoded(line: str) -> object:
    """Returns a line of JSON as the value that it is, and any other as text."""
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError:
        return line


def run_demo(arguments: Namespace) -> int:
    """Shows the life of a lane in a temporary directory that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="laneyard-demo-") as directory:
        scratch = Scratch(os.path.realpath(directory), as_json=arguments.json)
        _begin(scratch)
        if not arguments.json:
            say(f"A scratch repository: {scratch.root}, removed at the end. Your own state is not touched.")
            say("Each 'laneyard' below stands for 'laneyard -C <repository> --state-dir <directory>'.")
        created, before = _live(scratch)
        _crash(scratch)
        reaped = _reap(scratch, before)
        _audit(scratch, created, reaped)
    return UNFINISHED if scratch.failed else DONE


def _begin(scratch: Scratch) -> None:
    os.mkdir(scratch.root)
    scratch.git(scratch.root, b"init", b"--quiet", b"--template=", b"--initial-branch=main", b".")
    # What the user ignores everywhere is nothing to do with this repository.
    scratch.git(scratch.root, b"config", b"core.excludesFile", b"/dev/null")
    for name in ("login.txt", "session.txt"):
        scratch.write(name, f"{name}: first version\n", root=scratch.root)
    scratch.git(scratch.root, b"add", b".")
    scratch.git(scratch.root, b"commit", b"--quiet", b"--message=first")


def _live(scratch: Scratch) -> tuple[int, bytes]:
    """Returns the position of the log after the creation, and the status of the work."""
    scratch.laneyard("A lane is a branch and its worktree.", "create", LANE)
    created = scratch.position()
    _work(scratch)
    _show_status(scratch, "Work in it: one change staged, one not, one file that git does not know.")
    scratch.laneyard("Keep a verified copy; nothing is moved.", "snapshot", LANE)
    before = scratch.status()
    scratch.laneyard("Removing moves the lane into quarantine; nothing is deleted.", "remove", LANE)
    scratch.laneyard("It is listed where it rests.", "list")
    scratch.laneyard("And comes back byte for byte.", "restore", LANE)
    _show_status(scratch, "Git sees what it saw before.", before)
    return created, before


def _work(scratch: Scratch) -> None:
    scratch.write("login.txt", "login.txt: staged version\n")
    scratch.git(scratch.lane, b"add", b"login.txt")
    scratch.write("session.txt", "session.txt: not staged\n")
    scratch.write("notes.txt", "known to nobody but this directory\n")


def _show_status(scratch: Scratch, why: str, before: bytes | None = None) -> None:
    def run() -> int:
        now = scratch.status()
        said = scratch.git(scratch.lane, b"status", b"--short", b"--branch").decode("utf-8", "replace")
        sys.stdout.write(said)
        if before is None:
            return DONE
        say(f"{'identical to' if now == before else 'DIFFERENT from'} the status before the removal")
        return DONE if now == before else UNFINISHED

    scratch.told(why, f"git -C .laneyard/worktrees/{LANE} status --short --branch", run)


def _crash(scratch: Scratch) -> None:
    why = (
        "Remove it again, and die after the tree was moved but before that is written down. (Simulated: this "
        "process abandons the command there, as kill -9 would, and lets go of its lock and of the log.)"
    )
    scratch.laneyard(why, "remove", LANE, run=_dying)
    why = "Half done: the log says what was planned and what is owed. (Read without driving it on.)"
    scratch.laneyard(why, "show", LANE, run=showing.show)
    scratch.laneyard("The next command finishes what was begun, before it does anything else.", "list")


def _dying(arguments: Namespace) -> int:
    def die(moment: str, step: str) -> None:
        if (moment, step) == ("after-effect", "Move"):
            raise Died

    try:
        work = engine.working(arguments, "remove", changing.removal(arguments))
        return engine.engine(arguments, work, die)
    except Died:
        say(encoded({"died": "after-effect Move"}).decode() if arguments.json else "(died)")
        return DONE


def _reap(scratch: Scratch, before: bytes) -> int:
    """Returns the position of the log after the reaping."""
    scratch.laneyard("Reaping deletes it, once every entry is explained by a snapshot.", "reap", LANE)
    reaped = scratch.position()
    scratch.laneyard("It is gone, and still known.", "list", "--all")
    scratch.laneyard("A snapshot brings it back all the same.", "restore", LANE)
    _show_status(scratch, "Staged, not staged and unknown to git, as it was.", before)
    return reaped


def _audit(scratch: Scratch, created: int, reaped: int) -> None:
    scratch.laneyard("Is the log what was written, and does the disk agree?", "verify")
    scratch.laneyard("Every table can be made anew from the log,", "rebuild")
    scratch.laneyard("and is the same.", "verify")
    scratch.laneyard("The lanes as they were right after the creation.", "list", "--at", str(created))
    scratch.laneyard("What was different after the reaping.", "diff", str(created), str(reaped))
    scratch.laneyard("Who did what, when: the lane's whole story.", "log", LANE)
