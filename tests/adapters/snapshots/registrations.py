"""A lane whose registration is captured alone, lost, and put back into a worktree that git makes anew."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from adapters.git.parse import TreeEntry, parse_ls_tree
from adapters.snapshots.files import Files
from adapters.snapshots.manifest import Manifest, Registered
from adapters.snapshots.registration import registration
from domain.paths import pack, unpack
from tests.adapters.snapshots.lanes import Lane
from tests.sagas.trees import write

if TYPE_CHECKING:
    from tests.sagas.worlds import World

STATUS = ("status", "--porcelain=v2", "-z", "--branch", "--show-stash", "--ignored", "--untracked-files=all")
FIRST = ("index", "logs/HEAD", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG")  # all that format 1 has
ALLOWED = ("-c", "protocol.file.allow=always")
OWN = ("HEAD", "gitdir", "commondir", "locked")


class Kept(msgspec.Struct, frozen=True):
    """What was captured of a lane, and where its tree is meanwhile."""

    files: Files
    manifest: Manifest
    tree: dict[bytes, TreeEntry]
    head: bytes
    content: bytes


def files_of(lane: Lane) -> Files:
    """Returns the files of the lane's snapshot."""
    return Files(lane.directory())


def within(lane: Lane, name: str) -> bytes:
    """Returns the path of an entry of the registration."""
    return os.path.join(lane.admin, os.fsencode(name))


def put(lane: Lane, name: str, data: bytes = b"x\n", mode: int = 0o644) -> None:
    """Writes a file of the registration, past git."""
    write(within(lane, name), data, mode)


def kept(lane: Lane) -> dict[str, Registered]:
    """Keeps the registration, and returns its entries by name, in their order."""
    return {each.name: each for each in registration.keep(files_of(lane), lane.admin)}


def conflicted(lane: Lane) -> str:
    """Makes a merge that stops at a conflict, and returns the commit that is merged."""
    lane.git("checkout", "-q", "--detach")
    theirs = commit(lane, "file", "theirs\n")
    lane.git("checkout", "-q", "work")
    commit(lane, "file", "ours\n")
    lane.world.git(lane.path, "merge", theirs, check=False)
    return theirs


def with_submodule(lane: Lane, path: str = "libs/sub") -> bytes:
    """Commits a submodule in the lane and checks it out, with work in it; returns the repository it is of."""
    world = lane.world
    theirs = os.path.join(os.fsencode(world.home), b"theirs")
    if not os.path.exists(theirs):
        world.git(world.root, "init", "-q", theirs)
        write(os.path.join(theirs, b"file"), b"theirs\n")
        world.git(theirs, "add", "file")
        world.git(theirs, "commit", "-q", "-m", "theirs")
    lane.git(*ALLOWED, "submodule", "--quiet", "add", theirs, path)
    lane.git("commit", "-q", "-m", "a submodule")
    return theirs


def commit(lane: Lane, path: str, data: str, message: str | None = None) -> str:
    """Commits a file, and returns the commit."""
    lane.write(path.encode(), data.encode())
    lane.git("add", "--sparse", "--", path)
    lane.git("commit", "-q", "-m", message or f"{path} becomes {data!r}")
    return lane.head()


def manifest_of(lane: Lane, number: int = 2) -> Manifest:
    """Returns a manifest that has the registration as it is, and of the tree nothing."""
    head, entries = lane.head(), registration.keep(files_of(lane), lane.admin)
    if number == 1:
        entries = tuple(replace(each, mtime_ns=0) for each in entries if each.name in FIRST)
    return Manifest(
        format=number,
        id="one",
        lane="lane",
        repository=lane.repository,
        head=head,
        branch=None,
        commit=head,
        tree="",
        file_mode=0o644,
        directory_mode=0o755,
        entries=(),
        registration=entries,
        omitted=(),
        content="",
    )


def tree_of(lane: Lane) -> dict[bytes, TreeEntry]:
    """Returns every path of the commit that HEAD is at."""
    return parse_ls_tree(lane.git("ls-tree", "-r", "-z", "--full-tree", "HEAD"))


def keep(lane: Lane) -> Kept:
    """Captures the registration, and takes the lane out of the world; its tree waits elsewhere."""
    with open(os.path.join(lane.admin, b"HEAD"), "rb") as file:
        head = file.read()
    content = os.path.join(os.fsencode(lane.world.home), b"content")
    kept = Kept(files_of(lane), manifest_of(lane), tree_of(lane), head, content)
    os.rename(lane.path, content)
    os.unlink(os.path.join(content, b".git"))
    shutil.rmtree(lane.admin)
    return kept


def anew(world: World, kept: Kept, name: str = "elsewhere") -> Lane:
    """Makes a worktree at another place, as a restore does, and fills it; its registration is git's."""
    lane = Lane.__new__(Lane)
    lane.world = world
    lane.path = os.path.join(os.fsencode(world.home), b"other", name.encode())
    lane.admin = os.path.join(world.common, b"worktrees", name.encode())
    options = ("--detach", "--no-checkout", "--lock", "--reason", "a test")
    world.git(world.root, "worktree", "add", "-q", *options, lane.path, kept.manifest.head)
    shutil.copytree(os.fsdecode(kept.content), os.fsdecode(lane.path), symlinks=True, dirs_exist_ok=True)
    return lane


def put_back(lane: Lane, kept: Kept) -> tuple[bytes, ...]:
    """Puts back what was captured, the index and HEAD as they were, and returns what was pointed anew."""
    registration.put_back(kept.files, kept.manifest, lane.admin, lane.path, kept.tree)
    for each in registration.index_files(kept.manifest.registration):
        path = os.path.join(lane.admin, unpack(each.name))
        write(path, kept.files.read(each.sha256), each.mode)
        os.utime(path, ns=(each.mtime_ns, each.mtime_ns))
    with open(os.path.join(lane.admin, b"HEAD"), "wb") as file:
        file.write(kept.head)
    return registration.repoint_modules(lane.admin, lane.path)


def restored(lane: Lane) -> Lane:
    """Loses a lane but for its tree, and returns it as it is put back at another place."""
    kept = keep(lane)
    other = anew(lane.world, kept)
    put_back(other, kept)
    return other


def state(lane: Lane) -> dict[str, tuple[int, int, bytes]]:
    """Returns mode, time of change and content of every entry of the registration but what is its own."""
    found = {}
    for directory, directories, names in os.walk(lane.admin):
        for name in (*directories, *names):
            path = os.path.join(directory, name)
            said = pack(os.path.relpath(path, lane.admin))
            if said not in OWN and said != "index":
                found[said] = _seen(path)
    return found


def _seen(path: bytes) -> tuple[int, int, bytes]:
    status = os.lstat(path)
    if os.path.islink(path):
        return status.st_mode, status.st_mtime_ns, os.readlink(path)
    if not os.path.isfile(path):
        return status.st_mode, status.st_mtime_ns, b""
    # Git sets the time of a shared index whenever it reads it.
    time = 0 if os.path.basename(path).startswith(b"sharedindex.") else status.st_mtime_ns
    with open(path, "rb") as file:
        return status.st_mode, time, file.read()


def said(lane: Lane) -> tuple[bytes, ...]:
    """Returns what git says of a lane: status, long status, index, own refs, log and settings."""
    place = os.fsencode(lane.world.home)
    answers: tuple[bytes, ...] = (
        lane.git(*STATUS),
        lane.git("status"),
        lane.git("ls-files", "--stage", "-v", "-z"),
        lane.git("ls-files", "--resolve-undo", "-z"),
        lane.git("for-each-ref"),
        lane.git("reflog", "HEAD"),
        lane.git("config", "--list"),
    )
    same = (lane.path, b"LANE"), (lane.admin, b"ADMIN"), (place, b"HOME")
    for path, instead in same:
        answers = tuple(answer.replace(path, instead) for answer in answers)
    return answers
