"""Content of a snapshot, given away only once every byte of it was compared with its name."""

from __future__ import annotations

import hashlib
import os
from contextlib import aclosing
from io import BytesIO
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

import trio

from adapters.files.blob import blob_hash
from adapters.files.errors import words
from adapters.git.door import Location
from adapters.snapshots.files import Files, SnapshotDamaged
from adapters.snapshots.manifest import algorithm_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from adapters.snapshots.reading.reading import Opened

IN_MEMORY = 8 << 20  # bytes of content from git that are kept in memory; more goes to an unnamed file


async def contents(opened: Opened, wanted: Sequence[tuple[str, str | None]]) -> AsyncGenerator[IO[bytes]]:
    """Yields the content of each blob, or file apart, in their order; the caller closes it.

    Git is asked for all of them at once. Raises SnapshotDamaged, GitFailed, OSError.
    """
    oids = [oid for oid, sha256 in wanted if sha256 is None]
    arguments = (b"cat-file", b"--batch")
    async with (
        opened.git.converse(*arguments, repository=Location(opened.common)) as conversation,
        aclosing(conversation.objects(oids)) as found,
    ):
        for oid, sha256 in wanted:
            if sha256 is None:
                yield await _from_git(opened.directory, oid, found)
            else:
                yield await trio.to_thread.run_sync(_from_files, opened.directory, sha256)


async def _from_git(directory: bytes, oid: str, found: AsyncGenerator[tuple[bytes, bytes, int]]) -> IO[bytes]:
    head, piece, left = await anext(found)
    if not head.startswith(b"blob "):
        raise SnapshotDamaged(f"the blob {oid} is missing")
    size = int(head[5:])
    total, place = blob_hash(algorithm_of(oid), size), os.fsdecode(directory)
    content = BytesIO() if size <= IN_MEMORY else TemporaryFile(dir=place)  # noqa: SIM115 (given away)
    try:
        total.update(piece)
        content.write(piece)
        while left:
            _, piece, left = await anext(found)
            total.update(piece)
            content.write(piece)
        if total.hexdigest() != oid:
            raise SnapshotDamaged(f"the blob {oid} does not have the bytes that were captured")
        content.seek(0)
    except BaseException:
        content.close()
        raise
    return content


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
