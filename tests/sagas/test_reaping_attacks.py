"""Deletions that die half way, or are worked against: only what is destroyed is called so."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest
import trio

from adapters.api import showing
from adapters.api.answers import encoded
from adapters.performer import proof
from domain.states import NeedsReview, Reaped
from tests.sagas.crashes import DEAD, in_a_process
from tests.sagas.scenarios import place_of, removed, resting
from tests.sagas.trees import write
from tests.sagas.worlds import World, walk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.sagas.worlds import Open

pytestmark = pytest.mark.slow

CLOSED = b"cache"  # a directory that nobody may write to
Tree = dict[bytes, tuple[str, int, bytes]]


async def closed(opened: Open) -> None:
    """A dirty lane in quarantine with a directory that is closed for writing."""
    await opened.create()
    opened.world.dirty(place_of(opened))
    cache = os.path.join(place_of(opened), CLOSED)
    for number in range(5):
        write(os.path.join(cache, b"%d" % number), b"%d\n" % number)
    os.chmod(cache, 0o555)
    await opened.remove()


def prepared(world: World) -> tuple[bytes, Tree]:
    """Returns where the lane rests, and what it holds."""

    async def main() -> bytes:
        async with world.open() as opened:
            await closed(opened)
            return resting(opened)

    place = trio.run(main)
    return place, walk(place)


def killed(world: World, removal: int) -> tuple[bytes, Tree]:
    """Reaps in a process that dies before that removal (negative: from the last) of an entry of the tree."""
    place, before = prepared(world)
    removals = removal % (len(before) + 1)  # with the root
    assert in_a_process(lambda: trio.run(_reap, world, removals)) == DEAD
    assert len(walk(place)) == len(before) - removals
    return place, before


async def _reap(world: World, removals: int) -> None:
    destroying, left = False, removals

    def notice(moment: str, step: str) -> None:
        nonlocal destroying
        destroying = (moment, step) == ("before-effect", "Destroy")

    def heard(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if destroying and event in ("os.remove", "os.rmdir"):
            if left == 0:
                os._exit(DEAD)
            left -= 1

    sys.addaudithook(heard)
    async with world.open(notice) as opened:
        await opened.reap()


FOREVER = 1 << 30
ROOT, POINTER = -1, -2
DEATHS = (0, 2, 4, 6, 9, 14, POINTER, ROOT)


def lane_of(opened: Open) -> NeedsReview:
    lane = opened.lane()
    assert isinstance(lane, NeedsReview)
    return lane


def exits(opened: Open) -> list[str]:
    answer = showing.review(opened.yard.reader, opened.row())
    return list(msgspec.json.decode(encoded(answer.document))["exits"])


@pytest.mark.parametrize("removal", DEATHS)
def test_a_deletion_that_was_killed_is_finished(tmp_path: Path, removal: int) -> None:
    world = World(tmp_path)
    place, before = killed(world, removal)

    async def main() -> None:
        async with world.open() as opened:
            assert opened.state() == "reaped"
            await opened.restore()
            assert walk(place_of(opened)).keys() == before.keys()
        assert await world.complaints() == []

    trio.run(main)
    assert world.tags().count("tree.destroyed@1") == 1
    assert not os.path.lexists(place)


@pytest.mark.parametrize("removal", DEATHS[:-2])
def test_what_is_moved_away_after_a_kill_is_not_called_destroyed(tmp_path: Path, removal: int) -> None:
    world = World(tmp_path)
    place, before = killed(world, removal)
    os.rename(place, os.fsencode(tmp_path / "saved"))

    async def main() -> None:
        async with world.open() as opened:
            assert lane_of(opened).detail == "tree_missing"
            assert "tree.destroyed@1" not in world.tags()
            assert os.path.isdir(os.path.join(world.common, b"worktrees/work"))
            assert exits(opened) == ["--discard"]
            assert isinstance((await opened.discard()).lane, Reaped)
            assert world.events()[-1].fact.entries == 0  # type: ignore[attr-defined]
            await opened.restore()
            assert same(walk(place_of(opened)), before)
        assert await world.complaints() == []

    trio.run(main)


def test_a_tree_that_was_moved_back_can_be_captured_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    place, before = killed(world, 6)
    os.rename(place, os.fsencode(tmp_path / "saved"))

    async def main() -> None:
        async with world.open() as opened:
            os.rename(os.fsencode(tmp_path / "saved"), place)
            assert isinstance((await opened.resnapshot()).lane, Reaped)
            await opened.restore()
            assert same(walk(place_of(opened)), before)

    trio.run(main)


@pytest.mark.parametrize("late", [b"late", b"cache/late", b"deep/er/late"])
def test_what_was_written_into_half_a_tree_is_kept_beside_the_whole(tmp_path: Path, late: bytes) -> None:
    world = World(tmp_path)
    place, before = killed(world, 4)
    os.chmod(os.path.join(place, CLOSED), 0o755)
    write(os.path.join(place, late), b"late\n")

    async def main() -> None:
        async with world.open() as opened:
            assert lane_of(opened).detail == "changed_while_reaping"
            assert exits(opened) == ["--resnapshot", "--discard"]
            done = await opened.resnapshot()
            assert isinstance(done.lane, Reaped)
            left = done.lane.record.snapshots[-1].id
            assert [left in warning for warning in done.warnings] == [True]
            done = await opened.restore()
            assert same(walk(place_of(opened)), before)
            assert [left in warning for warning in done.warnings] == [True]
            await opened.remove()
            await opened.reap()
            done = await opened.restore(snapshot=left)
            assert walk(place_of(opened))[late][2] == b"late\n"
            assert "was not whole" in done.warnings[-1]
        assert await world.complaints() == []

    trio.run(main)


def test_a_lane_that_is_discarded_half_way_comes_back_whole(tmp_path: Path) -> None:
    world = World(tmp_path)
    place, before = killed(world, 6)
    write(os.path.join(place, b"late"), b"late\n")

    async def main() -> None:
        async with world.open() as opened:
            assert lane_of(opened).paths == ("late",)
            assert isinstance((await opened.discard()).lane, Reaped)
            await opened.restore()
            assert same(walk(place_of(opened)), before)
        assert await world.complaints() == []

    trio.run(main)


def disturbed(world: World, event: str, name: bytes, deed: Callable[[bytes], None]) -> tuple[bytes, Tree]:
    """Reaps in a process in which somebody does something right before that of the deletion's own deeds."""
    place, before = prepared(world)

    def work() -> None:
        waiting = True

        def heard(which: str, arguments: tuple[object, ...]) -> None:
            nonlocal waiting
            if waiting and which == event and name in arguments:
                waiting = False
                deed(place)

        sys.addaudithook(heard)
        trio.run(_reap, world, FOREVER)

    assert in_a_process(work) == 0
    return place, before


def staging(world: World) -> Callable[[bytes], None]:
    """Returns what stages a file in a worktree."""

    def stage(place: bytes) -> None:
        oid = world.git(world.root, "hash-object", "-w", "--stdin", stdin=b"late\n").strip()
        world.git(place, "update-index", "--add", "--cacheinfo", b"100644," + oid + b",late")

    return stage


def writing(place: bytes) -> None:
    write(os.path.join(place, b"late"), b"late\n")


BEFORE_THE_PROOF, BEFORE_THE_POINTER = ("os.rename", proof.NAME), ("os.remove", b".git")


@pytest.mark.parametrize("when", [BEFORE_THE_PROOF, BEFORE_THE_POINTER], ids=["proof", "pointer"])
@pytest.mark.parametrize("way_out", ["restore", "resnapshot", "discard"])
def test_what_comes_to_the_last_of_a_tree_is_kept_as_a_worktree_with_every_way_out(
    tmp_path: Path, when: tuple[str, bytes], way_out: str
) -> None:
    world = World(tmp_path)
    place, before = disturbed(world, *when, writing)
    assert walk(place).keys() == {b".git", b"late"}

    async def main() -> None:
        async with world.open() as opened:
            assert (lane_of(opened).detail, lane_of(opened).paths) == ("changed_while_reaping", ("late",))
            await getattr(opened, way_out)()
            if way_out == "restore":
                assert walk(place_of(opened)).keys() == {b".git", b"late"}
            else:
                await opened.restore()
                assert same(walk(place_of(opened)), before)
        assert await world.complaints() == []

    trio.run(main)


def test_what_is_staged_while_a_tree_goes_leaves_a_worktree(tmp_path: Path) -> None:
    world = World(tmp_path)
    place, before = disturbed(world, "os.remove", b"file", staging(world))
    assert walk(place).keys() == {b".git"}

    async def main() -> None:
        async with world.open() as opened:
            assert lane_of(opened).detail == "changed_while_reaping"
            left = (await opened.resnapshot()).lane.record.snapshots[-1].id  # type: ignore[union-attr]
            await opened.restore()
            assert same(walk(place_of(opened)), before)
            await opened.remove()
            await opened.reap()
            await opened.restore(snapshot=left)
            assert world.git(place_of(opened), "show", ":late") == b"late\n"
        assert await world.complaints() == []

    trio.run(main)


def test_what_is_staged_until_a_tree_is_gone_is_kept_until_it_is_discarded(tmp_path: Path) -> None:
    world = World(tmp_path)
    place, before = disturbed(world, *BEFORE_THE_PROOF, staging(world))
    assert not os.path.lexists(place)

    async def main() -> None:
        async with world.open() as opened:
            lane = lane_of(opened)
            assert (lane.detail, exits(opened)) == ("tree_missing", ["--discard"])
            assert "git was used in it" in lane.reason
            assert os.path.isdir(os.path.join(world.common, b"worktrees/work"))
            await opened.discard()
            await opened.restore()
            assert same(walk(place_of(opened)), before)
        assert await world.complaints() == []

    trio.run(main)


async def test_a_lane_whose_snapshot_is_damaged_can_be_discarded(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await removed(opened)
        world.git(world.root, "update-ref", "-d", opened.lane().record.snapshots[0].ref)  # type: ignore[union-attr]
        await opened.reap()
        assert lane_of(opened).detail == "snapshot_damaged"
        assert isinstance((await opened.discard()).lane, Reaped)


def same(now: Tree, before: Tree) -> bool:
    """Tells whether two trees are one, but for where their pointers point."""
    return {**now, b".git": None} == {**before, b".git": None}
