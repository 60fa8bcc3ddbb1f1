"""Repositories inside a lane that cannot go with it: others are tied to where they are."""

from __future__ import annotations

import os
import stat

from adapters.git.repository import GITDIR, content, is_git_directory, kind_of


def neighbour(directory: bytes, admin: bytes) -> str | None:
    """Returns the kind of obstacle that the repository in this directory of a lane is, or None.

    A worktree of another repository is registered there; a repository may have worktrees elsewhere. One of a
    submodule, whose git directory is in the lane's own registration, is neither.
    Raises RegistrationUnreadable, OSError.
    """
    dot_git = os.path.join(directory, b".git")
    kind = kind_of(dot_git)
    if kind == stat.S_IFDIR:
        return "nested-worktrees" if _has_worktrees(dot_git) else None
    if kind != stat.S_IFREG:
        return None
    text = content(dot_git) or b""
    if not text.startswith(GITDIR):  # a file like any other
        return None
    target = os.path.realpath(os.path.join(directory, text.removeprefix(GITDIR)))
    ours = os.path.join(os.path.realpath(admin), b"modules", b"")
    return "linked-worktree" if not target.startswith(ours) and is_git_directory(target) else None


def _has_worktrees(git_dir: bytes) -> bool:
    """Tells whether a repository has linked worktrees: git removes the directory with the last one."""
    worktrees = os.path.join(git_dir, b"worktrees")
    return kind_of(worktrees) is not None and bool(os.listdir(worktrees))
