"""The tables in memory are those of the log, and a disk that hangs keeps nobody from looking elsewhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
import trio

from adapters.clock import now
from adapters.service import tables as tables_module
from adapters.service.looking import LATE, Lookers
from adapters.service.refusals import RepositorySilent
from adapters.service.tables import Tables
from adapters.store import views
from adapters.store.journal import Entry, Journal
from adapters.store.reader import Reader
from domain import lane as lanes
from domain.commands import AdoptLane
from domain.envelope import REPOSITORY_STREAM, Actor, stream_of
from domain.events import RepositoryRegistered
from domain.evidence import Identity, Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from domain.events import Fact
    from domain.states import Lane

ME, NOWHERE = Actor(0, 1, "tests"), Identity(0, 0)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    opened = Journal(os.fsencode(tmp_path / "journal.db"), now)
    yield opened
    opened.close()


@pytest.fixture
def reader(tmp_path: Path, journal: Journal) -> Iterator[Reader]:
    with Reader(os.fsencode(tmp_path / "journal.db")) as opened:
        yield opened


def adopt(journal: Journal, number: int) -> None:
    """Takes a lane under our care that nobody has ever seen."""
    lane, path = f"lane{number}", f"/nowhere/{number}"
    command = AdoptLane(
        lane=lane,
        repository="/nowhere/.git",
        name=lane,
        slug=lane,
        kind="external",
        place=Place(path, f"/nowhere/.git/worktrees/{number}", NOWHERE),
        branch=f"refs/heads/{lane}",
        head="a" * 40,
    )

    def decide(before: Lane) -> tuple[Fact, ...]:
        return lanes.decide(before, command)

    journal.submit(Entry(stream=stream_of(lane), decide=decide, actor=ME, cause=lane, claiming=True)).result()


def same(tables: Tables, reader: Reader) -> None:
    def by_id(rows: list[Any]) -> list[Any]:
        return sorted(rows, key=lambda row: str(row["id"]))

    assert by_id(tables.lanes()) == by_id(reader.lanes())
    assert tables.repositories() == reader.repositories()


def test_what_is_in_memory_is_what_is_in_the_log_after_each_commit(journal: Journal, reader: Reader) -> None:
    tables = Tables(reader)
    same(tables, reader)
    for number in range(5):
        adopt(journal, number)
        same(tables, reader)
    fact = RepositoryRegistered(common="/nowhere/.git", root="/nowhere", object_format="sha1")
    stream = f"{REPOSITORY_STREAM}one"
    journal.submit(Entry(stream=stream, decide=lambda lane: (fact,), actor=ME, cause="r")).result()
    same(tables, reader)
    assert len(tables.repositories()) == 1
    journal.maintain(views.rebuild).result()
    same(tables, reader)


def test_many_commits_between_two_looks_are_all_seen(
    journal: Journal, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables_module, "MANY", 4)
    tables = Tables(reader)
    adopt(journal, 0)
    same(tables, reader)
    for number in range(1, 8):
        adopt(journal, number)
    same(tables, reader)
    assert len(tables.lanes()) == 8


async def test_looks_that_hang_at_one_place_are_few_and_other_places_are_looked_at() -> None:
    lookers, (reading, writing) = Lookers(), os.pipe()
    known = ["/hangs", "/well"]

    def hang() -> None:
        os.read(reading, 1)

    for number in range(LATE):
        with pytest.raises(RepositorySilent):
            await lookers.look(hang, f"/hangs/{number}", known, 0.01)
    with pytest.raises(RepositorySilent):  # and no thread is spent on it
        await lookers.look(lambda: 1, "/hangs/more", known, 5)
    assert await lookers.look(lambda: 1, "/well/x", known, 5) == 1
    os.write(writing, b"x" * LATE)

    async def looked() -> bool:
        try:
            return await lookers.look(lambda: True, "/hangs/x", known, 5)
        except RepositorySilent:
            return False

    with trio.fail_after(10):
        while not await looked():  # noqa: ASYNC110 (nothing tells when a thread has come back)
            await trio.sleep(0.002)
    os.close(writing)
    os.close(reading)
