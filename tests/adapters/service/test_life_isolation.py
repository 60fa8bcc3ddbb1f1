"""Repositories that hang, are broken or gone, and their neighbours, who notice nothing."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.adapters.service.burning import key_that_takes
from tests.soak.house import House, document, eventually

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def listed(house: House) -> dict[str, Any]:
    """Every lane as a list shows it, by its slug."""
    answer = house.ask("GET", "/v1/lanes?all=true")
    assert answer.status == 200
    return {each["slug"]: each for each in document(answer) if each["kind"] != "primary"}


def test_a_healthy_repository_among_three_that_are_not(tmp_path: Path) -> None:
    house = House(tmp_path, "abcd")
    house.configure(f'git.program = "{house.holding()}"\n[service]\nwaiting = 3\nlook_timeout = 2.0\n')
    with house.serving() as running:
        for root in house.roots:
            house.create(f"old-{root.name}", root)
        hanging, gone, broken = house.roots[1:]
        house.hold("b")
        (broken / ".git" / "config").write_text("[core\n")
        shutil.rmtree(gone)
        answers = [
            house.ask("POST", "/v1/lanes", {"repository": str(hanging), "name": f"n{number}"}, wait=0)
            for number in range(9)
        ]
        assert [each.status for each in answers] == [202] * 7 + [503] * 2
        assert document(answers[-1])["code"] == "repository_busy"
        assert int(answers[-1].headers["retry-after"]) > 0
        in_broken = house.ask("POST", "/v1/lanes", {"repository": str(broken), "name": "n"})
        assert (in_broken.status, document(in_broken)["code"]) == (502, "git_failed")
        in_gone = house.ask("POST", "/v1/lanes", {"repository": str(gone), "name": "n"})
        assert document(in_gone)["code"] == "not_a_repository"
        lane = listed(house)["old-c"]["id"]
        assert house.ask("POST", f"/v1/lanes/{lane}/remove").status in (404, 409, 502, 503)
        assert not gone.exists()
        for number in range(5):
            made = house.create(f"new-{number}")
            assert house.ask("POST", f"/v1/lanes/{made['id']}/remove", wait=2).status == 200
        seen = listed(house)
        assert "value" in seen["old-a"]["head_now"]
        assert "unknown" in seen["old-c"]["head_now"]
        assert seen["old-c"]["present"]["value"] is False
        house.release("b")
        eventually(lambda: {f"n{number}" for number in range(7)} <= {*listed(house)})
        assert running.stop() == 0


def test_a_repository_whose_thread_is_stuck_is_unknown_and_named(tmp_path: Path) -> None:
    house = House(tmp_path, "ab")
    house.configure("service.look_timeout = 0.3\n")
    with house.serving() as running:
        for root in house.roots:
            made = house.create(f"lane-{root.name}", root)
            assert house.ask("POST", f"/v1/lanes/{made['id']}/remove").status == 200
        slow = house.roots[1] / ".laneyard.toml"
        slow.write_text(key_that_takes(12.0))
        waits = {each["slug"] for each in document(house.ask("GET", "/v1/sweeps"))}
        assert waits == {"lane-a"}
        seen = listed(house)
        assert "value" in seen["lane-a"]["present"]
        assert "unknown" in seen["lane-b"]["present"]
        eventually(lambda: house.health()["silent"] == [str(house.roots[1] / ".git")])
        assert house.create("more")["state"] == "active"
        assert house.ask("GET", f"/v1/lanes/{seen['lane-a']['id']}").status == 200
        slow.unlink()
        eventually(lambda: house.health()["silent"] == [], 120)
        assert "value" in listed(house)["lane-b"]["present"]
        assert running.stop() == 0


def test_many_repositories_have_few_threads(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.configure("service.repositories = 12\n")
    count = 300
    for number in range(count - 1):
        shutil.copytree(house.roots[0] / ".git", house.home / f"r{number}" / ".git")
    with house.serving() as running:
        for number in range(count - 1):
            answer = house.ask("POST", "/v1/repositories", {"path": str(house.home / f"r{number}")})
            assert answer.status == 200, answer.body
        house.create("one")
        lanes = document(house.ask("GET", "/v1/lanes"))
        assert len(lanes) == count + 1
        assert [each["slug"] for each in lanes if "unknown" in each["present"]] == []
        # Twelve repositories, their workers, and what the service itself has.
        assert len(os.listdir(f"/proc/{running.process.pid}/task")) < 12 + 60
        assert running.stop() == 0
