"""A running service that is told to read its configuration again."""

from __future__ import annotations

from signal import Signals
from typing import TYPE_CHECKING

import pytest

from tests.soak.house import House, document, eventually

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_a_lane_has_one_command_at_a_time_also_across_a_reload(house: House) -> None:
    house.configure(f'git.program = "{house.holding()}"\n')
    with house.serving() as running:
        lane = house.create("one")["id"]
        house.hold("a")
        assert house.ask("POST", f"/v1/lanes/{lane}/snapshot", key="first", wait=0).status == 202
        house.until_held("a")
        house.configure('git.program = "git"\n')
        running.tell(Signals.SIGHUP)
        running.until("READY=1")
        second = house.ask("POST", f"/v1/lanes/{lane}/remove", key="second", wait=0)
        assert (second.status, document(second)["state"]) == (202, "waiting")
        # Another lane of the same repository uses the new program already: its git does not wait.
        assert house.create("two")["state"] == "active"
        assert document(house.ask("GET", "/v1/commands/second", wait=0))["state"] == "waiting"
        house.release("a")
        for key in ("first", "second"):
            assert house.ask("GET", f"/v1/commands/{key}/answer").status == 200
        assert running.stop() == 0
    causes = [each.cause for each in house.events() if each.cause in ("first", "second")]
    assert causes == sorted(causes)


def test_what_is_read_again_holds_in_repositories_that_are_open(house: House) -> None:
    with house.serving() as running:
        lane = house.create("one")["id"]
        house.ask("POST", f"/v1/lanes/{lane}/remove")
        assert document(house.ask("GET", "/v1/sweeps"))[0]["action"] == "wait"
        house.configure('quarantine.retention = "0s"\n')
        running.tell(Signals.SIGHUP)
        running.until("READY=1")
        assert document(house.ask("GET", "/v1/sweeps"))[0]["action"] == "reap"
        assert running.stop() == 0


def test_a_file_that_cannot_be_read_leaves_everything_as_it_is(house: House) -> None:
    house.configure('quarantine.retention = "0s"\n')
    with house.serving() as running:
        lane = house.create("one")["id"]
        house.ask("POST", f"/v1/lanes/{lane}/remove")
        house.configure('quarantine.retention = "soon"\n')
        running.tell(Signals.SIGHUP)
        running.until("RELOADING=1")
        running.until("READY=1")
        assert document(house.ask("GET", "/v1/sweeps"))[0]["action"] == "reap"
        eventually(lambda: "the configuration was not read again" in running.log_text)
        assert running.stop() == 0
