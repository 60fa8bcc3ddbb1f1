"""A fresh worktree becomes what was captured, also in two attempts; a stranger's file is not written over."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from domain.effects import Applied, Apply, CheckedOut, NotDone
from tests.sagas.trees import walk, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.effects import Outcome
    from domain.evidence import Place, Snapshot
    from tests.adapters.snapshots.lanes import Lane

State = tuple[dict[bytes, tuple[str, int, bytes]], bytes]


def look(lane: Lane) -> State:
    return walk(lane.path, (b".git",)), lane.git("ls-files", "--stage", "-z")


async def rebuilt(lane: Lane) -> tuple[Snapshot, Place, State]:
    """Captures the lane, takes it away, and makes a fresh worktree for it to come back to."""
    before, taken = look(lane), await lane.captured()
    lane.away()
    made = await lane.perform(lane.checking_out(taken.head))
    assert isinstance(made, CheckedOut)
    return taken, made.place, before


async def apply(lane: Lane, taken: Snapshot, place: Place) -> Outcome:
    return await lane.perform(Apply(repository=lane.repository, place=place, snapshot=taken))


async def test_a_lane_comes_back_as_it_was_and_applying_twice_is_applying_once(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    taken, place, before = await rebuilt(lane)
    assert await apply(lane, taken, place) == Applied(content=taken.content)
    assert look(lane) == before
    inodes = {path: os.lstat(lane.at(path)).st_ino for path in before[0]}
    assert await apply(lane, taken, place) == Applied(content=taken.content)
    assert look(lane) == before
    assert {path: os.lstat(lane.at(path)).st_ino for path in before[0]} == inodes


async def test_an_attempt_that_died_half_way_is_finished(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    taken, place, before = await rebuilt(lane)
    write(lane.at(b"untracked"), b"untr")
    write(lane.at(b"deep/er/file"), b"", 0o600)
    os.mkdir(lane.at(b"empty"), 0o700)
    assert isinstance(await apply(lane, taken, place), Applied)
    assert look(lane) == before


async def test_directories_that_nothing_can_be_written_to_are_rebuilt(lane: Lane) -> None:
    lane.write(b"sealed/deeper/file", b"sealed\n", 0o400)
    os.chmod(lane.at(b"sealed/deeper"), 0o500)
    os.chmod(lane.at(b"sealed"), 0o555)
    before, taken = look(lane), await lane.captured()
    os.chmod(lane.at(b"sealed"), 0o755)
    os.chmod(lane.at(b"sealed/deeper"), 0o755)
    lane.away()
    made = await lane.perform(lane.checking_out(taken.head))
    assert isinstance(made, CheckedOut)
    for _ in range(2):
        assert isinstance(await apply(lane, taken, made.place), Applied)
        assert look(lane) == before


STRANGERS: dict[str, Callable[[bytes], object]] = {
    "another file": lambda path: write(path, b"somebody's\n"),
    "a longer file": lambda path: write(path, b"untracked untracked and more"),
    "a directory": lambda path: write(os.path.join(path, b"inner"), b"somebody's\n"),
    "a link": lambda path: os.symlink(b"file", path),
    "a fifo": os.mkfifo,
}


@pytest.mark.parametrize("make", STRANGERS.values(), ids=list(STRANGERS))
async def test_a_strangers_entry_in_the_way_is_refused_and_not_touched(
    lane: Lane, make: Callable[[bytes], object]
) -> None:
    lane.world.dirty(lane.path)
    taken, place, _ = await rebuilt(lane)
    make(lane.at(b"untracked"))
    before = os.lstat(lane.at(b"untracked"))
    outcome = await apply(lane, taken, place)
    assert isinstance(outcome, NotDone)
    assert outcome.code == "snapshot_damaged"
    after = os.lstat(lane.at(b"untracked"))
    assert (after.st_ino, after.st_mtime_ns, after.st_mode) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_mode,
    )


async def test_a_strangers_file_where_a_directory_belongs_is_refused_and_not_touched(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    taken, place, _ = await rebuilt(lane)
    write(lane.at(b"empty"), b"somebody's\n", 0o600)
    outcome = await apply(lane, taken, place)
    assert isinstance(outcome, NotDone)
    assert outcome.code == "snapshot_damaged"
    assert walk(lane.path)[b"empty"] == ("file", 0o600, b"somebody's\n")


async def test_a_link_on_the_way_is_not_followed(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    taken, place, _ = await rebuilt(lane)
    outside = os.path.join(os.fsencode(lane.world.home), b"outside")
    os.mkdir(outside)
    os.symlink(outside, lane.at(b"deep"))
    outcome = await apply(lane, taken, place)
    assert isinstance(outcome, NotDone)
    assert os.listdir(outside) == []


async def test_a_strangers_file_beside_is_refused_and_not_touched(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    taken, place, _ = await rebuilt(lane)
    write(lane.at(b"late"), b"late\n")
    outcome = await apply(lane, taken, place)
    assert isinstance(outcome, NotDone)
    assert outcome.code == "snapshot_damaged"
    assert walk(lane.path)[b"late"][2] == b"late\n"


async def test_no_filter_runs_and_no_line_ending_is_converted(lane: Lane) -> None:
    lane.write(b".gitattributes", b"* text eol=crlf filter=odd\n")
    lane.write(b"mixed", b"one\r\ntwo\n")
    ran = os.path.join(os.fsencode(lane.world.home), b"ran")
    taken, place, before = await rebuilt(lane)
    for direction in ("clean", "smudge"):
        lane.world.git(lane.world.root, "config", f"filter.odd.{direction}", f"touch {os.fsdecode(ran)}; cat")
    lane.world.git(lane.world.root, "config", "filter.odd.required", "true")
    assert isinstance(await apply(lane, taken, place), Applied)
    assert not os.path.exists(ran)
    assert walk(lane.path, (b".git",)) == before[0]


async def test_the_log_of_head_comes_back(lane: Lane) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "one")
    lane.git("reset", "-q", "--hard", "HEAD~1")
    log = walk(lane.admin)[b"logs/HEAD"]
    taken, place, _ = await rebuilt(lane)
    assert isinstance(await apply(lane, taken, place), Applied)
    assert walk(lane.admin)[b"logs/HEAD"][2] == log[2]


async def test_a_damaged_snapshot_writes_nothing(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    taken, place, _ = await rebuilt(lane)
    lane.world.git(lane.world.root, "update-ref", "-d", taken.ref)
    outcome = await apply(lane, taken, place)
    assert isinstance(outcome, NotDone)
    assert outcome.code == "snapshot_damaged"
    assert walk(lane.path).keys() == {b".git"}
