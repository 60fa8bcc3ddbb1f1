"""Whatever is interrupted, at any moment, is finished or undone by the next start, as if nothing had been."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec
import pytest
import trio

from domain.events import BY_TAG
from tests.sagas.crashes import cancel, made, moments, scratch, stop
from tests.sagas.scenarios import EFFECTS, SCENARIOS, Scenario, nothing

if TYPE_CHECKING:
    from pathlib import Path

    from _pytest.mark import ParameterSet

    from tests.sagas.worlds import World

BY_NAME = {each.name: each for each in SCENARIOS}
# Where one command has ended and another of the same request has not begun: nothing is owed there.
RESTS = (
    ["repository.registered@1"],
    ["repository.registered@1", "lane.adopted@1"],
    ["snapshot.planned@2", "lane.snapshotted@2"],
    ["sweep.planned@1"],
)
SWEPT = "sweep.finished@1"  # written down by whoever asks for the sweep again, not by a start


class Reference(msgspec.Struct, frozen=True):
    """How a scenario runs without a crash: what is seen before and after, and what happens between."""

    before: dict[str, object]
    after: dict[str, object]
    tags: list[str]
    heard: list[tuple[str, str]]
    state: str


@cache
def reference(scenario: Scenario) -> Reference:
    with scratch() as home:
        world, start = made(home, scenario)
        before = world.look()
        heard = moments(world, scenario.act)
        assert trio.run(world.complaints) == []
        return Reference(before, world.look(), world.tags(start), heard, world.state())


def cases() -> list[ParameterSet]:
    """Returns every moment of every scenario; a few are quick to tell that something is wrong."""
    found = []
    for scenario in SCENARIOS:
        for moment, (when, step) in enumerate(scenario.moments):
            quick = scenario.name in ("remove-clean", "restore-moved") and when == "after-effect"
            marks = [] if quick else [pytest.mark.slow]
            found.append(
                pytest.param(scenario.name, moment, marks=marks, id=f"{scenario.name}-{moment}-{when}-{step}")
            )
    return found


@pytest.mark.parametrize(("scenario", "moment"), cases())
def test_a_crash_at_any_moment_is_made_good_by_the_next_start(home: Path, scenario: str, moment: int) -> None:
    chosen = BY_NAME[scenario]
    world, start = made(home, chosen)
    stop(world, chosen.act, moment, dies=(moment + moment // 4) % 2 == 0)
    assert_made_good(world, chosen, start)


def assert_made_good(world: World, scenario: Scenario, start: int) -> None:
    """Opens the yard anew, asks again for what had not begun, and compares with a run without a crash."""
    expected = reference(scenario)
    trio.run(recover, world)
    begun = world.tags(start)
    assert_one_cause(world, start)
    if begun != expected.tags:
        if [*begun, SWEPT] != expected.tags:
            assert begun == [] or begun in RESTS
            assert unless(world.look(), "refs", "snapshots") == unless(expected.before, "refs", "snapshots")
        trio.run(ask, world, scenario)
        assert world.tags(start) in (begun + expected.tags, begun + expected.tags[len(begun) :])
    assert trio.run(world.complaints) == []
    assert world.state() == expected.state == scenario.ends
    assert unless(world.look(), "snapshots", "refs") == unless(expected.after, "snapshots", "refs")
    kept = set(world.tags(start)).intersection(("lane.snapshotted@2",)) and begun in RESTS[2:]
    if not kept:
        assert world.look() == expected.after


def assert_one_cause(world: World, start: int) -> None:
    """Whoever finishes what was begun, it was begun by one request, and is found by its id."""
    assert len({event.cause for event in world.events(start)}) <= 1


def unless(seen: dict[str, object], *left_out: str) -> dict[str, object]:
    return {what: each for what, each in seen.items() if what not in left_out}


async def recover(world: World) -> None:
    async with world.open():
        pass


async def ask(world: World, scenario: Scenario) -> None:
    async with world.open() as opened:
        await scenario.act(opened)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.slow
def test_the_moments_in_which_a_crash_comes_are_all_there_are(scenario: Scenario) -> None:
    assert reference(scenario).heard == scenario.moments
    assert reference(scenario).state == scenario.ends


@pytest.mark.slow
def test_every_effect_and_every_chapter_is_crashed_in() -> None:
    steps = {step for scenario in SCENARIOS for step in scenario.steps.split()}
    told = {tag for scenario in SCENARIOS for tag in reference(scenario).tags}
    assert steps >= EFFECTS
    chapters = {tag.partition(".")[0] for tag in BY_TAG} - {"step"}  # no crash leads to a step that fails
    assert chapters == {tag.partition(".")[0] for tag in told}


def crashes_of_recovery() -> list[ParameterSet]:
    """Returns every moment of a recovery from a crash between the deed and its being written down."""
    found = []
    for name in ("remove-dirty", "reap", "restore-rebuilt"):
        heard = BY_NAME[name].moments
        for first, (when, step) in enumerate(heard):
            if when != "after-effect":
                continue
            seconds = range(moments_to_rest(heard[first - 1 :]))
            found += [pytest.param(name, first, each, id=f"{name}-{step}-{each}") for each in seconds]
    return found


def moments_to_rest(heard: list[tuple[str, str]]) -> int:
    """Returns how many moments there are until the next command of the same request, or the end."""
    steps = [step for _, step in heard]
    return next((at for at, step in enumerate(steps) if step not in EFFECTS), len(steps))


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "first", "second"), crashes_of_recovery())
def test_a_crash_of_the_recovery_is_made_good_by_the_start_after_it(
    home: Path, scenario: str, first: int, second: int
) -> None:
    chosen = BY_NAME[scenario]
    world, start = made(home, chosen)
    stop(world, chosen.act, first, dies=second % 2 == 1)
    stop(world, nothing, second, dies=second % 4 < 2)
    assert_made_good(world, chosen, start)


# A little more than there are; how often a command waits depends on how fast git answers.
CHECKPOINTS = {"create-second": range(45), "remove-clean": range(32), "remove-dirty": range(0, 200, 3)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "checkpoint"), [(name, k) for name, all_of_them in CHECKPOINTS.items() for k in all_of_them]
)
def test_a_cancelled_command_did_not_begin_or_is_driven_on(
    home: Path, scenario: str, checkpoint: int
) -> None:
    chosen = BY_NAME[scenario]
    world, start = made(home, chosen)
    trio.run(cancel, world, chosen.act, checkpoint)
    assert_made_good(world, chosen, start)
