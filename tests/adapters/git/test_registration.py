from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.git.errors import ForeignLock, RegistrationUnreadable
from adapters.git.registration import (
    Registration,
    Unreadable,
    lock,
    pointers_agree,
    read_registration,
    registrations,
    repoint,
    unlock,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tests.adapters.git.conftest import Workshop

OURS = b"laneyard: 7c0d"


def laid(workshop: Workshop) -> tuple[Path, Path, bytes, bytes]:
    """A root and a lane, and the lane's git directory and path as bytes."""
    root = workshop.repository()
    lane = workshop.lane(root)
    return root, lane, os.fsencode(root / ".git/worktrees/lane"), os.fsencode(lane)


def test_a_registration_is_read_as_git_wrote_it(workshop: Workshop) -> None:
    root, lane, git_dir, path = laid(workshop)
    assert read_registration(git_dir) == Registration(
        git_dir, path + b"/.git", b"ref: refs/heads/lane", None, False
    )
    workshop.git(lane, "checkout", "-q", "--detach")
    workshop.git(root, "worktree", "lock", "--reason", "by hand", str(lane))
    registration = read_registration(git_dir)
    assert registration.head == workshop.git(root, "rev-parse", "HEAD").strip()
    assert registration.locked == b"by hand"


def test_a_lock_without_a_reason_is_a_lock(workshop: Workshop) -> None:
    root, lane, git_dir, _ = laid(workshop)
    workshop.git(root, "worktree", "lock", str(lane))
    assert read_registration(git_dir).locked == b""
    with pytest.raises(ForeignLock, match="no reason given"):
        lock(git_dir, OURS)


def test_a_lock_that_was_left_behind_is_taken_over_by_the_same_lane_only(workshop: Workshop) -> None:
    _, _, git_dir, _ = laid(workshop)
    lock(git_dir, b"laneyard: returning 4711")
    lock(git_dir, b"laneyard: edition 2 of 4711")
    assert read_registration(git_dir).locked == b"laneyard: edition 2 of 4711"
    with pytest.raises(ForeignLock, match="4711"):
        lock(git_dir, b"laneyard: edition 2 of 4712")
    assert read_registration(git_dir).locked == b"laneyard: edition 2 of 4711"


def test_all_registrations_are_listed_and_the_damaged_ones_named(workshop: Workshop) -> None:
    root, _, git_dir, _ = laid(workshop)
    common = os.fsencode(root / ".git")
    (root / ".git/worktrees/half").mkdir()
    (root / ".git/worktrees/half/commondir").touch()
    (root / ".git/worktrees/empty").mkdir()
    (root / ".git/worktrees/stray").touch()
    broken, whole = registrations(common)
    assert isinstance(broken, Unreadable)
    assert (broken.git_dir, "gitdir: missing" in broken.why) == (common + b"/worktrees/half", True)
    assert whole == read_registration(git_dir)
    assert registrations(os.fsencode(workshop.repository("other") / ".git")) == ()


def test_git_respects_our_lock(workshop: Workshop) -> None:
    root, lane, git_dir, _ = laid(workshop)
    lock(git_dir, OURS)
    lock(git_dir, OURS)
    assert b"locked " + OURS in workshop.git(root, "worktree", "list", "--porcelain")
    lane.rename(workshop.home / "elsewhere")
    workshop.git(root, "worktree", "prune")
    assert os.path.isdir(git_dir)
    unlock(git_dir, OURS)
    unlock(git_dir, OURS)
    workshop.git(root, "worktree", "prune")
    assert not os.path.isdir(git_dir)


def test_a_foreign_lock_is_respected(workshop: Workshop) -> None:
    root, lane, git_dir, _ = laid(workshop)
    workshop.git(root, "worktree", "lock", "--reason", "on a stick", str(lane))
    with pytest.raises(ForeignLock, match="on a stick") as raised:
        lock(git_dir, OURS)
    assert raised.value.reason == b"on a stick"
    with pytest.raises(ForeignLock):
        unlock(git_dir, OURS)
    assert read_registration(git_dir).locked == b"on a stick"


@pytest.mark.parametrize("relative", [False, True])
def test_a_moved_worktree_is_the_same_to_git(workshop: Workshop, relative: bool) -> None:
    root, lane, git_dir, _ = laid(workshop)
    (lane / "new").touch()
    if relative:
        (root / ".git/worktrees/lane/gitdir").write_text("../../../../lane/.git\n")
    before = workshop.git(lane, "status", "--porcelain=v2", "--branch")
    moved = workshop.home / "quarantine"
    lane.rename(moved)
    repoint(git_dir, os.fsencode(moved))
    registration = read_registration(git_dir)
    assert registration.points_to == os.fsencode(moved / ".git")
    assert registration.relative == relative
    assert pointers_agree(git_dir, os.fsencode(moved)) is None
    assert workshop.git(moved, "status", "--porcelain=v2", "--branch") == before
    if not relative:  # git before 2.48 does not look for the relative form from here
        assert os.fsencode(moved) in workshop.git(root, "worktree", "list", "--porcelain")


def test_pointers_agree_in_every_spelling(workshop: Workshop) -> None:
    _, lane, git_dir, path = laid(workshop)
    (workshop.home / "link").symlink_to(workshop.home)
    spelled = os.fsencode(workshop.home / "link/root/../lane")
    assert pointers_agree(git_dir, path) is None
    assert pointers_agree(git_dir, spelled) is None
    assert pointers_agree(os.fsencode(workshop.home / "link/root/.git/worktrees/lane"), path) is None
    (lane / ".git").write_text("gitdir: ../root/.git/worktrees/lane\n")
    assert pointers_agree(git_dir, path) is None


def test_pointers_that_disagree_say_why(workshop: Workshop) -> None:
    root, lane, git_dir, path = laid(workshop)
    other = workshop.lane(root, "other")
    assert (
        pointers_agree(git_dir, os.fsencode(other)) == "the worktree's .git file names another git directory"
    )
    assert pointers_agree(git_dir, os.fsencode(root)) == "the worktree has no .git file"
    copy = workshop.home / "copy"
    copy.mkdir()
    (copy / ".git").write_bytes((lane / ".git").read_bytes())
    assert pointers_agree(git_dir, os.fsencode(copy)) == "the registration names another worktree"
    (lane / ".git").write_text("nonsense")
    assert "does not name a git directory" in str(pointers_agree(git_dir, path))
    (lane / ".git").unlink()
    assert pointers_agree(git_dir, path) == "the worktree has no .git file"
    (lane / ".git").symlink_to(other / ".git")
    assert pointers_agree(git_dir, path) == "the worktree has no .git file"


def test_a_registration_that_cannot_be_read_is_not_an_empty_one(workshop: Workshop) -> None:
    root, _, git_dir, path = laid(workshop)
    (root / ".git/worktrees/lane/locked").mkdir()
    with pytest.raises(RegistrationUnreadable, match="locked"):
        read_registration(git_dir)
    (root / ".git/worktrees/lane/locked").rmdir()
    (root / ".git/worktrees/lane/gitdir").write_text("\n")
    assert "missing or empty" in str(pointers_agree(git_dir, path))
