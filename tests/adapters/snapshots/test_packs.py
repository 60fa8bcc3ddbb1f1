"""A blob that was read out of a pack is there as long as the pack has the same bytes, each read again."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from adapters.git.errors import GitFailed
from adapters.snapshots.explain import expected, packs
from adapters.snapshots.explain.expected import require_whole
from adapters.snapshots.explain.packs import Memory, look
from adapters.snapshots.files import SnapshotDamaged

if TYPE_CHECKING:
    from adapters.git.door import Git
    from tests.adapters.snapshots.lanes import Lane

GOOD = b"a blob that is easily found again in the bytes of a pack, for nothing is made smaller\n"


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expected, "MEMORY", Memory())


def packed(lane: Lane, *contents: bytes) -> list[str]:
    """Puts these blobs into a pack of their own, uncompressed."""
    git = lane.world.git
    oids = [git(lane.path, "hash-object", "-w", "--stdin", stdin=each).decode().strip() for each in contents]
    place, names = lane.world.common + b"/objects/pack/pack", "\n".join(oids).encode() + b"\n"
    git(lane.path, "-c", "pack.compression=0", "pack-objects", "-q", "--no-reuse-object", place, stdin=names)
    git(lane.path, "prune-packed")
    return oids


def pack_path(lane: Lane) -> bytes:
    directory = lane.world.common + b"/objects/pack"
    (name,) = (each for each in os.listdir(directory) if each.endswith(b".pack"))
    return os.path.join(directory, name)


def damage(pack: bytes) -> None:
    before = os.stat(pack)
    os.chmod(pack, 0o644)
    with open(pack, "r+b") as file:
        (found,) = re.finditer(b"easily", file.read())
        file.seek(found.start())
        file.write(b"hardly")
    os.chmod(pack, 0o444)
    os.utime(pack, ns=(before.st_atime_ns, before.st_mtime_ns))


async def started(door: Git, lane: Lane, oids: list[str]) -> tuple[int, list[int]]:
    """Returns how many processes it took, and the sizes."""
    before = door.started
    sizes = await require_whole(door, lane.world.common, oids, "sha1")
    return door.started - before, list(sizes)


async def test_a_pack_that_is_the_same_need_not_be_inflated_again(lane: Lane) -> None:
    oids, door = packed(lane, GOOD, b"", b"more\n"), lane.door
    assert await started(door, lane, oids) == (1, [len(GOOD), 0, 5])
    assert await started(door, lane, oids) == (0, [len(GOOD), 0, 5])
    assert await started(door, lane, oids[1:]) == (0, [0, 5])


async def test_only_what_was_not_read_before_is_read(lane: Lane) -> None:
    oids, door = packed(lane, GOOD, b"more\n"), lane.door
    await started(door, lane, oids[:1])
    lane.world.fake(
        f'case " $* " in *" --batch "*) read one; ! [ "$one" = {oids[0]} ] || exit 3; '
        'echo "$one" | git "$@"; exit;; esac'
    )
    assert await started(lane.door, lane, oids) == (1, [len(GOOD), 5])


async def test_a_pack_that_was_damaged_since_is_found_out(lane: Lane) -> None:
    oids = packed(lane, GOOD)
    await started(lane.door, lane, oids)
    damage(pack_path(lane))
    with pytest.raises((SnapshotDamaged, GitFailed)):
        await started(lane.door, lane, oids)


async def test_a_pack_that_is_gone_since_is_found_out(lane: Lane) -> None:
    oids = packed(lane, GOOD)
    await started(lane.door, lane, oids)
    os.unlink(pack_path(lane))
    with pytest.raises(SnapshotDamaged, match="missing"):
        await started(lane.door, lane, oids)


async def test_a_blob_that_two_packs_have_is_read_each_time(lane: Lane) -> None:
    oids, door = packed(lane, GOOD, b"more\n"), lane.door
    again = packed(lane, b"other\n")
    git, place = lane.world.git, lane.world.common + b"/objects/pack/pack"
    git(lane.path, "pack-objects", "-q", place, stdin=(again[0] + "\n" + oids[0] + "\n").encode())
    found = look(lane.world.common, oids)
    assert {blob.hex() for pack in found for blob in pack.blobs} == {oids[1]}
    await started(door, lane, oids)
    assert await started(door, lane, oids) == (1, [len(GOOD), 5])


async def test_what_git_complains_of_is_not_remembered(lane: Lane) -> None:
    oids = packed(lane, GOOD)
    lane.world.fake('case " $* " in *" --batch "*) echo "error: a copy is corrupt" >&2;; esac')
    assert (await started(lane.door, lane, oids))[0] == 1
    assert (await started(lane.door, lane, oids))[0] == 1


async def test_a_pack_that_changes_while_its_blobs_are_read_is_not_remembered(lane: Lane) -> None:
    oids = packed(lane, GOOD)
    found, memory = look(lane.world.common, oids), Memory()
    os.utime(pack_path(lane))
    memory.add(found, {oids[0]: len(GOOD)})
    assert memory.sizes(look(lane.world.common, oids)) == {}


def test_packs_that_are_large_for_what_is_wanted_of_them_are_left_to_git(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    oids = packed(lane, GOOD)
    assert len(look(lane.world.common, oids)) == 1
    monkeypatch.setattr(packs, "LEAST", 10)
    monkeypatch.setattr(packs, "INDEXED", 100)
    assert look(lane.world.common, oids) == []
    monkeypatch.setattr(packs, "INDEXED", 100_000)
    monkeypatch.setattr(packs, "HASHED", 10)
    assert look(lane.world.common, oids) == []


def test_an_index_that_is_none_is_left_to_git(lane: Lane) -> None:
    oids = packed(lane, GOOD)
    with open(lane.world.common + b"/objects/pack/pack-other.idx", "wb") as file:
        file.write(b"\xfftOc\0\0\0\x03" + bytes(2_000))
    assert look(lane.world.common, oids) == []


def test_what_was_read_longest_ago_is_forgotten_first(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "MOST", 1)
    memory = Memory()
    first = packed(lane, GOOD)
    seen = look(lane.world.common, first)
    memory.add(seen, {first[0]: len(GOOD)})
    assert memory.sizes(seen) == {first[0]: len(GOOD)}
    second = packed(lane, b"more\n")
    memory.add(look(lane.world.common, second), {second[0]: 5})
    assert memory.sizes(seen) == {}
