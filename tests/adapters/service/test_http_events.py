"""The log over HTTP, in pages and as streams: all of it, in order, each event once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.adapters.service.front import until
from tests.adapters.service.http_house import NDJSON, SSE, TEXT, house, stream
from tests.adapters.service.test_http_keys import code
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    import httpx

    from domain.envelope import Envelope
    from tests.adapters.service.http_house import House


async def busy(served: House) -> tuple[str, str]:
    """Makes two lanes and removes one; returns their ids."""
    one, two = await served.lane("one"), await served.lane("two")
    await served.post(f"/v1/lanes/{one}/remove")
    await until(lambda: served.service.tail.head == served.world.events()[-1].position)
    return one, two


async def pages(served: House, first: str) -> AsyncIterator[httpx.Response]:
    """Follows `Link` to the end."""
    address: str | None = first
    while address is not None:
        answer = await served.client.get(address)
        assert answer.status_code == 200
        yield answer
        following = answer.links.get("next", {}).get("url")
        assert (following is None) == (answer.json()["next"] is None)
        address = following


def server_sent(text: str) -> list[tuple[int, str, Any]]:
    """Returns the id, type and data of each event."""
    found = []
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith(":")]
        fields = dict(line.split(": ", 1) for line in lines)
        if "id" in fields:
            found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return found


def events_in(text: str, accept: str) -> list[dict[str, Any]]:
    """Returns the events of what has come of a stream, but one that has come in part."""
    if accept == SSE:
        return [data for _, _, data in server_sent(text[: text.rfind("\n\n") + 2])]
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines() if line]


async def received(served: House, count: int, accept: str = SSE, **query: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """Reads so many events of a stream, and goes."""
    async with stream(served, accept, **query) as answer:
        assert answer.status == 200
        assert answer.headers["content-type"].partition(";")[0] == accept
        return events_in(await answer.until(lambda text: len(events_in(text, accept)) >= count), accept)


@pytest.mark.parametrize("limit", [1, 7, 1000])
async def test_pages_follow_one_another_to_the_end_of_the_log(tmp_path: Path, limit: int) -> None:
    async with house(tmp_path) as served:
        await busy(served)
        found = [each async for each in pages(served, f"/v1/events?limit={limit}")]
        events = [event for page in found for event in page.json()["events"]]
    assert [(each["position"], each["type"]) for each in events] == [
        (each.position, each.type) for each in served.world.events()
    ]
    assert all(len(page.json()["events"]) <= limit for page in found)
    assert int(found[-1].headers["laneyard-position"]) == events[-1]["position"]


async def test_pages_keep_their_filters(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        one, two = await busy(served)
        queries: list[tuple[str, Callable[[Envelope], bool]]] = [
            (f"lane={one}", lambda event: event.stream == f"lane-{one}"),
            ("type=lane.*", lambda event: event.type.startswith("lane.")),
            (f"lane={two}&type=creation.*", lambda e: e.stream == f"lane-{two}" and "creation" in e.type),
            ("after=5&type=*.planned@%3F", lambda e: e.position > 5 and ".planned@" in e.type),
            (f"after={served.service.tail.head}", lambda event: False),
        ]
        for query, wanted in queries:
            found = [
                event["position"]
                async for page in pages(served, f"/v1/events?limit=2&{query}")
                for event in page.json()["events"]
            ]
            assert found == [each.position for each in served.world.events() if wanted(each)], query


async def test_a_page_is_lines_of_json_or_text_as_well(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        await busy(served)
        document = (await served.get("/v1/events")).json()["events"]
        lines = await served.get("/v1/events", NDJSON, limit=3)
        text = await served.get("/v1/events", TEXT)
    assert [json.loads(line) for line in lines.text.splitlines()] == document[:3]
    assert lines.links["next"]["url"] == f"/v1/events?limit=3&after={document[2]['position']}"
    assert len(text.text.splitlines()) == len(document)


@pytest.mark.parametrize("accept", [SSE, NDJSON])
async def test_a_stream_gives_what_was_and_what_comes(tmp_path: Path, accept: str) -> None:
    async with house(tmp_path) as served:
        await busy(served)
        before = len(served.world.events())
        found: list[dict[str, Any]] = []

        async def follow() -> None:
            found.extend(await received(served, before + 3, accept))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await until(lambda: served.service.tail.subscribers == 1)
            await served.lane("three")
        document = (await served.get("/v1/events")).json()["events"]
        await until(lambda: served.service.tail.subscribers == 0)
    assert found == document[: len(found)]


async def test_a_stream_resumes_after_a_position_or_the_last_id_which_wins(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        await busy(served)
        events = [each.position for each in served.world.events()]

        async def positions(**query: Any) -> list[int]:  # noqa: ANN401
            return [each["position"] for each in await received(served, 1, **query)]

        assert await positions() == events
        assert await positions(after=4) == [each for each in events if each > 4]
        assert await positions(last=7) == [each for each in events if each > 7]
        assert await positions(after=2, last=7) == [each for each in events if each > 7]


async def test_a_stream_keeps_to_a_lane_and_to_a_type(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        one, _ = await busy(served)
        of_lane = await received(served, 1, lane=one)
        of_type = await received(served, 1, NDJSON, type="lane.*")
    assert {each["lane"] for each in of_lane} == {one}
    assert [each["type"] for each in of_type] == [
        each.type for each in served.world.events() if each.type.startswith("lane.")
    ]


async def test_the_id_of_a_server_sent_event_is_its_position_and_its_name_its_type(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        await busy(served)
        async with stream(served) as answer:
            first = await answer.until(lambda text: "\n\nid: " in text and text.endswith("\n\n"))
    for position, named, data in server_sent(first[: first.rfind("\n\n") + 2]):
        assert (position, named) == (data["position"], data["type"])
    assert first.startswith("retry: ")


@pytest.mark.parametrize(
    ("query", "status", "named"),
    [
        ({"after": 10_000}, 404, "no_such_position"),
        ({"last": 10_000}, 404, "no_such_position"),
        ({"last": "x"}, 400, "invalid_position"),
        ({"last": "-1"}, 400, "invalid_position"),
        ({"last": "9" * 50}, 400, "invalid_position"),
        ({"after": -1}, 400, "invalid_request"),
        ({"type": ""}, 400, "invalid_request"),
        ({"since": 1}, 400, "invalid_request"),
    ],
)
async def test_a_stream_from_nowhere_is_refused_before_it_begins(
    tmp_path: Path, query: dict[str, Any], status: int, named: str
) -> None:
    async with house(tmp_path) as served, stream(served, **query) as answer:
        problem = json.loads(await answer.until(lambda text: text.endswith("\n")))
    assert (answer.status, problem["code"]) == (status, named)


@pytest.mark.parametrize("address", ["/v1/events", "/v1/events/stream"])
async def test_a_page_and_a_stream_refuse_a_position_and_a_lane_that_never_were(
    tmp_path: Path, address: str
) -> None:
    async with house(tmp_path) as served:
        lane = await served.lane()
        head = served.service.tail.head
        late = await served.get(address, after=head + 1)
        assert (code(late), late.json()["details"]) == (
            (404, "no_such_position"),
            {"position": head + 1, "last": head},
        )
        for nobody in ("nobody", "work", lane[:8], lane.upper(), "\xe9", "\0"):
            assert code(await served.get(address, lane=nobody)) == (404, "no_such_lane")


async def test_a_lane_that_never_came_to_be_has_its_events(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.fake('case "$*" in *"worktree add"*) exit 1;; esac')
    async with house(world) as served:
        assert code(await served.create(idempotency_key="one"))[0] == 409
        lane = (await served.get("/v1/commands/one")).json()["lane"]
        assert await served.service.commands.drain(5)
        told = (await served.get("/v1/events", lane=lane)).json()["events"]
        assert (await received(served, len(told), lane=lane)) == told
    assert told[0]["type"].startswith("creation.planned")


@pytest.mark.parametrize(("accept", "beat"), [(SSE, ": "), (NDJSON, "\n"), (TEXT, "\n")])
async def test_a_stream_in_which_nothing_happens_shows_that_it_lives(
    tmp_path: Path, accept: str, beat: str
) -> None:
    async with house(tmp_path, heartbeat=0.02) as served, stream(served, accept) as answer:
        text = await answer.until(lambda text: text.count(beat) >= 3)
    assert not text.strip() if accept == TEXT else events_in(text, accept) == []


async def test_a_stream_of_text_is_what_people_read(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        await busy(served)
        async with stream(served, TEXT) as answer:
            text = await answer.until(lambda text: "\n" in text)
        page = await served.get("/v1/events", TEXT)
    assert text.splitlines()[0] == page.text.splitlines()[0]


async def test_a_stream_ends_when_the_service_stops(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        await busy(served)
        async with stream(served, NDJSON) as answer:
            await answer.until(lambda text: "\n" in text)
            served.service.tail.stop()
            while await answer.more():
                continue
    assert len(events_in(answer.text, NDJSON)) == len(served.world.events())
