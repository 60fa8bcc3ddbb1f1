"""A registration is put back as it was, never over what somebody has done, and as often as it takes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from adapters.files.blob import blob_hash
from adapters.files.durable import read_file
from adapters.git.errors import RegistrationUnreadable
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import Held
from adapters.snapshots.registration import registration
from adapters.snapshots.registration.reinstating import BESIDE
from domain.paths import unpack
from tests.adapters.snapshots.registrations import (
    anew,
    commit,
    conflicted,
    keep,
    manifest_of,
    put,
    put_back,
    restored,
    said,
    state,
    within,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.adapters.snapshots.lanes import Lane
    from tests.adapters.snapshots.registrations import Kept


def own_refs(lane: Lane) -> None:
    lane.git("update-ref", "refs/worktree/mine", "HEAD")
    lane.git("update-ref", "refs/rewritten/onto", "HEAD")


def own_settings(lane: Lane) -> None:
    lane.git("config", "extensions.worktreeConfig", "true")
    lane.git("config", "--worktree", "laneyard.test", "only here")


def others_settings(lane: Lane) -> None:
    lane.git("config", "extensions.worktreeConfig", "true")
    lane.world.git(lane.world.root, "config", "--worktree", "laneyard.test", "only there")


def sparse(lane: Lane) -> None:
    commit(lane, "deep/one/file", "1\n")
    lane.git("sparse-checkout", "set", "--cone", "sub")
    assert not os.path.exists(lane.at(b"deep"))


def sparse_index(lane: Lane) -> None:
    sparse(lane)
    lane.git("sparse-checkout", "reapply", "--sparse-index")
    assert b"sdir" in read_file(within(lane, "index"))


def sparse_elsewhere(lane: Lane) -> None:
    lane.world.git(lane.world.root, "sparse-checkout", "set", "--cone", "sub")


def split(lane: Lane) -> None:
    lane.git("update-index", "--split-index")
    commit(lane, "file", "split\n")
    assert b"link" in read_file(within(lane, "index"))


def odd(lane: Lane) -> None:
    conflicted(lane)
    put(lane, "script", b"#!/bin/sh\n", 0o755)
    put(lane, "closed/inner", b"x" * 100, 0o400)
    put(lane, "large", bytes(range(256)) * 8192)
    os.symlink(b"nowhere", within(lane, "closed/link"))
    os.utime(within(lane, "closed/link"), ns=(3, 3), follow_symlinks=False)
    os.utime(within(lane, "script"), ns=(1, 1_000_000_007))
    os.chmod(within(lane, "closed"), 0o500)


def without_a_log(lane: Lane) -> None:
    os.unlink(within(lane, "logs/HEAD"))
    os.unlink(within(lane, "ORIG_HEAD"))


SCENES = [
    *(own_refs, own_settings, others_settings, sparse, sparse_index, sparse_elsewhere, split, odd),
    without_a_log,
]


@pytest.mark.parametrize("scene", SCENES)
def test_a_registration_is_as_it_was(lane: Lane, scene: Callable[[Lane], None]) -> None:
    scene(lane)
    before, files = said(lane), state(lane)
    back = restored(lane)
    assert (said(back), state(back)) == (before, files)


def lost(lane: Lane) -> tuple[Kept, Lane, dict[str, tuple[int, int, bytes]]]:
    """Loses a lane with a merge in it; returns what was captured, a new worktree, and what it has to be."""
    odd(lane)
    files = state(lane)
    kept = keep(lane)
    return kept, anew(lane.world, kept), files


def moved(lane: Lane) -> None:
    lane.git("update-ref", "HEAD", lane.git("commit-tree", "-m", "more", "HEAD^{tree}").strip())


def attempt(lane: Lane, kept: Kept) -> None:
    registration.put_back(kept.files, kept.manifest, lane.admin, lane.path, kept.tree)


@pytest.mark.parametrize(
    "before",
    [
        lambda lane: attempt(*lane),
        lambda lane: put_back(*lane),
        lambda lane: put(lane[0], "MERGE_HEAD", b""),
        lambda lane: put(lane[0], "large", bytes(range(256))),
        lambda lane: put(lane[0], os.fsdecode(BESIDE), b"half"),
        lambda lane: put(lane[0], "closed/" + os.fsdecode(BESIDE), b"half"),
        lambda lane: put(lane[0], "index.lock"),
        lambda lane: put(lane[0], "gc.log"),
        lambda lane: lane[0].git("read-tree", lane[1].manifest.head),
        lambda lane: (lane[0].git("reset", "-q", "--hard"), lane[0].git("update-index", "--split-index")),
    ],
)
def test_what_a_killed_attempt_has_left_is_no_hindrance(
    lane: Lane, before: Callable[[tuple[Lane, Kept]], object]
) -> None:
    kept, other, files = lost(lane)
    before((other, kept))
    put_back(other, kept)
    found = state(other)
    ignored = (
        "index.lock",
        "gc.log",
        "ORIG_HEAD",
        *(name for name in found if name.startswith("sharedindex.")),
    )
    assert {n: e for n, e in found.items() if n not in ignored} == {
        n: e for n, e in files.items() if n not in ignored
    }
    assert not os.path.lexists(within(other, os.fsdecode(BESIDE)))


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda lane: put(lane, "MERGE_HEAD", b"other\n"), "MERGE_HEAD is not ours"),
        (lambda lane: put(lane, "large", bytes(3 << 20)), "large is not ours"),
        (lambda lane: put(lane, "rebase-merge/done"), "rebase-merge/done is not ours"),
        (lambda lane: put(lane, "refs/worktree/mine"), "refs/worktree/mine is not ours"),
        (lambda lane: put(lane, "config.worktree", b"[core]\n\tx = y\n"), "config.worktree is not ours"),
        (lambda lane: put(lane, "ORIG_HEAD", b"0" * 40), "ORIG_HEAD is not ours"),
        (lambda lane: os.mkfifo(within(lane, "pipe")), "pipe is not ours"),
        (lambda lane: os.symlink(b"x", within(lane, "script")), "script is not ours"),
        (lambda lane: lane.git("commit", "-q", "--allow-empty", "-m", "more"), "COMMIT_EDITMSG is not ours"),
        (lambda lane: moved(lane), "HEAD has moved"),
        (lambda lane: (lane.git("read-tree", "HEAD"), lane.git("add", "file")), "something is staged"),
    ],
)
def test_work_of_somebody_is_not_overwritten(lane: Lane, act: Callable[[Lane], object], why: str) -> None:
    lane.write(b"file", b"captured\n")
    kept, other, _ = lost(lane)
    other.write(b"file", b"somebody's\n")
    act(other)
    before = state(other)
    with pytest.raises(SnapshotDamaged, match=why):
        attempt(other, kept)
    assert state(other) == before


def test_an_index_that_git_filled_from_the_snapshot_is_ours(lane: Lane) -> None:
    kept, other, _ = lost(lane)
    big = Held("big", "file", 0o644, 9 << 20, "a" * 40, "b" * 64)
    text = b"laneyard: held apart, sha256 %s, %d bytes\n" % (b"b" * 64, 9 << 20)
    oid = other.world.git(other.path, "hash-object", "-w", "--stdin", stdin=text).strip().decode()
    assert oid == blob_hash("sha1", len(text), text).hexdigest()
    other.write(b"new", b"untracked\n")
    new = other.git("hash-object", "-w", "new").strip().decode()
    other.git("read-tree", "HEAD")
    for path, each in (("big", oid), ("new", new)):
        other.git("update-index", "--add", "--cacheinfo", f"100644,{each},{path}")
    filled = replace(kept.manifest, entries=(big, Held("new", "file", 0o644, 10, new)))
    assert registration.strange(kept.files, filled, other.admin, kept.tree) is None
    assert registration.strange(kept.files, kept.manifest, other.admin, kept.tree) == "something is staged"


def test_a_log_that_gits_gc_has_written_anew_between_two_attempts_is_ours(lane: Lane) -> None:
    kept, other, _ = lost(lane)
    attempt(other, kept)
    before = state(other)
    log = os.path.join(other.admin, b"logs/HEAD")
    captured = read_file(log)
    other.git("reflog", "expire", "--expire=never", "--all")
    assert read_file(log) != captured  # a line without a message has a tab now
    attempt(other, kept)
    assert state(other) == before


def test_a_new_worktree_is_ours_without_a_snapshot(lane: Lane) -> None:
    others_settings(lane)
    sparse_elsewhere(lane)
    kept = keep(lane)
    other = anew(lane.world, kept)
    bare = replace(kept.manifest, registration=())
    assert os.path.exists(within(other, "config.worktree"))
    assert registration.strange(None, bare, other.admin, kept.tree) is None
    other.git("reset", "-q", "--hard")
    assert registration.strange(None, bare, other.admin, kept.tree) is None
    put(other, "MERGE_HEAD")
    assert registration.strange(None, bare, other.admin, kept.tree) == "there is a merge in progress"


def test_the_registration_of_another_tree_is_left_alone(lane: Lane) -> None:
    kept, other, _ = lost(lane)
    before = state(other)
    os.rename(other.path, other.path + b"-moved")
    with pytest.raises(RegistrationUnreadable):
        registration.put_back(kept.files, kept.manifest, other.admin, other.path + b"-moved", kept.tree)
    assert state(other) == before


def test_a_damaged_file_is_not_put_back(lane: Lane) -> None:
    kept, other, _ = lost(lane)
    digest = next(each.sha256 for each in kept.manifest.registration if each.name == "large")
    with open(os.path.join(lane.directory(), b"files", digest.encode()), "r+b") as file:
        file.write(b"damaged")
    with pytest.raises(SnapshotDamaged):
        attempt(other, kept)
    assert not os.path.lexists(within(other, "large"))


def test_a_snapshot_of_format_1_is_put_back(lane: Lane) -> None:
    commit(lane, "file", "more\n")
    first = manifest_of(lane, 1)
    kept = keep(lane)
    other = anew(lane.world, kept)
    attempt(other, replace(kept, manifest=first))
    for each in first.registration:
        if each.name != "index":
            assert read_file(os.path.join(other.admin, unpack(each.name))) == kept.files.read(each.sha256)
    assert not os.path.lexists(within(other, "index"))
    assert [each.name for each in registration.index_files(first.registration)] == ["index"]


def test_a_branch_without_a_commit_is_checked_out_at_the_snapshots_commit(lane: Lane) -> None:
    kept = keep(lane)
    other = anew(lane.world, kept)
    unborn = replace(kept.manifest, head="", registration=())
    assert registration.strange(kept.files, unborn, other.admin, {}) is None
    elsewhere = replace(unborn, commit="1" * 40)
    assert registration.strange(kept.files, elsewhere, other.admin, {}) == "HEAD has moved"
