"""A request may name the version that it has seen: if that has changed, nothing happens but a refusal."""

from __future__ import annotations

from contextlib import closing
from threading import Event
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from adapters.store.journal import Entry, Journal
from adapters.store.reader import Reader
from domain.errors import CommandReused, VersionMismatch
from tests.adapters.store.lives import ACTOR, entry, life, noon

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from domain.events import Fact
    from domain.states import Lane

PATIENCE = 20.0  # seconds; only a failing test waits as long
PLANNED, CHECKED_OUT, CREATED = life("a")[:3]


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return bytes(tmp_path / "journal.db")


@pytest.fixture
def journal(path: bytes) -> Iterator[Journal]:
    with closing(Journal(path, noon)) as journal:
        journal.submit(entry("a", PLANNED, command="first", digest=b"d")).result(PATIENCE)
        yield journal


def expecting(version: int, fact: Fact, command: str | None = None) -> Entry:
    return replace(entry("a", fact, command=command, digest=b"d"), expected=version)


def tags(path: bytes) -> list[str]:
    with Reader(path) as reader:
        return [event.type for event in reader.events()]


def test_the_version_that_the_lane_has_is_taken(journal: Journal) -> None:
    assert journal.submit(expecting(1, CHECKED_OUT)).result(PATIENCE).version == 2


@pytest.mark.parametrize("version", [0, 2, -1])
def test_any_other_version_is_refused_with_both_and_nothing_happens(
    journal: Journal, path: bytes, version: int
) -> None:
    with pytest.raises(VersionMismatch) as caught:
        journal.submit(expecting(version, CHECKED_OUT)).result(PATIENCE)
    assert (caught.value.expected, caught.value.version) == (version, 1)
    assert tags(path) == [PLANNED.TAG]


def test_a_stream_that_nobody_has_written_is_at_version_0(journal: Journal) -> None:
    fresh = replace(entry("b", life("b")[0]), expected=0)
    assert journal.submit(fresh).result(PATIENCE).version == 1


def test_the_version_is_looked_at_before_anything_is_decided(journal: Journal) -> None:
    asked: list[Lane] = []

    def decide(lane: Lane) -> tuple[Fact, ...]:
        asked.append(lane)
        return ()

    with pytest.raises(VersionMismatch):
        journal.submit(Entry(stream="lane-a", decide=decide, actor=ACTOR, cause="-", expected=5)).result(
            PATIENCE
        )
    assert asked == []


def test_what_was_answered_before_is_answered_again_whatever_is_expected(journal: Journal) -> None:
    journal.submit(entry("a", CHECKED_OUT)).result(PATIENCE)
    again = journal.submit(expecting(0, PLANNED, command="first")).result(PATIENCE)
    assert (again.replayed, again.facts) == (True, (PLANNED,))


def test_another_request_with_the_same_id_is_told_so_whatever_is_expected(journal: Journal) -> None:
    with pytest.raises(CommandReused):
        journal.submit(replace(expecting(0, PLANNED, command="first"), digest=b"e")).result(PATIENCE)


def test_of_two_that_expect_the_same_version_in_one_transaction_only_the_first_is_taken(
    journal: Journal, path: bytes
) -> None:
    begun, go = Event(), Event()

    def decide(_: Lane) -> tuple[Fact, ...]:
        begun.set()
        assert go.wait(PATIENCE)
        return ()

    blocker = journal.submit(Entry(stream="lane-blocker", decide=decide, actor=ACTOR, cause="-"))
    assert begun.wait(PATIENCE)
    one, two = (journal.submit(expecting(1, fact)) for fact in (CHECKED_OUT, CREATED))
    go.set()
    blocker.result(PATIENCE)
    assert one.result(PATIENCE).version == 2
    assert isinstance(two.exception(PATIENCE), VersionMismatch)
    assert tags(path) == [PLANNED.TAG, CHECKED_OUT.TAG]
