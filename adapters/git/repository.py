"""Where a repository is, found the way git finds it, without a process."""

from __future__ import annotations

import os
import stat

import msgspec

from adapters.files.durable import read_file
from adapters.files.errors import FilesError, words
from adapters.git.errors import RegistrationUnreadable


class Found(msgspec.Struct, frozen=True):
    """A repository as seen from one place, in canonical paths; `top_level` is None inside a git directory."""

    common_dir: bytes
    git_dir: bytes
    top_level: bytes | None
    linked: bool


def find_repository(path: bytes) -> Found | None:
    """Returns the repository around the path; raises RegistrationUnreadable where git would stop, too."""
    place = os.path.realpath(path)
    while True:
        if found := repository_at(place):
            return found
        if place == b"/":
            return None
        place = os.path.dirname(place)


def repository_at(place: bytes) -> Found | None:
    """Returns the repository whose worktree or git directory is exactly this directory."""
    dot_git = os.path.realpath(os.path.join(place, b".git"))  # git follows a link here
    kind = kind_of(dot_git)
    if kind == stat.S_IFREG:
        # Never on to the parent from here: it would answer for the repository around this worktree.
        git_dir = pointer(dot_git)
        if not is_git_directory(git_dir):
            raise RegistrationUnreadable(dot_git, "names no git directory")
        return found_in(git_dir, place)
    if kind == stat.S_IFDIR and is_git_directory(dot_git):
        return found_in(dot_git, place)
    return found_in(place, None) if is_git_directory(place) else None


def found_in(git_dir: bytes, top_level: bytes | None) -> Found:
    """Returns the repository of a git directory."""
    git_dir = os.path.realpath(git_dir)
    common = common_directory(git_dir)
    return Found(common_dir=common, git_dir=git_dir, top_level=top_level, linked=common != git_dir)


def common_directory(git_dir: bytes) -> bytes:
    """Returns the directory that all worktrees of a repository share; raises RegistrationUnreadable."""
    named = content(os.path.join(git_dir, b"commondir"))
    return os.path.realpath(git_dir if named is None else os.path.join(git_dir, named))


def is_git_directory(path: bytes) -> bool:
    """Returns whether the directory has what git asks of a repository: HEAD, objects and refs."""
    # A link, as old versions of git made it, or a file; nothing else.
    if kind_of(os.path.join(path, b"HEAD")) not in (stat.S_IFREG, stat.S_IFLNK):
        return False
    common = common_directory(path)
    return all(os.path.isdir(os.path.join(common, name)) for name in (b"objects", b"refs"))


def pointer(dot_git: bytes) -> bytes:
    """Returns the directory that a `.git` file names, absolute; raises RegistrationUnreadable."""
    text = content(dot_git)
    if text is None or not text.startswith(GITDIR) or len(text) == len(GITDIR):
        raise RegistrationUnreadable(dot_git, "does not name a git directory")
    return os.path.join(os.path.dirname(dot_git), text.removeprefix(GITDIR))


def content(path: bytes) -> bytes | None:
    """Returns what a one-line file says, or None if there is none; raises RegistrationUnreadable."""
    try:
        return read_file(path).rstrip(b"\r\n")
    except FileNotFoundError:
        return None
    except NotADirectoryError:  # a file on the way to it, or a link to its directory
        resolved = canonical(path)
        return None if resolved == path else content(resolved)
    except (OSError, FilesError) as error:
        raise RegistrationUnreadable(path, words(error)) from error


def kind_of(path: bytes) -> int | None:
    """Returns what is at the path, a link being a link, or None; raises RegistrationUnreadable."""
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RegistrationUnreadable(path, words(error)) from error


def canonical(path: bytes) -> bytes:
    """Returns the path with its directory resolved, as far as that exists; the last name is kept."""
    directory, name = os.path.split(path)
    return os.path.join(os.path.realpath(directory), name)


GITDIR = b"gitdir: "
