"""A restored worktree is what was captured to the nanosecond, and git sees in it what it saw before."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from adapters.files.scan import digest, scan
from adapters.snapshots.files import Files
from adapters.snapshots.manifest import load, save, unpacked_attributes
from adapters.snapshots.restore.filling import BEGUN, FILLED
from domain.effects import Applied, NotDone
from domain.paths import unpack
from tests.adapters.snapshots.applying import (
    CONVERTIBLE,
    age,
    apply,
    convertible,
    fresh,
    look,
    refresh,
    stale_paths,
    told,
)
from tests.adapters.snapshots.handmade import snapshot
from tests.sagas.trees import walk, write

if TYPE_CHECKING:
    from domain.evidence import Snapshot
    from tests.adapters.snapshots.lanes import Lane


async def assert_comes_back(lane: Lane, taken: Snapshot) -> None:
    """Asserts that the lane comes back as it is now, twice, and that the second time touches nothing."""
    before = look(lane)
    place = await fresh(lane, taken)
    inodes: dict[bytes, int] = {}
    for _ in range(2):
        assert await apply(lane, taken, place) == Applied(content=taken.content)
        assert look(lane) == before
        assert not [name for name in os.listdir(lane.admin) if name.startswith(b".laneyard-")]
        inodes = inodes or {path: os.lstat(lane.at(path)).st_ino for path in before}
        assert {path: os.lstat(lane.at(path)).st_ino for path in before} == inodes


async def test_modes_times_links_and_attributes_come_back(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    lane.write(b"odd/program", b"program", 0o6750)
    os.chmod(lane.at(b"odd"), 0o1777)
    os.link(lane.at(b"odd/program"), lane.at(b"another name"))
    os.link(lane.at(b"plain"), lane.at(b"sub/plain too"))
    os.setxattr(lane.at(b"file"), b"user.note", b"\0\xff")
    os.setxattr(lane.at(b"sub"), b"user.of.directory", b"")
    os.chmod(lane.at(b"secret"), 0o400)
    os.setxattr(lane.at(b"file"), b"user.\xff", b"odd name")
    os.chmod(lane.path, 0o750)
    age(lane)
    await assert_comes_back(lane, snapshot(lane))


async def test_git_sees_what_it_saw_and_has_nothing_to_look_at(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    lane.git("add", "-f", "untracked")
    lane.git("update-index", "--assume-unchanged", "plain")
    lane.git("update-index", "--skip-worktree", "sub/inner")
    lane.git("add", "--intent-to-add", "secret")
    lane.git("update-index", "--index-version", "4")
    lane.write(b"noise.log", b"ignored\n")
    age(lane)
    refresh(lane)
    taken, before = snapshot(lane, stale=stale_paths(lane)), told(lane)
    place = await fresh(lane, taken)
    assert isinstance(await apply(lane, taken, place), Applied)
    assert told(lane) == before


async def test_no_filter_runs_for_what_git_knew_nor_does_it_change_what_git_says(lane: Lane) -> None:
    """Smudged content is not the blob's, and git knows the file by its stat data alone."""
    lane.write(b".gitattributes", b"* filter=odd\n.gitattributes -filter\n")
    lane.git("add", ".gitattributes")
    lane.git("commit", "-q", "-m", "attributes")
    ran = os.path.join(os.fsencode(lane.world.home), b"ran")
    for direction, program in (("clean", "tr b-z a-y"), ("smudge", "tr a-y b-z")):
        touching = f"touch {os.fsdecode(ran)}; {program}"
        lane.world.git(lane.world.root, "config", f"filter.odd.{direction}", touching)
    lane.git("rm", "-q", "--cached", "-r", ".")
    lane.git("reset", "-q", "--hard")
    lane.write(b"file", b"changed\n")
    age(lane)
    refresh(lane)
    taken, before = snapshot(lane, stale=stale_paths(lane)), (look(lane), told(lane))
    assert stale_paths(lane) == (b"file",)
    place = await fresh(lane, taken)
    os.unlink(ran)
    assert isinstance(await apply(lane, taken, place), Applied)
    assert lane.git("--no-optional-locks", "diff-files", "--name-only", "-z") == b"file\0"
    assert not os.path.exists(ran)
    assert (look(lane), told(lane)) == before


async def test_bytes_that_attributes_would_convert_come_back(lane: Lane) -> None:
    convertible(lane)
    age(lane)
    await assert_comes_back(lane, snapshot(lane))


@pytest.mark.parametrize("part", [1, 7, None], ids=["a byte", "some bytes", "all"])
async def test_what_a_killed_git_has_left_is_finished(lane: Lane, part: int | None) -> None:
    """Converted, cut off, and with git's lock: what it wrote is known by what it would have written."""
    convertible(lane)
    lane.write(b"big", b"big" * 100)
    age(lane)
    taken, before = snapshot(lane, apart=(b"big",), stood_in=(b"big",)), look(lane)
    place = await fresh(lane, taken)
    lane.git("read-tree", "-u", "--reset", taken.commit)
    os.rename(os.path.join(lane.admin, b"index"), os.path.join(lane.admin, FILLED + b".lock"))
    write(os.path.join(lane.admin, BEGUN), b"")
    for path in (*CONVERTIBLE, b"big"):
        if part is not None:
            os.truncate(lane.at(path), part)
    assert await apply(lane, taken, place) == Applied(content=taken.content)
    assert look(lane) == before


@pytest.mark.parametrize("when", ["before", "between"])
async def test_a_strangers_lock_of_the_index_stays_until_he_takes_it_away(lane: Lane, when: str) -> None:
    lane.world.dirty(lane.path)
    taken = snapshot(lane)
    place = await fresh(lane, taken)
    lock = os.path.join(lane.admin, b"index.lock")
    if when == "between":
        lane.world.fake(f'case " $* " in *" read-tree "*) : >"{os.fsdecode(lock)}";; esac')
    else:
        write(lock, b"")
    for _ in range(3):
        outcome = await apply(lane, taken, place)
        assert isinstance(outcome, NotDone)
        assert (outcome.code, outcome.transient) == ("locked", True)
        assert os.path.exists(lock)
    os.unlink(lock)
    lane.world.program = "git"
    assert await apply(lane, taken, place) == Applied(content=taken.content)


async def test_content_beside_git_comes_back_and_what_git_has_instead_goes(lane: Lane) -> None:
    nested = {b"nested/.git/HEAD": b"ref: refs/heads/main\n", b"nested/.git/objects/aa/bb": b"\0" * 3_000_000}
    contents = {b"big": b"big" * 1000, b"nested/file": b"one\n", b"cache.log": b"ignored\n", **nested}
    for path, data in contents.items():
        lane.write(path, data, 0o444)
    os.symlink(b"objects", lane.at(b"nested/.git/link"))
    os.mkdir(lane.at(b"nested/.git/refs"))
    apart = (*contents, b"nested/.git/link")
    age(lane)
    taken = snapshot(lane, apart=apart, stood_in=(b"big",))
    await assert_comes_back(lane, taken)


async def test_a_submodule_is_pointed_at_a_registration_of_another_name(lane: Lane) -> None:
    source = os.path.join(os.fsencode(lane.world.home), b"source")
    lane.world.git(lane.world.root, "clone", "-q", lane.world.root, source)
    lane.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", source, "module")
    lane.git("commit", "-q", "-m", "a submodule")
    lane.write(b"module/file", b"changed\n")
    age(lane)
    taken, before = await lane.captured(), look(lane)
    place = await fresh(lane, taken, taken_name=True)
    assert os.path.basename(unpack(place.admin)) == b"work1"
    for _ in range(2):
        assert await apply(lane, taken, place) == Applied(content=taken.content)
        after = look(lane)
        assert {path for path in before if before[path] != after[path]} == {b"module/.git"}
        assert before.keys() == after.keys()
        assert lane.world.git(lane.at(b"module"), "status", "--porcelain") == b" M file\n"


async def test_a_split_index_comes_back_split(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    lane.git("update-index", "--split-index")
    lane.git("add", "secret")
    taken, before = await lane.captured(), told(lane)
    place = await fresh(lane, taken)
    for _ in range(2):
        assert await apply(lane, taken, place) == Applied(content=taken.content)
        assert told(lane) == before
    assert [name for name in os.listdir(lane.admin) if name.startswith(b"sharedindex.")]


async def test_what_the_capture_takes_comes_back_exactly(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    lane.write(b"nested/file", b"one\n")
    lane.world.git(lane.at(b"nested"), "init", "-q")
    lane.write(b"large", b"large" * 2_000_000, 0o600)
    os.link(lane.at(b"large"), lane.at(b"sub/large too"))
    os.link(lane.at(b"nested/file"), lane.at(b"file's other name"))
    os.setxattr(lane.at(b"sub"), b"user.note", b"note")
    age(lane)
    refresh(lane)
    seen, taken = told(lane), await lane.captured()
    await assert_comes_back(lane, taken)
    assert told(lane) == seen


async def test_what_cannot_be_had_here_is_said(lane: Lane) -> None:
    lane.write(b"a file", b"one\n")
    os.setxattr(lane.at(b"a file"), b"user.note", b"one")
    taken = snapshot(lane)
    manifest = load(lane.directory(), None)
    odd = (("unheard-of.kind", "b25l"), ("user.note", "b25l"))
    entries = tuple(replace(each, xattrs=odd) if each.path == "a file" else each for each in manifest.entries)
    content = digest(
        replace(each, xattrs=unpacked_attributes(odd)) if each.path == b"a file" else each
        for each in scan(lane.path, "sha1")
        if each.path != b".git"
    )
    digest_ = save(lane.directory(), replace(manifest, entries=entries, content=content))
    taken = replace(taken, manifest=digest_, content=content)
    outcome = await apply(lane, taken, await fresh(lane, taken))
    assert outcome == Applied(content=content, differences=("not with its extended attributes: 'a file'",))
    assert os.getxattr(lane.at(b"a file"), b"user.note") == b"one"


async def test_times_that_are_not_one_for_each_entry_are_refused(lane: Lane) -> None:
    taken = snapshot(lane)
    manifest = load(lane.directory(), None)
    digest = save(lane.directory(), replace(manifest, times=Files(lane.directory()).keep(b"\0" * 8)))
    place = await fresh(lane, taken)
    outcome = await apply(lane, replace(taken, manifest=digest), place)
    assert isinstance(outcome, NotDone)
    assert outcome.code == "snapshot_damaged"


async def test_a_snapshot_of_the_first_format_comes_back(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    taken = snapshot(lane)
    manifest = load(lane.directory(), None)
    files = tuple(each for each in manifest.registration if each.name in ("index", "logs/HEAD"))
    first = replace(manifest, format=1, times="", root_mode=None, registration=files)
    digest = save(lane.directory(), first)
    before, staged = walk(lane.path, (b".git",)), told(lane)[1]
    outcome = await apply(lane, replace(taken, manifest=digest), await fresh(lane, taken))
    assert outcome == Applied(content=taken.content)
    assert walk(lane.path, (b".git",)) == before
    assert told(lane)[1] == staged
    assert b"sub/inner" not in lane.git("--no-optional-locks", "diff-files", "--name-only")
