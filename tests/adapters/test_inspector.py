"""What a look sees, with one process, and never less than git would."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adapters.config import InvalidConfiguration
from adapters.ignored.classes import Rules
from adapters.ignored.patterns import Patterns
from adapters.yard.putting_away import place_of
from domain.evidence import Ignored, Obstacle, Seen, Unknown
from tests.sagas.scenarios import clean
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow


async def look(
    world: World, change: Callable[[bytes], object] = lambda lane: None
) -> tuple[Seen, bytes, int]:
    """Returns what is seen of a lane after a change, the lane's place, and how many processes that took."""
    async with world.open() as opened:
        await clean(opened)
        place = place_of(opened.lane(), "looked at")
        path = os.fsencode(place.path)
        change(path)
        before = opened.yard.git.started
        seen = await opened.yard.inspector.look(place)
        return seen, path, opened.yard.git.started - before


async def test_a_clean_lane_is_seen_with_one_process(tmp_path: Path) -> None:
    seen, _, processes = await look(World(tmp_path))
    assert (seen.gaps(), seen.changed, seen.untracked, seen.ignored) == ((), (), (), ())
    assert processes == 1


async def test_an_empty_directory_is_no_file(tmp_path: Path) -> None:
    seen, _, processes = await look(World(tmp_path), lambda lane: os.makedirs(lane + b"/a/b/c"))
    assert (seen.untracked, processes) == ((), 1)


async def test_a_file_that_takes_a_deleted_ones_place_in_the_count_is_seen(tmp_path: Path) -> None:
    def change(lane: bytes) -> None:
        with os.scandir(lane) as entries:
            files = sorted(entry.path for entry in entries if entry.is_file() and entry.name != b".git")
        os.rename(files[0], lane + b"/another")

    seen, _, _ = await look(World(tmp_path), change)
    assert seen.untracked == ("another",)
    assert isinstance(seen.changed, tuple)
    assert len(seen.changed) == 1


@pytest.mark.parametrize("name", ["stray", "sub/stray", "\n", "deep/er/stray"])
async def test_one_file_more_is_seen(tmp_path: Path, name: str) -> None:
    def change(lane: bytes) -> None:
        path = os.path.join(lane, os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w"):
            pass

    seen, _, processes = await look(World(tmp_path), change)
    assert (seen.untracked, processes) == ((name,), 1)


async def test_an_ignored_file_is_seen(tmp_path: Path) -> None:
    world = World(tmp_path)

    def change(lane: bytes) -> None:
        with open(os.path.join(world.common, b"info", b"exclude"), "a") as rules:
            rules.write("*.log\n")
        with open(lane + b"/x.log", "w"):
            pass

    seen, _, _ = await look(world, change)
    told = Ignored("x.log", "unknown", "nothing says what it is", 0, 1)
    assert (seen.untracked, seen.ignored) == ((), (told,))


async def test_an_index_written_while_git_looks_is_read_again(tmp_path: Path) -> None:
    world = World(tmp_path)

    def change(lane: bytes) -> None:
        theirs = os.path.join(lane, b"theirs")
        world.git(world.root, "init", "-q", "other")
        world.git(os.path.join(world.root, b"other"), "commit", "-q", "--allow-empty", "-m", "other")
        world.git(os.path.join(world.root, b"other"), "worktree", "add", "-q", theirs)
        head = world.git(theirs, "rev-parse", "HEAD").decode().strip()
        add = f"git -C '{os.fsdecode(lane)}' update-index --add --cacheinfo 160000,{head},theirs"
        with open(os.path.join(world.common, b"info", b"exclude"), "a") as rules:
            rules.write("theirs\n")
        world.fake(f'case " $* " in *" status "*) {add} ;; esac')

    async with world.open() as opened:
        await clean(opened)
        place = place_of(opened.lane(), "looked at")
        change(os.fsencode(place.path))
    async with world.open() as opened:
        seen = await opened.yard.inspector.look(place)
    assert seen.obstacles == (Obstacle("linked-worktree", "theirs"),)


async def test_what_a_snapshot_holds_is_no_obstacle(tmp_path: Path) -> None:
    world = World(tmp_path)

    def change(lane: bytes) -> None:
        tracked = world.git(lane, "ls-files", "-z").split(b"\0")
        world.git(lane, "update-index", "--assume-unchanged", "--", tracked[0])
        world.git(lane, "update-index", "--skip-worktree", "--", tracked[1])
        world.git(lane, "update-index", "--split-index")
        world.git(lane, "update-ref", "refs/worktree/mine", "HEAD")
        world.git(lane, "bisect", "start")
        world.git(lane, "init", "-q", "nested")
        world.git(lane + b"/nested", "commit", "-q", "--allow-empty", "-m", "nested")

    seen, _, processes = await look(world, change)
    assert (seen.obstacles, processes) == ((), 1)


@pytest.mark.parametrize(
    ("commands", "obstacle"),
    [
        ([("worktree", "add", "-q", "$lane/nested")], Obstacle("linked-worktree", "nested")),
        (
            [
                ("-C", "$lane", "clone", "-q", ".", "nested"),
                ("-C", "$lane/nested", "worktree", "add", "../../x"),
            ],
            Obstacle("nested-worktrees", "nested"),
        ),
    ],
)
async def test_a_repository_that_others_are_tied_to_is_an_obstacle(
    tmp_path: Path, commands: list[tuple[str, ...]], obstacle: Obstacle
) -> None:
    world = World(tmp_path)

    def change(lane: bytes) -> None:
        for command in commands:
            world.git(world.root, *(part.replace("$lane", os.fsdecode(lane)) for part in command))

    seen, _, _ = await look(world, change)
    assert seen.obstacles == (obstacle,)


async def test_a_git_file_that_leads_nowhere_is_a_file(tmp_path: Path) -> None:
    def change(lane: bytes) -> None:
        os.mkdir(lane + b"/nested")
        with open(lane + b"/nested/.git", "wb") as file:
            file.write(b"gitdir: /nowhere\n")

    seen, _, _ = await look(World(tmp_path), change)
    assert seen.obstacles == ()


async def test_a_branch_without_a_commit_is_seen(tmp_path: Path) -> None:
    world = World(tmp_path)
    seen, _, _ = await look(world, lambda lane: world.git(lane, "checkout", "-q", "--orphan", "fresh"))
    assert (seen.head, seen.branch, seen.obstacles) == ("", "refs/heads/fresh", ())


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
async def test_a_branch_without_a_commit_has_an_index_or_none(tmp_path: Path, algorithm: str) -> None:
    world = World(tmp_path, f"--object-format={algorithm}")

    def change(lane: bytes) -> None:
        world.git(lane, "checkout", "-q", "--orphan", "fresh")
        if algorithm == "sha1":
            os.unlink(world.git(lane, "rev-parse", "--git-path", "index").strip())

    seen, _, _ = await look(world, change)
    assert (seen.head, seen.obstacles) == ("", ())


@pytest.mark.parametrize("orphan", [False, True])
async def test_a_damaged_index_is_unknown(tmp_path: Path, orphan: bool) -> None:
    world = World(tmp_path)

    def change(lane: bytes) -> None:
        if orphan:
            world.git(lane, "checkout", "-q", "--orphan", "fresh")
        index = world.git(lane, "rev-parse", "--git-path", "index").strip()
        with open(index, "r+b") as file:
            file.seek(-1, os.SEEK_END)
            last = file.read(1)
            file.seek(-1, os.SEEK_END)
            file.write(bytes([last[0] ^ 1]))

    seen, _, _ = await look(world, change)
    assert isinstance(seen.obstacles, Unknown)


async def test_what_is_ignored_is_classed_by_the_rules_that_are_asked_for(tmp_path: Path) -> None:
    world = World(tmp_path)
    Path(os.fsdecode(world.common), "info/exclude").write_text("/.laneyard/\nbuild/\n.env\n")
    async with world.open() as opened:
        await clean(opened)
        place = place_of(opened.lane(), "looked at")
        lane = Path(place.path)
        (lane / "build/a").mkdir(parents=True)
        for name in ("build/a/x", "build/.env", ".env"):
            (lane / name).write_text("12")
        seen = await opened.yard.inspector.look(place, rules=lambda: Rules(rebuildable=Patterns(["build/"])))
        assert not isinstance(seen.ignored, Unknown)
        assert {each.path: (each.kind, each.bytes) for each in seen.ignored} == {
            ".env": ("precious", 2),
            "build/.env": ("precious", 2),
            "build/a": ("rebuildable", 2),
        }


async def test_what_was_taken_out_of_the_index_only_is_not_let_go_with_its_directory(tmp_path: Path) -> None:
    world = World(tmp_path)
    out = Path(os.fsdecode(world.root), "out")
    out.mkdir()
    (out / "keep.txt").write_text("committed\n")
    world.git(world.root, "add", "out/keep.txt")
    world.git(world.root, "commit", "-q", "-m", "out")
    async with world.open() as opened:
        await clean(opened)
        place = place_of(opened.lane(), "looked at")
        lane = os.fsencode(place.path)
        world.git(lane, "rm", "-q", "--cached", "-r", "out")
        Path(os.fsdecode(world.common), "info/exclude").write_text("/.laneyard/\nout/\n")
        Path(place.path, "out/keep.txt").write_text("edited\n")
        Path(place.path, "out/made").write_text("made\n")
        seen = await opened.yard.inspector.look(place, rules=lambda: Rules(rebuildable=Patterns(["out/"])))
    assert not isinstance(seen.ignored, Unknown)
    assert {each.path: each.kind for each in seen.ignored} == {
        "out/keep.txt": "unknown",
        "out/made": "rebuildable",
    }


async def test_rules_that_cannot_be_read_make_what_is_ignored_unknown(tmp_path: Path) -> None:
    def unreadable() -> Rules:
        raise InvalidConfiguration(".laneyard.toml", "it is none")

    world = World(tmp_path)
    Path(os.fsdecode(world.common), "info/exclude").write_text("/.laneyard/\n.env\n")
    async with world.open() as opened:
        await clean(opened)
        place = place_of(opened.lane(), "looked at")
        assert (await opened.yard.inspector.look(place, rules=unreadable)).ignored == ()
        Path(place.path, ".env").write_text("12")
        seen = await opened.yard.inspector.look(place, rules=unreadable)
    assert isinstance(seen.ignored, Unknown)
    assert "it is none" in seen.ignored.why


async def test_a_directory_that_git_may_not_open_makes_the_look_unknown(tmp_path: Path) -> None:
    """Git lists nothing of it, warns, and ends well: a lane that looks clean may not be."""
    world = World(tmp_path)
    warning = "warning: could not open directory 'closed/': Permission denied"
    world.fake(f"""case " $* " in *" status "*) echo "{warning}" >&2;; esac""")
    seen, _, _ = await look(world)
    assert (seen.untracked, seen.changed, seen.ignored) == (Unknown(warning),) * 3


async def test_a_directory_that_is_too_deep_for_git_is_none_for_a_capture(tmp_path: Path) -> None:
    world = World(tmp_path)
    warning = "warning: could not open directory 'deep/': File name too long"
    world.fake(f"""case " $* " in *" status "*) echo "{warning}" >&2;; esac""")
    seen, _, _ = await look(world)
    assert (seen.untracked, seen.changed, seen.ignored) == ((), (), ())
