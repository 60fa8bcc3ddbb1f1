"""Somebody changes the world between two steps: nothing is lost, nothing is stuck, nothing is called done."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio

from domain.states import Quarantined
from tests.faults.hostile import CHANGE, SCENARIO, Trial, Verdict, moments, tried
from tests.sagas.crashes import stop
from tests.sagas.scenarios import removed
from tests.sagas.trees import write
from tests.sagas.worlds import World, walk

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.sagas.worlds import Open

    Act = Callable[[Open], Awaitable[object]]

pytestmark = pytest.mark.slow

SPREAD = 11  # changes of a scenario's sample: prime to how many there are, so that each meets each moment
SAMPLED = ("create", "remove-dirty", "restore-moved", "restore-rebuilt", "reap", "review-put-back")


def sample(scenario: str) -> list[Trial]:
    """Returns as many trials as the scenario has moments, and each change in turn."""
    names, first = list(CHANGE), list(SCENARIO).index(scenario)
    count = len(moments(scenario, within=False))
    chosen = [names[(first + moment * SPREAD) % len(names)] for moment in range(count)]
    return [Trial(scenario, name, moment, killed=moment % 2 == 1) for moment, name in enumerate(chosen)]


@pytest.mark.parametrize("scenario", SAMPLED)
def test_a_change_at_any_moment_loses_nothing_and_leads_somewhere(scenario: str) -> None:
    verdicts = [verdict for trial in sample(scenario) if isinstance(verdict := tried(trial), Verdict)]
    assert len(verdicts) > 3
    assert [(str(each), each.wrong) for each in verdicts if each.wrong] == []


# What once went wrong: each is a trial by which it was found.
ONCE = (
    Trial("restore-moved", "removed-by-git", 4),
    Trial("reap-without-snapshot", "gc", 9),
    Trial("restore-rebuilt", "snapshots-unmounted", 4),
    Trial("create", "repository-moved", 7, killed=True),
    Trial("create", "repository-unmounted", 1),
    Trial("remove-clean", "repository-moved", 5, killed=True),
    Trial("remove-clean", "tree-moved", 5, killed=True),
    Trial("restore-moved", "repository-moved", 3, killed=True),
    Trial("restore-moved", "tree-moved", 3, killed=True),
    Trial("reap", "manifest-deleted", 2, killed=True),
)


@pytest.mark.parametrize("trial", ONCE, ids=lambda each: f"{each.scenario}-{each.change}-{each.moment}")
def test_what_once_went_wrong(trial: Trial) -> None:
    verdict = tried(trial)
    assert isinstance(verdict, Verdict)
    assert verdict.wrong == [], str(verdict)


def moment_of(scenario: str, when: str, step: str) -> int:
    """Returns the number of a moment."""
    return SCENARIO[scenario].moments.index((when, step))


def killed_after(world: World, scenario: str, step: str) -> None:
    chosen = SCENARIO[scenario]

    async def prepare() -> None:
        async with world.open() as opened:
            await chosen.prepare(opened)

    trio.run(prepare)
    stop(world, chosen.act, moment_of(scenario, "after-effect", step), dies=True)


def test_a_tree_taken_from_its_target_is_not_led_back_to_where_it_was(tmp_path: Path) -> None:
    world = World(tmp_path)
    killed_after(world, "remove-clean", "Move")
    (name,) = os.listdir(os.path.join(world.root, b".laneyard/quarantine"))
    rests, saved = os.path.join(world.root, b".laneyard/quarantine", name), os.path.join(world.root, b"saved")
    os.rename(rests, saved)

    async def main() -> None:
        async with world.open() as opened:
            assert isinstance(opened.lane(), Quarantined)
            os.rename(saved, rests)
            await opened.restore()
            assert opened.state() == "active"

    trio.run(main)


def test_what_is_put_in_the_place_of_a_new_worktree_is_not_taken_for_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    killed_after(world, "create", "Checkout")
    place, saved = os.path.join(world.root, b".laneyard/worktrees/work"), os.path.join(world.root, b"saved")
    os.rename(place, saved)
    # All of it is in the commit, and would be explained.
    write(os.path.join(place, b"plain"), b"plain\n")
    before = walk(place)

    async def main() -> None:
        async with world.open() as opened:
            assert opened.state() == "needs-review"
            assert walk(place) == before
            os.rename(place, os.path.join(world.root, b"theirs"))
            await opened.discard()
            assert opened.state() == "failed"

    trio.run(main)
    assert walk(os.path.join(world.root, b"theirs")) == before


def test_a_log_of_which_old_lines_have_expired_says_nothing_new(tmp_path: Path) -> None:
    async def main() -> None:
        world = World(tmp_path)
        async with world.open() as opened:
            await removed(opened)
            world.git(world.root, "reflog", "expire", "--expire=all", "--all")
            assert os.path.getsize(os.path.join(world.common, b"worktrees", b"work", b"logs/HEAD")) == 0
            await opened.reap()
            assert opened.state() == "reaped"

    trio.run(main)
