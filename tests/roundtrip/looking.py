"""An independent look at a lane: our own walk, and what plain git says. Nothing of the program is asked."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from tests.roundtrip.looking_git import git_says
from tests.roundtrip.within import within

if TYPE_CHECKING:
    from tests.roundtrip.scene import Scene

WHOLE = 8192  # bytes of a file that are kept as they are, so that a difference can be read
REGISTRATION_NOT = re.compile(rb"index$|sharedindex\.|locked$")
OWN_TIMES = {b"HEAD", b"gitdir", b"commondir", b"logs/HEAD", b"ORIG_HEAD"}
EXPLAINED = """\
* the refs `refs/laneyard/*`, which are ours: the snapshot itself;
* the registration's `locked`, which is our lock while a lane is put away or rebuilt;
* the raw bytes and the times of the index files, which have the inode numbers of the lane's files in them.
  What they say is compared by `git ls-files --stage -v`, `git ls-files --resolve-undo` and `git status`, and
  by their version (for a split one, 2 and 3 are the same) and by whether they are split or sparse;
* the times of the registration's directories, of its `HEAD`, `ORIG_HEAD`, `logs/HEAD`, `gitdir` and
  `commondir`, and of the lane's `.git` file, which are written when the lane is registered anew. Their bytes
  are compared;
* the times of objects of a clone inside the lane that are hard links to those of the repository itself;
* inode numbers, owners, times of access and of the last change of an inode."""


class Entry(NamedTuple):
    """One entry, as it is on the disk."""

    kind: str
    mode: int
    data: bytes
    mtime: int
    xattrs: tuple[tuple[bytes, bytes], ...]


class Walked(NamedTuple):
    """Every entry by its path, which names are one file, and what changes with every touch of an entry."""

    tree: dict[bytes, Entry]
    twins: list[tuple[bytes, ...]]
    stamps: dict[bytes, tuple[int, int, int]]


Look = dict[str, dict[bytes, object]]


def look(scene: Scene) -> Look:
    """Returns all that is compared, by aspect and then by name; what may be let go is left out."""
    place, lost = scene.place, scene.lost
    walked = walk(place)
    tree = {path: entry for path, entry in walked.tree.items() if not within(path, lost)}
    admin = admin_of(place)
    registration = walk(admin).tree
    for path in tree if scene.untimed else (b".git",):
        if path == b".git" or within(path, scene.untimed):
            tree[path] = tree[path]._replace(mtime=0)
    return {
        "tree": dict(tree),
        "hard links": dict.fromkeys(b" = ".join(each) for each in walked.twins if not within(each[0], lost)),
        "registration": {
            name: _timeless(name, entry) for name, entry in registration.items() if _counts(name)
        },
        **git_says(scene, admin, sorted(tree)),
    }


def _counts(name: bytes) -> bool:
    return b"/" in name or not REGISTRATION_NOT.match(name)


def _timeless(name: bytes, entry: Entry) -> Entry:
    own = entry.kind == "directory" or name in OWN_TIMES
    return entry._replace(mtime=0) if own else entry


def is_lane(place: bytes) -> bool:
    """Tells whether a worktree is there, with its registration."""
    return os.path.isfile(os.path.join(place, b".git")) and os.path.isdir(admin_of(place))


def admin_of(place: bytes) -> bytes:
    """Returns the registration that a lane's pointer names."""
    with open(os.path.join(place, b".git"), "rb") as file:
        return file.read().removeprefix(b"gitdir: ").rstrip(b"\n")


def stamps(place: bytes) -> object:
    """Returns what changes with every touch of the tree or of its registration."""
    own = walk(admin_of(place)).stamps
    # Git touches the shared part of a split index whenever it reads one (read-cache.c, freshen_shared_index).
    return walk(place).stamps, {name: own[name] for name in own if not name.startswith(b"sharedindex.")}


def walk(place: bytes) -> Walked:
    """Returns every entry below, and the place itself by an empty path; no link is followed."""
    found, touched = dict[bytes, Entry](), dict[bytes, tuple[int, int, int]]()
    inodes: dict[tuple[int, int], list[bytes]] = defaultdict(list)
    top = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    status = os.fstat(top)
    found[b""] = Entry(
        "directory", stat.S_IMODE(status.st_mode), b"", status.st_mtime_ns, _xattrs(b"/proc/self/fd/%d" % top)
    )
    pending = [(b"", top)]
    while pending:  # each open directory is closed as soon as it was read: its children are open by then
        prefix, descriptor = pending.pop()
        for name in sorted(os.listdir(descriptor), key=os.fsencode):
            raw = os.fsencode(name)
            path = prefix + raw
            here = b"/proc/self/fd/%d/%s" % (descriptor, raw)
            status = os.lstat(here)
            found[path] = _entry(here, status)
            touched[path] = (status.st_ino, status.st_ctime_ns, status.st_nlink)
            if stat.S_ISDIR(status.st_mode):
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
                pending.append((path + b"/", os.open(raw, flags, dir_fd=descriptor)))
            elif status.st_nlink > 1:
                inodes[status.st_dev, status.st_ino].append(path)
        os.close(descriptor)
    twins = sorted(tuple(sorted(paths)) for paths in inodes.values() if len(paths) > 1)
    return Walked(found, twins, touched)


KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link", stat.S_IFIFO: "fifo"}


def _entry(here: bytes, status: os.stat_result) -> Entry:
    kind = KINDS.get(stat.S_IFMT(status.st_mode), "other")
    data = b""
    if kind == "link":
        data = os.readlink(here)
    elif kind == "file":
        data = _content(here)
    special = kind in ("fifo", "other")
    xattrs = () if special or kind == "link" else _xattrs(here)
    return Entry(kind, stat.S_IMODE(status.st_mode), data, status.st_mtime_ns, xattrs)


def _content(here: bytes) -> bytes:
    with open(here, "rb") as file:
        data = file.read(WHOLE + 1)
        if len(data) <= WHOLE:
            return data
        total = hashlib.sha256(data)
        size = len(data)
        while piece := file.read(1 << 20):
            total.update(piece)
            size += len(piece)
    return b"%d bytes, sha256 %s" % (size, total.hexdigest().encode())


def _xattrs(here: bytes) -> tuple[tuple[bytes, bytes], ...]:
    try:
        names = sorted(os.listxattr(here))
    except OSError:  # the file system has none
        return ()
    return tuple((name.encode(), os.getxattr(here, name)) for name in names if name.startswith("user."))
