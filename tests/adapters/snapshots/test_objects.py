"""What goes to git goes there as raw bytes, and what changes on the way is noticed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import pytest

from adapters.files.durable import read_file
from adapters.git.door import Location
from adapters.git.stats import mode_of, oid_of, stats
from adapters.snapshots import objects
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.objects import Moving, Plan
from adapters.snapshots.position import tree_of
from tests.sagas.trees import walk

if TYPE_CHECKING:
    from adapters.snapshots.capture.survey import Survey
    from tests.adapters.snapshots.lanes import Lane


async def staged(lane: Lane) -> set[bytes]:
    index = stats(read_file(os.path.join(lane.admin, b"index")), 20)
    entries = {p: (mode_of(e), oid_of(e)) for p, e in index.entries.items() if p not in index.intents}
    changes = objects.staged_changes(entries, await tree_of(lane.door, lane.world.common, lane.head()))
    return set(changes.splitlines())


def test_every_byte_of_a_name_is_quoted_as_git_reads_it() -> None:
    assert objects.quote(b'a"b\\c\nd\xff') == b'"a\\"b\\\\c\\nd\xff"'


async def test_git_reads_back_every_name_that_a_file_can_have(lane: Lane) -> None:
    names = [bytes([byte]) + b"x" for byte in range(1, 256) if byte != ord("/")]
    for name in (*names, b"y" * 255, b"a b", b"-", b'"', b"\\", b"\\n"):
        lane.write(name, name)
    await lane.capture()
    listed = lane.world.git(
        lane.world.root, "ls-tree", "-r", "-z", "--name-only", "refs/laneyard/snapshots/one"
    )
    assert set(listed.split(b"\0")[:-1]) == {
        path for path, entry in walk(lane.path, (b".git",)).items() if entry[0] != "directory"
    }


async def test_an_index_that_is_the_commit_has_no_changes(lane: Lane) -> None:
    assert await staged(lane) == set()


async def test_added_changed_and_removed_entries_are_staged_changes(lane: Lane) -> None:
    lane.write(b"new", b"new\n")
    lane.write(b"file", b"changed\n")
    lane.git("add", "new", "file")
    lane.git("rm", "-q", "--cached", "gone")
    new, changed = (lane.git("hash-object", name).strip() for name in ("new", "file"))
    assert await staged(lane) == {
        b'D "gone"',
        b'M 100644 %s "new"' % new,
        b'M 100644 %s "file"' % changed,
    }


async def test_a_mode_alone_is_a_staged_change(lane: Lane) -> None:
    lane.git("update-index", "--chmod=+x", "file")
    assert await staged(lane) == {b'M 100755 %s "file"' % lane.git("hash-object", "file").strip()}


async def test_an_intent_to_add_stages_nothing(lane: Lane) -> None:
    lane.write(b"new", b"new\n")
    lane.git("add", "--intent-to-add", "new")
    assert await staged(lane) == set()


async def test_content_that_is_only_staged_survives_a_collection(lane: Lane) -> None:
    lane.write(b"doomed", b"only in the index\n")
    lane.git("add", "doomed")
    oid = lane.git("rev-parse", ":doomed").strip()
    os.unlink(lane.at(b"doomed"))
    await lane.capture()
    lane.away()
    lane.world.git(lane.world.root, "gc", "-q", "--prune=now")
    assert lane.world.git(lane.world.root, "cat-file", "blob", oid) == b"only in the index\n"


async def test_a_blob_that_is_missing_is_damage(lane: Lane) -> None:
    found = objects.contents(lane.door, lane.world.common, ["a" * 40])
    with pytest.raises(SnapshotDamaged, match="is missing"):
        await anext(found)


def note(lane: Lane) -> bytes:
    os.makedirs(lane.directory(), exist_ok=True)
    return os.path.join(lane.directory(), b"writing")


def plan(lane: Lane, seen: Survey) -> Plan:
    return Plan(ref="refs/laneyard/snapshots/one", head=lane.head(), held=seen.held)


async def test_a_file_that_is_shorter_than_it_was_is_moving(lane: Lane) -> None:
    lane.write(b"growing", b"x" * 1000)
    seen = await lane.survey()
    lane.write(b"growing", b"x")
    with pytest.raises(Moving):
        await objects.write(lane.door, lane.world.common, lane.path, plan(lane, seen), note(lane))


@pytest.mark.parametrize("kind", ["gone", "directory", "link"])
async def test_a_file_that_is_something_else_by_now_is_moving(lane: Lane, kind: str) -> None:
    lane.write(b"changing", b"x")
    seen = await lane.survey()
    os.unlink(lane.at(b"changing"))
    if kind == "directory":
        os.mkdir(lane.at(b"changing"))
    elif kind == "link":
        os.symlink(b"file", lane.at(b"changing"))
    with pytest.raises(Moving):
        await objects.write(lane.door, lane.world.common, lane.path, plan(lane, seen), note(lane))


async def test_what_is_kept_alive_is_reached_by_a_commit_of_its_own(lane: Lane) -> None:
    blob = lane.git("hash-object", "-w", "--stdin").decode().strip()
    tree = lane.git("rev-parse", "HEAD^{tree}").decode().strip()
    seen = await lane.survey()
    kept = msgspec.structs.replace(
        plan(lane, seen), commits=(lane.head(),), others=((blob, False), (tree, True))
    )
    written = await objects.write(lane.door, lane.world.common, lane.path, kept, note(lane))
    assert lane.git("rev-parse", f"{written.keep}^@").decode().split() == [lane.head()]
    assert lane.git("rev-parse", f"{written.keep}:{blob}", f"{written.keep}:{tree}").decode().split() == [
        blob,
        tree,
    ]
    parents = lane.git("rev-parse", f"{written.commit}^@").decode().split()
    assert parents == [lane.head(), written.index, written.keep]


async def test_without_a_head_the_commits_begin_with_nothing(lane: Lane) -> None:
    lane.write(b"new", b"new\n")
    seen = await lane.survey()
    unborn = msgspec.structs.replace(
        plan(lane, seen), head="", held=tuple(e for e in seen.held if e.path == "new")
    )
    written = await objects.write(lane.door, lane.world.common, lane.path, unborn, note(lane))
    assert lane.git("ls-tree", "-r", "--name-only", written.commit) == b"new\n"
    assert lane.git("rev-parse", f"{written.commit}^@").decode().split() == [written.index]
    assert lane.git("rev-parse", f"{written.index}^@") == b""


async def test_a_commit_that_is_no_commit_is_damage(lane: Lane) -> None:
    blob = lane.git("hash-object", "-w", "--stdin").decode().strip()
    async with lane.door.converse(b"cat-file", b"--batch", repository=Location(lane.world.common)) as asking:
        for oid in ("a" * 40, blob):
            with pytest.raises(SnapshotDamaged, match="is missing"):
                await objects.commit_at(asking, oid)
            if oid == blob:
                break


async def test_a_snapshot_lies_in_a_pack_which_no_prune_that_began_before_it_deletes(lane: Lane) -> None:
    lane.write(b"new", b"work that is nowhere else\n")
    commit = (await lane.capture()).commit
    loose = os.path.join(lane.world.common, b"objects")
    assert not os.path.exists(os.path.join(loose, commit[:2].encode(), commit[2:].encode()))
    packed = lane.world.git(lane.world.root, "cat-file", "--batch-check", stdin=commit.encode() + b"\n")
    assert packed.split()[1] == b"commit"
