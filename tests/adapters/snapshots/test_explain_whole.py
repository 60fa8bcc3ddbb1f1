"""What a snapshot holds beside git explains, too; and what a restore takes from the commit must be whole."""

from __future__ import annotations

import errno
import hashlib
import os
import zlib
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from adapters.files.blob import blob_hash
from adapters.files.scan import scan
from adapters.git.conversation import WHOLE
from adapters.git.errors import GitFailed
from adapters.snapshots.explain.beginnings import find_beginnings
from adapters.snapshots.explain.expected import bare, is_captured_tree, require_whole
from adapters.snapshots.explain.explain import examine
from adapters.snapshots.explain.reasons import Explanation, judge
from adapters.snapshots.files import Files, SnapshotDamaged
from adapters.snapshots.manifest import Expected, Held, save

if TYPE_CHECKING:
    from adapters.files.scan import Entry
    from adapters.snapshots.manifest import Manifest
    from domain.evidence import Snapshot
    from domain.states import Basis
    from tests.adapters.snapshots.lanes import Lane

NESTED = {
    b"inner/.git/config": b"[core]\n",
    b"inner/.git/HEAD": b"ref: refs/heads/main\n",
    b"inner/work": b"w\n",
}


def oid_of(data: bytes) -> str:
    return blob_hash("sha1", len(data), data).hexdigest()


def entries_of(lane: Lane) -> dict[bytes, Entry]:
    return {entry.path: entry for entry in scan(lane.path, "sha1")}


def stored(lane: Lane, data: bytes) -> str:
    return lane.world.git(lane.path, "hash-object", "-w", "--stdin", stdin=data).decode().strip()


def object_path(lane: Lane, oid: str) -> bytes:
    return os.path.join(lane.world.common, b"objects", oid[:2].encode(), oid[2:].encode())


def put_object(lane: Lane, oid: str, data: bytes) -> None:
    path = object_path(lane, oid)
    if os.path.lexists(path):
        os.unlink(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(zlib.compress(b"blob %d\0" % len(data) + data))


async def whole(lane: Lane, *oids: str) -> dict[str, int]:
    sizes = await require_whole(lane.door, lane.world.common, oids, "sha1")
    return dict(zip(oids, sizes, strict=True))


async def test_blobs_of_any_size_are_read_and_hashed(lane: Lane) -> None:
    contents = [b"", b"\n", b"one\n", b"x" * (WHOLE - 1), b"y" * WHOLE, os.urandom(3 * WHOLE + 7), b"last"]
    oids = [stored(lane, data) for data in contents]
    assert await whole(lane, *oids) == {oid: len(data) for oid, data in zip(oids, contents, strict=True)}


async def test_many_blobs_are_asked_for_at_once(lane: Lane) -> None:
    oids = [stored(lane, b"%d\n" % number) for number in range(4)]
    assert len(await whole(lane, *oids * 5_000)) == 4


async def test_a_missing_blob_is_named(lane: Lane) -> None:
    gone = oid_of(b"nobody has this")
    with pytest.raises(SnapshotDamaged, match=f"{gone} is missing"):
        await whole(lane, stored(lane, b"one\n"), gone)


async def test_a_blob_with_other_bytes_is_named(lane: Lane) -> None:
    oid = oid_of(b"right\n")
    put_object(lane, oid, b"wrong\n")
    with pytest.raises(SnapshotDamaged, match=f"{oid} is damaged"):
        await whole(lane, stored(lane, b"one\n"), oid)


async def test_an_object_of_another_kind_is_no_blob(lane: Lane) -> None:
    with pytest.raises(SnapshotDamaged, match="missing"):
        await whole(lane, lane.git("rev-parse", "HEAD^{tree}").decode().strip())


async def test_a_git_that_ends_early_has_proved_nothing(lane: Lane) -> None:
    oid = stored(lane, b"one\n")
    lane.world.fake(f'case " $* " in *" --batch "*) read x; printf \'{oid} blob 9\\nhalf\'; exit 3; esac')
    with pytest.raises(GitFailed):
        await whole(lane, oid)


async def test_only_what_a_restore_takes_from_the_commit_must_be_there(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    taken = await lane.capture()
    for path in ("gone", "file"):  # absent; held with other bytes
        os.unlink(object_path(lane, lane.git("rev-parse", f"HEAD:{path}").decode().strip()))
    assert (await lane.explain(lane.basis(taken))).count == 0
    os.unlink(object_path(lane, lane.git("rev-parse", "HEAD:tool").decode().strip()))
    with pytest.raises(SnapshotDamaged, match="missing"):
        await lane.explain(lane.basis(taken))


async def test_an_attribute_that_was_not_captured_is_unexplained(lane: Lane) -> None:
    taken = await lane.capture()
    try:
        os.setxattr(lane.at(b"file"), b"user.late", b"late")
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        pytest.skip("this file system has no extended attributes")
    assert (await lane.explain(lane.basis(taken))).unexplained == ("file",)


def keeping_apart(lane: Lane, contents: dict[bytes, bytes]) -> Manifest:
    """Returns a manifest that holds these paths beside git, as they are in the tree."""
    seen, files = entries_of(lane), Files(lane.directory())
    held = tuple(
        Held(path.decode(), "file", 0o644, len(data), oid_of(data), files.keep(data))
        for path, data in contents.items()
    )
    leading = {os.path.dirname(path) for path in contents} - {b""}
    assert leading <= seen.keys() or not leading
    return replace(bare(lane.head()), entries=held)


def explanation_by(lane: Lane, manifest: Manifest, basis: Basis) -> Explanation:
    pointer = b"gitdir: %s\n" % lane.admin
    return Explanation(Expected(manifest, {}), basis, (pointer,), Files(lane.directory()))


async def test_a_nested_repository_is_explained_file_by_file(lane: Lane) -> None:
    for path, data in NESTED.items():
        lane.write(path, data)
    explanation = explanation_by(lane, keeping_apart(lane, NESTED), lane.basis(None))
    reasons = {path: explanation.reason(entry) for path, entry in entries_of(lane).items()}
    assert {reasons[path] for path in (*NESTED, b"inner", b"inner/.git")} == {"snapshot", "commit"}
    lane.write(b"inner/.git/config", b"[core]\n\tbare\n")
    lane.write(b"inner/.git/late", b"late\n")
    now = entries_of(lane)
    assert [explanation.reason(now[path]) for path in (b"inner/.git/config", b"inner/.git/late")] == [
        None
    ] * 2


async def test_the_beginning_of_what_is_kept_beside_git_is_explained(lane: Lane) -> None:
    data = hashlib.sha256(b"seed").digest() * 1_000
    lane.write(b"big", data)
    manifest = keeping_apart(lane, {b"big": data})
    basis = lane.basis(None, partial=True)
    for content, explained in ((data[:777], True), (b"", True), (data[:776] + b"!", False)):
        lane.write(b"big", content)
        explanation = explanation_by(lane, manifest, basis)
        entries = [entries_of(lane)[b"big"]]
        await find_beginnings(lane.door, lane.world.common, (lane.path, lane.admin), entries, explanation)
        assert explanation.explains(entries[0]) == explained


async def test_a_tree_that_lacks_something_is_not_the_captured_one(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    basis = lane.basis(await lane.capture())
    explanation = await lane.explanation(basis)
    entries = list(scan(lane.path, "sha1"))
    _, reproducible = judge(entries, explanation)
    assert is_captured_tree(reproducible, explanation.expected)
    assert not is_captured_tree(reproducible[1:], explanation.expected)


async def test_a_whole_tree_is_examined_without_a_list_of_what_a_restore_makes(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    basis = lane.basis(await lane.capture())
    place = (lane.path, lane.admin)
    explanation, verdict = await examine(lane.door, lane.directory(), lane.world.common, place, basis)
    assert verdict == await lane.explain(basis)
    assert verdict.count == 0
    assert explanation.registration is not None


def tampered(lane: Lane, taken: Snapshot) -> Snapshot:
    """Makes the manifest say that the tree was another."""
    digest = save(lane.directory(), replace(lane.manifest(), content="0" * 64))
    return replace(taken, manifest=digest, content="0" * 64)


async def test_a_snapshot_that_would_make_another_tree_explains_nothing(lane: Lane) -> None:
    basis = lane.basis(tampered(lane, await lane.capture()))
    place = (lane.path, lane.admin)
    with pytest.raises(SnapshotDamaged, match="not the one that was captured"):
        await examine(lane.door, lane.directory(), lane.world.common, place, basis)
    with pytest.raises(SnapshotDamaged, match="not the one that was captured"):
        await lane.explanation(basis)


async def test_a_branch_without_a_commit_is_explained_by_the_snapshot_alone(lane: Lane) -> None:
    lane.git("checkout", "-q", "--orphan", "fresh")
    taken = await lane.capture()
    assert taken.head == ""
    verdict = await lane.explain(lane.basis(taken))
    assert verdict.count == 0
    lane.write(b"file", b"changed\n")
    assert (await lane.explain(lane.basis(taken))).unexplained == ("file",)
