"""Writing paths of a snapshot elsewhere: always this process does it, as its user, whoever reads for it."""

from __future__ import annotations

import os
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from adapters.api.answers import Answer
from adapters.api.snapshot_documents import Extracted
from adapters.api.words import count
from adapters.cli.telling import told
from adapters.files.errors import words
from adapters.snapshots.reading.extraction import Extraction, Unwritable, outermost
from adapters.snapshots.reading.reading import Part, relative
from domain.paths import display, pack, unpack

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence


async def extract(
    arguments: Namespace,
    snapshot: str,
    paths: Sequence[bytes],
    parts: Callable[[bytes], Awaitable[Sequence[Part]]],
    contents: Callable[[Sequence[Part]], AsyncGenerator[Iterator[bytes], None]],
) -> int:
    """Writes paths and all below them, tells what was written, and returns the exit code.

    `parts` gives the entries at and below a path in the order of the tree, `contents` the pieces of each file
    and link in theirs. Raises AlreadyThere, Unwritable, NotInSnapshot, and what these two raise.
    """
    directory = os.path.abspath(os.fsencode(arguments.to))
    chosen = outermost([relative(path, snapshot) for path in paths])
    entries = [part for path in chosen for part in await parts(path)]
    tops = [each.path for each in entries if b"/" not in each.path] if chosen == [b""] else chosen
    try:
        with Extraction(directory, tops) as extraction:
            async with aclosing(contents([each for each in entries if each.kind != "directory"])) as found:
                await _write(extraction, entries, found)
            extraction.finish()
    except OSError as error:
        raise Unwritable(display(pack(directory)), error.strerror or words(error)) from error
    return told(arguments, _answer(snapshot, directory, tops, extraction))


async def _write(
    extraction: Extraction, entries: Sequence[Part], contents: AsyncGenerator[Iterator[bytes], None]
) -> None:
    for part in entries:
        extraction.begin(part)
        for piece in await anext(contents) if part.kind != "directory" else ():
            extraction.write(piece)
        extraction.end()


def _answer(snapshot: str, directory: bytes, tops: Sequence[bytes], extraction: Extraction) -> Answer:
    size = f"{count(extraction.entries, 'entry')}, {count(extraction.bytes, 'byte')}"
    document = Extracted(
        snapshot=snapshot,
        to=pack(directory),
        paths=tuple(map(pack, tops)),
        entries=extraction.entries,
        bytes=extraction.bytes,
    )
    return Answer(document=document, text=f"{size} of snapshot {snapshot} written to {display(document.to)}")


def part_of(entry: dict[str, Any]) -> Part:
    """Returns an entry as the service has answered it."""
    time = entry["mtime_ns"]
    return Part(
        path=unpack(entry["path_encoded"]) if "path_encoded" in entry else entry["path"].encode(),
        kind=entry["kind"],
        mode=int(entry["mode"], 8),
        size=entry["size"],
        oid=entry["oid"],
        sha256=entry["sha256"],
        mtime_ns=None if time is None else int(time),
        committed=entry["committed"],
    )
