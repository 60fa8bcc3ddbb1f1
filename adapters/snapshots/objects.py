"""A snapshot's objects in git: written in one fast-import as raw bytes, and read back.

The commit under the snapshot's ref has the tree as it was, so that `git diff HEAD <ref>` shows a person the
change. Its parents: HEAD; a commit of the index, so that staged blobs stay reachable; and whatever only
HEAD's reflog knows. No filter runs: fast-import takes bytes as they are.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import aclosing
from typing import TYPE_CHECKING

import trio

from adapters.files.blob import blob_hash
from adapters.files.descriptors import DIRECTORY
from adapters.files.durable import remove_file
from adapters.files.errors import words
from adapters.files.kernel import open_beneath
from adapters.git.door import Location
from adapters.git.errors import GitError
from adapters.git.parse import HEX, parse_batch_check
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import algorithm_of
from domain.paths import unpack

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from adapters.git.conversation import Conversation
    from adapters.git.door import Git
    from adapters.git.index import Index
    from adapters.git.parse import TreeEntry
    from adapters.snapshots.manifest import Held

PIECE = 1 << 20
# What it means that an entry is gone, or is of another kind than it was a moment ago.
REPLACED = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EINVAL, errno.ENXIO)
ASKED = 500  # blobs that are asked for at once; their names fit into a pipe, so that git never waits for us
IDENTITY = b"Laneyard <laneyard@localhost> 0 +0000"  # the log knows the time and the actor


OID = re.compile(HEX)
# Refs of one worktree only: they end with what git is busy with there.
PASSING = (b"--exclude=refs/bisect/*", b"--exclude=refs/rewritten/*", b"--exclude=refs/worktree/*")


class Moving(Exception):
    """A file changed while it was read."""


async def write(
    git: Git,
    common: bytes,
    root: bytes,
    ref: str,
    head: str,
    held: Sequence[Held],
    staged: bytes,
    keep: Sequence[str],
) -> tuple[str, str]:
    """Writes the snapshot's objects durably and its ref, and returns its commit and tree.

    Raises GitFailed, Moving where a file is not as long as it was, or OSError.
    """
    # Kept as a pack: a `git gc` or `git prune` that has read the refs before ours is there deletes loose
    # objects that it does not know, and no pack that is younger than it.
    arguments = (b"-c", b"fastimport.unpackLimit=1", b"fast-import", b"--quiet", b"--force", b"--done")
    async with git.converse(*arguments, repository=Location(common), write=True) as conversation:
        try:
            await conversation.send(b"feature done\n" + _commit(ref, 1, b"the index", head, ()) + staged)
            parents = (b":1", *(each.encode() for each in keep))
            await conversation.send(_commit(ref, 2, b"the worktree", head, parents))
            await _send_all(conversation, root, held)
            await conversation.send(b"\nget-mark :2\ndone\n")
            commit = (await conversation.line()).decode("ascii")
            await conversation.finish()
        except GitError:
            # What git says of its end is in the error; it leaves the same in a file beside the objects.
            remove_file(os.path.join(common, b"fast_import_crash_%d" % conversation.pid))
            raise
    tree = await check(git, common, [f"{commit}^{{tree}}"])
    if [kind for _, kind, _ in tree] != ["tree"]:
        raise SnapshotDamaged(f"the commit {commit} that was just written is not there")
    return commit, tree[0][0]


async def _send_all(conversation: Conversation, root: bytes, held: Sequence[Held]) -> None:
    directory = os.open(root, DIRECTORY)
    try:
        for each in sorted(held, key=lambda item: item.kind != "absent"):
            try:
                await _send(conversation, directory, each)
            except OSError as error:
                if error.errno not in REPLACED:
                    raise
                raise Moving(words(error)) from error
    finally:
        os.close(directory)


def _commit(ref: str, mark: int, message: bytes, head: str, parents: Iterable[bytes]) -> bytes:
    lines = [b"commit " + ref.encode(), b"mark :%d" % mark, b"committer " + IDENTITY]
    lines += [b"data %d\n%s" % (len(message), message), b"from " + head.encode()]
    lines += [b"merge " + parent for parent in parents]
    return b"\n".join(lines) + b"\n"


def staged_changes(index: Index, tree: dict[bytes, TreeEntry]) -> bytes:
    """Returns what turns the commit's tree into the index's. Intent-to-add has no content yet."""
    entries = {each.path: each for each in index.entries if each.stage == 0 and not each.intent_to_add}
    lines = [b"D " + quote(path) for path in tree if path not in entries]
    for path, each in entries.items():
        known = tree.get(path)
        if known is None or (known.mode, known.oid) != (each.mode, each.oid):
            lines.append(b"M %o %s %s" % (each.mode, each.oid.encode(), quote(path)))
    return b"".join(line + b"\n" for line in lines)


async def _send(conversation: Conversation, directory: int, held: Held) -> None:
    path = unpack(held.path)
    if held.kind == "absent":
        await conversation.send(b"D " + quote(path) + b"\n")
    elif held.kind == "link":
        target = os.readlink(path, dir_fd=directory)
        await conversation.send(b"M 120000 inline %s\ndata %d\n%s\n" % (quote(path), len(target), target))
    elif held.kind == "file":
        mode = b"100755" if held.mode & 0o100 else b"100644"
        await conversation.send(b"M %s inline %s\ndata %d\n" % (mode, quote(path), held.size))
        await _send_file(conversation, directory, path, held.size)
        await conversation.send(b"\n")


async def _send_file(conversation: Conversation, directory: int, path: bytes, size: int) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = await trio.to_thread.run_sync(open_beneath, directory, path, flags)
    try:
        left = size
        while left:
            piece = await trio.to_thread.run_sync(os.read, descriptor, min(left, PIECE))
            if not piece:
                raise Moving(f"{os.fsdecode(path)} became shorter while it was read")
            await conversation.send(piece)
            left -= len(piece)
    finally:
        os.close(descriptor)


def quote(path: bytes) -> bytes:
    """Returns a path as fast-import takes it, whatever its bytes."""
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'


async def only_in_reflog(git: Git, common: bytes, reflog: bytes, head: str) -> tuple[str, ...]:
    """Returns the commits that HEAD's log names and that no ref and not HEAD reach."""
    firsts = {word for line in reflog.splitlines() for word in line.split(b" ", 2)[:2]}
    oids = {word.decode("ascii") for word in firsts if OID.fullmatch(word) and len(word) == len(head)}
    named = {oid for oid in oids if set(oid) != {"0"}} - {head}
    if not named:
        return ()
    present = await check(git, common, sorted(named))
    commits = [oid for oid, kind, _ in present if kind == "commit"]
    if not commits:
        return ()
    text = "\n".join([*commits, f"^{head}"]) + "\n"
    # Not through stdin: git < 2.42 takes no options there. Not `--all`: the main checkout's HEAD moves on.
    arguments = (b"rev-list", b"--topo-order", b"--stdin", b"--not", *PASSING, b"--glob=refs/*")
    ran = await git.run(*arguments, repository=Location(common), stdin=text.encode())
    return tuple(ran.out.decode("ascii").split())


async def check(git: Git, common: bytes, names: Sequence[str]) -> list[tuple[str, str, int]]:
    """Returns oid, type and size of the objects that are there, in the order of their names."""
    if not names:
        return []
    text = ("\n".join(names) + "\n").encode()
    ran = await git.run(b"cat-file", b"--batch-check", repository=Location(common), stdin=text)
    return [each for each in parse_batch_check(ran.out) if each is not None]


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
                words = (await conversation.line()).split(b" ")
                if len(words) != 3 or words[1] != b"blob":
                    raise SnapshotDamaged(f"the blob {oid} is missing")
                data = await conversation.exactly(int(words[2]) + 1)
                yield oid, data[:-1]
        await conversation.finish()


async def require_whole(git: Git, common: bytes, oids: Sequence[str]) -> dict[str, int]:
    """Reads every blob and hashes it again, and returns their sizes. Raises SnapshotDamaged, GitFailed.

    That an object is there says little: the good copy of a damaged one may be the file that is to be deleted.
    """
    sizes = {}
    async with aclosing(contents(git, common, oids)) as found:
        async for oid, data in found:
            if blob_hash(algorithm_of(oid), len(data), data).hexdigest() != oid:
                raise SnapshotDamaged(f"the blob {oid} is damaged")
            sizes[oid] = len(data)
    return sizes


def sync_objects(common: bytes, oids: Iterable[str], ref: str) -> None:
    """Makes the directory entries durable that git leaves to the file system."""
    objects = os.path.join(common, b"objects")
    directories = {os.path.join(objects, oid[:2].encode()) for oid in oids}
    directories |= {objects, os.path.join(objects, b"pack")}
    parent = os.path.dirname(os.path.join(common, ref.encode()))
    while len(parent) > len(common):
        directories.add(parent)
        parent = os.path.dirname(parent)
    for directory in sorted(directories):
        if os.path.isdir(directory):
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
