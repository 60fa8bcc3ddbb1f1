"""No fact says more than the disk does, and a start after a power cut goes on from what is there."""

from __future__ import annotations

import os
import signal
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

import pytest
import trio

from adapters.files.identity import identify
from adapters.performer import checkout
from tests.faults import points
from tests.faults.disk import Disk
from tests.faults.durability import Story
from tests.faults.outage import Key, Left, after_cut, translate
from tests.faults.outage import put as put_back
from tests.faults.syscalls import calls, record
from tests.sagas.conftest import home as home
from tests.sagas.crashes import in_a_process, made
from tests.sagas.scenarios import SCENARIOS, Scenario
from tests.sagas.test_crash import BY_NAME, assert_made_good, reference
from tests.sagas.trees import walk
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from domain.evidence import Identity


def traced(world: World, disk: Disk, *runs: Callable[[], object]) -> tuple[Story, list[int]]:
    """Runs one after another in a process of its own, and returns their story and how they ended."""
    found, ended = [], []
    for number, run in enumerate(runs):
        with TemporaryDirectory() as directory:
            trace = Path(directory) / str(number)
            ended.append(record(trace, run))
            found.append(list(calls(trace)))
    return Story(world, disk, found), ended


def acting(world: World, scenario: Scenario) -> None:
    async def act() -> None:
        async with world.open() as opened:
            await scenario.act(opened)

    trio.run(act)


def recovering(world: World) -> None:
    async def recover() -> None:
        async with world.open():
            pass

    trio.run(recover)


def told_of(story: Story) -> tuple[list[str], list[str]]:
    """Returns what was written down, and what of that was not durable."""
    commits = [each for each in story if each is not None]
    facts = [step.fact for commit in commits for step in commit.steps]
    found = [why for commit in commits for why in commit.violations()]
    return [fact.TAG for fact in facts], found + story.broken


def assert_the_model_is_the_disk(disk: Disk) -> None:
    """Else what it says of durability is worth nothing."""
    seen = {path: fact for path, fact in walk(disk.place).items() if not path.endswith(b"-shm")}
    model = {os.path.relpath(path, disk.place): node for path, node in disk.walk() if path != disk.place}
    assert {path: (node.kind, node.mode, node.data) for path, node in model.items()} == seen


QUICK = ("create", "remove-clean", "restore-moved")


@pytest.mark.parametrize(
    "name",
    [pytest.param(each.name, marks=[] if each.name in QUICK else pytest.mark.slow) for each in SCENARIOS],
)
def test_no_fact_relies_on_what_is_not_durable(home: Path, name: str) -> None:
    world, start = made(home, BY_NAME[name])
    disk = Disk(os.fsencode(home))
    story, ended = traced(world, disk, lambda: acting(world, BY_NAME[name]))
    tags, found = told_of(story)
    assert ended == [0]
    assert found == []
    assert_the_model_is_the_disk(disk)
    assert tags == world.tags(start)


def test_what_nobody_syncs_is_found(home: Path) -> None:
    world, _ = made(home, BY_NAME["create"])

    def unsynced() -> None:
        vars(checkout)["sync_file_systems"] = lambda *places: None
        acting(world, BY_NAME["create"])

    story, ended = traced(world, Disk(os.fsencode(home)), unsynced)
    _, found = told_of(story)
    assert ended == [0]
    lane = os.path.join(world.root, b".laneyard/worktrees/work")
    assert f"lane.created@1: {os.fsdecode(lane)}/sub/inner: what it holds is not durable" in found
    assert any(each.endswith("/refs/heads/work: its name is not durable") for each in found)


def dying(world: World, scenario: Scenario, sync: int) -> None:
    passed = count()

    def hear(point: points.Point) -> None:
        if point.moment == "before" and point.what in SYNCS and next(passed) == sync:
            os.kill(os.getpid(), signal.SIGKILL)

    points.install(hear)
    acting(world, scenario)


def dies(world: World, scenario: Scenario, sync: int, again: Callable[[], None]) -> bool:
    """Kills the process before a sync and goes on in another; tells whether there was such a sync."""
    disk = Disk(os.fsencode(world.home))
    story, ended = traced(world, disk, partial(dying, world, scenario, sync), again)
    _, found = told_of(story)
    assert (sync, ended[1], found) == (sync, 0, [])
    assert_the_model_is_the_disk(disk)
    assert [event.type for event in story.events] == world.tags()
    assert ended[0] in (0, -signal.SIGKILL)
    return ended[0] != 0


MADE = 3  # syncs of a first start: of the state directory, and until the first change
SYNCS = ("fsync", "sync_file_system")
STRIDE = {
    "create": 3,
    "remove-dirty": 4,
    "remove-branch": 7,
    "restore-moved": 2,
    "restore-rebuilt": 4,
    "reap": 3,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STRIDE)
def test_a_recovery_relies_on_nothing_that_the_killed_process_did_not_sync(home: Path, name: str) -> None:
    points.loaded()
    for sync in count(STRIDE[name] - 1, STRIDE[name]):
        place = home / str(sync)
        place.mkdir()
        world, _ = made(place, BY_NAME[name])
        if not dies(world, BY_NAME[name], sync, partial(recovering, world)):
            break
    assert sync > STRIDE[name]


@pytest.mark.slow
def test_a_log_is_durable_that_a_killed_start_had_begun_to_make(home: Path) -> None:
    points.loaded()
    for sync in range(MADE):
        place = home / str(sync)
        place.mkdir()
        world = World(place)
        assert dies(world, BY_NAME["create"], sync, partial(acting, world, BY_NAME["create"]))


def outages(story: Story, chance: Random) -> Iterator[tuple[str, list[Left]]]:
    """Yields what is left where the power goes before a commit and after it, for the worst and by chance."""
    for commit in story:
        when = f"after {commit.steps[-1].fact.TAG}" if commit else f"before commit {len(story.events)}"
        yield f"{when}: what is durable", after_cut(story.disk)
        yield f"{when}: and all names", after_cut(story.disk, names=True)
        yield f"{when}: and some bytes", after_cut(story.disk, names=True, chance=chance)


UNDONE = (["creation.undone@1"], ["restore.abandoned@1"])


def started(world: World, scenario: Scenario, start: int, instead: dict[Key, Identity]) -> None:
    """Starts after a power cut, and finds everything finished or undone."""
    translate(instead)
    recovering(world)
    tags = world.tags(start)
    if tags[-1:] in UNDONE:
        assert_undone(world, scenario)
        return
    if tags == reference(scenario).tags:  # nothing is owed any more, and only a change sets room aside again
        with open(os.path.join(world.common, b"laneyard/reserve"), "ab"):
            pass
    assert_made_good(world, scenario, start)


def assert_undone(world: World, scenario: Scenario) -> None:
    """Nothing is left of what a power cut has spoilt, and the same can be asked for again."""
    before, now = reference(scenario).before, world.look()
    assert trio.run(world.complaints) == []
    assert (now["refs"], now["worktrees"], now["snapshots"]) == tuple(
        before[what] for what in ("refs", "worktrees", "snapshots")
    )
    trees = cast("dict[bytes, object]", now["tree"]), cast("dict[bytes, object]", before["tree"])
    assert {*trees[0]} - {*trees[1]} <= {b".laneyard", b".laneyard/worktrees"}
    assert {path: trees[0].get(path) for path in trees[1]} == trees[1]
    acting(world, scenario)
    assert trio.run(world.complaints) == []
    assert world.state() == scenario.ends


@pytest.mark.slow
@pytest.mark.parametrize("name", ["create", "remove-dirty", "reap", "restore-rebuilt"])
def test_a_start_after_a_power_cut_finishes_or_undoes_what_was_begun(home: Path, name: str) -> None:
    scenario = BY_NAME[name]
    reference(scenario)
    world, start = made(home, scenario)
    disk = Disk(os.fsencode(home))
    story, ended = traced(world, disk, lambda: acting(world, scenario))
    assert ended == [0]
    left = [*outages(story, Random(name))]
    assert len(left) >= 3 * len(scenario.steps.split())
    for path, node in disk.walk():
        node.identity = node.identity or identify(path)
    for when, tree in left:
        instead = put_back(tree, story.events)
        ended = [in_a_process(partial(started, world, scenario, start, instead))]
        assert (when, ended) == (when, [0])
