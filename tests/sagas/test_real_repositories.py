"""The whole life of a lane in repositories of every kind, and what is never run in any of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from domain.states import Active
from tests.sagas.scenarios import dirty, overgrown, place_of
from tests.sagas.trees import write
from tests.sagas.worlds import World, walk

if TYPE_CHECKING:
    from tests.sagas.worlds import Open

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
CLI = "import sys; sys.argv[0] = 'laneyard'; from adapters.cli import main; sys.exit(main())"


async def live(opened: Open) -> None:
    """Puts a lane with every kind of change away and back, both ways, and finds it as it was."""
    await dirty(opened)
    before = walk(place_of(opened)), opened.world.index_of(place_of(opened))
    await opened.snapshot()
    for reaps in (False, True):
        await opened.remove()
        if reaps:
            await opened.reap()
        done = await opened.restore()
        assert isinstance(done.lane, Active)
        assert done.warnings == ()
        assert (walk(place_of(opened)), opened.world.index_of(place_of(opened))) == before


async def lived(world: World) -> None:
    async with world.open() as opened:
        await live(opened)
    assert await world.complaints() == []


async def test_a_repository_with_sha256_objects(home: Path) -> None:
    await lived(World(home, "--object-format=sha256"))


async def test_a_path_with_spaces_a_newline_and_bytes_that_are_no_text(home: Path) -> None:
    await lived(World(home, root=b"with spaces\nand \xff\xfe%41"))


async def test_a_bare_repository(world: World, home: Path) -> None:
    bare = os.fsencode(home / "bare.git")
    world.git(os.fsencode(home), "clone", "-q", "--bare", world.root, bare)
    world.root = bare
    await lived(world)


async def test_files_with_carriage_returns_come_back_byte_for_byte(home: Path) -> None:
    world = World(home)
    world.git(world.root, "config", "core.autocrlf", "true")
    async with world.open() as opened:
        await live(opened)
        write(os.path.join(place_of(opened), b"sub/inner"), b"mixed\r\nends\n\r")
        write(os.path.join(place_of(opened), b"crlf"), b"untracked\r\n")
        before = walk(place_of(opened))
        assert before[b"-dash"][2] == b"dash\r\n"
        await opened.remove()
        await opened.reap()
        await opened.restore()
        assert walk(place_of(opened)) == before


async def test_no_hook_and_no_monitor_is_ever_run(world: World) -> None:
    sentinel = world.home / "ran"
    program = f"#!/bin/sh\necho \"$0\" >>'{sentinel}'\n".encode()
    for name in HOOKS:
        write(os.path.join(world.common, b"hooks", name.encode()), program, 0o755)
        write(os.fsencode(world.home / "hooks" / name), program, 0o755)
    write(os.fsencode(world.home / "monitor"), program, 0o755)
    world.git(world.root, "config", "--global", "core.hooksPath", str(world.home / "hooks"))
    world.git(world.root, "config", "core.fsmonitor", str(world.home / "monitor"))
    async with world.open() as opened:
        await opened.create()
        write(os.path.join(place_of(opened), b"untracked"), b"")
        await opened.snapshot()
        await opened.remove(delete_branch=True)
        await opened.restore()
        await opened.remove()
        await opened.reap()
        await opened.restore()
    assert not sentinel.exists()


HOOKS = (
    "post-checkout",
    "post-index-change",
    "reference-transaction",
    "pre-commit",
    "post-commit",
    "post-merge",
    "pre-auto-gc",
    "fsmonitor-watchman",
)


async def test_no_filter_is_run_by_a_capture_a_restore_or_a_deletion(world: World) -> None:
    sentinel, during = world.home / "filtered", set[str]()

    def notice(moment: str, step: str) -> None:
        if moment == "before-effect":
            sentinel.unlink(missing_ok=True)
        elif moment == "after-effect" and sentinel.exists():
            during.add(step)

    write(os.path.join(world.root, b".gitattributes"), b"*.dat filter=mark\n")
    write(os.path.join(world.root, b"some.dat"), b"committed\n")
    for kind in ("clean", "smudge"):
        world.git(world.root, "config", f"filter.mark.{kind}", f"echo {kind} >>'{sentinel}'; cat")
    world.git(world.root, "config", "filter.mark.required", "true")
    world.git(world.root, "add", ".")
    world.git(world.root, "commit", "-q", "-m", "filtered")
    async with world.open(notice) as opened:
        await opened.create()
        write(os.path.join(place_of(opened), b"some.dat"), b"modified.\n")
        write(os.path.join(place_of(opened), b"other.dat"), b"untracked\n")
        before = walk(place_of(opened))
        await opened.remove()
        await opened.reap()
        await opened.restore()
        assert walk(place_of(opened)) == before
    assert during <= {"Checkout"}  # git's own checkout, which makes a lane what a user's git would make of it


async def test_a_submodule_holds_and_by_force_rests_whole(world: World) -> None:
    theirs = os.fsencode(world.home / "theirs")
    os.mkdir(theirs)
    world.git(theirs, "init", "-q")
    world.git(theirs, "commit", "-q", "--allow-empty", "-m", "theirs")
    world.git(world.root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", theirs, "module")
    world.git(world.root, "commit", "-q", "-m", "with a submodule")
    async with world.open() as opened:
        await opened.create()
        place = place_of(opened)
        world.git(place, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
        write(os.path.join(place, b"module/untracked"), b"untracked\n")
        before = walk(place), world.git(place, "status", "--porcelain=v2", "-z")
        await opened.remove(mode="force")
        await opened.restore()
        assert (walk(place), world.git(place, "status", "--porcelain=v2", "-z")) == before
    assert await world.complaints() == []


def laneyard(world: World, *arguments: str) -> subprocess.Popen[bytes]:
    """Starts the program as a process of its own."""
    options = ("-C", os.fsdecode(world.root), "--state-dir", os.fsdecode(world.settings.state_dir), "--json")
    return subprocess.Popen(
        [sys.executable, "-c", CLI, *options, *arguments],
        cwd=ROOT,
        env=world.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def answered(process: subprocess.Popen[bytes]) -> dict[str, object]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    answer: dict[str, object] = msgspec.json.decode(out)
    return answer


async def test_two_processes_that_create_one_name_at_once_make_two_lanes(world: World) -> None:
    started = [laneyard(world, "create", "work") for _ in range(2)]
    made = [answered(each) for each in started]
    assert {each["slug"] for each in made} == {"work", "work-2"}
    assert {each["state"] for each in made} == {"active"}
    for each in made:
        assert os.path.isdir(str(each["path"]))
    assert await world.complaints() == []


async def test_a_lane_whose_tree_was_copied_elsewhere_is_still_only_the_one(world: World) -> None:
    async with world.open() as opened:
        await overgrown(opened)
        copy = os.path.join(world.root, b"copy")
        shutil.copytree(os.fsdecode(place_of(opened)), os.fsdecode(copy), symlinks=True)
        before = walk(copy)
        await opened.remove(mode="force")
        await opened.reap()
        assert walk(copy) == before
