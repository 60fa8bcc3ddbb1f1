"""What a look sees, with one process, and never less than git would."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.yard.putting_away import place_of
from domain.evidence import Seen, Unknown
from tests.sagas.scenarios import clean
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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
    assert (seen.untracked, seen.ignored) == ((), ("x.log",))


async def test_a_flag_set_while_git_looks_is_seen(tmp_path: Path) -> None:
    world = World(tmp_path)

    def change(lane: bytes) -> None:
        tracked = world.git(lane, "ls-files", "-z").split(b"\0")[0].decode()
        hide = f"git -C '{os.fsdecode(lane)}' update-index --assume-unchanged -- '{tracked}'"
        world.fake(f'case " $* " in *" status "*) {hide} ;; esac')

    async with world.open() as opened:
        await clean(opened)
        place = place_of(opened.lane(), "looked at")
        change(os.fsencode(place.path))
    async with world.open() as opened:
        seen = await opened.yard.inspector.look(place)
    assert not isinstance(seen.obstacles, Unknown)
    assert [each.kind for each in seen.obstacles] == ["hidden-flag"]
