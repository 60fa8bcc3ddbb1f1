"""Every entry of a tree is as committed, held, omitted or in the way; none is overlooked."""

from __future__ import annotations

import os
import shutil
import socket
from typing import TYPE_CHECKING

import pytest

from adapters.snapshots.capture.survey import current_umask, take_fingerprint
from domain.evidence import Obstacle
from domain.paths import unpack
from tests.sagas.trees import write

if TYPE_CHECKING:
    from adapters.snapshots.capture.survey import Survey
    from tests.adapters.snapshots.lanes import Lane


def held(survey: Survey) -> dict[bytes, str]:
    return {unpack(each.path): each.kind for each in survey.held}


async def test_a_fresh_checkout_holds_nothing(lane: Lane) -> None:
    seen = await lane.survey()
    assert (seen.held, seen.omitted, seen.obstacles) == ((), (), ())


async def test_what_differs_from_the_commit_is_held(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    found = held(await lane.survey())
    assert found.pop(b"gone") == "absent"
    assert {path for path, kind in found.items() if kind == "link"} == {b"link", b"dangling"}
    assert {path for path, kind in found.items() if kind == "directory"} == {b"empty", b"deep", b"deep/er"}
    assert {b"file", b"both", b"staged", b"plain", b"new\nline", b"\xfe\xff", b"--force"} <= found.keys()
    assert not {b"sub/inner", b"sub", b"tool", b"kept\xff", b"doomed"} & found.keys()


async def test_an_edit_that_git_is_told_not_to_see_is_held(lane: Lane) -> None:
    lane.git("update-index", "--assume-unchanged", "file")
    lane.git("update-index", "--skip-worktree", "plain")
    lane.write(b"file", b"hidden\n")
    lane.write(b"plain", b"hidden\n")
    assert held(await lane.survey()) == {b"file": "file", b"plain": "file"}


async def test_permissions_alone_are_a_difference(lane: Lane) -> None:
    os.chmod(lane.at(b"file"), 0o600)
    os.chmod(lane.at(b"sub"), 0o700)
    assert held(await lane.survey()) == {b"file": "file", b"sub": "directory"}


async def test_an_emptied_directory_is_held_and_a_vanished_one_is_not(lane: Lane) -> None:
    os.unlink(lane.at(b"sub/inner"))
    assert held(await lane.survey()) == {b"sub": "directory", b"sub/inner": "absent"}
    os.rmdir(lane.at(b"sub"))
    assert held(await lane.survey()) == {b"sub/inner": "absent"}


async def test_a_directory_in_a_files_place_is_held_with_all_that_is_in_it(lane: Lane) -> None:
    os.unlink(lane.at(b"file"))
    lane.write(b"file/inner", b"inner\n")
    assert held(await lane.survey()) == {b"file": "directory", b"file/inner": "file"}


async def test_a_file_in_a_directorys_place_is_held_and_what_was_in_it_is_absent(lane: Lane) -> None:
    shutil.rmtree(lane.at(b"sub"))
    lane.write(b"sub", b"a file\n")
    assert held(await lane.survey()) == {b"sub": "file", b"sub/inner": "absent"}


async def test_a_link_in_a_files_place_with_the_same_bytes_is_held(lane: Lane) -> None:
    os.unlink(lane.at(b"file"))
    os.symlink(b"one\n", lane.at(b"file"))
    assert held(await lane.survey()) == {b"file": "link"}


async def test_a_submodule_that_is_not_checked_out_is_as_committed(lane: Lane) -> None:
    lane.git("update-index", "--add", "--cacheinfo", f"160000,{lane.head()},module")
    lane.git("commit", "-q", "-m", "a submodule")
    assert held(await lane.survey()) == {b"module": "absent"}
    os.mkdir(lane.at(b"module"))
    assert held(await lane.survey()) == {}
    os.chmod(lane.at(b"module"), 0o700)
    assert held(await lane.survey()) == {b"module": "directory"}


async def test_what_is_omitted_is_named_and_not_read(lane: Lane) -> None:
    lane.write(b"build/deep/output", b"output\n")
    seen = await lane.survey((b"build",))
    assert (seen.omitted, seen.held, seen.obstacles) == (("build",), (), ())


async def test_a_committed_file_that_is_omitted_is_absent(lane: Lane) -> None:
    lane.write(b"kept.log", b"log\n")
    lane.git("add", "--force", "kept.log")
    lane.git("commit", "-q", "-m", "a log")
    lane.git("rm", "-q", "--cached", "kept.log")
    seen = await lane.survey((b"kept.log",))
    assert (seen.omitted, held(seen)) == (("kept.log",), {b"kept.log": "absent"})


async def test_somebodys_repository_is_held_outside_of_the_commit_whatever_its_git_is(lane: Lane) -> None:
    lane.write(b"nested/.git/HEAD", b"")
    lane.write(b"nested/work", b"")
    lane.write(b"linked/.git", b"gitdir: /nowhere\n")
    os.mkdir(lane.at(b"odd"))
    os.symlink(b"/nowhere", lane.at(b"odd/.git"))
    seen = await lane.survey()
    assert seen.obstacles == ()
    outside = {b"nested/.git/HEAD", b"nested/work", b"linked/.git", b"odd/.git"}
    assert seen.outside == outside
    assert {path for path, kind in held(seen).items() if kind != "directory"} == outside


async def test_a_submodule_that_is_checked_out_is_held_outside_of_the_commit(lane: Lane) -> None:
    lane.git("update-index", "--add", "--cacheinfo", f"160000,{lane.head()},module")
    lane.git("commit", "-q", "-m", "a submodule")
    lane.write(b"module/.git", b"gitdir: /nowhere\n")
    lane.write(b"module/work", b"")
    seen = await lane.survey()
    assert (seen.obstacles, set(held(seen))) == ((), {b"module/.git", b"module/work"})
    assert seen.outside == held(seen).keys()


async def test_a_worktree_of_another_repository_is_in_the_way_with_all_that_is_in_it(lane: Lane) -> None:
    lane.git("worktree", "add", "-q", "--detach", "other")
    seen = await lane.survey()
    assert (seen.obstacles, held(seen)) == ((Obstacle("linked-worktree", "other"),), {})


async def test_a_repository_that_has_worktrees_is_in_the_way(lane: Lane) -> None:
    lane.world.git(lane.path, "init", "-q", "nested")
    lane.world.git(lane.at(b"nested"), "commit", "-q", "--allow-empty", "-m", "one")
    lane.world.git(lane.at(b"nested"), "worktree", "add", "-q", lane.at(b"elsewhere"))
    seen = await lane.survey()
    assert {each.kind for each in seen.obstacles} == {"nested-worktrees", "linked-worktree"}


async def test_names_that_git_refuses_are_outside_of_the_commit(lane: Lane) -> None:
    lane.write(b"deep/.GIT/config", b"")
    lane.write(b"deep/.gitignored", b"")
    assert (await lane.survey()).outside == {b"deep/.GIT/config"}


async def test_extended_attributes_are_held_and_make_another_content(lane: Lane) -> None:
    before = await lane.survey()
    for path in (b"file", b"sub"):
        set_attribute(lane.at(path))
    seen = await lane.survey()
    attributes = (("user.laneyard", "AP8="),)
    assert [(each.path, each.xattrs) for each in seen.held] == [("file", attributes), ("sub", attributes)]
    assert seen.content != before.content


def set_attribute(path: bytes) -> None:
    try:
        os.setxattr(path, "user.laneyard", b"\x00\xff")
    except OSError:
        pytest.skip("the file system has no extended attributes")


async def test_a_file_of_two_names_is_held_under_both_the_second_as_a_twin(lane: Lane) -> None:
    os.link(lane.at(b"file"), lane.at(b"second"))
    first, second = (await lane.survey()).held
    assert (first.path, first.twin, second.path, second.twin) == ("file", None, "second", "file")
    assert first.oid == second.oid


async def test_a_name_outside_of_the_lane_makes_no_twin(lane: Lane) -> None:
    os.link(lane.at(b"file"), os.path.join(lane.world.root, b"elsewhere"))
    assert held(await lane.survey()) == {}


async def test_what_is_no_file_is_in_the_way(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(lane.at(b"fifo"))
    monkeypatch.chdir(os.fsdecode(lane.path))  # a socket's address is short
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
        seen = await lane.survey()
    assert seen.obstacles == (Obstacle("special-file", "fifo"), Obstacle("special-file", "socket"))


async def test_content_and_fingerprint_tell_writes_apart(lane: Lane) -> None:
    before = await lane.survey()
    assert take_fingerprint(lane.path, ()) == before.fingerprint
    lane.write(b"file", b"one\n")
    after = await lane.survey()
    assert after.content == before.content
    assert after.fingerprint != before.fingerprint


async def test_a_write_to_what_is_omitted_changes_no_fingerprint_of_the_rest(lane: Lane) -> None:
    lane.write(b"build/output", b"output\n")
    before = take_fingerprint(lane.path, ("build",))
    write(lane.at(b"build/output"), b"other\n")
    assert take_fingerprint(lane.path, ("build",)) == before


@pytest.mark.parametrize("omit", [("build",), ("build/", "x.log")])
async def test_whoever_writes_in_what_is_omitted_changes_no_fingerprint(
    lane: Lane, omit: tuple[str, ...]
) -> None:
    as_bytes = tuple(os.fsencode(path) for path in omit)
    lane.write(b"build/output", b"output\n")
    lane.write(b"x.log", b"1\n")
    before = (await lane.survey(omit=as_bytes)).fingerprint
    assert take_fingerprint(lane.path, omit) == before
    lane.write(b"build/more", b"")
    lane.write(b"build/sub/more", b"")
    if len(omit) > 1:
        write(lane.at(b"x.log"), b"longer\n")
    assert take_fingerprint(lane.path, omit) == (await lane.survey(omit=as_bytes)).fingerprint == before
    assert take_fingerprint(lane.path, ()) != before
    lane.write(b"late", b"")
    assert take_fingerprint(lane.path, omit) != before


def test_the_umask_is_read_without_being_changed() -> None:
    mask = os.umask(0o27)
    try:
        assert current_umask() == 0o27
    finally:
        assert os.umask(mask) == 0o27
