"""The requests that look into a snapshot: git reads in its repository's isolate, and nothing is written."""

from __future__ import annotations

import os
from contextlib import ExitStack, aclosing
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, TypeVar
from urllib.parse import urlencode

import trio
from litestar.response import Stream

from adapters.api import choosing, snapshots
from adapters.api.answers import Answer
from adapters.service.web.commanding import service_of
from adapters.service.web.misuse import InvalidRequest
from adapters.service.web.responding import OUTCOME, TEXT, respond, sent
from domain.paths import unpack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
    from typing import Any

    from litestar import Response

    from adapters.api.choosing import Chosen
    from adapters.api.snapshots import Shelf
    from adapters.service.service import Station
    from adapters.service.web.responding import Http

BYTES = "application/octet-stream"
PIECE = 1 << 18
AT_ONCE = 1 << 20  # bytes of content that are answered in one piece
T = TypeVar("T")


async def list_all(
    request: Http, repository: str | None, near: str | None, lane: str | None
) -> Response[bytes]:
    """Answers with the snapshots of one repository, of one lane, or all."""
    service = service_of(request)
    key = await service.scope(repository, near)
    if lane is not None:
        service.row(lane)
    return respond(request, await service.reading(lambda reader: snapshots.listed(reader, key, lane)))


async def resolve(request: Http, wanted: str, repository: str | None, near: str | None) -> Response[bytes]:
    """Answers which snapshot is meant by what people call it."""
    service = service_of(request)
    key = await service.scope(repository, near)
    place = unpack(near) if near is not None else None
    word, state_dir = os.fsdecode(unpack(wanted)), service.settings.state_dir

    def look() -> choosing.Chosen:
        with service.reader() as reader:
            return choosing.find(reader, state_dir, word, key, place)

    found = (await service.aside(look, wanted)).document
    return respond(request, Answer(document=found, text=found.id))


async def show(request: Http, snapshot: str, *, whole: bool, read_back: bool) -> Response[bytes]:
    """Answers with everything about a snapshot."""

    async def work(shelf: Shelf, chosen: Chosen) -> Answer:
        return await snapshots.show(shelf, chosen, whole=whole, read_back=read_back)

    return respond(request, await _look(request, snapshot, work))


async def diff(request: Http, snapshot: str, below: Sequence[str], *, staged: bool) -> Response[Any]:
    """Answers with the difference from the commit, as git shows it."""
    paths = [unpack(each) for each in below]

    async def work(shelf: Shelf, chosen: Chosen) -> list[IO[bytes]]:
        with ExitStack() as unwanted:  # where git fails in the middle
            whole = unwanted.enter_context(SpooledTemporaryFile(AT_ONCE, dir=os.fsdecode(shelf.state_dir)))
            async with aclosing(snapshots.diff(shelf, chosen, paths, staged=staged)) as pieces:
                async for piece in pieces:
                    whole.write(piece)
            unwanted.pop_all()
            return [whole]

    return await _answer(await _look(request, snapshot, work), TEXT)


async def entries(
    request: Http, snapshot: str, below: Sequence[str], after: str | None, limit: int
) -> Response[bytes]:
    """Answers with a page of the entries; `Link` says where the next one is."""
    paths = [unpack(each) for each in below]

    async def work(shelf: Shelf, chosen: Chosen) -> Answer:
        return await snapshots.entries(shelf, chosen, paths, after, limit)

    answer = await _look(request, snapshot, work)
    following = getattr(answer.document, "next", None)
    if following is None:
        return respond(request, answer)
    query = [*((k, v) for k, v in request.query_params.multi_items() if k != "after"), ("after", following)]
    return respond(request, answer, 200, {"Link": f'<{request.url.path}?{urlencode(query)}>; rel="next"'})


async def content(request: Http, snapshot: str, paths: Sequence[str], *, staged: bool) -> Response[Any]:
    """Answers with the bytes of files and of links' targets, one after the other.

    Raises what a look raises, and InvalidRequest without a path.
    """
    if not paths:
        raise InvalidRequest("the parameter 'path' is missing")
    wanted = [unpack(each) for each in paths]

    async def work(shelf: Shelf, chosen: Chosen) -> list[IO[bytes]]:
        return await snapshots.content(shelf, chosen, wanted, staged=staged)

    return await _answer(await _look(request, snapshot, work), BYTES)


async def _answer(found: Sequence[IO[bytes]], media: str) -> Response[Any]:
    """Answers with contents, one after the other, and closes them."""
    size = sum(map(_size, found))
    if size <= AT_ONCE:
        return sent(b"".join([piece async for piece in _pieces(found)]), media, 200, {OUTCOME: "done"})
    headers = {OUTCOME: "done", "Content-Length": str(size)}
    return Stream(_pieces(found), media_type=media, headers=headers)


def _size(content: IO[bytes]) -> int:
    size = content.seek(0, os.SEEK_END)
    content.seek(0)
    return size


async def _pieces(found: Sequence[IO[bytes]]) -> AsyncIterator[bytes]:
    with ExitStack() as stack:
        for each in found:
            stack.enter_context(each)
        pieces = _gathered(found)
        while piece := await trio.to_thread.run_sync(next, pieces, b""):
            yield piece


def _gathered(found: Sequence[IO[bytes]]) -> Iterator[bytes]:
    """Yields what is in all of them in pieces of some size, as each is read in another thread."""
    gathered = bytearray()
    for each in found:
        while piece := each.read(PIECE):
            gathered += piece
            if len(gathered) >= PIECE:
                yield bytes(gathered)
                gathered.clear()
    if gathered:
        yield bytes(gathered)


async def _look(request: Http, snapshot: str, work: Callable[[Shelf, Chosen], Awaitable[T]]) -> T:
    """Returns what a look into a snapshot gives, from its repository's isolate.

    Raises NoSuchSnapshot, and what the work raises.
    """
    service = service_of(request)
    state_dir = service.settings.state_dir
    chosen = await service.reading(lambda reader: choosing.by_id(reader, state_dir, snapshot))

    async def look(station: Station) -> T:
        yard = station.yard
        return await work(snapshots.Shelf(yard.git, state_dir, yard.reader, station.recent), chosen)

    # As long as a capture may take: what is read back may be all of it.
    seconds = service.settings.configuration.git.write_timeout
    return await service.isolate(chosen.lane.repository).ask(look, seconds)
