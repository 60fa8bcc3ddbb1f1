"""Errors instead of death: the answer is true, nothing is lost, and nothing stays stuck.

This is a sample; `python -m tests.faults.errors` runs every case.
"""

from __future__ import annotations

import os
import resource
from typing import TYPE_CHECKING

import pytest
import trio

from adapters.store.reader import Reader
from tests.adapters.volumes import fill, volume
from tests.faults.errors import ERRORS, FULL, GIT, Fault, Impatient, Spot, asked, made, reference, run, sample
from tests.faults.points import Point, install, loaded
from tests.sagas.crashes import in_a_process
from tests.sagas.scenarios import SCENARIOS, dirty, place_of, removed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sagas.worlds import Open

pytestmark = pytest.mark.slow
BY_NAME = {each.name: each for each in SCENARIOS}


LEAST = 10  # cases of a fault: it comes in every kind of call, or of git


def troubles(name: str) -> list[str]:
    """What is wrong in each case of the sample."""
    chosen = sample(name)
    assert len(chosen) >= LEAST
    return [verdict.line for verdict in (run(*case) for case in chosen) if verdict.trouble]


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_at_each_kind_of_call_is_answered_and_made_good(name: str) -> None:
    assert troubles(name) == []


@pytest.mark.parametrize("name", GIT)
def test_whatever_a_git_does_is_answered_and_made_good(name: str) -> None:
    assert troubles(name) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk to fill")
def test_a_disk_that_fills_at_any_moment_is_answered_and_made_good() -> None:
    assert troubles(FULL) == []


# What went wrong before, each at its first moment of that kind: the effect, the call, and within what.
EARLIER = (
    (
        "remove-clean",
        "Move",
        "fsync",
        "rename.move",
        Fault("EIO"),
    ),  # the tree was gone from where it was said
    ("remove-clean", "Move", "ftruncate", "oslock.release", Fault("EIO")),
    ("remove-clean", "Move", "fsync", "registration.repoint", Fault("ENOSPC")),
    ("remove-clean", "Move", "rename", "registration.repoint", Fault("EIO", lasting=True)),
    ("remove-clean", "FreeBranch", "rename", "heads.write_head", Fault("EIO", lasting=True)),
    ("remove-forced", "FreeBranch", "rename_without_replacing", "heads.write_head", Fault("EIO", late=True)),
    ("restore-moved", "Unlock", "unlink", "registration.unlock", Fault("EACCES")),  # no removal was possible
    ("snapshot", "Capture", "fsync", "manifest.save", Fault("EIO")),  # what was captured stayed for ever
    ("create-undone", "DropBranch", "open", "oslock", Fault("EIO")),  # no branch was left, it said
    ("remove-branch", "DropBranch", "update-ref", "", Fault("silent")),
    ("remove-dirty", "Capture", "rev-list", "", Fault("random")),
    ("create-second", "Checkout", "sync_file_system", "", Fault("EROFS")),  # the branch stayed
    ("create-undone", "", "cat-file", "", Fault("mute")),
)


@pytest.mark.parametrize("case", EARLIER, ids=lambda case: f"{case[1]}-{case[2]}-{case[4].title}")
def test_what_went_wrong_before_does_not(case: tuple[str, str, str, str, Fault]) -> None:
    name, step, what, within, fault = case
    moment = "after" if fault.late else "before"
    points = [point for point, _ in reference(BY_NAME[name]).spots]
    here = [each for each in points if (each.moment, each.step, each.what) == (moment, step, what)]
    chosen = next(each for each in here if within in each.site)
    assert run(BY_NAME[name], Spot(chosen), fault).trouble == []


@pytest.mark.parametrize("name", ["reap", "reap-without-snapshot", "review-discard", "sweep"])
def test_no_tree_is_touched_after_an_append_that_failed(name: str) -> None:
    """From the explanation on nothing can be written, as on a full disk: no file may grow."""
    with made(BY_NAME[name]) as world:
        before, heard = tree(world), world.home / "heard"
        assert in_a_process(lambda: _explain_in_vain(world, name, heard)) == 0
        assert "before append Explain" in heard.read_text()
        assert "Destroy" not in heard.read_text()
        assert tree(world) == before
        with Reader(world.settings.store) as reader:
            assert [*reader.events()][-1].type != "tree.explained@1"
        trio.run(asked, world, BY_NAME[name])
        assert world.stands() == "reaped"
        assert trio.run(world.complaints) == []


def _explain_in_vain(world: Impatient, name: str, heard: Path) -> None:
    told: list[str] = []

    def hear(point: Point) -> None:
        told.append(point.name)
        if (point.moment, point.kind, point.what) == ("before", "append", "Explain"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))

    loaded()
    install(hear)
    said = trio.run(asked, world, BY_NAME[name])
    assert said.outcome == "unavailable", said
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    heard.write_text("\n".join(told))


def tree(world: Impatient) -> list[str]:
    quarantine = os.path.join(world.root, b".laneyard/quarantine")
    found = os.walk(quarantine)
    return sorted(os.fsdecode(os.path.join(place, each)) for place, _, names in found for each in names)


def test_a_full_disk_keeps_nobody_from_reading_the_log_and_from_putting_a_lane_back(tmp_path: Path) -> None:
    with volume(tmp_path / "disk", 12) as home:
        world = Impatient(home)
        trio.run(_in, world, removed)
        told = world.tags()
        ballast = fill(home)
        assert world.tags() == told
        trio.run(_in, world, lambda opened: opened.restore())
        assert world.state() == "active"
        assert (
            home / "root/.laneyard/worktrees" / "work" / "untracked"
        ).read_bytes() == b"untracked untracked"
        ballast.unlink()
        assert trio.run(world.complaints) == []
        assert (home / "state/reserve").stat().st_size > 1 << 19


def test_what_is_set_aside_is_not_for_new_work(tmp_path: Path) -> None:
    with volume(tmp_path / "disk", 12) as home:
        world = Impatient(home)
        trio.run(_in, world, dirty)
        ballast = fill(home)
        for name in ("create-second", "remove-dirty"):
            said = trio.run(asked, world, BY_NAME[name])
            assert said.code == "disk_full"
            assert said.outcome in ("unavailable", "refused")
        assert world.state() == "active"
        assert (home / "state/reserve").stat().st_size > 1 << 19
        ballast.unlink()
        trio.run(_in, world, lambda opened: opened.remove())
        assert trio.run(world.complaints) == []


async def _in(world: Impatient, act: object) -> None:
    async with world.open() as opened:
        await act(opened)  # type: ignore[operator]


def test_a_lock_of_ours_that_stayed_is_taken_over(tmp_path: Path) -> None:
    world = Impatient(tmp_path)

    async def scene(opened: Open) -> None:
        await removed(opened)
        await opened.restore()
        lane = opened.row()["id"]
        opened.world.git(
            opened.world.root,
            "worktree",
            "lock",
            "--reason",
            f"laneyard: edition 1 of {lane}",
            place_of(opened),
        )
        await opened.remove()
        assert opened.state() == "quarantined"

    trio.run(_in, world, scene)
    assert trio.run(world.complaints) == []
