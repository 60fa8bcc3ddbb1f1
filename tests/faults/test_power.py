"""When the power goes, no event is missing that anybody was told of."""

from __future__ import annotations

import os
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING

import pytest
import trio

from adapters.store.connection import connect
from adapters.store.journal import Journal
from adapters.store.reader import Reader
from adapters.store.verify import verify
from tests.adapters.store.lives import entries, noon
from tests.faults.power import Asked, Recorder, cuts, put
from tests.sagas.conftest import home as home
from tests.sagas.crashes import made
from tests.sagas.test_crash import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from domain.envelope import Envelope

THREADS, LANES = 4, 3  # who appends at the same time, and how many lives each tells
CHECKPOINT = 20  # pages: some cuts come in a checkpoint, or when the write-ahead log has begun anew


@contextmanager
def recording() -> Iterator[Recorder]:
    recorder = Recorder()
    try:
        yield recorder
    finally:
        recorder.unregister()


def events_of(path: Path) -> list[Envelope]:
    with Reader(bytes(path)) as reader:
        return list(reader.events())


def append(journal: Journal, recorder: Recorder, thread: int, lanes: int = LANES) -> None:
    for lane in range(lanes):
        for entry in entries(f"{thread}-{lane}"):
            promise = journal.submit(entry)
            promise.add_done_callback(lambda done: recorder.said(done.result().last))
            promise.result()


def told(path: Path, synchronous: str | None = None) -> list[Asked]:
    """Lets several threads append to a store that is made for it, and returns what the disk was asked."""
    with recording() as recorder, closing(Journal(bytes(path), noon)) as journal:
        if synchronous is not None:
            journal._connection.pragma("synchronous", synchronous)
        journal.maintain(lambda store: store.pragma("wal_autocheckpoint", CHECKPOINT)).result()
        threads = [Thread(target=append, args=(journal, recorder, each)) for each in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return recorder.asked


def moments(asked: list[Asked], most: int, chance: Random) -> set[int]:
    """Returns the beginnings of syncs, and moments between them, at most so many."""
    syncs = [at for at, each in enumerate(asked) if each.kind in ("sync", "delete", "truncate")]
    half = most // 2
    return {*chance.sample(syncs, min(half, len(syncs))), *chance.sample(range(len(asked) + 1), half)}


def lost(home: Path, files: dict[str, bytes], acknowledged: int, log: list[Envelope]) -> int:
    """Opens the store as a start would, and returns how many acknowledged events are missing."""
    with TemporaryDirectory(dir=home) as directory:
        path = put(Path(directory), files)
        Journal(bytes(path), noon).close()
        found = events_of(path)
        with closing(connect(bytes(path), read_only=True)) as connection:
            assert list(verify(connection)) == []
    assert found == log[: len(found)]
    return max(0, acknowledged - len(found))


@pytest.mark.parametrize("most", [6, pytest.param(160, marks=pytest.mark.slow)])
def test_no_acknowledged_event_is_lost_at_any_moment(home: Path, most: int) -> None:
    path, chance = home / "journal.db", Random(most)
    asked = told(path)
    log = events_of(path)
    assert len(log) == THREADS * LANES * len([*entries("lane")])
    assert max(each.offset for each in asked if each.kind == "said") == len(log)
    images = cuts(asked, {}, moments(asked, most, chance), chance)
    assert sum(lost(home, files, said, log) for said, files in images) == 0


def test_the_same_cuts_do_lose_events_where_commits_are_not_synced(home: Path) -> None:
    path, chance = home / "journal.db", Random(7)
    asked = told(path, "NORMAL")
    log = events_of(path)
    images = cuts(asked, {}, moments(asked, 20, chance), chance)
    assert any(lost(home, files, said, log) for said, files in images)


@pytest.mark.slow
def test_a_cut_in_the_recovery_from_a_cut_loses_nothing(home: Path) -> None:
    path, chance = home / "journal.db", Random(3)
    asked = told(path)
    log = events_of(path)
    for said, files in cuts(asked, {}, moments(asked, 12, chance), chance):
        with TemporaryDirectory(dir=home) as directory:
            again = put(Path(directory), files)
            with recording() as recorder, closing(Journal(bytes(again), noon)) as journal:
                known = len(events_of(again))
                append(journal, recorder, THREADS, lanes=1)
            longer = events_of(again)
        assert longer[:known] == log[:known]
        assert known >= said
        recovered = recorder.asked
        images = cuts(recovered, files, moments(recovered, 4, chance), chance)
        assert sum(lost(home, each, max(said, now), longer) for now, each in images) == 0


@pytest.mark.parametrize("name", ["remove-dirty", "create"])
def test_what_a_command_was_told_is_durable_is_there_after_a_cut(home: Path, name: str) -> None:
    scenario, chance = BY_NAME[name], Random(name)
    world, _ = made(home, scenario)
    state, store = Path(os.fsdecode(world.settings.state_dir)), Path(os.fsdecode(world.settings.store))
    before = {each.name: each.read_bytes() for each in state.glob("journal.db*") if "-shm" not in each.name}
    with recording() as recorder:

        def notice(moment: str, _: str) -> None:
            if moment == "after-append":
                recorder.said(len(events_of(store)))

        async def act() -> None:
            async with world.open(notice) as opened:
                await scenario.act(opened)

        trio.run(act)
    log, asked = events_of(store), recorder.asked
    images = cuts(asked, before, moments(asked, 20, chance), chance)
    assert sum(lost(home, files, said, log) for said, files in images) == 0
