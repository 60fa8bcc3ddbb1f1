"""One linked worktree's registration, `<common>/worktrees/<id>`: read and written file by file.

Not by `git worktree`, whose every call reads all registrations, and may repair or prune strangers' ones.
"""

from __future__ import annotations

import os
import stat

import msgspec

from adapters.files.durable import remove_file, replace, write_new
from adapters.files.errors import words
from adapters.git.errors import ForeignLock, RegistrationUnreadable
from adapters.git.repository import canonical, content, kind_of, pointer


class Registration(msgspec.Struct, frozen=True):
    """What git knows of a linked worktree: `points_to` is its `.git`, absolute; `locked` is the reason."""

    git_dir: bytes
    points_to: bytes
    head: bytes
    locked: bytes | None
    relative: bool


class Unreadable(msgspec.Struct, frozen=True):
    """A registration that is damaged, or half written or half removed by somebody else."""

    git_dir: bytes
    why: str


def read_registration(git_dir: bytes) -> Registration:
    """Returns the registration; raises RegistrationUnreadable."""
    target = said(git_dir, b"gitdir")
    return Registration(
        git_dir=git_dir,
        points_to=canonical(os.path.join(git_dir, target)),
        head=said(git_dir, b"HEAD"),
        locked=content(os.path.join(git_dir, b"locked")),
        relative=not os.path.isabs(target),
    )


def registrations(common_dir: bytes) -> tuple[Registration | Unreadable, ...]:
    """Returns every registration of the repository, in the order of their names; raises OSError.

    What is empty registers nothing, for git neither: its gc makes such directories again of lanes that have
    gone meanwhile, to lock what is no longer there.
    """
    parent = os.path.join(common_dir, b"worktrees")
    try:
        with os.scandir(parent) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return ()
    found = (attempted(os.path.join(parent, name)) for name in names)
    return tuple(each for each in found if isinstance(each, Registration) or not is_empty(each.git_dir))


def is_empty(git_dir: bytes) -> bool:
    """Tells whether a registration has no entry, or is gone; raises OSError."""
    try:
        return not os.listdir(git_dir)
    except FileNotFoundError:
        return True


def attempted(git_dir: bytes) -> Registration | Unreadable:
    """Returns the registration, or why it cannot be read."""
    try:
        return read_registration(git_dir)
    except RegistrationUnreadable as error:
        return Unreadable(git_dir, words(error))


def pointers_agree(git_dir: bytes, work_tree: bytes) -> str | None:
    """Returns None where worktree and registration name each other, and else what is wrong."""
    dot_git = os.path.join(work_tree, b".git")
    try:
        if kind_of(dot_git) != stat.S_IFREG:
            return "the worktree has no .git file"
        if os.path.realpath(pointer(dot_git)) != os.path.realpath(git_dir):
            return "the worktree's .git file names another git directory"
        if read_registration(git_dir).points_to != canonical(dot_git):
            return "the registration names another worktree"
    except RegistrationUnreadable as error:
        return words(error)
    return None


def lock(git_dir: bytes, reason: bytes) -> None:
    """Locks the worktree, or finds it locked for this reason; raises ForeignLock, OSError.

    The lane of a lock of ours is its last word: another of the same lane's was left behind, and is replaced.
    """
    path = os.path.join(git_dir, b"locked")
    try:
        write_new(path, reason + b"\n", 0o644)
    except FileExistsError:
        held = content(path) or b""
        if held == reason:
            return
        if not (held.startswith(OWN) and held.split(b" ")[-1] == reason.split(b" ")[-1]):
            raise ForeignLock(held) from None
        replace(path, reason + b"\n", 0o644)


def unlock(git_dir: bytes, reason: bytes) -> None:
    """Removes a lock that has this reason, if there is one; raises ForeignLock, OSError."""
    path = os.path.join(git_dir, b"locked")
    held = content(path)
    if held not in (None, reason):
        raise ForeignLock(held or b"")
    remove_file(path)


def repoint(git_dir: bytes, work_tree: bytes) -> None:
    """Makes the registration name the worktree, absolute or relative as before; raises OSError."""
    target = canonical(os.path.join(work_tree, b".git"))
    if read_registration(git_dir).relative:
        target = os.path.relpath(target, os.path.realpath(git_dir))
    replace(os.path.join(git_dir, b"gitdir"), target + b"\n", 0o644)


def said(git_dir: bytes, name: bytes) -> bytes:
    """Returns what a file that every registration has says; raises RegistrationUnreadable."""
    path = os.path.join(git_dir, name)
    text = content(path)
    if not text:
        raise RegistrationUnreadable(path, "missing or empty")
    return text


OWN = b"laneyard: "  # how the reason of a lock of ours begins
