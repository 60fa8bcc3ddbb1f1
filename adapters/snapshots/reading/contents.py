"""Content of a snapshot, given away only once every byte of it was compared with its name."""

from __future__ import annotations

import hashlib
import os
from contextlib import asynccontextmanager
from io import BytesIO
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

import trio

from adapters.files.blob import blob_hash
from adapters.files.errors import words
from adapters.git.door import Location
from adapters.snapshots.files import PIECE, Files, SnapshotDamaged
from adapters.snapshots.manifest import algorithm_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from adapters.git.conversation import Conversation
    from adapters.snapshots.reading.reading import Opened

IN_MEMORY = 8 << 20  # bytes of content from git that are kept in memory; more goes to an unnamed file


class Contents:
    """The contents of one snapshot, for one task at a time."""

    def __init__(self, opened: Opened, conversation: Conversation) -> None:
        self._directory, self._conversation = opened.directory, conversation

    async def fetch(self, oid: str, sha256: str | None = None) -> IO[bytes]:
        """Returns the content of a blob, or of a file apart, at its beginning; the caller closes it.

        Raises SnapshotDamaged, GitFailed, OSError.
        """
        if sha256 is not None:
            return await trio.to_thread.run_sync(_from_files, self._directory, sha256)
        return await self._from_git(oid)

    async def _from_git(self, oid: str) -> IO[bytes]:
        await self._conversation.send(oid.encode() + b"\n")
        answer = (await self._conversation.line()).split(b" ")
        if len(answer) != 3 or answer[1] != b"blob":
            raise SnapshotDamaged(f"the blob {oid} is missing")
        left = int(answer[2])
        total = blob_hash(algorithm_of(oid), left)
        place = os.fsdecode(self._directory)
        found = BytesIO() if left <= IN_MEMORY else TemporaryFile(dir=place)  # noqa: SIM115 (given away)
        try:
            while left:
                piece = await self._conversation.exactly(min(left, PIECE))
                total.update(piece)
                found.write(piece)
                left -= len(piece)
            await self._conversation.exactly(1)
            if total.hexdigest() != oid:
                raise SnapshotDamaged(f"the blob {oid} does not have the bytes that were captured")
            found.seek(0)
        except BaseException:
            found.close()
            raise
        return found


@asynccontextmanager
async def contents(opened: Opened) -> AsyncIterator[Contents]:
    """Opens the contents of a snapshot."""
    arguments = (b"cat-file", b"--batch")
    async with opened.git.converse(*arguments, repository=Location(opened.common)) as conversation:
        yield Contents(opened, conversation)


def _from_files(directory: bytes, digest: str) -> IO[bytes]:
    try:
        found = os.fdopen(Files(directory).open(digest), "rb")
    except OSError as error:
        raise SnapshotDamaged(f"a file of the snapshot cannot be read: {words(error)}") from error
    try:
        if hashlib.file_digest(found, "sha256").hexdigest() != digest:
            raise SnapshotDamaged(f"the file {digest} of the snapshot is damaged")
        found.seek(0)
    except BaseException:
        found.close()
        raise
    return found
