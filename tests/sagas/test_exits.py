"""What was mended, moved or deleted meanwhile is seen: each way out looks again before it does anything."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio

from domain.events import LaneReaped, ReapingPlanned, TreeExplained
from domain.evidence import Consent
from domain.states import Active, NeedsReview, Quarantined, Reaped
from tests.faults import points
from tests.sagas.crashes import DEAD, in_a_process
from tests.sagas.scenarios import clean, place_of, removed, removed_clean, resting
from tests.sagas.trees import write
from tests.sagas.worlds import World, walk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from domain.states import Lane
    from tests.faults.points import Moment, Point
    from tests.sagas.crashes import Act
    from tests.sagas.worlds import Open

pytestmark = pytest.mark.slow
WHY = "review --discard"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def manifest(opened: Open) -> bytes:
    """Returns where the manifest of the only snapshot is."""
    (taken,) = reviewed_or(opened.lane()).record.snapshots
    return os.path.join(opened.world.settings.state_dir, b"snapshots", taken.id.encode(), b"manifest.json")


def reviewed_or(lane: Lane) -> NeedsReview | Quarantined:
    assert isinstance(lane, NeedsReview | Quarantined)
    return lane


def review_of(opened: Open) -> NeedsReview:
    lane = opened.lane()
    assert isinstance(lane, NeedsReview)
    return lane


def consents(world: World) -> list[Consent | None]:
    """Returns the consents of the plans to delete, the last one last."""
    return [each.fact.consent for each in world.events() if isinstance(each.fact, ReapingPlanned)]


def reaped_as_explained(world: World) -> bool:
    """Tells whether the end of the deletion counts what was explained, and that is something."""
    facts = [each.fact for each in world.events()]
    explained = [each for each in facts if isinstance(each, TreeExplained)][-1]
    ended = [each for each in facts if isinstance(each, LaneReaped)][-1]
    assert explained.entries > 0
    counted = (explained.digest, explained.entries, explained.bytes)
    return (ended.digest, ended.entries, ended.bytes) == counted


async def damaged(opened: Open) -> bytes:
    """Leaves a lane in review for want of its snapshot's manifest, and returns where that was."""
    await removed(opened)
    path = manifest(opened)
    os.rename(path, path + b".aside")
    await opened.reap()
    assert review_of(opened).detail == "snapshot_damaged"
    return path


async def test_a_snapshot_that_was_mended_meanwhile_explains_the_tree_and_stays_bound(world: World) -> None:
    async with world.open() as opened:
        path = await damaged(opened)
        before = walk(resting(opened)).keys()
        os.rename(path + b".aside", path)
        done = await opened.discard()
        assert isinstance(done.lane, Reaped)
        assert consents(world)[-1] is None
        await opened.restore()
        assert walk(place_of(opened)).keys() == before
    assert await world.complaints() == []


async def test_what_a_mended_snapshot_does_not_hold_is_named_before_it_is_agreed_to(world: World) -> None:
    async with world.open() as opened:
        path = await damaged(opened)
        rests = resting(opened)
        write(os.path.join(rests, b"late"), b"late\n")
        os.rename(path + b".aside", path)
        await opened.discard()
        assert (review_of(opened).detail, review_of(opened).paths) == ("unexplained_entries", ("late",))
        assert os.path.exists(os.path.join(rests, b"late"))
        assert isinstance((await opened.discard()).lane, Reaped)
        assert consents(world)[-1] == Consent((), WHY, ("late",))
        assert isinstance((await opened.restore()).lane, Active)
    assert await world.complaints() == []


async def deleted(world: World, deed: Callable[[Open, bytes], object]) -> NeedsReview:
    """Reaps a lane while somebody does something when its tree is deleted and its registration is not."""
    rests = [b""]

    def notice(moment: str, step: str) -> None:
        if (moment, step) == ("before-effect", "Deregister"):
            deed(opened, rests[0])

    async with world.open(notice) as opened:
        await removed(opened)
        rests[0] = resting(opened)
        await opened.reap()
        assert not os.path.exists(os.path.join(rests[0], b".git"))
        return review_of(opened)


async def test_what_was_staged_when_the_tree_was_deleted_is_agreed_to_by_name(world: World) -> None:
    admin = os.path.join(world.common, b"worktrees/work")
    lane = await deleted(world, lambda _, rests: write(os.path.join(admin, b"BISECT_LOG"), b"# bad\n"))
    assert (lane.detail, lane.paths) == ("registration_changed", (".git/BISECT_LOG",))
    async with world.open() as opened:
        done = await opened.discard()
        assert isinstance(done.lane, Reaped)
        assert consents(world)[-1] == Consent((".git/BISECT_LOG",), WHY)
        assert reaped_as_explained(world)
        assert isinstance((await opened.restore()).lane, Active)
    assert await world.complaints() == []


@pytest.mark.parametrize("mended", [True, False])
async def test_a_snapshot_that_is_damaged_when_the_tree_is_deleted_ends_in_one_discard(
    world: World, *, mended: bool
) -> None:
    def damage(opened: Open, rests: bytes) -> None:
        (taken,) = opened.lane().record.snapshots  # type: ignore[union-attr]
        path = os.path.join(world.settings.state_dir, b"snapshots", taken.id.encode(), b"manifest.json")
        os.rename(path, path + b".aside")
        paths.append(path)

    paths: list[bytes] = []
    lane = await deleted(world, damage)
    assert lane.detail == "snapshot_damaged"
    if mended:
        os.rename(paths[0] + b".aside", paths[0])
    async with world.open() as opened:
        assert isinstance((await opened.discard()).lane, Reaped)
        assert consents(world)[-1] == (None if mended else Consent((".",), WHY))
        assert reaped_as_explained(world)
        if not mended:
            os.rename(paths[0] + b".aside", paths[0])
        assert isinstance((await opened.restore()).lane, Active)
    assert await world.complaints() == []


async def test_what_has_come_to_the_place_of_a_deleted_tree_is_never_touched(world: World) -> None:
    lane = await deleted(world, lambda _, rests: write(os.path.join(rests, b"theirs"), b"theirs\n"))
    place = os.path.join(world.root, b".laneyard/quarantine")
    (rests,) = (os.path.join(place, name) for name in os.listdir(place))
    async with world.open() as opened:
        for _ in range(2):
            assert lane.detail == "tree_present"
            await opened.discard()
            lane = review_of(opened)
            assert walk(rests).keys() == {b"theirs"}
        os.rename(rests, os.path.join(world.root, b"theirs"))
        assert isinstance((await opened.discard()).lane, Reaped)
        assert consents(world)[-1] is None
        assert reaped_as_explained(world)
        assert isinstance((await opened.restore()).lane, Active)
    os.rename(os.path.join(world.root, b"theirs"), os.path.join(world.home, "theirs"))
    assert await world.complaints() == []


HOME = b".laneyard/worktrees/work"
REST = b".laneyard/quarantine"


def tree_of(world: World) -> bytes:
    """Returns where the lane's tree is."""
    home, rest = (os.path.join(world.root, each) for each in (HOME, REST))
    return home if os.path.isdir(home) else os.path.join(rest, *os.listdir(rest))


def at_the_rename(
    world: World, prepare: Act, act: Act, moment: Moment, deed: Callable[[bytes], None]
) -> None:
    """Has something done to the tree before or after the first rename, in a process of its own."""
    heard = []

    async def prepared() -> None:
        async with world.open() as opened:
            await prepare(opened)

    async def acting() -> None:
        async with world.open() as opened:
            await act(opened)

    def hear(point: Point) -> None:
        if (point.step, point.what, point.moment) == ("Move", "rename_without_replacing", moment):
            heard.append(point)
            if len(heard) == 1:
                deed(tree_of(world))

    def work() -> None:
        points.install(hear)
        trio.run(acting)

    trio.run(prepared)
    points.loaded()
    assert in_a_process(work) in (0, DEAD)


async def put_away(opened: Open) -> object:
    return await opened.remove()


async def bring_back(opened: Open) -> object:
    return await opened.restore()


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("prepare", "act"), [(clean, put_away), (removed_clean, bring_back)])
def test_a_tree_that_is_taken_in_the_middle_of_a_move_comes_back_from_where_it_was(
    world: World, prepare: Act, act: Act, moment: Moment, *, dies: bool
) -> None:
    saved, note = os.path.join(world.root, b"saved"), os.path.join(world.root, b"was")

    def take(tree: bytes) -> None:
        os.rename(tree, saved)
        write(note, tree)
        if dies:
            os._exit(DEAD)

    at_the_rename(world, prepare, act, moment, take)
    with open(note, "rb") as file:
        was = file.read()
    os.unlink(note)
    before = walk(saved)

    async def main() -> None:
        async with world.open() as opened:
            os.rename(saved, was)
            if not isinstance(opened.lane(), Active):
                await opened.restore()
            assert isinstance(opened.lane(), Active)
            assert walk(place_of(opened)).keys() == before.keys()
        assert await world.complaints() == []

    trio.run(main)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    ("prepare", "act", "end"), [(clean, put_away, Quarantined), (removed_clean, bring_back, Active)]
)
def test_a_move_that_was_killed_at_its_rename_is_finished(
    world: World, prepare: Act, act: Act, end: type[Lane], moment: Moment
) -> None:
    at_the_rename(world, prepare, act, moment, lambda tree: os._exit(DEAD))

    async def main() -> None:
        async with world.open() as opened:
            assert isinstance(opened.lane(), end)
        assert await world.complaints() == []

    trio.run(main)


def test_a_tree_whose_pointer_goes_while_it_is_moved_is_led_back(world: World) -> None:
    at_the_rename(world, clean, put_away, "after", lambda tree: os.unlink(os.path.join(tree, b".git")))
    home = os.path.join(world.root, HOME)
    assert world.state() == "active"
    write(os.path.join(home, b".git"), b"gitdir: " + os.path.join(world.common, b"worktrees/work") + b"\n")

    async def main() -> None:
        async with world.open() as opened:
            assert isinstance((await opened.remove()).lane, Quarantined)
        assert await world.complaints() == []

    trio.run(main)


async def test_a_resting_tree_that_somebody_has_moved_back_is_restored_where_it_is(world: World) -> None:
    async with world.open() as opened:
        await removed(opened)
        os.rename(resting(opened), place_of(opened))
        before = walk(place_of(opened)).keys()
        assert isinstance((await opened.restore()).lane, Active)
        assert walk(place_of(opened)).keys() == before
    assert await world.complaints() == []


async def test_another_directory_in_the_lanes_place_is_not_taken_for_its_tree(world: World) -> None:
    async with world.open() as opened:
        await removed(opened)
        write(os.path.join(place_of(opened), b"theirs"), b"theirs\n")
        lane = (await opened.restore()).lane
        assert isinstance(lane, Active)
        assert lane.place.path.endswith("/work-2")
        assert walk(place_of(opened)).keys() == {b"theirs"}
