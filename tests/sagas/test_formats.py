"""Journals of earlier formats are driven on from every phase, on real git; what is newer is not touched."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio

from adapters.yard.capturing import SnapshotNotMade
from domain.states import Quarantined
from tests.sagas.crashes import made, stop
from tests.sagas.old_formats import older, retold, rows
from tests.sagas.scenarios import SCENARIOS, Scenario, nothing, place_of, resting
from tests.sagas.test_crash import reference, unless
from tests.sagas.trees import walk, write

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from _pytest.mark import ParameterSet

    from tests.sagas.old_formats import Row
    from tests.sagas.trees import Entry
    from tests.sagas.worlds import Open, World

BY_NAME = {each.name: each for each in SCENARIOS}
# What names a snapshot by its id, which differs from run to run.
BY_ID = ("refs", "snapshots", "ours")
OLD_LIVES = (
    *("create", "create-undone", "remove-clean", "remove-dirty", "remove-branch"),
    *("restore-moved", "restore-rebuilt", "reap", "reap-without-snapshot"),
)


def asked(world: World, act: Callable[[Open], Awaitable[object]]) -> object:
    """Opens the yard anew, which drives on what was interrupted, and asks."""

    async def main() -> object:
        async with world.open() as opened:
            return await act(opened)

    return trio.run(main)


def of_its_time(row: Row) -> Row:
    """Returns an event in the oldest shape of its journal's present format."""
    return row if row[2] == "removal.planned@4" else older(row)


def moments_of(*names: str) -> list[tuple[str, int]]:
    return [(name, moment) for name in names for moment in range(len(BY_NAME[name].moments))]


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "moment"), moments_of(*OLD_LIVES))
def test_a_journal_of_its_first_shape_is_driven_on_from_every_moment(
    home: Path, scenario: str, moment: int
) -> None:
    chosen = BY_NAME[scenario]
    world, _ = made(home, chosen)
    stop(world, chosen.act, moment, dies=False)
    retold(world, of_its_time)
    finish(world, chosen)
    expected = reference(chosen)
    assert world.state() == expected.state == chosen.ends
    assert unless(world.look(), *BY_ID) == unless(expected.after, *BY_ID)


def finish(world: World, scenario: Scenario) -> None:
    """Recovers, and asks again where the request had not come to its end; all must be well then."""
    asked(world, nothing)
    if not any(tag.startswith("creation.planned") for tag in world.tags()) or world.state() != scenario.ends:
        asked(world, scenario.act)
    assert trio.run(world.complaints) == []


# A removal of format 3 --------------------------------------------------------------------------------------

REMOVAL = BY_NAME["remove-clean"]
BEGUN = range(1, len(REMOVAL.moments))  # the plan is in the log
RENAMED = REMOVAL.moments.index(("after-effect", "Move"))  # from here on the tree is where it will rest


def at(moments: Iterable[int]) -> list[ParameterSet]:
    """Returns the moments as cases; one is quick to tell that something is wrong."""
    chosen = list(moments)
    quick, *others = sorted(chosen, key=lambda each: REMOVAL.moments[each][0] != "after-effect")
    return [pytest.param(quick), *(pytest.param(each, marks=pytest.mark.slow) for each in others)]


def interrupted(home: Path, moment: int) -> World:
    """Returns a world whose log tells of a removal of format 3 that was stopped at that moment."""
    world, _ = made(home, REMOVAL)
    stop(world, REMOVAL.act, moment, dies=moment % 2 == 0)
    retold(world, older)
    assert {"removal.planned@3"} == {tag for tag in world.tags() if tag.startswith("removal.planned")}
    return world


def tree_of(world: World, moment: int) -> bytes:
    """Returns where the tree is at that moment."""
    if moment < RENAMED:
        return os.path.join(world.root, b".laneyard/worktrees/work")
    quarantine = os.path.join(world.root, b".laneyard/quarantine")
    (name,) = os.listdir(quarantine)
    return os.path.join(quarantine, name)


def kept(place: bytes) -> dict[bytes, Entry]:
    """Returns everything in a tree but what git writes there."""
    return walk(place, (b".git",))


@pytest.mark.parametrize("moment", at(BEGUN))
def test_a_removal_of_format_3_of_a_clean_lane_is_finished(home: Path, moment: int) -> None:
    world = interrupted(home, moment)
    before = kept(tree_of(world, moment))
    tip = world.git(world.root, "rev-parse", "refs/heads/work")

    async def look(opened: Open) -> None:
        lane = opened.lane()
        assert isinstance(lane, Quarantined)
        assert (lane.consent, lane.warnings) == (None, ())
        assert lane.record.editions[-1].snapshot_id is None
        assert lane.record.snapshots == ()
        assert kept(resting(opened)) == before
        assert world.git(world.root, "rev-parse", "refs/heads/work") == tip
        await opened.restore()
        assert kept(place_of(opened)) == before
        assert world.git(place_of(opened), "status", "--porcelain") == b""
        await opened.remove()
        await opened.reap()
        assert opened.state() == "reaped"

    asked(world, look)
    assert trio.run(world.complaints) == []


WORK: dict[str, tuple[dict[bytes, bytes], str]] = {
    "changed": ({b"file": b"changed\n"}, "not_snapshotted"),
    "untracked": ({b"new": b"new\n"}, "not_snapshotted"),
    "ignored": ({b"trace.log": b"a trace\n"}, "unknown_ignored"),
    "rebuildable": (
        {b"build/CACHEDIR.TAG": b"Signature: 8a477f597d28d172789f06886806bc55\n"},
        "unknown_ignored",
    ),
}


@pytest.mark.parametrize("moment", at(each for each in BEGUN if each < RENAMED))
@pytest.mark.parametrize("what", WORK)
def test_a_removal_of_format_3_leads_back_from_a_tree_with_anything_to_lose(
    home: Path, what: str, moment: int
) -> None:
    world = interrupted(home, moment)
    files, code = WORK[what]
    place = tree_of(world, moment)
    for path, data in files.items():
        write(os.path.join(place, path), data)
    before = kept(place)

    async def look(opened: Open) -> None:
        assert opened.state() == "active"
        last = world.events()[-1]
        assert (last.type, getattr(last.fact, "code", None)) == ("removal.abandoned@1", code)
        assert "had not recorded" in str(getattr(last.fact, "reason", ""))
        assert kept(place) == before
        assert b"locked" not in world.git(world.root, "worktree", "list", "--porcelain")
        assert world.git(place, "symbolic-ref", "HEAD") == b"refs/heads/work\n"
        await opened.remove(mode="force")  # nothing of the old journal stands in the way
        assert opened.state() == "quarantined"

    asked(world, look)
    assert trio.run(world.complaints) == []


@pytest.mark.parametrize("moment", at(each for each in BEGUN if each >= RENAMED))
def test_what_rests_by_a_removal_of_format_3_comes_back_or_is_kept_before_it_is_reaped(
    home: Path, moment: int
) -> None:
    world = interrupted(home, moment)
    place = tree_of(world, moment)
    for path, data in {b"file": b"changed\n", b"new": b"new\n"}.items():
        write(os.path.join(place, path), data)
    before = kept(place)

    async def look(opened: Open) -> None:
        assert opened.state() == "quarantined"
        assert kept(resting(opened)) == before
        await opened.reap()
        assert opened.state() == "reaped"
        await opened.restore()
        assert kept(place_of(opened)) == before

    asked(world, look)
    assert trio.run(world.complaints) == []


@pytest.mark.parametrize("moment", [RENAMED, len(REMOVAL.moments) - 1])
def test_what_is_ignored_and_rests_by_a_removal_of_format_3_is_not_reaped(home: Path, moment: int) -> None:
    world = interrupted(home, moment)
    write(os.path.join(tree_of(world, moment), b"trace.log"), b"a trace\n")
    before = kept(tree_of(world, moment))

    async def look(opened: Open) -> None:
        with pytest.raises(SnapshotNotMade) as caught:
            await opened.reap()
        assert caught.value.code == "unknown_ignored"
        assert kept(resting(opened)) == before
        await opened.restore()
        assert kept(place_of(opened)) == before

    asked(world, look)
    assert trio.run(world.complaints) == []


def test_a_file_that_comes_while_a_lane_of_format_3_is_reaped_sends_it_to_review(home: Path) -> None:
    world = interrupted(home, BEGUN[-1])

    def write_late(moment: str, step: str) -> None:
        if (moment, step) == ("after-append", "ReapLane"):
            write(os.path.join(tree_of(world, RENAMED), b"late"), b"late\n")

    async def main() -> None:
        async with world.open(write_late) as opened:
            await opened.reap()
            assert opened.state() == "needs-review"
            assert kept(resting(opened))[b"late"][2] == b"late\n"

    trio.run(main)


@pytest.mark.parametrize("moment", at(each for each in BEGUN if each < RENAMED))
def test_a_removal_of_format_3_leads_back_where_its_tree_cannot_be_looked_at(home: Path, moment: int) -> None:
    world = interrupted(home, moment)
    place = tree_of(world, moment)
    index = os.path.join(world.common, b"worktrees/work/index")
    write(index, b"no index")
    before = kept(place)

    async def look(opened: Open) -> None:
        assert opened.state() == "active"
        assert getattr(world.events()[-1].fact, "code", None) == "evidence_unavailable"
        assert kept(place) == before

    asked(world, look)
    assert rows(world)[-1][2] == "removal.abandoned@1"
