"""The requests that only read."""

from __future__ import annotations

import math
import os
from importlib.metadata import version
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlencode

import msgspec

from adapters.api import comparing, keeping, lanes, resolve, showing
from adapters.api.answers import Answer
from adapters.api.documents import Health
from adapters.api.events import about
from adapters.api.paging import page
from adapters.service.kept import Stamp
from adapters.service.observing import Seen
from adapters.service.web.commanding import service_of
from adapters.service.web.responding import JSON, NDJSON, OUTCOME, TEXT, body_of, chosen, respond, sent
from adapters.yard import capturing
from domain.paths import unpack

if TYPE_CHECKING:
    from collections.abc import Iterable

    from litestar import Response

    from adapters.service.service import Service, Station
    from adapters.service.web.responding import Http
    from adapters.store.reader import Record


class Which(msgspec.Struct, frozen=True):
    """Which lanes are wanted. A state that is named is shown, also one of lanes that are gone."""

    repository: str | None
    near: str | None
    gone: bool
    states: tuple[str, ...]
    slug: str | None

    @property
    def all(self) -> bool:
        """Returns whether lanes that are gone may be among them."""
        return self.gone or bool(self.states)

    def of(self, rows: Iterable[Record]) -> list[Record]:
        """Returns the rows in a wanted state and with the wanted slug."""
        return [
            row
            for row in rows
            if (not self.states or row["state"] in self.states) and self.slug in (None, row["slug"])
        ]


Asked = tuple[Which, str | None, str, bool]  # which lanes, of which repository, in which form, unseen


def age(request: Http, observe: Literal["recent", "now", "none"]) -> float | None:
    """Returns how many seconds ago what is told of a lane may have been seen, or None for nothing of it."""
    recent = service_of(request).settings.configuration.service.look_age
    return {"recent": recent, "now": 0.0, "none": None}[observe]


async def list_lanes(request: Http, which: Which, *, at: int | None, age: float | None) -> Response[bytes]:
    """Answers with the lanes, now or as of a position, and with what was seen of them `age` seconds ago."""
    service = service_of(request)
    key = await service.scope(which.repository, which.near, age or 0.0)
    if at is not None:
        rows = which.of(await service.reading(lambda reader: lanes.lanes_at(reader, at)))
        return respond(request, lanes.list_lanes(rows, None, key, which.all))
    media, position = chosen(request, JSON, TEXT), service.tables.position
    asked = (which, key, media, age is None)
    body = service.kept.recent(asked, position, math.inf if age is None else age)
    if body is None:
        body = await _list(service, asked, position, age)
    elif age is not None:
        service.observer.renew(key, age)
    return sent(body, media, 200, {OUTCOME: "done", "Vary": "Accept"})


async def _list(service: Service, asked: Asked, position: int, age: float | None) -> bytes:
    """Returns the list as it is sent, made anew if anything in it has changed."""
    which, key, media, _ = asked
    rows = lanes.chosen(which.of(service.tables.lanes()), key, include_gone=which.all)
    seen = Seen({}, (), 0.0) if age is None else await service.observer.observe(rows, age)

    def made() -> bytes:
        return body_of(lanes.list_lanes(rows, seen.lanes, key, which.all), media)

    return service.kept.body(asked, Stamp(position, seen.stamp), seen.since, made)


async def resolve_lane(
    request: Http, lane: str, repository: str | None, near: str | None, *, undone: bool
) -> Response[bytes]:
    """Answers which lane is meant by what people call it."""
    service = service_of(request)
    key = await service.scope(repository, near)
    place = unpack(near) if near is not None else None
    wanted = os.fsdecode(unpack(lane))

    def look() -> resolve.Resolved:
        with service.reader() as reader:
            return resolve.find(reader, wanted, key, place, undone=undone)

    found = await service.aside(look, lane)
    return respond(request, Answer(document=found, text=found.id))


async def show_lane(request: Http, lane: str) -> Response[bytes]:
    """Answers with everything about a lane."""
    service = service_of(request)
    row = service.row(lane)

    async def look(station: Station) -> Answer:
        yard = station.yard
        state, _ = yard.reader.lane(lane)
        place = showing.inspected_place(state)
        rules = capturing.wanted(yard, row).rules
        seen = await yard.inspector.look(place, rules=rules) if place is not None else None
        return showing.show(yard.reader, yard.reader.row(lane) or row, seen)

    timeout = service.settings.configuration.git.read_timeout
    return respond(request, await service.isolate(str(row["repository"])).ask(look, timeout))


async def review_lane(request: Http, lane: str) -> Response[bytes]:
    """Answers why a lane waits for a person, and with the ways out."""
    service = service_of(request)
    row = service.row(lane)
    return respond(request, await service.reading(lambda reader: showing.review(reader, row)))


async def list_events(
    request: Http, after: int, limit: int, lane: str | None, type_: str | None
) -> Response[bytes]:
    """Answers with a page of the log; `Link` says where the next one is."""
    service = service_of(request)
    found = await service.reading(lambda reader: page(reader, after, limit, about(reader, lane, type_)))
    headers = {"Vary": "Accept", "Laneyard-Outcome": "done", "Laneyard-Position": str(found.looked)}
    if found.next is not None:
        query = urlencode({**request.query_params.dict(), "after": found.next}, doseq=True)
        headers["Link"] = f'<{request.url.path}?{query}>; rel="next"'
    match chosen(request, JSON, NDJSON, TEXT):
        case kind if kind == NDJSON:
            return sent(found.lines(), NDJSON, 200, headers)
        case kind if kind == TEXT:
            return sent(found.text(service.slugs()).encode("utf-8", "replace"), TEXT, 200, headers)
        case _:
            return respond(request, Answer(document=found.document(), text=""), 200, headers)


async def differ(request: Http, before: int, after: int) -> Response[bytes]:
    """Answers with what differs between two positions."""
    return respond(
        request, await service_of(request).reading(lambda reader: comparing.diff(reader, before, after))
    )


async def list_repositories(request: Http) -> Response[bytes]:
    """Answers with the repositories under our care."""
    return respond(request, keeping.repositories(service_of(request).tables))


async def tell_health(request: Http) -> Response[bytes]:
    """Answers whether the service is ready."""
    service = service_of(request)
    counts = service.commands.counts()
    health = Health(
        status=service.status,
        version=version("laneyard"),
        pid=os.getpid(),
        position=service.tail.head,
        commands=counts.running + counts.waiting,
        subscribers=service.tail.subscribers,
        recovering=tuple(sorted(service.recovering)),
        stopped=dict(service.stopped),
        silent=tuple(each.key for each in service.isolates.states() if each.silent),
    )
    ready = health.status == "ready"
    answer = Answer(
        document=health, text=f"the service is {health.status}", outcome="done" if ready else "unavailable"
    )
    return respond(request, answer, 200 if ready else 503)
