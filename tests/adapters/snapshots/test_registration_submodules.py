"""Submodules go on in a worktree that was made anew: both pointers name the new place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.files.durable import read_file
from adapters.snapshots.registration import registration
from adapters.snapshots.registration.submodules import setting_in
from tests.adapters.snapshots.registrations import (
    ALLOWED,
    STATUS,
    anew,
    keep,
    put_back,
    restored,
    said,
    state,
    with_submodule,
    within,
)
from tests.sagas.trees import write

if TYPE_CHECKING:
    from tests.adapters.snapshots.lanes import Lane


def worked(lane: Lane, path: str = "libs/sub") -> bytes:
    """Makes a submodule with a commit of its own, something staged and something stashed."""
    with_submodule(lane, path)
    module = lane.at(os.fsencode(path))
    git = lane.world.git
    write(os.path.join(module, b"file"), b"stashed\n")
    git(module, "stash", "-q")
    write(os.path.join(module, b"own"), b"own\n")
    git(module, "add", "own")
    git(module, "commit", "-q", "-m", "own")
    write(os.path.join(module, b"file"), b"staged\n")
    git(module, "add", "file")
    return module


def seen(lane: Lane, *paths: str) -> list[tuple[bytes, ...]]:
    """Returns what git says of the lane and, from within, of submodules."""
    found = [tuple(each for each in said(lane) if b"core." not in each)]
    for path in paths:
        place = lane.at(os.fsencode(path))
        asked = (STATUS, ("log", "--all", "--format=%H"), ("ls-files", "-s"), ("stash", "list"))
        found.append(tuple(lane.world.git(place, *each) for each in asked))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("path", ["libs/sub", "sub module", "work"])
def test_a_submodule_goes_on_elsewhere(lane: Lane, path: str) -> None:
    worked(lane, path)
    before = seen(lane, path)
    back = restored(lane)
    assert seen(back, path) == before
    place = back.at(os.fsencode(path))
    assert lane.world.git(place, "rev-parse", "--show-toplevel").strip() == place
    assert registration.repoint_modules(back.admin, back.path) == ()
    fresh = os.path.join(os.path.dirname(back.path), b"fresh")
    lane.world.git(lane.world.root, "worktree", "add", "-q", "--detach", fresh, "work")
    lane.world.git(fresh, *ALLOWED, "submodule", "--quiet", "update", "--init")
    theirs = read_file(os.path.join(fresh, os.fsencode(path), b".git")).replace(
        b"worktrees/fresh", b"worktrees/elsewhere"
    )
    assert read_file(os.path.join(place, b".git")) == theirs  # just as git writes them
    config = "modules/" + path + "/config"
    like = read_file(os.path.join(lane.world.common, b"worktrees/fresh", os.fsencode(config)))
    ours = setting_in(read_file(within(back, config)))
    expected = setting_in(like)
    assert ours is not None
    assert expected is not None
    assert ours.value == expected.value.replace(b"/fresh/", b"/elsewhere/")


@pytest.mark.slow
def test_submodules_of_submodules_go_on(lane: Lane) -> None:
    theirs = with_submodule(lane, "outer")
    inner = os.path.join(os.fsencode(lane.world.home), b"inner")
    lane.world.git(lane.world.root, "clone", "-q", theirs, inner)
    outer = lane.at(b"outer")
    lane.world.git(outer, *ALLOWED, "submodule", "--quiet", "add", inner, "outer/inner")
    lane.world.git(outer, "commit", "-q", "-m", "nested")
    before = seen(lane, "outer", "outer/outer/inner")
    kept = keep(lane)
    other = anew(lane.world, kept)
    changed = {os.path.relpath(path, lane.world.home.as_posix().encode()) for path in put_back(other, kept)}
    assert changed == {
        b"other/elsewhere/outer/.git",
        b"other/elsewhere/outer/outer/inner/.git",
        b"root/.git/worktrees/elsewhere/modules/outer/config",
        b"root/.git/worktrees/elsewhere/modules/outer/modules/outer/inner/config",
    }
    assert seen(other, "outer", "outer/outer/inner") == before


@pytest.mark.slow
def test_a_repeated_restore_finds_its_own_pointers(lane: Lane) -> None:
    module = worked(lane)
    lane.world.git(module, "sparse-checkout", "init")  # moves core.worktree to a file of its own
    before = seen(lane, "libs/sub")
    kept = keep(lane)
    other = anew(lane.world, kept)
    assert len(put_back(other, kept)) == 2
    pointed = state(other)
    assert len(put_back(other, kept)) == 1
    assert state(other) == pointed
    assert seen(other, "libs/sub") == before


@pytest.mark.slow
def test_mode_and_time_of_a_pointer_stay(lane: Lane) -> None:
    module = worked(lane)
    os.chmod(os.path.join(module, b".git"), 0o600)
    os.utime(os.path.join(module, b".git"), ns=(5, 1_000_000_005))
    os.utime(module, ns=(7, 1_000_000_007))
    kept = keep(lane)
    other = anew(lane.world, kept)
    put_back(other, kept)
    place = other.at(b"libs/sub")
    status, around = os.stat(os.path.join(place, b".git")), os.stat(place)
    assert (status.st_mode & 0o777, status.st_mtime_ns, around.st_mtime_ns) == (
        0o600,
        1_000_000_005,
        1_000_000_007,
    )


@pytest.mark.slow
def test_a_submodule_that_is_not_checked_out_is_left_as_it_is(lane: Lane) -> None:
    worked(lane)
    lane.git("submodule", "--quiet", "deinit", "--force", "libs/sub")
    before = state(lane)
    back = restored(lane)
    assert state(back) == before


@pytest.mark.slow
def test_a_pointer_that_leads_through_a_link_is_left_as_it_is(lane: Lane) -> None:
    worked(lane)
    kept = keep(lane)
    other = anew(lane.world, kept)
    outside = os.path.join(os.fsencode(lane.world.home), b"outside")
    os.rename(other.at(b"libs"), outside)
    os.symlink(outside, other.at(b"libs"))
    before = read_file(os.path.join(outside, b"sub/.git"))
    assert put_back(other, kept) == ()
    assert read_file(os.path.join(outside, b"sub/.git")) == before


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"[core]\n\tworktree = ../x\n", b"../x"),
        (b"[CORE] WorkTree=../x ; why\n", b"../x"),
        (b'[core]\n\tworktree = "../a;b \\"c\\" " # why\n', b'../a;b "c" '),
        (b"[core]\n\tworktree = ../a\\tb\\\\c  \n", b"../a\tb\\c"),
        (b"[core]\n\tworktree = ../a\n[core]\n\tworktree = ../b\n", b"../b"),
        (b"[core]\n\tworktree = ../x\r\n", b"../x"),
        (b'[core "sub"]\n\tworktree = ../x\n', None),
        (b"[remote]\n\tworktree = ../x\n", None),
        (b"[core]\n\t; worktree = ../x\n", None),
        (b"[core]\n\teditor = a\\\nworktree = ../x\n", None),
        (b"[core]\n\tworktree = ../x\\\n/y\n", None),
        (b"[core]\n\tworktreeish = ../x\n\tworktree\n", None),
        (b"", None),
    ],
)
def test_a_setting_is_read_as_git_reads_it(lane: Lane, text: bytes, value: bytes | None) -> None:
    path = os.path.join(os.fsencode(lane.world.home), b"settings")
    write(path, text)
    found = setting_in(text)
    assert (found and found.value) == value
    if value is not None:
        assert lane.git("config", "--null", "--file", path, "core.worktree") == value + b"\0"
