"""Which branch each worktree has, changed by git's own lock protocol, and what git is busy with there."""

from __future__ import annotations

import os
import re

from adapters.files.durable import write_locked
from adapters.git.errors import RegistrationUnreadable
from adapters.git.repository import content, kind_of


def detach_head(git_dir: bytes, oid: str) -> None:
    """Makes HEAD name the commit itself; raises LockFileHeld, RegistrationUnreadable, OSError."""
    if not OID.fullmatch(oid):
        raise ValueError(f"not an object id: {oid!r}")
    write_head(git_dir, oid.encode())


def attach_head(git_dir: bytes, ref: bytes) -> None:
    """Makes HEAD name the branch, a full name; raises LockFileHeld, RegistrationUnreadable, OSError."""
    if not BRANCH.fullmatch(ref):
        raise ValueError(f"not the full name of a branch: {ref!r}")
    write_head(git_dir, b"ref: " + ref)


def write_head(git_dir: bytes, text: bytes) -> None:
    """Writes HEAD under `HEAD.lock`, where HEAD is a file of its own."""
    read_head(git_dir)
    write_locked(os.path.join(git_dir, b"HEAD"), text + b"\n")


def read_head(git_dir: bytes) -> bytes | None:
    """Returns what HEAD says, or None if there is none; raises RegistrationUnreadable."""
    path = os.path.join(git_dir, b"HEAD")
    text = content(path)
    if text == b"ref: refs/heads/.invalid":
        raise RegistrationUnreadable(path, "HEAD is kept in a reftable")
    return text


def operation_in_progress(git_dir: bytes) -> str | None:
    """Returns what git has begun here and waits to continue, or None; raises RegistrationUnreadable."""
    for name, operation in OPERATIONS:
        if kind_of(os.path.join(git_dir, name)) is not None:
            return operation
    return None


def head_users(common_dir: bytes, ref: bytes) -> tuple[bytes, ...]:
    """Returns the git directories, the main one first, that are on the branch or will return to it.

    Raises RegistrationUnreadable where that cannot be known, and OSError.
    """
    return tuple(git_dir for git_dir in git_directories(common_dir) if ref in branches_of(git_dir))


def git_directories(common_dir: bytes) -> list[bytes]:
    """Returns the git directory of every worktree, the main one first; raises OSError."""
    parent = os.path.join(common_dir, b"worktrees")
    try:
        with os.scandir(parent) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        names = []
    return [common_dir, *(os.path.join(parent, name) for name in names)]


def branches_of(git_dir: bytes) -> set[bytes]:
    """Returns the full names of all branches that a worktree has checked out or keeps for later."""
    head = read_head(git_dir) or b""
    branches = {head.removeprefix(b"ref:").strip()} if head.startswith(b"ref:") else set()
    # One listing instead of a failed look for each: nearly every worktree has none of these.
    try:
        names = os.listdir(git_dir)
    except FileNotFoundError:  # removed since the listing: on no branch any more
        return set()
    for name, read in KEPT.items():
        if name.partition(b"/")[0] in names:
            branches |= read(content(os.path.join(git_dir, name)) or b"")
    return branches


def ref_itself(text: bytes) -> set[bytes]:
    """Reads a file that has the full name of the branch to return to, or `detached HEAD`."""
    return {text}


def bisected(text: bytes) -> set[bytes]:
    """Reads where a bisection began: a branch's short name, or a commit."""
    return {b"refs/heads/" + text.removeprefix(b"refs/heads/")}


def to_move(text: bytes) -> set[bytes]:
    """Reads the branches that a rebase will move, three lines each: name, old and new commit."""
    return set(text.split(b"\n")[::3])


OID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
BRANCH = re.compile(rb"refs/heads/[^\x00-\x20\x7f]+")
KEPT = {
    b"rebase-merge/head-name": ref_itself,
    b"rebase-apply/head-name": ref_itself,
    b"rebase-merge/update-refs": to_move,
    b"BISECT_START": bisected,
}
# A rebase stops in merges and picks of its own, so it comes first; `applying` tells `am` from `rebase`.
OPERATIONS = (
    (b"rebase-merge", "rebase"),
    (b"rebase-apply/applying", "am"),
    (b"rebase-apply", "rebase"),
    (b"MERGE_HEAD", "merge"),
    (b"CHERRY_PICK_HEAD", "cherry-pick"),
    (b"REVERT_HEAD", "revert"),
    (b"sequencer", "sequencer"),
    (b"BISECT_LOG", "bisect"),
    (b"BISECT_START", "bisect"),
)
