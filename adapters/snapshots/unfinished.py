"""The pack that a git of ours is writing, which has no lasting name yet: it goes where git fails, or we die.

Git leaves it for two weeks, and on a full disk it is what fills the disk. Another git's is never touched:
ours is known by the file that our process has open, and later by that file's inode.
"""

from __future__ import annotations

import os
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from adapters.git.door import Location
from adapters.git.errors import GitError
from adapters.git.registration import is_empty

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from adapters.git.conversation import Conversation
    from adapters.git.door import Git

BEGINNING = b"tmp_pack_"
CRASHED = b"fast_import_crash_"


@asynccontextmanager
async def importing(
    git: Git, common: bytes, arguments: tuple[bytes, ...], note: bytes
) -> AsyncIterator[Conversation]:
    """Opens a fast-import that has begun with `feature done`, and leaves nothing half made of it.

    What an earlier one has left that is known by the same note goes first. Raises GitError, OSError.
    """
    unfinished = Unfinished(common, note)
    unfinished.clear()
    try:
        async with git.converse(*arguments, repository=Location(common), write=True) as conversation:
            try:
                await conversation.send(b"feature done\nprogress begun\n")
                await conversation.line()
                unfinished.remember(conversation.pid)  # its pack is there before it answers
                yield conversation
            except GitError:
                # What git says of its end is in the error; it leaves the same in a file beside the objects.
                with suppress(OSError):  # the error counts more
                    os.unlink(os.path.join(common, CRASHED + b"%d" % conversation.pid))
                raise
    finally:
        with suppress(OSError):  # where nobody can write, what git has said of it counts more
            unfinished.clear()


def left_about(common: bytes) -> list[bytes]:
    """Returns what a git, ours or another's, has begun in a repository: it is at it, or was killed.

    A pack of ours is left for good only where we die between git's making of it and our noting its name.
    """
    objects, lanes = os.path.join(common, b"objects"), os.path.join(common, b"worktrees")
    begun = [each for each in _below(objects) if os.path.basename(each).startswith(b"tmp_")]
    begun += [os.path.join(common, name) for name in os.listdir(common) if name.startswith(CRASHED)]
    locks = [
        each for each in (*_below(os.path.join(common, b"refs")), *_below(lanes)) if each.endswith(b".lock")
    ]
    names = os.listdir(lanes) if os.path.isdir(lanes) else []
    empty = [place for name in names if is_empty(place := os.path.join(lanes, name))]
    return sorted((*begun, *locks, *empty))


def _below(place: bytes) -> Iterator[bytes]:
    for folder, _, names in os.walk(place):
        yield from (os.path.join(folder, name) for name in names)


class _Noted(msgspec.Struct, frozen=True):
    name: str
    device: int
    inode: int


class Unfinished:
    """What a git writes while nobody else writes for the same snapshot; the note of it outlives us."""

    def __init__(self, common: bytes, note: bytes) -> None:
        self._packs = os.path.join(common, b"objects/pack")
        self._note = note

    def remember(self, pid: int) -> None:
        """Notes which pack the process, or one that it has started, has open. Raises OSError."""
        name = _open_pack(pid, os.path.join(os.path.realpath(self._packs), BEGINNING))
        if name is None:
            return
        status = os.lstat(os.path.join(self._packs, name))
        noted = _Noted(os.fsdecode(name), status.st_dev, status.st_ino)
        with open(self._note, "wb") as file:
            file.write(msgspec.json.encode(noted))

    def clear(self) -> None:
        """Takes away what is noted, if it is unfinished still and the very file. Raises OSError.

        Whoever calls knows that the git that wrote it has ended.
        """
        with suppress(FileNotFoundError):
            with open(self._note, "rb") as file:
                data = file.read()
            with suppress(msgspec.DecodeError, FileNotFoundError):
                self._take_away(msgspec.json.decode(data, type=_Noted))
            os.unlink(self._note)

    def _take_away(self, noted: _Noted) -> None:
        name = os.fsencode(noted.name)
        path = os.path.join(self._packs, name)
        status = os.lstat(path)
        same = (status.st_dev, status.st_ino) == (noted.device, noted.inode)
        if same and name.startswith(BEGINNING) and b"/" not in name:
            os.unlink(path)


def _open_pack(pid: int, beginning: bytes) -> bytes | None:
    """Returns the name of the file that begins so and that the process or a child of it has open."""
    with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
        place = b"/proc/%d/fd/" % pid
        for number in os.listdir(place):
            with suppress(FileNotFoundError):
                target = os.readlink(place + number)
                if target.startswith(beginning):
                    return os.path.basename(target)
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            children = file.read().split()
        found = (_open_pack(int(each), beginning) for each in children)
        return next((each for each in found if each is not None), None)
    return None
