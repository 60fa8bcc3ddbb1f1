"""Bringing the content of a snapshot's entries, out of git or from beside it, to whoever takes it."""

from __future__ import annotations

from contextlib import ExitStack, aclosing
from itertools import groupby
from typing import TYPE_CHECKING

import trio

from adapters.files.descriptors import owned
from adapters.files.errors import words
from adapters.git.door import Location
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.restore.writing import NewFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from adapters.git.door import Git
    from adapters.snapshots.beneath import Beneath
    from adapters.snapshots.files import Files
    from adapters.snapshots.manifest import Held
    from adapters.snapshots.restore.writing import Taking

    Taker = Callable[[int, bytes, bytes], Taking]  # for a directory, a name in it, and the whole path

TOGETHER = 1 << 20  # bytes of small contents that are handed over in one go of a thread


async def deliver(
    git: Git,
    common: bytes,
    files: Files,
    beneath: Beneath,
    wanted: Mapping[bytes, Held],
    paths: Sequence[bytes],
    taker: Taker,
) -> None:
    """Gives every path's content to a taker of its own; the memory that it takes does not grow with it.

    Raises SnapshotDamaged where content is missing, and what a taker raises.
    """
    apart = [path for path in paths if wanted[path].apart is not None]
    await trio.to_thread.run_sync(_from_files, files, beneath, wanted, apart, taker)
    named: dict[str, list[bytes]] = {}
    for path in paths:
        held = wanted[path]
        if held.apart is None and held.oid is not None:
            named.setdefault(held.oid, []).append(path)
    if named:
        await _from_git(git, common, beneath, named, taker)


async def _from_git(
    git: Git, common: bytes, beneath: Beneath, named: Mapping[str, list[bytes]], taker: Taker
) -> None:
    asked = (b"cat-file", b"--batch", b"--buffer")
    async with git.converse(*asked, repository=Location(common)) as conversation:
        with _Hand(beneath, named, taker) as hand:
            async with aclosing(conversation.objects(tuple(named))) as found:
                async for head, piece, _ in found:
                    await hand.give(head, piece)
            await hand.empty()
        await conversation.finish()


class _Hand:
    """What has come and is not handed over yet; of a content that comes in pieces, those who take it."""

    def __init__(self, beneath: Beneath, named: Mapping[str, list[bytes]], taker: Taker) -> None:
        self._beneath = beneath
        self._named = iter(named.items())
        self._taker = taker
        self._small: list[tuple[bytes, bytes]] = []
        self._size = 0
        self._takings: list[Taking] = []
        self._left = 0  # bytes of the content that these take
        self._held = ExitStack()

    def __enter__(self) -> _Hand:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    async def give(self, head: bytes, piece: bytes) -> None:
        """Takes the next piece of a content, which ends with as many bytes as the head says."""
        if self._takings:
            await trio.to_thread.run_sync(self._go_on, piece)
            return
        size = int(head[5:]) if head.startswith(b"blob ") else None
        if size and not piece:
            return  # the end of what was whole already
        oid, paths = next(self._named)
        if size is None:
            raise SnapshotDamaged(f"the blob {oid} is missing")
        if len(piece) < size:
            self._left = size
            await trio.to_thread.run_sync(self._begin, paths)
            await trio.to_thread.run_sync(self._go_on, piece)
            return
        self._small += ((path, piece) for path in paths)
        self._size += len(piece)
        if self._size >= TOGETHER:
            await self.empty()

    async def empty(self) -> None:
        """Hands over all small contents that have come."""
        small, self._small, self._size = self._small, [], 0
        await trio.to_thread.run_sync(_hand_over, self._beneath, small, self._taker)

    def _begin(self, paths: Iterable[bytes]) -> None:
        for path in paths:
            with self._beneath.parent(path) as (parent, name):
                taking = self._taker(parent, name, path)
            self._held.callback(taking.close)
            self._takings.append(taking)

    def _go_on(self, piece: bytes) -> None:
        self._left -= len(piece)
        for taking in self._takings:
            taking.take(piece)
            if not self._left:
                taking.finish()
        if not self._left:
            self._takings = []
            self._held.close()


def _hand_over(beneath: Beneath, small: Sequence[tuple[bytes, bytes]], taker: Taker) -> None:
    for directory, group in groupby(small, key=lambda item: item[0].rpartition(b"/")[0]):
        with beneath.directory(directory) as parent:
            for path, data in group:
                taking = taker(parent, path.rpartition(b"/")[2], path)
                try:
                    taking.take(data)
                    taking.finish()
                finally:
                    taking.close()


def _from_files(
    files: Files, beneath: Beneath, wanted: Mapping[bytes, Held], paths: Iterable[bytes], taker: Taker
) -> None:
    for path in paths:
        digest = wanted[path].apart
        assert digest is not None
        with beneath.parent(path) as (parent, name):
            taking = taker(parent, name, path)
        try:
            if not (isinstance(taking, NewFile) and _is_shared(taking, files, digest)):
                for piece in files.pieces(digest):
                    taking.take(piece)
            taking.finish()
        finally:
            taking.close()


def _is_shared(taking: NewFile, files: Files, digest: str) -> bool:
    """Tells whether the new file has its bytes already, without a copy; they are compared later."""
    try:
        with owned(files.open(digest)) as source:
            return taking.clone(source)
    except FileNotFoundError as error:
        raise SnapshotDamaged(f"a file of the snapshot cannot be read: {words(error)}") from error
