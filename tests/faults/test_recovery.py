"""A start: what it reads, whom it waits for, and two of them at once."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import apsw
import pytest
import trio

from adapters.service.building import open_service
from adapters.service.recovering import Recovery
from adapters.store.journal import Journal
from adapters.store.reader import Reader
from tests.adapters.store.lives import interleaved, noon
from tests.bench.recovery import Interrupted
from tests.soak.checks import complaints
from tests.soak.house import House, eventually, started

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from adapters.config import Settings
    from tests.soak.house import Process

pytestmark = pytest.mark.slow
LOCK = "lock.wait = 30.0\n"


@pytest.fixture
def steps() -> Iterator[list[int]]:
    """Lends a list of what SQLite has done since: the steps of its machine, statement by statement."""
    taken: list[int] = []

    def hear(connection: apsw.Connection) -> None:
        connection.trace_v2(
            apsw.SQLITE_TRACE_PROFILE,
            lambda told: taken.append(told["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]),
        )

    apsw.connection_hooks.append(hear)
    yield taken
    apsw.connection_hooks.remove(hear)


async def recover(settings: Settings) -> None:
    """Does what the service does before it is ready."""
    with trio.fail_after(60), open_service(settings) as service:
        async with trio.open_nursery() as nursery:
            await nursery.start(service.tail.run)
            await Recovery(service).run()
            assert service.stopped == {}
            assert await service.isolates.stop_all(5)
            nursery.cancel_scope.cancel()


def read_at_start(scene: Interrupted, journals: int, steps: list[int]) -> int:
    """Returns the steps that a start takes with so many open journals."""
    scene.interrupt(journals)
    steps.clear()
    trio.run(recover, scene.settings)
    with Reader(scene.house.store) as reader:
        assert reader.open_journals() == []
    return sum(steps)


def test_a_start_reads_what_is_owed_and_not_the_history(tmp_path: Path, steps: list[int]) -> None:
    taken = {}
    for events in (6_000, 30_000):
        place = tmp_path / str(events)
        place.mkdir()
        scene = Interrupted(House(place), 6, 100, events)
        for journals in (0, 6, 0, 3, 6):
            taken[events, journals] = read_at_start(scene, journals, steps)
    for journals in (0, 3, 6):
        assert taken[30_000, journals] < 1.1 * taken[6_000, journals]
    one = (taken[30_000, 3] - taken[30_000, 0]) / 3
    assert 0 < taken[30_000, 6] - taken[30_000, 0] < 2 * 6 * one


def test_what_a_writer_has_appended_is_not_looked_through_again(tmp_path: Path, steps: list[int]) -> None:
    taken = []
    for lanes in (2, 200):
        store = os.fsencode(tmp_path / f"{lanes}.db")
        journal = Journal(store, noon)
        for promise in [journal.submit(entry) for entry in interleaved(lanes, 16)]:
            promise.result()
        steps.clear()
        Reader(store).close()  # while the writer has it open, as it might be killed
        taken.append(sum(steps))
        journal.close()
    assert taken[0] == taken[1] > 0


def test_a_lane_that_hangs_holds_up_nobody_longer_than_is_configured(tmp_path: Path) -> None:
    house = House(tmp_path, "ab")
    house.configure(f'git.program = "{house.holding()}"\nservice.recovery_wait = 1.0\n')
    with house.serving() as running:
        for name in "ab":
            house.hold(name, word="worktree add")
            for number in range(3):
                body = {"repository": str(house.home / name), "name": f"{name}-{number}"}
                assert house.ask("POST", "/v1/lanes", body, f"{name}-{number}", wait=0).status == 202
        house.until_held("a", "b")
        eventually(lambda: len([row for row in house.lanes().values() if row["owed"]]) == 6)
        running.kill()
    house.release("b")
    house.hold("a", word="a-1")  # of one lane only, while it has its repository's lock
    with house.serving() as running:
        assert {row["owed"] for slug, row in house.lanes().items() if slug.startswith("b-")} == {None}
        assert house.lanes()["a-1"]["id"] in house.health()["recovering"]
        assert house.create("more", house.home / "b")["state"] == "active"
        house.release("a")
        eventually(lambda: house.health()["recovering"] == [])
        assert {row["state"] for row in house.lanes().values()} == {"active"}
        assert running.stop() == 0
    assert complaints(house, []) == []


@pytest.fixture
def left(tmp_path: Path) -> Interrupted:
    """Returns a house with four journals that are open: of removals, stopped after no effect, one, or two."""
    scene = Interrupted(House(tmp_path), 4, 0, 0)
    scene.house.configure(LOCK)
    scene.interrupt(4)
    return scene


def assert_all_is_well(scene: Interrupted, *more: str) -> None:
    """What was begun is done, once, and so is what was asked meanwhile."""
    rows = scene.house.lanes()
    assert {rows[f"open-{number}"]["state"] for number in range(4)} == {"quarantined"}
    assert {rows[each]["state"] for each in more} <= {"active"}
    with Reader(scene.house.store) as reader:
        assert reader.open_journals() == []
    assert complaints(scene.house, []) == []


def test_of_two_services_one_serves_and_the_other_says_who_does(left: Interrupted) -> None:
    left.house.configure("lock.wait = 1.0\n")
    with left.house.serving(ready=False) as one, left.house.serving(ready=False) as other:
        eventually(lambda: one.process.poll() is not None or other.process.poll() is not None)
        loser, winner = (one, other) if one.process.poll() is not None else (other, one)
        assert loser.ended() == 4
        winner.until("READY=1")
        assert winner.stop() == 0
    assert "state_locked" in winner.log_text
    assert_all_is_well(left)


def test_a_service_and_a_command_at_once_both_come_to_their_end(left: Interrupted) -> None:
    with left.house.serving(ready=False) as service:
        command = begun(left.house, "beside")
        assert command.wait(60) == 0
        service.until("READY=1")
        assert service.stop() == 0
    assert_all_is_well(left, "beside")


def test_two_commands_at_once_both_come_to_their_end(left: Interrupted) -> None:
    commands = [begun(left.house, name) for name in ("one", "two")]
    assert [each.wait(60) for each in commands] == [0, 0]
    assert_all_is_well(left, "one", "two")


def begun(house: House, name: str) -> Process:
    """Starts a command that makes a lane; it has a minute."""
    with open(house.home / f"{name}.log", "wb") as log:
        return started(("-C", str(house.roots[0]), "create", name), house.home, house.environment, log)
