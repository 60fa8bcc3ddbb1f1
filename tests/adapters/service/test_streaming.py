"""Streams as bytes: what a client reads, and from where it goes on."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
import pytest
import trio

from adapters.api import documents
from adapters.api.answers import encoded
from adapters.api.events import Filter, InvalidPosition, event_document, event_json, event_text
from adapters.service.stream.streaming import CHUNK, joined, ndjson, sse, start_position, text
from adapters.service.stream.tail import Tail
from adapters.store.codec import decode
from adapters.store.journal import Journal
from adapters.store.reader import Reader
from domain.envelope import REPOSITORY_STREAM
from tests.adapters.store.lives import REPOSITORY, entry, interleaved, life, noon, planned, rows

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from adapters.service.stream.streaming import Stream
    from domain.envelope import Envelope

PATIENCE = 30.0  # seconds; only a failing test waits as long
QUICK = 0.02  # seconds between heartbeats here


class Service:
    """A journal, and the tail of its log."""

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.tail = Tail(path, ring=100)
        self.journal = Journal(path, noon, self.tail.poke)

    def lives(self, lanes: int, prefix: str = "lane") -> int:
        promises = [self.journal.submit(request) for request in interleaved(lanes, 10, prefix)]
        return max(promise.result(PATIENCE).last for promise in promises)

    def log(self) -> list[Envelope]:
        with Reader(self.path) as reader:
            return list(reader.events())


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    service = Service(bytes(tmp_path / "journal.db"))
    with closing(service.tail), closing(service.journal), trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            await nursery.start(service.tail.run)
            yield service
            service.tail.stop()


async def whole(stream: Stream) -> bytes:
    return b"".join([chunk async for chunk in stream])


async def until(stream: Stream, end: bytes) -> bytes:
    """Returns what a stream gives until a chunk ends like this."""
    read = b""
    while not read.endswith(end):
        read += await anext(stream)
    return read


def sent(stream: bytes) -> list[dict[str, str]]:
    """Returns the fields of every server-sent event, read as a browser does."""
    blocks = stream.decode().split("\n\n")
    assert blocks.pop() == ""
    lines = [[line for line in block.split("\n") if not line.startswith(":")] for block in blocks]
    return [dict(line.split(": ", 1) for line in block) for block in lines if block]


# Server-sent events ----------------------------------------------------------------------------------------


async def test_a_stream_begins_at_once_with_how_long_to_wait_before_coming_back(service: Service) -> None:
    assert await anext(sse(service.tail.subscription(0))) == b"retry: 1000\n\n"


async def test_every_event_is_sent_with_its_position_its_type_and_its_document(service: Service) -> None:
    service.lives(3)
    stream = sse(service.tail.subscription(0))
    service.tail.stop()
    expected = [
        {"id": f"{each.position}", "event": each.type, "data": encoded(event_document(each)).decode()}
        for each in service.log()
    ]
    assert sent(await whole(stream)) == [{"retry": "1000"}, *expected]
    assert len(expected) == 48


async def test_a_heartbeat_tells_from_where_a_filtered_reader_can_go_on(service: Service) -> None:
    last = service.lives(20)
    stream = sse(service.tail.subscription(0, Filter(type="nothing.*")), QUICK)
    read = await until(stream, b": %d\n\n" % last)
    assert sent(read) == [{"retry": "1000"}]
    service.journal.submit(entry("new", planned("new")))
    resumed = sse(service.tail.subscription(start_position(0, f"{last}")), QUICK)
    read = await until(resumed, b"}\n\n")
    assert [each["id"] for each in sent(read) if "id" in each] == [f"{last + 1}"]


async def test_a_reader_that_is_cut_off_anywhere_resumes_without_gap_or_duplicate(service: Service) -> None:
    last = service.lives(20)
    service.tail.stop()
    seen: list[str] = []
    while len(seen) < last:
        stream = sse(service.tail.subscription(start_position(None, seen[-1] if seen else None)))
        whole_blocks = (await whole(stream))[:10_000].rpartition(b"\n\n")
        read = sent(b"".join(whole_blocks[:2]))
        seen += [each["id"] for each in read if "id" in each]
    assert seen == [f"{n}" for n in range(1, last + 1)]


async def test_a_heartbeat_comes_each_time_that_nothing_did(service: Service) -> None:
    stream = sse(service.tail.subscription(0), QUICK)
    assert [await anext(stream) for _ in range(3)] == [b"retry: 1000\n\n", b": 0\n\n", b": 0\n\n"]
    service.journal.submit(entry("a", planned("a")))
    await until(stream, b": 1\n\n")


async def test_a_reader_that_goes_away_is_no_subscriber_any_more(service: Service) -> None:
    async def read() -> None:
        async for _ in sse(service.tail.subscription(0)):
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
    assert service.tail.subscribers == 0


# JSON and text ---------------------------------------------------------------------------------------------


async def test_lines_of_json_are_the_documents_and_an_empty_line_is_a_heartbeat(service: Service) -> None:
    service.lives(2)
    stream = ndjson(service.tail.subscription(0), QUICK)
    read = await until(stream, b"\n\n")
    lines = [line for line in read.split(b"\n") if line]
    assert lines == [encoded(event_document(each)) for each in service.log()]
    assert msgspec.json.decode(lines[-1], type=documents.Event).position == 32


async def test_the_lines_for_people_are_those_of_the_log(service: Service) -> None:
    service.lives(2)
    stream = text(service.tail.subscription(0), service.tail.slugs)
    service.tail.stop()
    lines = (await whole(stream)).decode().splitlines()
    assert lines == [event_text(each, service.tail.slugs) for each in service.log()]
    assert lines[0] == (
        "    1  2026-01-31 12:00:00 UTC  fix-lane-0       creation.planned@1       "
        "planned on branch fix-lane-0 from refs/heads/main (333333333333)"
    )


async def test_people_see_an_empty_line_while_nothing_happens(service: Service) -> None:
    stream = text(service.tail.subscription(0), service.tail.slugs, QUICK / 4)
    assert [await anext(stream), await anext(stream)] == [b"\n", b"\n"]
    service.journal.submit(entry("a", planned("a", "fresh")))
    assert b" fresh " in await anext(stream)


def events() -> list[Envelope]:
    return [decode(row) for row in rows(2)]


@pytest.mark.parametrize("event", events(), ids=lambda event: f"{event.position}-{event.type}")
def test_an_event_is_the_same_by_way_of_its_document(event: Envelope) -> None:
    assert event_json(event) == encoded(event_document(event))
    assert b"\n" not in event_json(event)


def test_the_fields_of_an_event_have_their_order() -> None:
    shape = msgspec.json.decode(event_json(events()[0]))
    assert list(shape) == [
        *("position", "type", "lane", "stream", "version", "time", "actor", "cause", "fact"),
    ]
    assert list(shape["actor"]) == ["uid", "pid", "client"]


def test_who_has_no_slug_is_told_by_its_id_and_no_lane_by_a_dash() -> None:
    event = msgspec.structs.replace(events()[0], stream="lane-0123456789abcdef")
    assert event_text(event, {}).split()[4] == "01234567"
    other = msgspec.structs.replace(event, stream=f"{REPOSITORY_STREAM}{REPOSITORY}")
    assert event_text(other, {}).split()[4] == "-"


def test_a_line_is_one_line_whatever_is_in_the_event() -> None:
    fact = msgspec.structs.replace(planned("a"), branch="refs/heads/a\nb\x1b[2J\u2028")
    line = event_text(msgspec.structs.replace(events()[0], fact=fact), {})
    assert r"a\nb\x1b[2J\u2028" in line
    assert line.isprintable()


# Chunks and positions --------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_many_events_are_few_chunks(service: Service) -> None:
    last = service.lives(125)
    stream = ndjson(service.tail.subscription(0))
    service.tail.stop()
    chunks = [chunk async for chunk in stream]
    assert b"".join(chunks).count(b"\n") == last == 2000
    assert len(chunks) < last / 50
    longest = max(len(event_json(each)) for each in service.log())
    assert max(map(len, chunks)) < CHUNK + longest + 1


@pytest.mark.parametrize("sizes", [[], [1], [10], [3, 3, 3, 3], [9, 1, 1], [50, 1, 50, 9, 1]])
def test_joining_keeps_every_byte_and_bounds_the_chunks(sizes: list[int]) -> None:
    frames = [bytes([n]) * size for n, size in enumerate(sizes)]
    chunks = list(joined(frames, 10))
    assert b"".join(chunks) == b"".join(frames)
    assert all(10 <= len(chunk) < 10 + max(sizes) for chunk in chunks[:-1])
    assert len(chunks[-1]) < 10


async def test_an_event_that_is_larger_than_a_chunk_is_sent_whole(service: Service) -> None:
    fact = msgspec.structs.replace(life("a")[2], path="/" + "x" * 3 * CHUNK)
    service.journal.submit(entry("a", planned("a"), fact, *life("a")[3:5]))
    stream = ndjson(service.tail.subscription(0))
    read = b""
    while read.count(b"\n") < 4:
        read += await anext(stream)
    assert read == b"".join(event_json(each) + b"\n" for each in service.log())


@pytest.mark.parametrize(
    ("after", "last_event_id", "position"),
    [(None, None, 0), (7, None, 7), (0, None, 0), (7, "9", 9), (None, "0", 0), (7, "", 7), (7, "007", 7)],
)
def test_the_last_event_that_was_received_wins(
    after: int | None, last_event_id: str | None, position: int
) -> None:
    assert start_position(after, last_event_id) == position


@pytest.mark.parametrize(
    ("after", "last_event_id"),
    [
        (-1, None),
        (10**18, None),
        (3, "-1"),
        (3, "x"),
        (3, " 4"),
        (3, "4.0"),
        (3, "²"),
        (3, "٣"),
        (3, "9" * 5000),
    ],
)
def test_what_is_no_position_is_refused(after: int | None, last_event_id: str | None) -> None:
    with pytest.raises(InvalidPosition) as refusal:
        start_position(after, last_event_id)
    assert (refusal.value.code, refusal.value.status) == ("invalid_position", 400)
    assert "is no position of the log" in str(refusal.value)
