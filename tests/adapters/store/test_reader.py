"""Reading what somebody else writes: whole pages, one moment, and no trace."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from adapters.store import tables
from adapters.store.connection import connect
from adapters.store.errors import StoreError, StoreMissing
from adapters.store.journal import Journal
from adapters.store.log import PAGE
from adapters.store.reader import Reader
from domain.envelope import REPOSITORY_STREAM, stream_of
from domain.events import RepositoryRegistered
from domain.lane import fold
from domain.states import Nowhere, Reaped
from projections.catalogue import IMMEDIATE, TABLES
from tests.adapters.store.lives import ACTOR, NOON, REPOSITORY, entry, interleaved, life, noon
from tests.adapters.volumes import make_read_only, volume

if TYPE_CHECKING:
    from projections.table import Row


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return bytes(tmp_path / "journal.db")


def lived(path: bytes, lanes: int, width: int = 10) -> None:
    with closing(Journal(path, noon)) as journal:
        for request in interleaved(lanes, width):
            journal.submit(request)


def test_no_store_at_all_is_said_to_be_missing(path: bytes) -> None:
    with pytest.raises(StoreMissing):
        Reader(path)
    assert not os.path.exists(path)


def test_a_log_of_many_pages_is_read_whole_and_in_order(path: bytes) -> None:
    lived(path, 130)
    with Reader(path) as reader:
        events = list(reader.events())
        assert len(events) == 2080 > 2 * PAGE
        assert [event.position for event in events] == list(range(1, 2081))
        assert list(reader.events(after=999, to=2001)) == events[999:2001]
        assert list(reader.events(after=2080)) == []
        assert reader.head().position == 2080


def test_a_page_that_is_exactly_full_is_not_the_last(path: bytes) -> None:
    with closing(Journal(path, noon)) as journal:
        for _ in range(PAGE // 10):
            journal.submit(entry("a", *life("a")[6:7] * 10))
        assert journal.submit(entry("a", *life("a")[6:7])).result().last == PAGE + 1
    with Reader(path) as reader:
        assert len(list(reader.events(to=PAGE))) == PAGE
        assert len(list(reader.events())) == PAGE + 1
        assert len(list(reader.events(stream=stream_of("a")))) == PAGE + 1


def test_a_story_ends_with_the_cause_of_its_last_event(path: bytes) -> None:
    with closing(Journal(path, noon)) as journal:
        journal.submit(entry("a", *life("a")[:2], command="first")).result()
        journal.submit(entry("a", life("a")[2], command="second")).result()
        journal.submit(entry("b", life("b")[0], command="third")).result()
    with Reader(path) as reader:
        assert reader.story("a") == (fold(life("a")[:3]), 3, "second")
        assert reader.story("nobody") == (Nowhere(), 0, "")


def test_an_event_comes_back_as_it_was_written(path: bytes) -> None:
    with closing(Journal(path, noon)) as journal:
        journal.submit(entry("a", *life("a"), command="the cause")).result()
    with Reader(path) as reader:
        events = list(reader.events())
    assert tuple(event.fact for event in events) == life("a")
    assert {(event.time, event.actor, event.cause) for event in events} == {(NOON, ACTOR, "the cause")}
    assert [event.version for event in events] == list(range(1, 17))


def test_a_lane_is_folded_from_its_own_stream(path: bytes) -> None:
    lived(path, 70, width=70)
    with Reader(path) as reader:
        assert reader.lane("lane-42") == (fold(life("lane-42")), 16)
        assert isinstance(reader.lane("lane-42")[0], Reaped)
        assert reader.lane("never") == (Nowhere(), 0)
        assert [event.version for event in reader.events(stream=stream_of("lane-7"))] == list(range(1, 17))


def test_the_tables_are_read_by_column(path: bytes) -> None:
    registered = RepositoryRegistered(common=REPOSITORY, root="/srv/yard", object_format="sha1")
    with closing(Journal(path, noon)) as journal:
        journal.submit(replace(entry("", registered), stream=f"{REPOSITORY_STREAM}1"))
        journal.submit(entry("a", *life("a")[:6]))
        journal.submit(entry("b", *life("b")[:3])).result()
    with Reader(path) as reader:
        assert [(row["id"], row["state"], row["owed"]) for row in reader.lanes()] == [
            ("a", "leaving", "Lock"),
            ("b", "active", None),
        ]
        assert [(row["stream"], row["step"]) for row in reader.open_journals()] == [("lane-a", "Lock")]
        assert reader.repositories() == [
            {"common": REPOSITORY, "root": "/srv/yard", "object_format": "sha1", "position": 1}
        ]


def test_folding_to_a_position_gives_the_tables_of_that_time(path: bytes) -> None:
    then: dict[int, dict[str, list[Row]]] = {}
    with closing(Journal(path, noon)) as journal, closing(connect(path)) as other:
        for request in interleaved(6, 3):
            position = journal.submit(request).result().last
            then[position] = {each.TABLE.name: tables.read(other, each.TABLE) for each in IMMEDIATE}
    with Reader(path) as reader:
        for position, expected in then.items():
            found = reader.fold(to=position)
            assert found.position == position
            assert {each.TABLE.name: found.table(each.TABLE) for each in IMMEDIATE} == expected


def test_folding_the_whole_log_gives_every_table(path: bytes) -> None:
    lived(path, 12)
    with Reader(path) as reader, closing(connect(path, read_only=True)) as connection:
        found = reader.fold()
        assert {t.name: found.table(t) for t in TABLES} == {
            t.name: tables.read(connection, t) for t in TABLES
        }


def test_a_reader_sees_what_is_committed_while_it_is_open(path: bytes) -> None:
    with closing(Journal(path, noon)) as journal, Reader(path) as reader:
        assert (reader.lanes(), list(reader.events())) == ([], [])
        before = reader.changed()
        assert reader.changed() == before
        journal.submit(entry("a", *life("a")[:3])).result()
        assert reader.changed() != before
        assert [row["id"] for row in reader.lanes()] == ["a"]


def test_a_log_that_is_being_written_is_read_without_gaps(path: bytes) -> None:
    with closing(Journal(path, noon)) as journal, Reader(path) as reader:
        for request in interleaved(100, 10):
            journal.submit(request)
        seen = 0
        while seen < 1600:
            for event in reader.events(after=seen):
                assert event.position == seen + 1
                seen = event.position


def test_reading_holds_up_no_writer(path: bytes) -> None:
    lived(path, 10)
    with closing(Journal(path, noon)) as journal, Reader(path) as reader:
        events = reader.events()
        assert next(events).position == 1
        assert journal.submit(entry("more", *life("more")[:1])).result().last == 161
        assert [event.position for event in events] == list(range(2, 161))


def test_a_store_in_use_is_read_where_nothing_can_be_written(path: bytes, tmp_path: Path) -> None:
    with volume(tmp_path / "media", megabytes=8) as media:
        with closing(Journal(path, noon)) as journal:
            journal.submit(entry("a", *life("a")[:3])).result()
            for suffix in ("", "-wal", "-shm"):
                shutil.copy(f"{path.decode()}{suffix}", media)
        make_read_only(media)
        with Reader(bytes(media / "journal.db")) as reader:
            assert [row["state"] for row in reader.lanes()] == ["active"]
            assert len(list(reader.events())) == 3


def test_a_store_that_cannot_be_read_without_writing_says_so(path: bytes, tmp_path: Path) -> None:
    lived(path, 1)
    with volume(tmp_path / "media") as media:
        shutil.copy(path.decode(), media)
        make_read_only(media)
        with pytest.raises(StoreError):
            Reader(bytes(media / "journal.db"))


def test_reading_changes_nothing(path: bytes) -> None:
    lived(path, 3)
    before = Path(path.decode()).read_bytes()
    with Reader(path) as reader:
        assert len(list(reader.events())) == 48
    assert Path(path.decode()).read_bytes() == before
