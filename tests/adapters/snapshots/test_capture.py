"""A snapshot is durable and read back, or there is none; and the lane does not notice."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import pytest

from adapters.files.durable import read_file, replace
from adapters.snapshots.capture.capture import StillChanging, verify
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.position import CannotCapture
from domain.effects import Captured, NotDone
from tests.adapters.snapshots.roundtrip import stamps
from tests.sagas.trees import walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.evidence import Snapshot
    from tests.adapters.snapshots.lanes import Lane


async def test_a_capture_changes_nothing_in_the_lane(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    before = stamps(lane.world, lane.path)
    await lane.capture()
    assert stamps(lane.world, lane.path) == before


async def test_capturing_twice_is_capturing_once(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    first = await lane.captured()
    files = walk(lane.directory())
    assert await lane.captured() == first
    assert walk(lane.directory()) == files


async def test_a_capture_that_died_before_its_manifest_is_taken_again(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    first = await lane.captured()
    os.unlink(os.path.join(lane.directory(), b"manifest.json"))
    assert await lane.captured() == first


async def test_a_finished_snapshot_of_a_tree_that_changed_since_is_not_its_snapshot(lane: Lane) -> None:
    await lane.capture()
    lane.write(b"file", b"changed\n")
    with pytest.raises(StillChanging):
        await lane.capture()


async def test_a_finished_snapshot_that_is_damaged_is_reported(lane: Lane) -> None:
    await lane.capture()
    lane.write(os.path.join(lane.directory(), b"manifest.json"), b"{}")
    outcome = await lane.perform(lane.capturing())
    assert isinstance(outcome, NotDone)
    assert outcome.code == "snapshot_damaged"


async def test_the_ref_reaches_head_the_index_and_what_only_the_log_knew(lane: Lane) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "first try")
    old = lane.head()
    lane.git("commit", "-q", "--amend", "--allow-empty", "-m", "second try")
    lane.write(b"staged", b"staged\n")
    lane.git("add", "staged")
    taken = await lane.capture()
    parents = lane.git("rev-list", "--parents", "--max-count=1", taken.commit).decode().split()[1:]
    assert (parents[0], parents[2]) == (lane.head(), lane.manifest().keep)
    assert lane.git("show", f"{parents[1]}:staged") == b"staged\n"
    assert lane.git("rev-parse", f"{parents[2]}^@").decode().split() == [old]


async def test_content_is_captured_raw_whatever_the_attributes_say(lane: Lane) -> None:
    lane.write(b".gitattributes", b"* text eol=crlf ident filter=odd\n")
    lane.git("config", "filter.odd.clean", "exit 1")
    lane.git("config", "filter.odd.required", "true")
    lane.write(b"raw", b"$Id: 1$\r\nlines\n")
    taken = await lane.capture()
    assert lane.git("cat-file", "blob", f"{taken.commit}:raw") == b"$Id: 1$\r\nlines\n"


async def test_what_a_snapshot_cannot_hold_is_refused_by_name_and_tolerated_when_told(lane: Lane) -> None:
    os.mkfifo(lane.at(b"fifo"))
    with pytest.raises(CannotCapture, match="special-file 'fifo'"):
        await lane.capture()
    assert (await lane.capture(tolerant=True)).omitted == ("fifo",)


@pytest.mark.parametrize("index", [None, b"", b"DIRC nonsense"])
async def test_a_lane_without_a_sound_index_is_not_captured(lane: Lane, index: bytes | None) -> None:
    path = os.path.join(lane.admin, b"index")
    os.unlink(path)
    if index is not None:
        lane.write(path, index)
    outcome = await lane.perform(lane.capturing())
    assert isinstance(outcome, NotDone)
    assert outcome.code in ("cannot_hold", "git_failed")


async def test_a_detached_lane_has_no_branch(lane: Lane) -> None:
    lane.git("checkout", "-q", "--detach")
    assert (await lane.capture()).branch is None


def lose_the_ref(lane: Lane, taken: Snapshot) -> None:
    lane.git("update-ref", "-d", taken.ref)


def move_the_ref(lane: Lane, taken: Snapshot) -> None:
    lane.git("update-ref", taken.ref, taken.head)


def lose_a_kept_file(lane: Lane, taken: Snapshot) -> None:
    os.unlink(os.path.join(lane.directory(), b"files", lane.manifest().registration[0].sha256.encode()))


def damage_a_kept_file(lane: Lane, taken: Snapshot) -> None:
    name = lane.manifest().registration[0].sha256.encode()
    lane.write(os.path.join(lane.directory(), b"files", name), b"else", 0o600)


def change_the_manifest(lane: Lane, taken: Snapshot) -> None:
    changed = msgspec.structs.replace(lane.manifest(), branch="refs/heads/other")
    lane.write(os.path.join(lane.directory(), b"manifest.json"), msgspec.json.encode(changed), 0o600)


@pytest.mark.parametrize(
    "damage",
    [lose_the_ref, move_the_ref, lose_a_kept_file, damage_a_kept_file, change_the_manifest],
)
async def test_damage_is_found_when_a_snapshot_is_read_back(
    lane: Lane, damage: Callable[[Lane, Snapshot], None]
) -> None:
    lane.world.dirty(lane.path)
    taken = await lane.capture()
    await verify(lane.door, lane.directory(), lane.world.common, taken)
    damage(lane, taken)
    with pytest.raises(SnapshotDamaged):
        await verify(lane.door, lane.directory(), lane.world.common, taken)


async def test_a_blob_that_is_damaged_is_found_when_a_snapshot_is_read_back(lane: Lane) -> None:
    lane.write(b"secret", os.urandom(4096))
    taken = await lane.capture()
    packs = os.path.join(lane.world.common, b"objects/pack")
    (pack,) = (os.path.join(packs, name) for name in os.listdir(packs) if name.endswith(b".pack"))
    os.chmod(pack, 0o600)
    whole = bytearray(read_file(pack))
    whole[len(whole) // 2] ^= 1
    replace(pack, bytes(whole))
    outcome = await lane.perform(lane.capturing())
    assert isinstance(outcome, NotDone), taken
    assert outcome.code in ("snapshot_damaged", "git_failed")


async def test_two_lanes_have_two_snapshots(lane: Lane) -> None:
    first = await lane.captured()
    effect = msgspec.structs.replace(lane.capturing(), snapshot="two")
    second = await lane.perform(effect)
    assert isinstance(second, Captured)
    assert (second.snapshot.content, second.snapshot.ref) == (first.content, "refs/laneyard/snapshots/two")
