"""What goes to git goes there as raw bytes, and what changes on the way is noticed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import trio

from adapters.files.durable import read_file
from adapters.git.index import read_index
from adapters.snapshots import objects
from adapters.snapshots.capture import ATTEMPTS, tree_of
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.objects import Moving
from domain.effects import Captured, NotDone
from tests.sagas.trees import walk

if TYPE_CHECKING:
    from tests.adapters.snapshots.lanes import Lane

SLOW = pytest.mark.slow


async def staged(lane: Lane) -> set[bytes]:
    index = read_index(read_file(os.path.join(lane.admin, b"index")), 20)
    changes = objects.staged_changes(index, await tree_of(lane.door, lane.world.common, lane.head()))
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


async def logged(lane: Lane) -> tuple[str, ...]:
    log = read_file(os.path.join(lane.admin, b"logs/HEAD"))
    return await objects.only_in_reflog(lane.door, lane.world.common, log, lane.head())


async def test_an_amended_commit_is_only_in_the_log(lane: Lane) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "first try")
    old = lane.head()
    lane.git("commit", "-q", "--amend", "--allow-empty", "-m", "second try")
    assert await logged(lane) == (old,)
    lane.git("branch", "kept", old)
    assert await logged(lane) == ()


async def test_a_commit_that_only_the_main_checkouts_head_knows_is_only_in_the_log(lane: Lane) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "tried there, too")
    old = lane.head()
    lane.world.git(lane.world.root, "checkout", "-q", "--detach", old)
    lane.git("reset", "-q", "--hard", "HEAD~1")
    assert await logged(lane) == (old,)


async def test_a_log_with_nonsense_in_it_names_what_it_can(lane: Lane) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "one")
    old = lane.head()
    lane.git("reset", "-q", "--hard", "HEAD~1")
    text = (
        b"\xff\xfe nonsense\n\n" + b"e" * 40 + b" " + old.encode() + b" Ada\nrefs/heads/" + b"x" * 29 + b"\n"
    )
    assert await objects.only_in_reflog(lane.door, lane.world.common, text, lane.head()) == (old,)


async def test_a_blob_that_is_missing_is_damage(lane: Lane) -> None:
    found = objects.contents(lane.door, lane.world.common, ["a" * 40])
    with pytest.raises(SnapshotDamaged, match="is missing"):
        await anext(found)


class Meddler:
    """Changes the lane at the moment when git is started to take its files."""

    def __init__(self, lane: Lane, *changes: bytes | None) -> None:
        self.changes = iter(changes)
        self.lane = lane
        self.count = lane.world.home / "count"
        lane.write(b"growing", b"x" * 1000)
        lane.world.fake('case " $* " in *" fast-import "*) "$WORLD"/meddle; esac')
        self.write()

    def write(self) -> None:
        program = self.lane.world.home / "meddle"
        steps = [self.step(data) for data in self.changes]
        self.count.write_text("")
        cases = "\n".join(f"{n}) {step} ;;" for n, step in enumerate(steps))
        program.write_text(
            f"#!/bin/sh\ncd '{os.fsdecode(self.lane.path)}'\n"
            f"n=$(wc -c <'{self.count}')\nprintf x >>'{self.count}'\ncase $((n)) in\n{cases}\nesac\n"
        )
        program.chmod(0o755)

    def step(self, data: bytes | None) -> str:
        if data is None:
            return "rm -f growing"
        return f"printf '%s' '{data.decode()}' >growing"


CHANGES = {"grows": b"y" * 2000, "shrinks": b"y", "is overwritten": b"y" * 1000, "vanishes": None}


@SLOW
@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
async def test_a_file_that_changes_once_is_captured_as_it_is_then(lane: Lane, change: bytes | None) -> None:
    meddler = Meddler(lane, change)
    outcome = await lane.perform(lane.capturing())
    assert isinstance(outcome, Captured)
    assert meddler.count.read_text() == "xx"
    held = {each.path: each.size for each in lane.manifest().entries}
    assert held.get("growing") == (None if change is None else len(change))


@SLOW
async def test_a_file_that_never_stops_changing_is_not_captured(lane: Lane) -> None:
    meddler = Meddler(lane, *(b"y" * size for size in range(10, 40)))
    outcome = await lane.perform(lane.capturing())
    assert meddler.count.read_text() == "x" * ATTEMPTS
    assert isinstance(outcome, NotDone)
    assert outcome.code == "still_changing"
    assert not await trio.Path(os.fsdecode(lane.directory() + b"/manifest.json")).exists()


async def test_a_file_that_is_shorter_than_it_was_is_moving(lane: Lane) -> None:
    lane.write(b"growing", b"x" * 1000)
    seen = await lane.survey()
    lane.write(b"growing", b"x")
    with pytest.raises(Moving):
        await objects.write(
            lane.door,
            lane.world.common,
            lane.path,
            "refs/laneyard/snapshots/one",
            lane.head(),
            seen.held,
            b"",
            (),
        )


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
        await objects.write(
            lane.door,
            lane.world.common,
            lane.path,
            "refs/laneyard/snapshots/one",
            lane.head(),
            seen.held,
            b"",
            (),
        )


async def test_a_snapshot_lies_in_a_pack_which_no_prune_that_began_before_it_deletes(lane: Lane) -> None:
    lane.write(b"new", b"work that is nowhere else\n")
    commit = (await lane.capture()).commit
    loose = os.path.join(lane.world.common, b"objects")
    assert not os.path.exists(os.path.join(loose, commit[:2].encode(), commit[2:].encode()))
    packed = lane.world.git(lane.world.root, "cat-file", "--batch-check", stdin=commit.encode() + b"\n")
    assert packed.split()[1] == b"commit"
