"""What the tests of a restore from a snapshot share: how a worktree and git's view of it are looked at."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from domain.effects import Apply, CheckedOut
from tests.sagas.trees import walk

if TYPE_CHECKING:
    from domain.effects import Outcome
    from domain.evidence import Place, Snapshot
    from tests.adapters.snapshots.lanes import Lane

OLD = 1_600_000_000_123_456_789


class Fact(NamedTuple):
    """What an entry is, but for its inode."""

    mode: int
    size: int
    mtime_ns: int
    content: bytes
    xattrs: tuple[tuple[str, bytes], ...]
    twins: tuple[bytes, ...]


def look(lane: Lane) -> dict[bytes, Fact]:
    """Looks at every entry, the root among them, with the system's own calls."""
    paths = [b".", *(path for path in walk(lane.path) if path != b".git")]
    inodes: dict[int, list[bytes]] = {}
    for path in paths:
        status = os.lstat(lane.at(path))
        if stat.S_ISREG(status.st_mode):
            inodes.setdefault(status.st_ino, []).append(path)
    return {path: fact(lane.at(path), inodes) for path in paths}


def fact(path: bytes, inodes: dict[int, list[bytes]]) -> Fact:
    status, content = os.lstat(path), b""
    if stat.S_ISLNK(status.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(status.st_mode):
        with open(path, "rb") as file:
            content = file.read()
    names = sorted(os.listxattr(path, follow_symlinks=False))
    xattrs = tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in names)
    size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    twins = tuple(sorted(inodes.get(status.st_ino, ())))
    return Fact(status.st_mode, size, status.st_mtime_ns, content, xattrs, twins)


def told(lane: Lane) -> tuple[bytes, ...]:
    """Returns what git says of the lane, which writes nothing and refreshes nothing."""
    return (
        lane.git("--no-optional-locks", "diff-files"),
        lane.git("ls-files", "--stage", "-v", "-z"),
        lane.git("--no-optional-locks", "status", "--porcelain=v2", "-z", "--ignored"),
    )


def age(lane: Lane) -> None:
    """Makes everything old, each entry differently."""
    for number, path in enumerate(sorted(walk(lane.path), reverse=True)):
        if path != b".git":
            time = OLD + number * 1_000_000_007
            os.utime(lane.at(path), ns=(time, time), follow_symlinks=False)
    os.utime(lane.path, ns=(OLD, OLD))


def refresh(lane: Lane) -> None:
    """Has git look at every file once, so that it knows those that are as the index says."""
    lane.world.git(lane.path, "update-index", "-q", "--refresh", check=False)


async def fresh(lane: Lane, taken: Snapshot, *, taken_name: bool = False) -> Place:
    """Takes the lane away, however deep it is, and makes a worktree in its place.

    With `taken_name` somebody else has its registration's name by now.
    """
    home = os.fsencode(lane.world.home)
    os.rename(lane.path, os.path.join(home, b"aside-%d" % len(os.listdir(home))))
    lane.world.git(lane.world.root, "worktree", "prune")
    if taken_name:
        os.makedirs(lane.admin)
    made = await lane.perform(lane.checking_out(taken.head or taken.commit))
    assert isinstance(made, CheckedOut)
    return made.place


async def apply(lane: Lane, taken: Snapshot, place: Place) -> Outcome:
    return await lane.perform(Apply(repository=lane.repository, place=place, snapshot=taken))


def stale_paths(lane: Lane) -> tuple[bytes, ...]:
    """Returns the paths that git would have to look at."""
    listed = lane.git("--no-optional-locks", "diff-files", "--name-only", "-z")
    return tuple(path for path in listed.split(b"\0")[:-1] if os.path.lexists(lane.at(path)))


ATTRIBUTES = b"""\
*.crlf text eol=crlf
*.id ident
*.wide text working-tree-encoding=UTF-16LE-BOM
"""
CONVERTIBLE = {
    b"lines.crlf": b"one\ntwo\n",
    b"mixed.crlf": b"one\r\ntwo\n",
    b"id.id": b"$Id$\n",
    b"other.id": b"$Id: something else $\n",
    b"text.wide": b"text\n",
    b"sub/deeper/lines.crlf": b"one\n" * 10_000,
}


def convertible(lane: Lane) -> None:
    """Puts files into the lane that a checkout would convert, some of them committed."""
    lane.write(b".gitattributes", ATTRIBUTES)
    for path, data in CONVERTIBLE.items():
        lane.write(path, data)
    lane.world.git(lane.path, "-c", "core.autocrlf=false", "add", ".gitattributes", "*.crlf", "*.id")
    lane.git("commit", "-q", "-m", "convertible")
