from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.files.errors import LockFileHeld
from adapters.git.errors import RegistrationUnreadable
from adapters.git.heads import attach_head, detach_head, head_users, operation_in_progress, read_head

if TYPE_CHECKING:
    from pathlib import Path

    from tests.adapters.git.conftest import Workshop

TOPIC = b"refs/heads/topic"


def diverged(workshop: Workshop) -> tuple[Path, Path, bytes]:
    """A root on main, a lane on topic, each with a commit that conflicts with the other's."""
    root = workshop.repository()
    lane = workshop.lane(root, "topic")
    for place in (root, lane):
        (place / "file").write_text(f"{place.name}\n")
        workshop.git(place, "commit", "-q", "-a", "-m", "second")
    return root, lane, os.fsencode(root / ".git/worktrees/topic")


def test_a_detached_head_frees_the_branch_and_changes_nothing_else(workshop: Workshop) -> None:
    root, lane, git_dir = diverged(workshop)
    oid = workshop.git(lane, "rev-parse", "HEAD").decode().strip()
    detach_head(git_dir, oid)
    assert read_head(git_dir) == oid.encode()
    assert workshop.git(lane, "status", "--porcelain") == b""
    workshop.git(root, "checkout", "-q", "topic")
    workshop.git(root, "checkout", "-q", "main")
    attach_head(git_dir, TOPIC)
    assert workshop.git(lane, "symbolic-ref", "HEAD").strip() == TOPIC


def test_a_held_head_is_left_alone(workshop: Workshop) -> None:
    root, lane, git_dir = diverged(workshop)
    (root / ".git/worktrees/topic/HEAD.lock").touch()
    oid = workshop.git(lane, "rev-parse", "HEAD").decode().strip()
    with pytest.raises(LockFileHeld):
        detach_head(git_dir, oid)
    with pytest.raises(LockFileHeld):
        attach_head(git_dir, b"refs/heads/main")
    assert read_head(git_dir) == b"ref: " + TOPIC


def test_only_ids_and_branches_become_a_head(workshop: Workshop) -> None:
    git_dir = os.fsencode(workshop.repository() / ".git")
    for oid in ("", "HEAD", "a" * 39, "a" * 40 + "\n", "A" * 40):
        with pytest.raises(ValueError, match="object id"):
            detach_head(git_dir, oid)
    for ref in (b"", b"main", b"refs/tags/x", b"refs/heads/", b"refs/heads/a\nb"):
        with pytest.raises(ValueError, match="branch"):
            attach_head(git_dir, ref)
    assert read_head(git_dir) == b"ref: refs/heads/main"


def test_a_head_that_is_kept_elsewhere_is_not_guessed(workshop: Workshop) -> None:
    root = workshop.repository()
    (root / ".git/HEAD").write_text("ref: refs/heads/.invalid\n")
    with pytest.raises(RegistrationUnreadable, match="reftable"):
        attach_head(os.fsencode(root / ".git"), TOPIC)
    with pytest.raises(RegistrationUnreadable, match="reftable"):
        head_users(os.fsencode(root / ".git"), TOPIC)


@pytest.mark.parametrize(
    ("command", "operation"),
    [
        (("merge", "main"), "merge"),
        (("rebase", "main"), "rebase"),
        (("rebase", "--apply", "main"), "rebase"),
        (("cherry-pick", "main"), "cherry-pick"),
        (("cherry-pick", "topic", "main"), "cherry-pick"),
        (("revert", "HEAD~1"), "revert"),
        (("bisect", "start"), "bisect"),
        (("am", "../patch"), "am"),
    ],
)
def test_what_git_is_in_the_middle_of_is_seen(
    workshop: Workshop, command: tuple[str, ...], operation: str
) -> None:
    root, lane, git_dir = diverged(workshop)
    (workshop.home / "patch").write_bytes(workshop.git(root, "format-patch", "--stdout", "-1"))
    assert operation_in_progress(git_dir) is None
    workshop.git(lane, *command, check=False)
    assert operation_in_progress(git_dir) == operation


def test_every_worktree_on_a_branch_is_named(workshop: Workshop) -> None:
    root, _, git_dir = diverged(workshop)
    common = os.fsencode(root / ".git")
    assert head_users(common, b"refs/heads/main") == (common,)
    assert head_users(common, TOPIC) == (git_dir,)
    assert head_users(common, b"refs/heads/top") == ()
    attach_head(common, TOPIC)
    assert head_users(common, TOPIC) == (common, git_dir)


@pytest.mark.parametrize("command", ["rebase main", "rebase --apply main", "bisect start HEAD HEAD~1"])
def test_a_branch_to_which_git_will_return_is_in_use(workshop: Workshop, command: str) -> None:
    root, lane, git_dir = diverged(workshop)
    (lane / "third").touch()
    workshop.git(lane, "add", ".")
    workshop.git(lane, "commit", "-q", "-m", "third")
    workshop.git(lane, *command.split(), check=False)
    workshop.git(lane, "checkout", "-q", "--detach", check=False)
    assert read_head(git_dir) != b"ref: " + TOPIC
    assert head_users(os.fsencode(root / ".git"), TOPIC) == (git_dir,)


def test_a_branch_that_a_rebase_will_move_is_in_use(workshop: Workshop) -> None:
    root, lane, git_dir = diverged(workshop)
    workshop.git(lane, "branch", "below")
    (lane / "third").touch()
    workshop.git(lane, "add", ".")
    workshop.git(lane, "commit", "-q", "-m", "third")
    workshop.git(lane, "rebase", "--update-refs", "main", check=False)
    assert (root / ".git/worktrees/topic/rebase-merge/update-refs").exists()
    assert head_users(os.fsencode(root / ".git"), b"refs/heads/below") == (git_dir,)


def test_a_head_that_cannot_be_read_is_not_on_no_branch(workshop: Workshop) -> None:
    root, _, _ = diverged(workshop)
    (root / ".git/worktrees/topic/HEAD").unlink()
    (root / ".git/worktrees/topic/HEAD").mkdir()
    with pytest.raises(RegistrationUnreadable, match="HEAD"):
        head_users(os.fsencode(root / ".git"), TOPIC)
