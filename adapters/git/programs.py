"""Which programs git's configuration names that no single option of git takes away.

Whether there are any is seen without a process: a look at a lane is to cost one. Their names come from git.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from functools import lru_cache
from typing import TYPE_CHECKING

from adapters.files.descriptors import owned
from adapters.git.repository import common_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def configured(program: bytes, environment: Mapping[str, str], git_dir: bytes | None) -> bytes | None:
    """Returns the text of the files that git takes settings from, or None where one cannot be read.

    What they include is not followed. Raises RegistrationUnreadable.
    """
    if git_dir is None:
        return None
    home, xdg = environment.get("HOME", "/nonexistent"), environment.get("XDG_CONFIG_HOME")
    users = [os.path.join(xdg or f"{home}/.config", "git/config"), f"{home}/.gitconfig"]
    own = [os.path.join(common_directory(git_dir), b"config")]
    own += [os.path.join(git_dir, b"config.worktree")]
    paths = [*system_files(program, environment.get("PATH", "")), *map(os.fsencode, users), *own]
    try:
        return b"\0".join(map(_content, paths))
    except OSError:
        return None


def _content(path: bytes) -> bytes:
    """Returns what git reads there, through links; nothing where nothing is. Raises OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    with owned(descriptor):
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > LIMIT:
            raise OSError(errno.EINVAL, "not a short file", path)
        return os.read(descriptor, status.st_size)


@lru_cache(16)
def system_files(program: bytes, path: str) -> tuple[bytes, ...]:
    """Returns where the whole system's settings may be: git does not tell where before there are some."""
    place = os.path.realpath(os.fsencode(shutil.which(os.fsdecode(program), path=path) or program))
    above = []
    while place != b"/":
        place = os.path.dirname(place)
        above.append(os.path.join(place, b"etc/gitconfig"))
    return tuple(above)


def names_programs(text: bytes) -> bool:
    """Tells whether these settings may name filters or hooks, by themselves or in what they include."""
    return NAMING.search(text) is not None


def includes(text: bytes) -> bool:
    """Tells whether these settings may have others read as well."""
    return INCLUDING.search(text) is not None


def neutral(settings: Iterable[bytes], *, filters: bool) -> dict[str, str]:
    """Returns the environment by which the hooks and, if asked, the filters of these settings do nothing."""
    named = {setting.rpartition(b".")[0] for setting in settings}
    told = [(name + b".enabled", "false") for name in named if name.startswith(b"hook.")]
    if filters:
        drivers = [name for name in named if name.startswith(b"filter.")]
        told += [(name + key, value) for name in drivers for key, value in NO_PROGRAM]
    extra = {"GIT_CONFIG_COUNT": str(len(told))}
    for number, (key, value) in enumerate(told):
        extra |= {f"GIT_CONFIG_KEY_{number}": os.fsdecode(key), f"GIT_CONFIG_VALUE_{number}": value}
    return extra


LIMIT = 1 << 20  # bytes of a file of settings
NO_PROGRAM = ((b".clean", ""), (b".smudge", ""), (b".process", ""), (b".required", "false"))
# How a section begins: git knows no other spelling, and no blank before the word.
NAMING = re.compile(rb"\[(?:filter|hook|include)", re.IGNORECASE)
INCLUDING = re.compile(rb"\[include", re.IGNORECASE)
