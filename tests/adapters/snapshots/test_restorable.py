"""A tree that could not be rebuilt is never given up for the promise of rebuilding it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import pytest

from adapters.snapshots.files import Files, SnapshotDamaged
from adapters.snapshots.manifest import Expected, Held, load, save
from adapters.snapshots.position import tree_of
from adapters.snapshots.restorable import require_consistent, require_restorable, require_same
from domain.effects import Destroy, Explain, Explained, Unexplained
from tests.sagas.trees import walk

if TYPE_CHECKING:
    from adapters.git.parse import TreeEntry
    from adapters.snapshots.manifest import Manifest
    from domain.evidence import Snapshot
    from tests.adapters.snapshots.lanes import Lane

OID = "a" * 40


def test_an_entry_below_a_file_cannot_be_made() -> None:
    wanted = {b"a": Held("a", "file", 0o644, 0, OID), b"a/b": Held("a/b", "file", 0o644, 0, OID)}
    with pytest.raises(SnapshotDamaged, match="'a/b' has no directory"):
        require_consistent(wanted)


def test_an_entry_whose_directory_is_not_made_cannot_be_made() -> None:
    with pytest.raises(SnapshotDamaged, match="no directory to be in"):
        require_consistent({b"a/b": Held("a/b", "directory", 0o755, 0, None)})


def test_another_name_of_what_is_not_there_cannot_be_made() -> None:
    twin = Held("b", "file", 0o644, 0, OID, twin="a")
    with pytest.raises(SnapshotDamaged, match="another name"):
        require_consistent({b"b": twin})
    with pytest.raises(SnapshotDamaged, match="another name"):
        require_consistent({b"a": Held("a", "file", 0o600, 0, OID), b"b": twin})
    require_consistent({b"a": Held("a", "file", 0o644, 0, OID), b"b": twin})


async def test_what_is_seen_is_what_would_be_made_and_nothing_else_is(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    await lane.capture()
    seen, manifest = await lane.survey(), lane.manifest()
    tree, _ = await sizes(lane, manifest)
    require_same(Expected(manifest, tree), seen.kept)
    assert Expected(manifest, tree).count() == len(Expected(manifest, tree).wanted()) == len(seen.kept)
    for other in (seen.kept[1:], [*seen.kept, seen.kept[0]]):
        with pytest.raises(SnapshotDamaged, match="more than"):
            require_same(Expected(manifest, tree), other)
    changed = msgspec.structs.replace(seen.kept[0], mode=0o4711)
    with pytest.raises(SnapshotDamaged, match="as it was captured"):
        require_same(Expected(manifest, tree), [changed, *seen.kept[1:]])


async def sizes(lane: Lane, manifest: Manifest) -> tuple[dict[bytes, TreeEntry], dict[str, int]]:
    tree = await tree_of(lane.door, lane.world.common, manifest.head)
    return tree, (await lane.survey()).sizes


async def test_what_was_captured_is_restorable_and_anything_else_is_not(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    await lane.capture()
    manifest = lane.manifest()
    tree, known = await sizes(lane, manifest)
    require_restorable(Expected(manifest, tree), known)
    for at, each in enumerate(manifest.entries):
        if each.path.startswith("deep"):
            continue  # its file says that the directories are there
        entries = manifest.entries[:at] + manifest.entries[at + 1 :]
        with pytest.raises(SnapshotDamaged):
            require_restorable(Expected(msgspec.structs.replace(manifest, entries=entries), tree), known)


async def test_a_blob_of_another_size_is_not_the_one_that_was_captured(lane: Lane) -> None:
    await lane.capture()
    tree, known = await sizes(lane, lane.manifest())
    known[tree[b"file"].oid] += 1
    with pytest.raises(SnapshotDamaged):
        require_restorable(Expected(lane.manifest(), tree), known)


async def forgetful(lane: Lane, path: str) -> Snapshot:
    """Takes a snapshot that has lost an entry, as a fault of ours would: all that it says is consistent."""
    taken = await lane.capture()
    manifest = load(lane.directory(), taken.manifest)
    entries = tuple(each for each in manifest.entries if each.path != path)
    assert len(entries) == len(manifest.entries) - 1
    digest = save(lane.directory(), msgspec.structs.replace(manifest, entries=entries))
    return msgspec.structs.replace(taken, manifest=digest)


async def test_a_tree_that_would_not_come_back_whole_is_not_given_up(lane: Lane) -> None:
    os.mkdir(lane.at(b"hollow"))
    before = walk(lane.path)
    basis = lane.basis(await forgetful(lane, "hollow"))
    outcome = await lane.perform(Explain(repository=lane.repository, place=lane.place, basis=basis))
    assert isinstance(outcome, Unexplained)
    assert outcome.cause == "snapshot_damaged"
    destroy = Destroy(repository=lane.repository, place=lane.place, basis=basis, digest="")
    assert isinstance(await lane.perform(destroy), Unexplained)
    assert walk(lane.path) == before


async def test_a_consent_to_lose_everything_needs_no_way_back(lane: Lane) -> None:
    os.mkdir(lane.at(b"hollow"))
    basis = lane.basis(await forgetful(lane, "hollow"), b".")
    outcome = await lane.perform(Explain(repository=lane.repository, place=lane.place, basis=basis))
    assert isinstance(outcome, Explained)


@pytest.mark.slow
async def test_a_tree_deeper_than_any_path_is_captured(lane: Lane) -> None:
    here = os.open(lane.path, os.O_RDONLY)
    for _ in range(17):
        os.mkdir(b"d" * 255, dir_fd=here)
        deeper = os.open(b"d" * 255, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    with os.fdopen(os.open(b"bottom", os.O_WRONLY | os.O_CREAT, dir_fd=here), "wb") as file:
        file.write(b"deep\n")
    os.close(here)
    await lane.capture()
    bottom = next(each for each in lane.manifest().entries if each.path.endswith("/bottom"))
    assert len(bottom.path) > 4096
    assert bottom.apart is not None
    assert Files(lane.directory()).read(bottom.apart) == b"deep\n"
