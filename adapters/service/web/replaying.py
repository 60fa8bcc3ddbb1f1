"""The requests that explain a lane's log: read from the store in other threads, and never held in memory."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import trio
from litestar.response import Stream

from adapters.api import replaying
from adapters.service.stream.streaming import joined
from adapters.service.web.commanding import service_of
from adapters.service.web.responding import NDJSON, OUTCOME, TEXT, chosen, respond

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from litestar import Response

    from adapters.service.service import Service
    from adapters.service.web.responding import Http
    from adapters.store.reader import Reader


async def replay(request: Http, lane: str, to: int | None) -> Response[Any]:
    """Answers with what each event has made of a lane, an event a line, or as people read it.

    Raises NoSuchLane, NoSuchPosition, BeforeTheLane, StoreUnreadable.
    """
    service = service_of(request)
    _, end = await service.reading(lambda reader: replaying.last(reader, lane, to))
    media = chosen(request, NDJSON, TEXT)
    pieces = _pieces(service, lane, end.position, media)
    return Stream(pieces, media_type=media, headers={OUTCOME: "done", "Vary": "Accept"})


async def _pieces(service: Service, lane: str, end: int, media: str) -> AsyncIterator[bytes]:
    """Yields the answer in pieces of some size; the reader ends with whoever reads them."""
    with closing(await trio.to_thread.run_sync(service.reader)) as reader:
        pieces = joined(_frames(reader, lane, end, media))
        while piece := await trio.to_thread.run_sync(next, pieces, b""):
            yield piece


def _frames(reader: Reader, lane: str, end: int, media: str) -> Iterator[bytes]:
    for step in replaying.steps(reader, lane, end):
        as_text = media == TEXT
        yield replaying.step_text(step).encode("utf-8", "replace") if as_text else replaying.step_json(step)


async def dry_drive(request: Http, lane: str, to: int | None) -> Response[bytes]:
    """Answers what a recovery would do next for a lane, without doing it.

    Raises NoSuchLane, NoSuchPosition, BeforeTheLane, StoreUnreadable.
    """
    answer = await service_of(request).reading(lambda reader: replaying.dry_drive(reader, lane, to))
    return respond(request, answer)
