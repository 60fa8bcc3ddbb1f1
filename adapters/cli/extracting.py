"""Writing paths of a snapshot elsewhere: always this process does it, as its user, whoever reads for it."""

from __future__ import annotations

import errno
import os
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from adapters.api.answers import Answer
from adapters.api.snapshot_documents import Extracted
from adapters.api.words import count, legible, several
from adapters.cli.telling import told
from adapters.files.errors import words
from adapters.snapshots.reading.extraction import Extraction, NoRoom, Unwritable, outermost
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
    found = [part for path in chosen for part in await parts(path)]
    tops = [each.path for each in found if b"/" not in each.path] if chosen == [b""] else chosen
    entries = [each for each in found if not _is_pointer(each) or each.path in tops]
    left_out = [each.path for each in found if _is_pointer(each) and each.path not in tops]
    try:
        with Extraction(directory, tops) as extraction:
            async with aclosing(contents([each for each in entries if each.kind != "directory"])) as pieces:
                await _write(extraction, entries, pieces)
            extraction.finish()
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        refusal = NoRoom if full else Unwritable
        raise refusal(display(pack(directory)), error.strerror or words(error)) from error
    return told(arguments, _answer(snapshot, directory, tops, left_out, extraction))


def _is_pointer(part: Part) -> bool:
    """Tells whether it is the `.git` file of a submodule, which elsewhere would lead nowhere."""
    return part.kind == "file" and part.path.endswith(b"/.git")


async def _write(
    extraction: Extraction, entries: Sequence[Part], contents: AsyncGenerator[Iterator[bytes], None]
) -> None:
    for part in entries:
        extraction.begin(part)
        for piece in await anext(contents) if part.kind != "directory" else ():
            extraction.write(piece)
        extraction.end()


def _answer(
    snapshot: str,
    directory: bytes,
    tops: Sequence[bytes],
    left_out: Sequence[bytes],
    extraction: Extraction,
) -> Answer:
    size = f"{count(extraction.entries, 'entry')}, {count(extraction.bytes, 'byte')}"
    document = Extracted(
        snapshot=snapshot,
        to=pack(directory),
        paths=tuple(map(pack, tops)),
        left_out=tuple(map(pack, left_out)),
        entries=extraction.entries,
        bytes=extraction.bytes,
    )
    lines = [f"{size} of snapshot {snapshot} written to {legible(display(document.to))}"]
    if left_out:
        named = several([legible(display(each)) for each in document.left_out])
        lines.append(f"note: a submodule's git directory comes back with a restore only; left out, {named}")
    return Answer(document=document, text="\n".join(lines))


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
