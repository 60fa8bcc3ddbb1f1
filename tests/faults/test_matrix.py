"""The program is killed at a few points of every scenario; `scripts/crash-matrix` kills it at all of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.faults import page, served
from tests.faults.accounts import lost, owned
from tests.faults.judging import Judgement, classified, damage, differences, judged, reference, seen
from tests.faults.lives import BY_NAME, LIVES
from tests.faults.matrix import Killed, at_once, chosen, deep, kills, once, service
from tests.faults.points import loaded
from tests.faults.running import RECOVER, Kill, run, scene

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LANE = str(Path(".laneyard/worktrees", "work"))  # from the root
EACH = 5  # kills of a scenario
LEAST = 300  # points that there must be


@pytest.fixture(autouse=True, scope="module")
def _everything_is_loaded() -> None:
    loaded()


def some(found: dict[str, int], count: int, life: str) -> list[tuple[str, Kill]]:
    """Kills from the beginning to the end of a command; in each scenario a little apart."""
    every = kills(found)
    step = max(len(every) // count, 1)
    first = [each.name for each in LIVES].index(life) * 7 % step
    return [(life, each) for each in every[first::step][:count]]


def faults(work: Callable[[tuple[str, Kill]], Sequence[Killed]], tasks: list[tuple[str, Kill]]) -> list[str]:
    """What is wrong after each of these kills; how often a point comes differs, but most must have come."""
    found = [each for task in tasks for each in work(task)]
    missed = [str(each) for each in found if each.judgement.end == "not reached"]
    assert 2 * len(missed) < len(found), missed
    return [str(each) for each in found if each.judgement.faults]


@pytest.mark.parametrize("life", BY_NAME)
def test_a_command_that_is_killed_is_made_good_by_the_next_start(life: str) -> None:
    assert faults(once, some(reference(life).points, EACH, life)) == []


@pytest.mark.parametrize("life", ["remove-branch", "restore-rebuilt", "reap"])
def test_a_recovery_that_is_killed_is_made_good_by_the_start_after_it(life: str) -> None:
    found = {name: times for name, times in reference(life).points.items() if "after effect" in name}
    assert faults(deep, some(found, 1, life)) == []


@pytest.mark.parametrize("life", ["remove-dirty", "sweep-three"])
def test_of_two_recoveries_at_once_one_waits(life: str) -> None:
    found = {name: times for name, times in reference(life).points.items() if "during git" in name}
    assert faults(at_once, some(found, 2, life)) == []


@pytest.mark.parametrize("life", ["create", "remove-reap", "restore-moved", "sweep"])
def test_a_service_that_is_killed_has_done_what_it_acknowledged(life: str) -> None:
    assert faults(service, some(served.usual(life)[1], 2, life)) == []


def test_the_list_names_every_point() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--list"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    *lines, total = ran.stdout.splitlines()
    assert len({*lines}) == len(lines) >= LEAST
    assert int(total.split()[0]) >= len(lines)
    assert {line.partition(":")[0] for line in lines} == {*BY_NAME}


@pytest.mark.parametrize("part", ["--sample=2", "--scenario=reap", "--point=*git*", "--service", "--deep"])
def test_the_page_is_of_the_whole_matrix(part: str) -> None:
    asked = [sys.executable, "-m", "tests.faults", "--write", part]
    ran = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, "whole matrix" in ran.stderr) == (2, True)


def test_what_is_lost_is_counted() -> None:
    with scene("remove-dirty") as found:
        world = found.world
        assert lost(owned(world), world) == {}
        (world.home / "root" / LANE / "untracked").unlink()
        assert [*lost(found.had, world).values()] == [f"{LANE}/untracked"]


def test_a_commit_that_nothing_reaches_is_lost() -> None:
    with scene("remove-dirty") as found:
        world, lane = found.world, bytes(found.world.home / "root" / LANE)
        world.git(lane, "update-ref", "-d", "HEAD")
        world.git(lane, "reflog", "expire", "--expire=now", "--all")
        assert [*lost(found.had, world).values()] == ["in a reflog"]


def test_what_is_not_done_and_what_is_left_about_is_noticed() -> None:
    with scene("remove-dirty") as found:
        world = found.world
        assert classified(found, seen(world)) == "undone"
        assert differences(found) != []
        assert run(world, found.life.line) == 0
        (world.home / "root/.git/worktrees" / "work" / ".laneyard-begun").touch()
        judgement = judged(found, run(world, RECOVER))
        assert (judgement.end, judgement.stuck, judgement.lost) == ("forward", (), ())
        assert judgement.litter != ()


def test_two_causes_of_one_command_are_noticed() -> None:
    with scene("remove-dirty") as found:
        assert run(found.world, found.life.line) == 0
        assert damage(found) == []
        assert run(found.world, "restore work") == 0
        assert damage(found) == ["2 causes"]


def test_the_tables_count_each_kill_once() -> None:
    kill = Kill("Move: before call rename in files/rename.move")
    ends = (Judgement("forward"), Judgement("review", lost=("a", "b")), Judgement("not reached"))
    found = [Killed("reap", (kill,), each) for each in ends]
    assert "| reap | 7 | 2 | 1 | 0 | 0 | 1 | 2 | 0 | 0 | 0 |" in page.table({"reap": {kill.point: 7}}, found)
    assert "| Move |  |  | 2 |  |" in page.places(found)
    assert chosen(3) == [0, 1, 2]
    assert chosen(9) == [0, 1, 4, 8]
