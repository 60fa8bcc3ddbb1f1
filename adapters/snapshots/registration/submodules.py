"""The two pointers of a submodule that is checked out in a worktree: its `.git` file, and `core.worktree`.

Both are relative, and name the worktree's registration and its directory: a worktree that is made again
elsewhere has others. The configuration is changed in one line, without git, which would follow it first.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, NamedTuple

from adapters.files.durable import read_file, replace
from adapters.git.repository import GITDIR, content, is_git_directory, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = (b"config.worktree", b"config")  # the first goes before the second where a submodule has both
HEADER = re.compile(rb'\s*\[\s*([A-Za-z0-9.-]+)\s*("(?:\\.|[^"\\])*")?\s*\]')
SETTING = re.compile(rb"\s*(worktree)[ \t]*=[ \t]*([^\n]*?)\r?$", re.IGNORECASE)
VALUE = re.compile(rb'"((?:\\.|[^"\\])*)"|((?:\\.|[^"\\#;])+)|([#;].*)')
ESCAPED = re.compile(rb"\\(.)")
LETTERS = {b"n": b"\n", b"t": b"\t", b"b": b"\b"}


class Setting(NamedTuple):
    """Where in a configuration `worktree = …` is said, from the name on to the end of the line, and what."""

    start: int
    end: int
    value: bytes


def repoint_modules(admin: bytes, root: bytes) -> tuple[bytes, ...]:
    """Makes every submodule of the registration and its directory in the tree name each other, durably.

    Returns the files that it changed; their modes and times stay. A submodule that is not checked out is left
    as it is. Raises RegistrationUnreadable, OSError.
    """
    changed: list[bytes] = []
    for git_dir in git_directories(os.path.join(admin, b"modules")):
        changed += _repoint(admin, root, git_dir)
    return tuple(changed)


def git_directories(parent: bytes) -> Iterator[bytes]:
    """Yields the git directory of each submodule, one of a submodule of it after it. Raises OSError."""
    if not os.path.isdir(parent):
        return
    with os.scandir(parent) as entries:
        paths = sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
    for path in paths:
        if is_git_directory(path):
            yield path
            yield from git_directories(os.path.join(path, b"modules"))
        else:  # the name of a submodule may have slashes
            yield from git_directories(path)


def _repoint(admin: bytes, root: bytes, git_dir: bytes) -> list[bytes]:
    found = _setting_of(git_dir)
    place = None if found is None else _place(admin, root, git_dir, found[2].value)
    if found is None or place is None:
        return []
    path, text, setting = found
    changed, dot_git = [], os.path.join(place, b".git")
    if not _leads(place, (content(dot_git) or b"").removeprefix(GITDIR), git_dir):
        _rewrite(dot_git, GITDIR + _way(place, git_dir) + b"\n")
        changed.append(dot_git)
    if not _leads(git_dir, setting.value, place):
        line = b"worktree = " + _quoted(_way(git_dir, place))
        _rewrite(path, text[: setting.start] + line + text[setting.end :])
        changed.append(path)
    return changed


def _setting_of(git_dir: bytes) -> tuple[bytes, bytes, Setting] | None:
    """Returns the file that says where the worktree of a submodule is, its text, and where it says so."""
    for name in SETTINGS:
        path = os.path.join(git_dir, name)
        if kind_of(path) == stat.S_IFREG and (setting := setting_in(text := read_file(path))):
            return path, text, setting
    return None


def setting_in(text: bytes) -> Setting | None:
    """Returns the last `core.worktree` of a configuration; one that goes on in a next line is not read."""
    found, at, in_core, goes_on = None, 0, False, False
    for line in text.splitlines(keepends=True):
        start, rest = at, line.rstrip(b"\n")
        at += len(line)
        continued, goes_on = goes_on, _goes_on(rest)
        if continued:
            continue
        if header := HEADER.match(rest):
            in_core = header[1].lower() == b"core" and header[2] is None
            start, rest = start + header.end(), rest[header.end() :]
        if in_core and not goes_on and (said := SETTING.fullmatch(rest)):
            found = Setting(start + said.start(1), start + said.end(2), _value(said[2]))
    return found


def _goes_on(line: bytes) -> bool:
    """Tells whether the next line belongs to this one's value."""
    return not line.lstrip().startswith((b"#", b";")) and (len(line) - len(line.rstrip(b"\\"))) % 2 == 1


def _value(text: bytes) -> bytes:
    """Returns what a value says: quotes and escapes undone, without a comment and the space before it."""
    said, length = b"", 0
    for quoted, plain, comment in VALUE.findall(text):
        if comment:
            break
        said += ESCAPED.sub(lambda match: LETTERS.get(match[1], match[1]), quoted or plain)
        length = len(said) if quoted else max(length, len(said.rstrip()))
    return said[:length]


def _quoted(value: bytes) -> bytes:
    """Returns a value as git writes it."""
    text = value.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n").replace(b"\t", b"\\t")
    return b'"%s"' % text if text != text.strip() or set(text) & set(b";#\r") else text


def _place(admin: bytes, root: bytes, git_dir: bytes, said: bytes) -> bytes | None:
    """Returns the directory in the tree whose `.git` file names this submodule, of whichever worktree.

    Where the worktree was is not known; the end of what `core.worktree` said is the path in it.
    """
    name = os.path.relpath(git_dir, admin)
    parts = [part for part in said.split(b"/") if part not in (b"", b".")]
    for first in range(len(parts)):
        path = os.path.join(os.path.realpath(root), *parts[first:])
        if b".." not in parts[first:] and os.path.realpath(path) == path and _is_place(path, name):
            return path
    return None


def _is_place(path: bytes, name: bytes) -> bool:
    dot_git = os.path.join(path, b".git")
    if kind_of(dot_git) != stat.S_IFREG:
        return False
    text = content(dot_git) or b""
    if not (text.startswith(GITDIR) and text.endswith(b"/" + name)):
        return False
    registration = text.removesuffix(b"/" + name)
    return os.path.basename(os.path.dirname(registration)) == b"worktrees"


def _leads(directory: bytes, way: bytes, target: bytes) -> bool:
    return bool(way) and os.path.realpath(os.path.join(directory, way)) == os.path.realpath(target)


def _way(directory: bytes, target: bytes) -> bytes:
    return os.path.relpath(os.path.realpath(target), os.path.realpath(directory))


def _rewrite(path: bytes, data: bytes) -> None:
    """Replaces a file durably, and gives it and its directory the mode and the time that they had."""
    directory = os.path.dirname(path)
    before, around = os.lstat(path), os.lstat(directory)
    replace(path, data, stat.S_IMODE(before.st_mode))
    os.chmod(path, stat.S_IMODE(before.st_mode))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(directory, ns=(around.st_atime_ns, around.st_mtime_ns))


def says_where(name: bytes) -> bool:
    """Tells whether a file of a registration may say where the worktree of a submodule is."""
    return name.startswith(b"modules/") and os.path.basename(name) in SETTINGS


def without_place(text: bytes) -> bytes:
    """Returns a configuration without the value of its `core.worktree`."""
    setting = setting_in(text)
    return text if setting is None else text[: setting.start] + text[setting.end :]
