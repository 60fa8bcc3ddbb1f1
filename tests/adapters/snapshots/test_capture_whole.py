"""Everything that a checkout would not make again is in a snapshot, in git or beside it."""

from __future__ import annotations

import hashlib
import os
import struct
from typing import TYPE_CHECKING

import msgspec
import pytest

from adapters.files.durable import read_file
from adapters.snapshots.capture.capture import StillChanging, capture, verify
from adapters.snapshots.capture.putting_apart import BIG
from adapters.snapshots.files import Files, SnapshotDamaged
from adapters.snapshots.manifest import Expected
from adapters.snapshots.position import CannotCapture, tree_of
from domain.paths import pack, unpack

if TYPE_CHECKING:
    from adapters.snapshots.manifest import Held, Manifest
    from domain.evidence import Snapshot
    from tests.adapters.snapshots.lanes import Lane


def held(lane: Lane) -> dict[bytes, Held]:
    return {unpack(each.path): each for each in lane.manifest().entries}


def apart(lane: Lane, path: bytes) -> bytes:
    """What a snapshot has beside git at a path."""
    sha256 = held(lane)[path].apart
    assert sha256 is not None
    return Files(lane.directory()).read(sha256)


def in_commit(lane: Lane, taken: Snapshot) -> set[bytes]:
    return set(lane.git("ls-tree", "-r", "-z", "--name-only", taken.commit).split(b"\0")[:-1])


async def again(lane: Lane, taken: Snapshot) -> None:
    await verify(lane.door, lane.directory(), lane.world.common, taken)


async def test_a_big_file_is_beside_git_and_the_commit_says_so(lane: Lane) -> None:
    data = os.urandom(1 << 16) * (BIG >> 16)
    lane.write(b"big", data)
    lane.write(b"file", data + b"more")
    taken = await lane.capture()
    assert apart(lane, b"big") == data
    assert apart(lane, b"file") == data + b"more"
    assert held(lane)[b"big"].oid == lane.git("hash-object", "big").decode().strip()
    text = b"laneyard: held apart, sha256 %b, %d bytes\n" % (
        hashlib.sha256(data).hexdigest().encode(),
        len(data),
    )
    assert lane.git("show", f"{taken.commit}:big") == text
    await again(lane, taken)


async def test_a_big_file_that_is_committed_is_not_held(lane: Lane) -> None:
    lane.write(b"big", bytes(BIG))
    lane.git("add", "big")
    lane.git("commit", "-q", "-m", "big")
    os.utime(lane.at(b"big"))  # so that nobody knows without reading it
    await lane.capture()
    assert held(lane) == {}


async def test_a_repository_inside_is_held_whole_beside_git(lane: Lane) -> None:
    lane.world.git(lane.path, "init", "-q", "nested")
    lane.write(b"nested/work", b"work\n")
    lane.world.git(lane.at(b"nested"), "add", "work")
    lane.world.git(lane.at(b"nested"), "commit", "-q", "-m", "one")
    os.symlink(b"work", lane.at(b"nested/link"))
    taken = await lane.capture()
    for path in (b"nested/work", b"nested/.git/HEAD", b"nested/.git/index"):
        assert apart(lane, path) == read_file(lane.at(path))
    assert apart(lane, b"nested/link") == b"work"
    assert not any(path.startswith(b"nested") for path in in_commit(lane, taken))
    await again(lane, taken)


async def test_a_submodule_keeps_its_entry_in_the_commit(lane: Lane) -> None:
    lane.git("update-index", "--add", "--cacheinfo", f"160000,{lane.head()},module")
    lane.git("commit", "-q", "-m", "a submodule")
    lane.write(b"module/.git", b"gitdir: /nowhere\n")
    lane.write(b"module/work", b"work\n")
    taken = await lane.capture()
    assert b"module" in in_commit(lane, taken)
    assert apart(lane, b"module/work") == b"work\n"
    await again(lane, taken)


async def test_what_git_tracks_in_a_repository_that_came_later_is_held_where_it_changed(lane: Lane) -> None:
    lane.write(b"sub/.git/HEAD", b"ref: refs/heads/main\n")
    lane.write(b"sub/inner", b"changed\n")
    taken = await lane.capture()
    assert apart(lane, b"sub/inner") == b"changed\n"
    assert b"sub/inner" not in in_commit(lane, taken)
    await again(lane, taken)


async def test_ignored_content_that_is_asked_for_is_beside_git(lane: Lane) -> None:
    lane.write(b"trace.log", b"trace\n")
    lane.write(b"build/output", b"output\n")
    effect = msgspec.structs.replace(lane.capturing(), apart=("trace.log", "build"))
    taken = await capture(lane.door, lane.directory(), effect)
    assert taken.ignored == ("trace.log", "build")
    assert (apart(lane, b"trace.log"), apart(lane, b"build/output")) == (b"trace\n", b"output\n")
    assert not {b"trace.log", b"build/output"} & in_commit(lane, taken)
    await again(lane, taken)


async def test_further_names_of_a_file_are_its_twins(lane: Lane) -> None:
    lane.write(b"one", b"shared\n")
    os.link(lane.at(b"one"), lane.at(b"two"))
    lane.write(b"big", bytes(BIG))
    os.link(lane.at(b"big"), lane.at(b"huge"))
    taken = await lane.capture()
    found = held(lane)
    assert (found[b"two"].twin, found[b"two"].oid) == ("one", found[b"one"].oid)
    assert (found[b"huge"].twin, found[b"huge"].apart) == ("big", found[b"big"].apart)
    assert lane.git("show", f"{taken.commit}:two") == b"shared\n"
    await again(lane, taken)


async def test_times_are_of_the_root_and_of_every_entry_in_the_order_of_the_tree(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    os.utime(lane.at(b"file"), ns=(1, 1_234_567_891_234_567_891))
    os.utime(lane.at(b"sub"), ns=(1, -1))
    os.chmod(lane.path, 0o711)
    await lane.capture()
    manifest = lane.manifest()
    data = Files(lane.directory()).read(manifest.times)
    times = struct.unpack(f"<{len(data) // 8}q", data)
    tree = await tree_of(lane.door, lane.world.common, manifest.head)
    wanted = list(Expected(manifest, tree).wanted())
    assert times[0] == os.stat(lane.path).st_mtime_ns
    assert list(times[1:]) == [os.lstat(lane.at(path)).st_mtime_ns for path in wanted]
    assert manifest.root_mode == 0o711


async def test_a_path_is_stale_exactly_if_the_index_has_not_seen_the_file_as_it_is(lane: Lane) -> None:
    lane.git("update-index", "--refresh")
    os.utime(lane.at(b"plain"))
    lane.write(b"file", b"changed\n")
    os.unlink(lane.at(b"gone"))
    await lane.capture()
    assert set(lane.manifest().stale) == {"plain", "file"}


async def test_an_edit_under_a_flag_is_held(lane: Lane) -> None:
    lane.git("update-index", "--assume-unchanged", "file")
    lane.git("update-index", "--skip-worktree", "plain")
    for path in (b"file", b"plain"):
        lane.write(path, b"hidden\n")
    taken = await lane.capture()
    for name in ("file", "plain"):
        assert lane.git("show", f"{taken.commit}:{name}") == b"hidden\n"


def staged(lane: Lane, taken: Snapshot) -> bytes:
    """The tree of the snapshot's commit of the index."""
    return lane.git("ls-tree", "-r", "-z", f"{taken.commit}^2")


def index_tree(lane: Lane) -> bytes:
    return lane.git("ls-tree", "-r", "-z", lane.git("write-tree").decode().strip())


@pytest.mark.parametrize("form", ["--split-index", "--index-version=4", "--no-split-index"])
async def test_an_index_of_any_form_is_in_the_commit_of_the_index(lane: Lane, form: str) -> None:
    lane.git("update-index", form)
    lane.write(b"staged", b"staged\n")
    lane.git("add", "staged")
    lane.git("rm", "-q", "--cached", "plain")
    taken = await lane.capture()
    assert staged(lane, taken) == index_tree(lane)


async def test_a_sparse_index_is_in_the_commit_of_the_index(lane: Lane) -> None:
    lane.git("sparse-checkout", "set", "--cone", "--sparse-index")
    taken = await lane.capture()
    assert staged(lane, taken) == index_tree(lane)
    assert held(lane)[b"sub/inner"].kind == "absent"


async def test_a_conflict_is_captured_and_its_stages_stay_alive(lane: Lane) -> None:
    lane.git("checkout", "-q", "-b", "other")
    lane.write(b"file", b"theirs\n")
    lane.git("commit", "-q", "-a", "-m", "theirs")
    lane.git("checkout", "-q", "work")
    lane.write(b"file", b"ours\n")
    lane.git("commit", "-q", "-a", "-m", "ours")
    lane.world.git(lane.path, "merge", "-q", "other", check=False)
    stages = lane.git("ls-files", "--unmerged").split()[1::4]
    assert len(stages) == 3
    taken = await lane.capture()
    names = {each.name for each in lane.manifest().registration}
    assert {"MERGE_HEAD", "MERGE_MSG", "index"} <= names
    kept = lane.git("ls-tree", "--name-only", lane.manifest().keep).split()
    assert set(stages) <= set(kept)
    await again(lane, taken)


async def test_an_unborn_branch_is_captured_with_its_index(lane: Lane) -> None:
    lane.git("checkout", "-q", "--orphan", "unborn")
    lane.write(b"new", b"new\n")
    taken = await lane.captured()
    assert (taken.head, taken.branch, lane.manifest().algorithm) == ("", "refs/heads/unborn", "sha1")
    assert lane.git("show", f"{taken.commit}:new") == b"new\n"
    assert b"file" in in_commit(lane, taken)
    await again(lane, taken)
    assert (await lane.captured()) == taken


async def test_an_unborn_branch_without_an_index_is_captured(lane: Lane) -> None:
    lane.git("symbolic-ref", "HEAD", "refs/heads/unborn")
    os.unlink(os.path.join(lane.admin, b"index"))
    taken = await lane.captured()
    assert lane.git("ls-tree", "-r", f"{taken.commit}^1") == b""


async def private_tag(lane: Lane) -> str:
    """An annotated tag that only a ref of the worktree reaches."""
    lane.git("commit", "-q", "--allow-empty", "-m", "tagged")
    lane.git("tag", "-a", "-m", "a tag", "annotated")
    tag = lane.git("rev-parse", "refs/tags/annotated").decode().strip()
    lane.git("update-ref", "refs/worktree/mine", tag)
    return tag


async def test_a_tag_that_only_this_worktree_has_is_in_the_way(lane: Lane) -> None:
    tag = await private_tag(lane)
    lane.git("tag", "-d", "annotated")
    with pytest.raises(CannotCapture, match="private-tag"):
        await lane.capture()
    assert (await lane.capture(tolerant=True)).omitted == (f".git/refs/worktree/mine: {tag}",)


async def test_a_tag_that_everybody_has_is_not_in_the_way(lane: Lane) -> None:
    await private_tag(lane)
    assert (await lane.capture()).omitted == ()


async def test_a_ref_of_the_worktree_keeps_its_commit_alive(lane: Lane) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "one")
    one = lane.head()
    lane.git("update-ref", "refs/worktree/mine", one)
    lane.git("reset", "-q", "--hard", "HEAD~1")
    lane.git("reflog", "expire", "--expire=now", "--all")
    await lane.capture()
    assert lane.git("rev-parse", f"{lane.manifest().keep}^@").decode().split() == [one]


async def test_a_capture_after_one_that_died_keeps_alive_what_that_one_kept(lane: Lane) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "one")
    one = lane.head()
    lane.git("reset", "-q", "--hard", "HEAD~1")
    await lane.capture()
    os.unlink(os.path.join(lane.directory(), b"manifest.json"))
    await lane.capture()
    assert lane.git("rev-parse", f"{lane.manifest().keep}^@").decode().split() == [one]


def partial(lane: Lane) -> None:
    """Makes the repository look like a partial clone."""
    packs = os.path.join(lane.world.common, b"objects/pack")
    os.makedirs(packs, exist_ok=True)
    lane.write(os.path.join(packs, b"pack-%b.promisor" % (b"0" * 40)), b"")


async def test_a_committed_object_that_a_partial_clone_lacks_is_in_the_way(lane: Lane) -> None:
    oid = lane.git("rev-parse", "HEAD:file").strip()
    partial(lane)
    await lane.capture()
    os.unlink(os.path.join(lane.directory(), b"manifest.json"))
    os.unlink(os.path.join(lane.world.common, b"objects", oid[:2], oid[2:]))
    with pytest.raises(CannotCapture, match="missing-object 'file'"):
        await lane.capture()
    taken = await lane.capture(tolerant=True)
    assert taken.omitted == ()
    assert held(lane)[b"file"].oid == oid.decode()
    assert lane.git("show", f"{taken.commit}:file") == b"one\n"


async def test_every_kind_of_entry_in_place_of_another_is_in_the_commit(lane: Lane) -> None:
    os.unlink(lane.at(b"file"))
    lane.write(b"file/inner", b"inner\n")
    os.unlink(lane.at(b"plain"))
    os.mkdir(lane.at(b"plain"))
    os.unlink(lane.at(b"sub/inner"))
    os.rmdir(lane.at(b"sub"))
    os.symlink(b"nowhere", lane.at(b"sub"))
    taken = await lane.capture()
    found = in_commit(lane, taken)
    assert {b"file/inner", b"sub"} <= found
    assert not {b"file", b"plain", b"sub/inner"} & found
    await again(lane, taken)


def forged(lane: Lane, **changes: object) -> Manifest:
    return msgspec.structs.replace(lane.manifest(), **changes)


@pytest.mark.parametrize("which", ["apart", "times"])
async def test_damage_beside_git_is_found_when_a_snapshot_is_read_back(lane: Lane, which: str) -> None:
    lane.write(b"build/output", b"output\n")
    effect = msgspec.structs.replace(lane.capturing(), apart=("build",))
    taken = await capture(lane.door, lane.directory(), effect)
    named = held(lane)[b"build/output"].apart if which == "apart" else lane.manifest().times
    assert named is not None
    path = os.path.join(lane.directory(), b"files", named.encode())
    lane.write(path, b"\xff", 0o600)
    with pytest.raises(SnapshotDamaged, match="damaged"):
        await again(lane, taken)


async def test_a_tree_that_is_not_the_one_of_a_finished_snapshot_is_noticed_by_its_attributes(
    lane: Lane,
) -> None:
    await lane.capture()
    try:
        os.setxattr(lane.at(b"file"), "user.laneyard", b"1")
    except OSError:
        pytest.skip("the file system has no extended attributes")
    with pytest.raises(StillChanging):
        await lane.capture()


async def test_names_of_any_bytes_are_apart_or_in_the_commit(lane: Lane) -> None:
    lane.write(b"\xff/.GiT/a\nb", b"1\n")
    lane.write(b"\xff/plain\n\xfe", b"2\n")
    taken = await lane.capture()
    assert apart(lane, b"\xff/.GiT/a\nb") == b"1\n"
    assert b"\xff/plain\n\xfe" in in_commit(lane, taken)
    assert pack(b"\xff/plain\n\xfe") in {each.path for each in lane.manifest().entries}
    await again(lane, taken)


async def test_what_cannot_be_kept_of_the_registration_is_in_the_way(lane: Lane) -> None:
    os.mkfifo(os.path.join(lane.admin, b"fifo"))
    with pytest.raises(CannotCapture, match="special-file"):
        await lane.capture()
    assert (await lane.capture(tolerant=True)).omitted == (".git/fifo",)


async def test_a_head_whose_commit_is_missing_is_not_captured(lane: Lane) -> None:
    lane.write(os.path.join(lane.admin, b"HEAD"), b"a" * 40 + b"\n")
    with pytest.raises(CannotCapture, match="is missing"):
        await lane.capture()
