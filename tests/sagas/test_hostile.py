"""Nothing but git, with our options, ever runs, whatever the repository and its user have configured."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adapters.git.door import ALWAYS
from adapters.yard import putting_away
from domain.errors import Refusal
from tests.sagas.hostile import SCOPES, Trap, Watch
from tests.sagas.scenarios import place_of
from tests.sagas.trees import walk, write

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from domain.evidence import Place
    from tests.sagas.worlds import Open

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
START = "import sys; sys.path.insert(0, {root!r}); from adapters.cli import main; sys.exit(main())"


@pytest.fixture(scope="module")
def watch() -> Watch:
    return Watch()


@pytest.fixture
def trap(home: Path) -> Trap:
    made = Trap(home)
    made.attribute(made.root)
    return made


def admin_of(place: bytes) -> bytes:
    return Path(os.fsdecode(place), ".git").read_bytes().removeprefix(b"gitdir: ").strip()


def place_in(opened: Open) -> Place:
    return putting_away.place_of(opened.lane(), "looked at")


def disturb(place: bytes) -> None:
    """Changes every file that a filter is for, without a change of its size, and adds others."""
    for scope in (*SCOPES, "needed", "forged", "odd", "id", "txt", "zproc"):
        write(os.path.join(place, f"some.{scope}".encode()), b"$ID$\n")
        write(os.path.join(place, f"new.{scope}".encode()), b"new\n")
    write(os.path.join(place, b"some.utf16"), b"a\0c\0")


def require_only_git(trap: Trap, watch: Watch, parent: int | None) -> None:
    """Every process that we have started is the configured program with the options that are always set."""
    always = tuple(ALWAYS)
    assert {argv[0] for argv in watch.argvs} == {os.fsencode(trap.program)}
    assert [argv for argv in watch.argvs if argv[1 : 1 + len(always)] != always] == []
    assert watch.others == []
    starts = trap.starts()
    assert [each for each in starts if each.arguments[: len(always)] != always] == []
    if parent is not None:
        assert {each.parent for each in starts} == {parent}
        assert len(starts) == len(watch.argvs) > 0


async def live(opened: Open, look: Callable[[], Awaitable[object]]) -> None:
    """Leads the lane through everything that can happen to it."""
    await opened.snapshot()
    await look()
    await opened.remove()
    await look()
    await opened.restore()
    write(os.path.join(place_of(opened), b"later"), b"later\n")
    await opened.snapshot()
    await opened.remove()
    await opened.reap()
    await look()
    await opened.restore()
    await look()


async def test_a_whole_life_under_a_hostile_configuration_runs_nothing(trap: Trap, watch: Watch) -> None:
    async with trap.open() as opened:
        await opened.create()
        place = place_of(opened)
        disturb(place)
        trap.arm(admin_of(place))
        before = walk(place, (b".git",))
        (trap.home / "starts").unlink()
        watch.forget()

        async def look() -> None:
            await opened.yard.repository(trap.root)
            if opened.state() == "active":
                await opened.yard.inspector.look(place_in(opened))

        with watch.watching():
            await live(opened, look)
        assert trap.marks() == set()
        require_only_git(trap, watch, os.getpid())
        assert walk(place, (b".git", b"later")) == before


async def test_a_creation_runs_the_smudge_filters_of_the_checkout_and_nothing_else(trap: Trap) -> None:
    trap.arm()
    async with trap.open() as opened:
        await opened.create()
    assert {mark.partition(":")[2] for mark in trap.marks()} == {"filter.DRIVER.smudge"}


def test_the_command_line_runs_nothing_either(trap: Trap) -> None:
    state = trap.home / "state"
    state.mkdir(mode=0o700)
    (state / "config.toml").write_text(f"[git]\nprogram = {json.dumps(trap.program)}\n")

    def laneyard(*arguments: str) -> str:
        program = [sys.executable, "-I", "-c", START.format(root=str(ROOT))]
        options = ["-C", os.fsdecode(trap.root), "--state-dir", str(state), "--json"]
        ran = subprocess.run(
            [*program, *options, *arguments], env=trap.caught, capture_output=True, check=False, text=True
        )
        assert ran.returncode == 0, (arguments, ran.stderr)
        return ran.stdout

    laneyard("create", "work")
    place = os.path.join(trap.root, b".laneyard/worktrees/work")
    disturb(place)
    trap.arm(admin_of(place))
    before = walk(place, (b".git",))
    life = [
        "snapshot",
        "list",
        "show",
        "remove",
        "show",
        "restore",
        "remove",
        "reap",
        "list",
        "restore",
        "show",
    ]
    for verb in life:
        laneyard(verb, *([] if verb == "list" else ["work"]))
    for verb in ("sweep", "log", "verify", "doctor"):
        laneyard(verb)
    assert trap.marks() == set()
    assert [each for each in trap.starts() if each.arguments[: len(ALWAYS)] != ALWAYS] == []
    assert walk(place, (b".git",)) == before


def test_the_traps_are_set(trap: Trap) -> None:
    """A user's own git steps into them: what the other tests do not see is there to be seen."""
    place = os.path.join(os.fsencode(trap.home), b"beside")
    trap.git(trap.root, "worktree", "add", "-q", os.fsdecode(place))
    disturb(place)
    trap.arm(admin_of(place))
    for command in ("status", "diff some.txt", "-c diff.external= diff some.local", "checkout -b topic"):
        trap.user(place, *command.split())
    found = trap.marks()
    assert {f"{scope}:filter.DRIVER.clean" for scope in SCOPES} <= found
    assert {
        "local:process",
        "local:needed",
        "local:odd",
        "worktree:core.fsmonitor",
        "worktree:diff.external",
    } <= found
    assert {"worktree:hook:post-checkout", "worktree:hook:reference-transaction"} <= found


def with_submodule(trap: Trap, place: bytes) -> bytes:
    """Puts a submodule and another repository in the lane, both armed, and returns the submodule's place."""
    theirs = os.fsencode(trap.home / "theirs")
    os.mkdir(theirs)
    trap.git(theirs, "init", "-q")
    write(os.path.join(theirs, b"some.deep"), b"deep\n")
    write(os.path.join(theirs, b".gitattributes"), b"*.deep filter=deep\n")
    trap.git(theirs, "add", ".")
    trap.git(theirs, "commit", "-q", "-m", "theirs")
    trap.git(place, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", theirs, "module")
    trap.git(place, "commit", "-q", "-m", "with a submodule")
    shutil.copytree(os.fsdecode(theirs), os.fsdecode(os.path.join(place, b"nested")))
    write(os.path.join(place, b"module/some.deep"), b"DEEP\n")
    write(os.path.join(place, b"nested/some.deep"), b"DEEP\n")
    git_dirs = [admin_of(os.path.join(place, b"module")), b".git"]
    for inner, git_dir in zip((b"module", b"nested"), git_dirs, strict=True):
        _arm_inner(trap, Path(os.fsdecode(os.path.join(place, inner, git_dir))))
    return os.path.join(place, b"module")


def _arm_inner(trap: Trap, git_dir: Path) -> None:
    settings = trap.settings_of("deep")
    trap.configure(git_dir / "config", settings)
    for hook in ("post-index-change", "reference-transaction", "fsmonitor-watchman"):
        trap.marker(git_dir / "hooks" / hook, f"inner:{hook}")


async def test_a_submodule_and_a_nested_repository_run_nothing(trap: Trap, watch: Watch) -> None:
    async with trap.open() as opened:
        await opened.create()
        place = place_of(opened)
        module = with_submodule(trap, place)
        before = walk(place, (b".git",))
        watch.forget()

        async def look() -> None:
            if opened.state() == "active":
                await opened.yard.inspector.look(place_in(opened))

        with watch.watching():
            await live(opened, look)
        assert trap.marks() == set()
        require_only_git(trap, watch, None)
        assert walk(place, (b".git", b"later")) == before
        trap.user(module, "status")
        assert "deep:filter.DRIVER.clean" in trap.marks()


async def test_a_git_file_that_names_another_git_directory_is_not_followed(trap: Trap) -> None:
    evil = trap.home / "evil"
    trap.git(os.fsencode(trap.home), "clone", "-q", "--no-checkout", os.fsdecode(trap.root), str(evil))
    trap.configure(evil / ".git/config", trap.settings_of("deep"))
    async with trap.open() as opened:
        await opened.create()
        place = place_of(opened)
        disturb(place)
        for name in (b"inside/.git", b".git"):
            write(os.path.join(place, name), f"gitdir: {evil}/.git\n".encode())
        before = walk(place)
        for act in (opened.snapshot, opened.remove, opened.reap):
            with pytest.raises(Refusal):
                await act()
        await opened.yard.inspector.look(place_in(opened))
        assert walk(place) == before
    assert trap.marks() == set()
