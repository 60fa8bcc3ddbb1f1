"""Streams of events: server-sent, as lines of JSON, or as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from litestar.response import Stream

from adapters.api.events import Filter, about
from adapters.service.stream import streaming
from adapters.service.web.commanding import service_of
from adapters.service.web.responding import NDJSON, SSE, TEXT, chosen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from litestar import Response

    from adapters.service.stream.tail import Subscription
    from adapters.service.web.responding import Http


async def follow_events(
    request: Http, after: int | None, lane: str | None, glob: str | None, last_event_id: str | None
) -> Response[Any]:
    """Answers with the events after a position, and those to come.

    Raises NoSuchPosition, InvalidPosition, NoSuchLane.
    """
    service = service_of(request)
    wanted = Filter(None, glob)
    if lane is not None:
        wanted = await service.reading(lambda reader: about(reader, lane, glob))
    subscription = service.tail.subscription(streaming.start_position(after, last_event_id), wanted)
    beat = service.settings.configuration.service.heartbeat
    media = chosen(request, SSE, NDJSON, TEXT)
    if media == SSE:
        chunks = streaming.sse(subscription, beat)
    elif media == NDJSON:
        chunks = streaming.ndjson(subscription, beat)
    else:
        chunks = streaming.text(subscription, service.tail.slugs, beat)
    headers = {"Cache-Control": "no-store", "Vary": "Accept", "Laneyard-Outcome": "done"}
    return Stream(_closing(chunks, subscription), media_type=media, headers=headers)


async def _closing(chunks: streaming.Stream, subscription: Subscription) -> AsyncIterator[bytes]:
    """Yields the chunks; the subscription ends with whoever reads them."""
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        subscription.close()
