"""Looking at snapshots in this process: what is done where no service runs. Needs no lock."""

from __future__ import annotations

from contextlib import aclosing
from typing import IO, TYPE_CHECKING

import trio

from adapters import config
from adapters.api import choosing, resolve, snapshots
from adapters.cli import DONE
from adapters.cli.reading import open_reader
from adapters.cli.scope import scope
from adapters.cli.snapshots import paths, put
from adapters.cli.telling import told
from adapters.cli.whereabouts import near
from adapters.snapshots.files import PIECE
from adapters.wiring import git_door
from domain.errors import NoSuchLane

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence

    from adapters.api.answers import Answer
    from adapters.snapshots.reading.reading import Part
    from adapters.store.reader import Reader

    Work = Callable[[Namespace, snapshots.Shelf, choosing.Chosen], Awaitable[int]]


def run(arguments: Namespace) -> int:
    """Does what the word says, and returns the exit code. Raises a Refusal, GitError, StoreError."""
    reader = open_reader(arguments)
    if reader is None:
        return _nothing(arguments)
    with reader:
        if arguments.word == "list":
            return told(arguments, _listed(arguments, reader))
        settings = config.load(arguments.state_dir)
        key = scope(arguments)
        chosen = choosing.find(reader, settings.state_dir, arguments.snapshot, key, near())
        shelf = snapshots.Shelf(git_door(settings), settings.state_dir, reader)
        return trio.run(WORDS[arguments.word], arguments, shelf, chosen)


def _nothing(arguments: Namespace) -> int:
    """Tells that nothing has been recorded yet. Raises a Refusal."""
    scope(arguments)
    if arguments.word != "list":
        raise choosing.UnknownSnapshot(arguments.snapshot)
    if arguments.lane is not None:
        raise NoSuchLane(arguments.lane)
    return told(arguments, snapshots.answered([]))


def _listed(arguments: Namespace, reader: Reader) -> Answer:
    if arguments.lane is not None:
        lane = resolve.find(reader, arguments.lane, scope(arguments), near()).id
        return snapshots.listed(reader, None, lane)
    return snapshots.listed(reader, None if arguments.all else scope(arguments), None)


async def _show(arguments: Namespace, shelf: snapshots.Shelf, chosen: choosing.Chosen) -> int:
    answer = await snapshots.show(shelf, chosen, whole=arguments.paths, read_back=arguments.verify)
    return told(arguments, answer)


async def _diff(arguments: Namespace, shelf: snapshots.Shelf, chosen: choosing.Chosen) -> int:
    async with aclosing(snapshots.diff(shelf, chosen, paths(arguments), staged=arguments.staged)) as pieces:
        async for piece in pieces:
            put(piece)
    return DONE


async def _cat(arguments: Namespace, shelf: snapshots.Shelf, chosen: choosing.Chosen) -> int:
    (found,) = await snapshots.content(shelf, chosen, paths(arguments), staged=arguments.staged)
    for piece in _pieces(found):
        put(piece)
    return DONE


async def _extract(arguments: Namespace, shelf: snapshots.Shelf, chosen: choosing.Chosen) -> int:
    from adapters.cli import extracting

    source = await snapshots.open_parts(shelf, chosen)

    async def contents(parts: Sequence[Part]) -> AsyncGenerator[Iterator[bytes], None]:
        async with aclosing(source.contents(parts)) as found:
            async for each in found:
                yield _pieces(each)

    wanted = paths(arguments)
    return await extracting.extract(arguments, chosen.taken.id, wanted, source.parts, contents)


def _pieces(found: IO[bytes]) -> Iterator[bytes]:
    with found:
        while piece := found.read(PIECE):
            yield piece


WORDS: dict[str, Work] = {"show": _show, "diff": _diff, "cat": _cat, "extract": _extract}
