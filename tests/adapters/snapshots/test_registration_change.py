"""What happens in a registration after it was captured is seen, and what says nothing new is none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from adapters.files.durable import read_file
from adapters.git.index import read_index
from adapters.performer.moving import free_branch
from adapters.snapshots.registration import registration
from domain.effects import FreeBranch, Freed
from domain.paths import pack
from tests.adapters.snapshots.registrations import (
    commit,
    conflicted,
    files_of,
    manifest_of,
    put,
    with_submodule,
    within,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.snapshots.manifest import Manifest
    from tests.adapters.snapshots.lanes import Lane


def changed(lane: Lane, manifest: Manifest, *agreed: str) -> str | None:
    found = registration.changes(files_of(lane), manifest, lane.admin, lane.head(), agreed)
    return next((each.why for each in found), None)


def busy(lane: Lane) -> None:
    """Gives a registration one of everything."""
    conflicted(lane)
    lane.git("update-ref", "refs/worktree/mine", "HEAD")
    os.symlink(b"HEAD", within(lane, "link"))
    os.mkdir(within(lane, "empty"))


def refresh(lane: Lane) -> None:
    os.utime(lane.at(b"plain"), ns=(1, 1))
    before = os.stat(within(lane, "index")).st_ino
    lane.world.git(lane.path, "update-index", "-q", "--refresh", check=False)
    assert os.stat(within(lane, "index")).st_ino != before


def split(lane: Lane) -> None:
    lane.git("update-index", "--split-index")


def touch(lane: Lane) -> None:
    for name in ("MERGE_HEAD", "logs", "logs/HEAD", "index"):
        os.utime(within(lane, name), ns=(1, 1))


@pytest.mark.parametrize(
    "act",
    [
        lambda lane: None,
        refresh,
        split,
        touch,
        lambda lane: put(lane, "gc.log", b"error: something\n"),
        lambda lane: put(lane, ".laneyard-deleted"),
        lambda lane: put(lane, "locked", b"by us\n"),
        lambda lane: os.chmod(within(lane, "index"), 0o600),
        lambda lane: os.rmdir(within(lane, "empty")),
        lambda lane: os.makedirs(within(lane, "refs/bisect")),
        lambda lane: lane.git("update-index", "--force-write-index"),
        lambda lane: lane.git("status"),
    ],
)
def test_what_says_nothing_new_is_no_change(lane: Lane, act: Callable[[Lane], object]) -> None:
    busy(lane)
    manifest = manifest_of(lane)
    act(lane)
    assert changed(lane, manifest) is None


def test_the_refresh_of_a_split_index_is_no_change(lane: Lane) -> None:
    split(lane)
    manifest = manifest_of(lane)
    refresh(lane)
    assert changed(lane, manifest) is None


STAGED = "what is staged is not as it was captured"


@pytest.mark.parametrize(
    ("act", "why"),
    [
        (lambda lane: lane.git("add", "file"), STAGED),
        (lambda lane: lane.git("update-index", "--assume-unchanged", "plain"), STAGED),
        (lambda lane: lane.git("update-index", "--chmod=+x", "plain"), STAGED),
        (lambda lane: os.unlink(within(lane, "index")), ".git/index is missing, and was captured"),
        (lambda lane: os.unlink(within(lane, "MERGE_HEAD")), ".git/MERGE_HEAD is missing, and was captured"),
        (lambda lane: put(lane, "MERGE_MSG", b"x"), ".git/MERGE_MSG is not as it was captured"),
        (lambda lane: put(lane, "logs/HEAD", b"x"), ".git/logs/HEAD is not as it was captured"),
        (lambda lane: put(lane, "rebase-merge/done"), ".git/rebase-merge/done is new"),
        (lambda lane: put(lane, "refs/worktree/index"), ".git/refs/worktree/index is new"),
        (lambda lane: put(lane, "refs/worktree/gc.log"), ".git/refs/worktree/gc.log is new"),
        (lambda lane: put(lane, "refs/worktree/sharedindex.1"), ".git/refs/worktree/sharedindex.1 is new"),
        (lambda lane: os.chmod(within(lane, "MERGE_MSG"), 0o600), ".git/MERGE_MSG has another mode than"),
        (lambda lane: os.mkfifo(within(lane, "pipe")), "there is a new special-file: .git/pipe"),
        (lambda lane: relinked(lane, b"index"), ".git/link is not as it was captured"),
        (lambda lane: relinked(lane, None), ".git/link is not as it was captured"),
        (lambda lane: os.rename(within(lane, "empty"), within(lane, "filled")), None),
    ],
)
def test_a_change_is_seen(lane: Lane, act: Callable[[Lane], object], why: str | None) -> None:
    busy(lane)
    manifest = manifest_of(lane)
    act(lane)
    found = changed(lane, manifest)
    assert found == why if why is None or found is None else found.startswith(why)


def relinked(lane: Lane, target: bytes | None) -> None:
    os.unlink(within(lane, "link"))
    if target is None:
        os.mkdir(within(lane, "link"))
    else:
        os.symlink(target, within(lane, "link"))


def test_a_head_that_has_moved_is_seen(lane: Lane) -> None:
    manifest = manifest_of(lane)
    after = commit(lane, "file", "more\n")
    assert f"HEAD is at {after}" in (changed(lane, manifest) or "")


def test_what_a_consent_names_is_no_change_with_all_below_it(lane: Lane) -> None:
    manifest = manifest_of(lane)
    put(lane, "rebase-merge/done")
    os.mkfifo(within(lane, "rebase-merge/pipe"))
    assert changed(lane, manifest) is not None
    assert changed(lane, manifest, "rebase-merge") is not None
    assert changed(lane, manifest, ".git/rebase-merge/done") is not None
    assert changed(lane, manifest, ".git/rebase-merge") is None
    assert changed(lane, manifest, ".git/rebase-merge/done", ".git/rebase-merge/pipe") is None


def test_an_index_where_none_was_is_seen_when_it_says_something(lane: Lane) -> None:
    data = read_file(within(lane, "index"))
    os.unlink(within(lane, "index"))
    manifest = manifest_of(lane)
    lane.git("read-tree", "--empty")
    assert changed(lane, manifest) is None
    put(lane, "index", data)
    assert changed(lane, manifest) == "something is staged, and nothing was"


async def test_a_lane_that_is_put_away_has_not_changed(lane: Lane) -> None:
    manifest = manifest_of(lane)
    log = read_file(within(lane, "logs/HEAD"))
    freeing = FreeBranch(
        repository=lane.repository, admin=pack(lane.admin), head=lane.head(), branch="refs/heads/work"
    )
    freed = await free_branch(lane.means, freeing)
    assert freed == Freed()
    assert lane.git("rev-parse", "--symbolic-full-name", "HEAD").strip() == b"HEAD"
    assert read_file(within(lane, "logs/HEAD")) == log
    assert changed(lane, manifest) is None


def test_a_snapshot_of_format_1_knows_the_same_changes(lane: Lane) -> None:
    manifest = manifest_of(lane, 1)
    assert [each.name for each in manifest.registration] == ["ORIG_HEAD", "index", "logs/HEAD"]
    refresh(lane)
    assert changed(lane, manifest) is None
    put(lane, "refs/worktree/mine", lane.head().encode())
    assert changed(lane, manifest) == ".git/refs/worktree/mine is new"
    assert changed(lane, manifest, ".git/refs/worktree/mine") is None


def test_a_consent_to_lose_an_operation_covers_the_files_that_format_1_had_not(lane: Lane) -> None:
    conflicted(lane)
    manifest = manifest_of(lane, 1)
    assert changed(lane, manifest) is not None
    assert changed(lane, manifest, "merge") is not None
    assert changed(lane, manifest, ".git/merge") is None
    assert changed(lane, replace(manifest, format=2), ".git/merge") is not None
    lane.git("add", "file")
    assert changed(lane, manifest, ".git/merge") == STAGED


@pytest.mark.slow
def test_what_happens_in_a_submodule_is_seen(lane: Lane) -> None:
    with_submodule(lane)
    manifest = manifest_of(lane)
    module = lane.at(b"libs/sub")
    os.utime(os.path.join(module, b"file"), ns=(1, 1))
    index = within(lane, "modules/libs/sub/index")
    before = os.stat(index).st_ino
    lane.world.git(module, "update-index", "-q", "--refresh")
    assert os.stat(index).st_ino != before
    put(lane, "modules/libs/sub/gc.log")
    assert changed(lane, manifest) is None
    put(lane, "modules/libs/sub/refs/heads/gc.log", lane.head().encode())
    assert changed(lane, manifest) == ".git/modules/libs/sub/refs/heads/gc.log is new"
    os.unlink(within(lane, "modules/libs/sub/refs/heads/gc.log"))
    with open(os.path.join(module, b"file"), "ab") as file:
        file.write(b"more")
    lane.world.git(module, "add", "file")
    why = changed(lane, manifest)
    assert why is not None
    assert why.startswith((".git/modules/libs/sub/objects/", "what is staged in .git/modules/libs/sub"))


def test_what_is_staged_is_compared_by_what_it_says(lane: Lane) -> None:
    lane.git("add", "-N", "--", "sub")
    manifest = manifest_of(lane)
    lane.write(b"new", b"new\n")
    lane.git("add", "-N", "new")
    assert changed(lane, manifest) == STAGED
    data = read_file(within(lane, "index"))
    assert [each.path for each in read_index(data, 20).entries if each.intent_to_add] == [b"new"]
