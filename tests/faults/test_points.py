"""Every moment at which the disk is touched is a point; and where nobody listens, there is none."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from types import BuiltinFunctionType

import pytest

from adapters import engine, wiring
from adapters.git import door
from adapters.performer.performer import GitPerformer
from tests.faults import syscalls
from tests.faults.points import CALLS, Point, install, loaded, subcommand
from tests.faults.running import as_a_user, record, recorded, run, scene

ROOT = Path(__file__).parents[2]
# What a call of Python's, or of ours, is for the system. A file object's writes are seen in its opening.
SYSTEM = {
    **{
        "chmod": "fchmodat",
        "link": "linkat",
        "remove": "unlinkat",
        "rename": "renameat",
        "replace": "renameat",
    },
    **{"rename_without_replacing": "renameat2", "rmdir": "unlinkat", "symlink": "symlinkat"},
    **{"sync_file_system": "syncfs", "unlink": "unlinkat", "utime": "utimensat"},
}
COMPARED = {*SYSTEM.values(), "fchmod", "fsync"}


def test_every_kind_of_point_is_heard_of() -> None:
    loaded()
    with scene("remove-dirty") as found:
        assert run(found.world, found.life.line, record(found.world.home)) == 0
        names = recorded(found.world.home)
    kinds = {" ".join(name.partition(": ")[2].split()[:2]) for name in names}
    moments = {(kind, moment) for kind in ("effect", "append", "call") for moment in ("before", "after")}
    moments |= {("git", moment) for moment in ("before", "during", "after")}
    assert kinds == {f"{moment} {kind}" for kind, moment in moments}
    assert {name.partition(":")[0] for name in names} == {"between", "Capture", "Lock", "Move", "FreeBranch"}


def test_a_point_has_one_name_in_every_run() -> None:
    point = Point("before", "call", "Move", "rename", "files/rename.move for performer/moving._relocate")
    assert point.name == "Move: before call rename in files/rename.move for performer/moving._relocate"
    assert Point("after", "append", "", "note").name == "between: after append note"
    assert subcommand((b"-c", b"a=b", b"worktree", b"add", b"-f")) == "worktree add"


def test_what_is_installed_in_a_process_is_in_no_other() -> None:
    with scene("remove-clean") as found:
        assert run(found.world, found.life.line, record(found.world.home)) == 0
    assert isinstance(os.rename, BuiltinFunctionType)
    assert [name for name in CALLS if getattr(os, name).__module__ not in ("posix", "os")] == []
    ours = (GitPerformer.perform, engine.Engine._append, door.Git._start)
    assert [each.__module__.partition(".")[0] for each in ours] == ["adapters"] * len(ours)


def test_the_program_has_no_place_for_a_fault() -> None:
    sources = [each for name in ("domain", "projections", "adapters") for each in (ROOT / name).rglob("*.py")]
    told = re.compile(r"tests\.faults|fault_?point|crash_?point|inject", re.IGNORECASE)
    assert len(sources) > 100
    assert [each.name for each in sources if told.search(each.read_text(encoding="utf-8"))] == []
    assert install.__module__ not in vars(wiring)


@pytest.mark.slow
@pytest.mark.parametrize("life", ["remove-dirty", "restore-rebuilt", "reap"])
def test_no_call_that_changes_the_disk_is_missed(tmp_path: Path, life: str) -> None:
    loaded()
    with scene(life) as found:
        world, trace = found.world, tmp_path / "trace"
        code = syscalls.record(trace, lambda: os._exit(as_a_user(world, found.life.line, record(world.home))))
        assert code == 0
        heard: Counter[str] = Counter()
        for name, times in recorded(world.home).items():
            if called := re.match(r"\w+: after call (\w+)", name):
                heard[SYSTEM.get(called[1], called[1])] += times
        made = Counter(SYSTEM.get(each.name, each.name) for each in ours(trace))
    assert {name: made[name] for name in COMPARED} == {name: heard[name] for name in COMPARED}


def ours(trace: Path) -> list[syscalls.Call]:
    """The calls of our own process, apart from those that SQLite makes of its files."""
    threads: set[int] = set()
    found = []
    for each in sorted(syscalls.calls(trace), key=lambda call: call.begun):
        threads = threads or {each.thread}
        if each.thread not in threads:
            continue
        if each.name.startswith("clone") and "CLONE_THREAD" in "".join(each.arguments):
            threads.add(int(each.result.split()[0]))
        elif b"journal.db" not in b"".join(map(syscalls.strings_of, each.arguments)):
            found.append(each)
    return found
