"""A snapshot's objects in git: written in one fast-import as raw bytes, and read back.

The commit under the snapshot's ref has the tree as it was, so that `git diff HEAD <ref>` shows a person the
change. Its parents: HEAD; a commit of the index, so that staged blobs stay reachable; and one of whatever
only the lane's registration names. No filter runs: fast-import takes bytes as they are.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec
import trio

from adapters.files.blob import blob_hash
from adapters.files.descriptors import READ, owned
from adapters.files.durable import sync_directory
from adapters.files.errors import words
from adapters.git.door import Location
from adapters.git.errors import GitOutputUnreadable
from adapters.git.parse import OID, parse_batch_check
from adapters.git.refs import sync_names
from adapters.snapshots.beneath import Beneath
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import Held, algorithm_of, stand_in
from adapters.snapshots.unfinished import importing
from domain.paths import unpack

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterable, Iterator

    from adapters.git.conversation import Conversation
    from adapters.git.door import Git
    from adapters.git.parse import TreeEntry

PIECE = 1 << 20
# What it means that an entry is gone, or is of another kind than it was a moment ago.
REPLACED = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO)
ASKED = 500  # blobs that are asked for at once; their names fit into a pipe, so that git never waits for us
IDENTITY = b"Laneyard <laneyard@localhost> 0 +0000"  # the log knows the time and the actor
# Kept as a pack: a `git gc` or `git prune` that has read the refs before ours is there deletes loose objects
# that it does not know, and no pack that is younger than it. Level 1 takes a third more time than none and a
# third of the bytes; looking for deltas would take half as much again and save nothing.
IMPORT = (
    *(b"-c", b"fastimport.unpackLimit=1", b"-c", b"core.compression=1", b"-c", b"pack.compression=1"),
    *(b"fast-import", b"--quiet", b"--force", b"--done", b"--depth=0"),
)


class Moving(Exception):
    """A file changed while it was read."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a snapshot's commits are to be: `head` is empty where HEAD is unborn.

    `staged` turns the head's tree into the index's; `commits` and `others` (ids and whether it is a tree)
    are kept alive; `outside` names held paths that are not in the commit, `gone` those that the head has and
    the commit has not, `present` blobs that git has. `links` are the commits that submodules are at.
    """

    ref: str
    head: str
    held: Sequence[Held]
    gone: Sequence[bytes] = ()
    outside: frozenset[bytes] = frozenset()
    staged: bytes = b""
    commits: tuple[str, ...] = ()
    others: tuple[tuple[str, bool], ...] = ()
    present: frozenset[str] = frozenset()
    links: Mapping[bytes, str] = {}


class Written(msgspec.Struct, frozen=True):
    """The commits of a snapshot: the worktree's, the index's, and one that keeps alive, if there is one."""

    commit: str
    index: str
    keep: str


async def write(git: Git, common: bytes, root: bytes, plan: Plan, note: bytes) -> Written:
    """Writes the snapshot's objects durably and its ref; the `note` is a file by which a killed one is known.

    Nobody else may use the same. Raises GitFailed, Moving where a file is not as long as it was, or OSError.
    """
    async with importing(git, common, IMPORT, note) as conversation:
        await conversation.send(_beginning(plan))
        await _send_all(conversation, root, plan)
        marks = (b"1", b"2", b"3") if plan.commits or plan.others else (b"1", b"3")
        await conversation.send(b"\n" + b"".join(b"get-mark :%b\n" % mark for mark in marks) + b"done\n")
        oids = [await _object_id(conversation) for _ in marks]
        await conversation.finish()
    return Written(oids[-1], oids[0], oids[1] if len(oids) == 3 else "")


async def _object_id(conversation: Conversation) -> str:
    line = await conversation.line()
    if not OID.fullmatch(line):
        raise GitOutputUnreadable("fast-import", line)
    return line.decode("ascii")


def _beginning(plan: Plan) -> bytes:
    """Returns everything up to the worktree's own changes."""
    head = plan.head.encode()
    text = _commit(plan.ref, 1, b"the index", [head] if head else []) + plan.staged
    parents = [b":1"]
    if plan.commits or plan.others:
        named = [oid.encode() for oid in plan.commits]
        text += _commit(plan.ref, 2, b"what only the registration names", named) + b"deleteall\n"
        for oid, is_tree in plan.others:
            text += b"M %b %b %b\n" % (b"040000" if is_tree else b"100644", oid.encode(), oid.encode())
        parents.append(b":2")
    return text + _commit(plan.ref, 3, b"the worktree", [head, *parents] if head else parents, root=not head)


def _commit(ref: str, mark: int, message: bytes, parents: Sequence[bytes], *, root: bool = False) -> bytes:
    """Begins a commit; its tree is that of its first parent, or empty where it has none or is a `root`."""
    lines = [b"reset " + ref.encode(), b""]  # or it would go on from the commit before
    lines += [b"commit " + ref.encode(), b"mark :%d" % mark, b"committer " + IDENTITY]
    lines += [b"data %d\n%b" % (len(message), message)]
    if parents and not root:
        lines.append(b"from " + parents[0])
        parents = parents[1:]
    return b"\n".join([*lines, *(b"merge " + parent for parent in parents)]) + b"\n"


async def _send_all(conversation: Conversation, root: bytes, plan: Plan) -> None:
    changes = _together(_changes(root, plan))
    try:
        while piece := await trio.to_thread.run_sync(next, changes, b""):
            await conversation.send(piece)
    except OSError as error:
        if error.errno not in REPLACED:
            raise
        raise Moving(words(error)) from error
    finally:
        changes.close()


def _together(pieces: Iterator[bytes]) -> Generator[bytes, None, None]:
    """Yields the same bytes in fewer and larger pieces."""
    gathered: list[bytes] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= PIECE:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)


def _changes(root: bytes, plan: Plan) -> Iterator[bytes]:
    """Yields what turns the tree of the first parent into the worktree's. Raises Moving, OSError."""
    outside, present = plan.outside, plan.present
    for path in plan.gone:  # before anything is put in a place that must be free
        yield b"D %b\n" % quote(path)
    for path, oid in plan.links.items():
        yield b"M 160000 %b %b\n" % (oid.encode(), quote(path))
    with Beneath(root) as beneath:
        for each in plan.held:
            path = unpack(each.path)
            if each.oid is None or path in outside:
                continue
            mode = b"120000" if each.kind == "link" else b"100755" if each.mode & 0o100 else b"100644"
            if each.apart is None and each.oid in present:
                yield b"M %b %b %b\n" % (mode, each.oid.encode(), quote(path))
                continue
            data = _content(beneath, path, each)
            yield b"M %b inline %b\ndata %d\n" % (mode, quote(path), len(data))
            yield data
            yield b"\n"


def _content(beneath: Beneath, path: bytes, held: Held) -> bytes:
    if held.apart is not None:
        return stand_in(held.apart, held.size)
    with beneath.parent(path) as (parent, name):
        if held.kind == "link":
            return os.readlink(name, dir_fd=parent)
        with owned(os.open(name, READ, dir_fd=parent)) as descriptor:
            data = os.pread(descriptor, held.size, 0)
    if len(data) != held.size:
        raise Moving(f"{os.fsdecode(path)} became shorter while it was read")
    return data


def staged_changes(entries: Mapping[bytes, tuple[int, str]], tree: Mapping[bytes, TreeEntry]) -> bytes:
    """Returns what turns the commit's tree into the index's, whose modes and ids are given by path."""
    lines = [b"D " + quote(path) for path in tree if path not in entries]
    for path, (mode, oid) in entries.items():
        known = tree.get(path)
        if known is None or known.oid != oid or known.mode != mode:
            lines.append(b"M %o %s %s" % (mode, oid.encode(), quote(path)))
    return b"".join(line + b"\n" for line in lines)


def quote(path: bytes) -> bytes:
    """Returns a path as fast-import takes it, whatever its bytes."""
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'


async def check(git: Git, common: bytes, names: Sequence[str]) -> list[tuple[str, str, int]]:
    """Returns oid, type and size of the objects that are there, in the order of their names."""
    if not names:
        return []
    text = ("\n".join(names) + "\n").encode()
    ran = await git.run(b"cat-file", b"--batch-check", repository=Location(common), stdin=text)
    return [each for each in parse_batch_check(ran.out, len(names)) if each is not None]


async def contents(git: Git, common: bytes, oids: Sequence[str]) -> AsyncGenerator[tuple[str, bytes], None]:
    """Yields the raw bytes of blobs, and is closed by whoever stops early. Raises SnapshotDamaged."""
    if not oids:
        return
    arguments = (b"cat-file", b"--batch")
    async with git.converse(*arguments, repository=Location(common)) as conversation:
        for start in range(0, len(oids), ASKED):
            asked = oids[start : start + ASKED]
            await conversation.send("".join(f"{oid}\n" for oid in asked).encode())
            for oid in asked:
                said = (await conversation.line()).split(b" ")
                if len(said) != 3 or said[1] != b"blob":
                    raise SnapshotDamaged(f"the blob {oid} is missing")
                data = await conversation.exactly(int(said[2]) + 1)
                yield oid, data[:-1]
        await conversation.finish()


async def commit_at(conversation: Conversation, oid: str) -> tuple[str, tuple[str, ...]]:
    """Returns tree and parents of a commit, by `cat-file --batch`. Raises SnapshotDamaged, GitFailed."""
    await conversation.send(oid.encode() + b"\n")
    said = (await conversation.line()).split(b" ")
    if len(said) != 3 or said[1] != b"commit":
        raise SnapshotDamaged(f"the commit {oid} is missing")
    data = await conversation.exactly(int(said[2]) + 1)
    lines = data.partition(b"\n\n")[0].decode("utf-8", "replace").split("\n")
    parents = tuple(line.removeprefix("parent ") for line in lines if line.startswith("parent "))
    return lines[0].removeprefix("tree "), parents


async def require_whole(conversation: Conversation, oids: Sequence[str]) -> dict[str, int]:
    """Reads every blob through `cat-file --batch`, hashes it again, and returns their sizes.

    That an object is there says little: the good copy of a damaged one may be the file that is to be deleted.
    Nothing more can be asked then. Raises SnapshotDamaged, GitFailed.
    """
    sizes: dict[str, int] = {}
    pending, total = iter(oids), None
    async with aclosing(conversation.objects(oids)) as found:
        async for head, data, left in found:
            if total is None:
                oid = next(pending)
                if not head.startswith(b"blob "):
                    raise SnapshotDamaged(f"the blob {oid} is missing")
                total = blob_hash(algorithm_of(oid), int(head[5:]))
            total.update(data)
            if left == 0:
                if total.hexdigest() != oid:
                    raise SnapshotDamaged(f"the blob {oid} is damaged: it has not the bytes of its name")
                sizes[oid], total = int(head[5:]), None
    return sizes


def sync_objects(common: bytes, oids: Iterable[str], ref: str) -> None:
    """Makes durable what git leaves to the file system: names in directories, objects that were there."""
    objects = os.path.join(common, b"objects")
    directories = {objects, os.path.join(objects, b"pack")}
    for oid in oids:
        name = oid.encode("ascii")
        directory = os.path.join(objects, name[:2])
        if _sync(os.path.join(directory, name[2:])):  # somebody's git wrote it, and may not have synced
            directories.add(directory)
    for directory in sorted(directories):
        sync_directory(directory)
    sync_names(common, ref.encode())


def _sync(path: bytes) -> bool:
    """Makes a file durable, if it is there."""
    try:
        descriptor = os.open(path, READ)
    except (FileNotFoundError, NotADirectoryError):
        return False
    with owned(descriptor):
        os.fsync(descriptor)
    return True
