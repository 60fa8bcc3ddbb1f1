"""What was read once is not read again; what cannot be relied on is as if it were not there."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING

import msgspec
import pytest

from adapters.files.descriptors import owned
from adapters.files.durable import read_file
from adapters.snapshots.capture import looks
from adapters.snapshots.capture.looks import COARSE, SECOND, TICK, Look, is_racy
from domain.effects import Captured
from tests.adapters.snapshots.test_capture_whole import held

if TYPE_CHECKING:
    from pathlib import Path

    from domain.evidence import Snapshot
    from tests.adapters.snapshots.lanes import Lane

LOOKS = [(b"a\xff", Look(1, 2, 3, 4, "oid", ((b"n", b"\0"),), "sha")), (b"b", Look(5, 6, 7, 8, "other"))]


@pytest.fixture
def place(tmp_path: Path) -> bytes:
    return looks.path_of(os.fsencode(tmp_path / "snapshots/one"), "lane/../of any name")


def test_what_is_saved_is_loaded(place: bytes) -> None:
    looks.save(place, "sha1", LOOKS)
    assert looks.load(place, "sha1") == dict(LOOKS)
    assert os.listdir(os.path.dirname(place)) == [os.path.basename(place)]
    assert os.stat(place).st_mode & 0o777 == 0o600


def test_another_hash_or_nothing_there_is_nothing_known(place: bytes) -> None:
    assert looks.load(place, "sha1") == {}
    looks.save(place, "sha1", LOOKS)
    assert looks.load(place, "sha256") == {}


def test_a_changed_bit_is_nothing_known(place: bytes) -> None:
    looks.save(place, "sha1", LOOKS)
    data = read_file(place)
    for at in range(len(data)):
        with open(place, "wb") as file:
            file.write(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert looks.load(place, "sha1") == {}


def test_a_place_that_cannot_be_written_is_left(tmp_path: Path) -> None:
    (tmp_path / "looks").write_text("no directory")
    looks.save(os.fsencode(tmp_path / "looks/lane"), "sha1", LOOKS)
    assert (tmp_path / "looks").read_text() == "no directory"


def test_a_write_within_a_tick_may_not_show() -> None:
    now = 1_700_000_000 * SECOND + 123
    assert is_racy(now, now)
    assert is_racy(now - TICK, now)
    assert not is_racy(now - TICK - 1, now)
    whole = now - 123
    assert is_racy(whole - SECOND, now)
    assert not is_racy(whole - COARSE, now)


async def capture_again(lane: Lane, name: str = "two") -> Snapshot:
    outcome = await lane.perform(msgspec.structs.replace(lane.capturing(), snapshot=name))
    assert isinstance(outcome, Captured), outcome
    return outcome.snapshot


def settled(lane: Lane, *paths: bytes) -> None:
    """Writes files, and waits until the clock has gone on, which shows in the times of another one."""
    last = max(os.lstat(lane.at(path)).st_ctime_ns for path in paths)
    while is_racy(last, os.lstat(lane.at(b"clock")).st_ctime_ns):
        lane.write(b"clock", b"")


async def test_a_second_capture_reads_nothing_that_is_as_it_was(lane: Lane) -> None:
    lane.write(b"new", b"new\n")
    lane.write(b"clock", b"")
    settled(lane, b"new")
    await lane.captured()
    first = held(lane)[b"new"]
    known = looks.load(looks.path_of(lane.directory(), "lane"), "sha1")
    assert known[b"new"].oid == first.oid
    # A look that says something else is believed, which shows that nobody has read the file.
    other = lane.git("hash-object", "-w", lane.at(b"file")).decode().strip()
    forged = [(b"new", msgspec.structs.replace(known[b"new"], oid=other))]
    looks.save(looks.path_of(lane.directory(), "lane"), "sha1", forged)
    taken = await capture_again(lane)
    assert lane.git("rev-parse", f"{taken.commit}:new").decode().strip() == other


async def test_what_git_has_lost_is_read_and_written_again(lane: Lane) -> None:
    lane.write(b"new", b"content of its own\n")
    lane.write(b"clock", b"")
    settled(lane, b"new")
    taken = await lane.captured()
    lane.git("update-ref", "-d", taken.ref)
    lane.world.git(lane.world.root, "gc", "-q", "--prune=now")
    second = await capture_again(lane)
    assert lane.git("show", f"{second.commit}:new") == b"content of its own\n"


async def test_what_was_put_apart_is_kept_again_without_being_read(lane: Lane) -> None:
    lane.write(b"build/output", b"output\n")
    lane.write(b"clock", b"")
    settled(lane, b"build/output")
    for name in ("one", "two"):
        effect = msgspec.structs.replace(lane.capturing(), snapshot=name, apart=("build",))
        outcome = await lane.perform(effect)
        assert isinstance(outcome, Captured), outcome
    first, second = (os.listdir(os.path.join(lane.directory(name), b"files")) for name in ("one", "two"))
    assert sorted(first) == sorted(second)


async def test_a_look_that_is_wrong_is_found_out_and_read_again(lane: Lane) -> None:
    lane.write(b"build/output", b"output\n")
    lane.write(b"clock", b"")
    settled(lane, b"build/output")
    effect = msgspec.structs.replace(lane.capturing(), apart=("build",))
    assert isinstance(await lane.perform(effect), Captured)
    sha256 = held(lane)[b"build/output"].apart
    assert sha256 is not None
    lane.write(os.path.join(lane.directory(), b"files", sha256.encode()), b"other!\n", 0o600)
    outcome = await lane.perform(msgspec.structs.replace(effect, snapshot="two"))
    assert isinstance(outcome, Captured), outcome
    assert read_file(os.path.join(lane.directory("two"), b"files", sha256.encode())) == b"output\n"


async def test_a_thorough_capture_reads_what_was_written_through_a_mapping_all_the_same(lane: Lane) -> None:
    lane.write(b"mapped", b"0000\n")
    lane.write(b"clock", b"")
    with owned(os.open(lane.at(b"mapped"), os.O_RDWR)) as descriptor, mmap.mmap(descriptor, 0) as mapped:
        mapped[0:1] = b"1"  # from here on the page is dirty, and a file system in memory tells no more times
        settled(lane, b"mapped")
        await lane.captured()
        mapped[0:1] = b"2"
        effect = msgspec.structs.replace(lane.capturing(), snapshot="two", thorough=True)
        outcome = await lane.perform(effect)
    assert isinstance(outcome, Captured)
    shown = lane.git("show", f"{outcome.snapshot.commit}:mapped")
    assert (shown[:1], shown) == (b"2", read_file(lane.at(b"mapped")))
