"""What a killed service has left, and the next one finds."""

from __future__ import annotations

import os
from signal import Signals
from typing import TYPE_CHECKING, Any

import pytest
import trio

from adapters.config import load
from adapters.service.building import open_service
from adapters.service.recovering import Recovery
from adapters.wiring import new_request
from tests.soak.checks import complaints
from tests.soak.house import House, document, eventually

if TYPE_CHECKING:
    from pathlib import Path

    from adapters.service.service import Station

pytestmark = pytest.mark.slow


def interrupted(house: House, names: str) -> None:
    """Leaves a creation half done in each of the repositories, and a lane that was whole before."""
    house.configure(f'git.program = "{house.holding()}"\nservice.recovery_wait = 1.0\n')
    with house.serving() as running:
        for name in names:
            house.create(f"old-{name}", house.home / name)
        house.hold(*names, word="worktree add")
        for name in names:
            body = {"repository": str(house.home / name), "name": f"late-{name}"}
            assert house.ask("POST", "/v1/lanes", body, f"key-{name}", wait=0).status == 202
        late = {f"late-{name}" for name in names}
        eventually(lambda: late <= {slug for slug, row in house.lanes().items() if row["owed"]})
        running.kill()


def again(house: House, name: str) -> Any:  # noqa: ANN401
    """Asks for the interrupted creation once more, with its key."""
    answer = house.ask(
        "POST", "/v1/lanes", {"repository": str(house.home / name), "name": f"late-{name}"}, f"key-{name}"
    )
    return answer.status, document(answer)


def test_what_was_interrupted_is_done_before_the_service_is_ready(tmp_path: Path) -> None:
    house = House(tmp_path, "ab")
    interrupted(house, "ab")
    house.release("a", "b")
    with house.serving() as running:
        assert {row["state"] for row in house.lanes().values()} == {"active"}
        assert (house.health()["recovering"], house.health()["stopped"]) == ([], {})
        lane = house.lanes()["late-a"]["id"]
        status, made = again(house, "a")
        assert (status, made["id"], made["state"]) == (201, lane, "active")
        assert running.stop() == 0
    assert complaints(house, []) == []


def test_a_repository_that_hangs_or_is_gone_keeps_nobody_from_being_ready(tmp_path: Path) -> None:
    house = House(tmp_path, "abc")
    interrupted(house, "abc")
    house.release("a")
    os.rename(house.home / "c", house.home / "moved")
    with house.serving() as running:
        lanes = house.lanes()
        assert lanes["late-a"]["state"] == "active"
        assert lanes["late-b"]["owed"] is not None
        assert house.health()["recovering"] == [lanes["late-b"]["id"]]
        assert [*house.health()["stopped"]] == [lanes["late-c"]["id"]]
        assert not (house.home / "c").exists()
        shown = {each["slug"]: each for each in document(house.ask("GET", "/v1/lanes"))}
        assert shown["late-b"]["state"] == "opening"
        assert "unknown" in shown["old-c"]["head_now"]
        assert house.create("more", house.home / "a")["state"] == "active"
        house.release("b")
        status, made = again(house, "b")
        assert (status, made["id"]) == (201, lanes["late-b"]["id"])
        eventually(lambda: house.health()["recovering"] == [])
        os.rename(house.home / "moved", house.home / "c")
        house.release("c")
        assert again(house, "c")[1]["id"] == lanes["late-c"]["id"]
        assert house.health()["stopped"] == {}
        assert running.stop() == 0
    assert complaints(house, []) == []


def test_a_command_on_a_lane_that_is_driven_on_waits_for_that(tmp_path: Path) -> None:
    house = House(tmp_path)
    interrupted(house, "a")
    with house.serving() as running:
        lane = house.lanes()["late-a"]["id"]
        assert house.ask("POST", f"/v1/lanes/{lane}/remove", key="next", wait=0).status == 202
        body = {"repository": str(house.roots[0]), "name": "late-a"}
        assert house.ask("POST", "/v1/lanes", body, "key-a", wait=0).status == 202
        assert document(house.ask("GET", "/v1/commands/next", wait=0))["state"] == "waiting"
        house.release("a")
        assert house.ask("GET", "/v1/commands/next/answer").status == 200
        assert again(house, "a")[1]["id"] == lane
        assert running.stop() == 0
    assert complaints(house, []) == []


def test_a_service_that_is_told_to_stop_while_it_recovers_stops(tmp_path: Path) -> None:
    house = House(tmp_path)
    interrupted(house, "a")
    house.configure(f'git.program = "{house.holding()}"\nservice.recovery_wait = 600.0\n')
    with house.serving(ready=False) as running:
        running.until("STATUS=recovering")
        assert running.stop(Signals.SIGINT) == 0
    house.release("a")
    with house.serving() as running:
        assert house.lanes()["late-a"]["state"] == "active"
        assert running.stop() == 0


async def test_a_lane_that_met_a_bug_stays_stopped_until_the_next_command_on_it(tmp_path: Path) -> None:
    house = House(tmp_path)
    interrupted(house, "a")
    house.release("a")
    lane = str(house.lanes()["late-a"]["id"])
    settings = load(str(house.state), house.environment)
    with trio.fail_after(30), open_service(settings) as service:
        meant = service.drive_on

        async def broken(station: Station, *_: object) -> None:
            with service.watching(station, lane):
                raise ZeroDivisionError("a bug")

        service.drive_on = broken  # type: ignore[assignment,method-assign]
        recovery = Recovery(service)
        await recovery.run()
        assert service.stopped == {lane: "a bug"}
        await recovery.again()  # it is not its time yet
        assert (service.stopped, service.recovering) == ({lane: "a bug"}, set())

        async def command(station: Station) -> None:
            await meant(station, lane, new_request(settings))

        job = service.isolate(str(house.roots[0] / ".git")).submit(command, lane)
        assert await job.wait(20)
        assert service.stopped == {}
        assert await service.isolates.stop_all(5)
    assert house.lanes()["late-a"]["state"] == "active"


async def test_a_lane_that_is_left_behind_is_driven_on_while_the_service_runs(tmp_path: Path) -> None:
    house = House(tmp_path)
    interrupted(house, "a")
    house.release("a")
    settings = load(str(house.state), house.environment)
    with trio.fail_after(30), open_service(settings) as service:
        recovery = Recovery(service)
        await recovery.again()  # sees it for the first time: somebody may be at it
        assert house.lanes()["late-a"]["owed"] is not None
        await recovery.again()
        assert house.lanes()["late-a"]["owed"] is None
        assert await service.isolates.stop_all(5)
