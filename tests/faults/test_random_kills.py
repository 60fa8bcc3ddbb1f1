"""A few random kills under load; `python -m tests.faults.random_kills` does a thousand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.random_kills import trial
from tests.faults.remains import remains
from tests.faults.starting import starter
from tests.soak.house import House, eventually

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 24


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_or_doubled_and_nothing_is_left(tmp_path: Path) -> None:
    counts, wrong = trial(tmp_path, KILLS, seed=1, lanes=16, every=KILLS)
    assert wrong == {}
    assert counts["kills"] == KILLS
    assert counts["alone"] == counts["with all"] == KILLS // 2
    assert counts["killed at work"] >= KILLS // 4
    assert counts["acknowledged"] > KILLS
    assert counts["files accounted for"] > counts["lanes"] >= 16


@pytest.mark.slow
def test_commands_without_a_service_are_killed_and_gone_on_with_by_the_next(tmp_path: Path) -> None:
    counts, wrong = trial(tmp_path, KILLS, seed=2, lanes=6, every=KILLS, by_hand=True)
    assert wrong == {}
    assert counts["with all"] == KILLS // 2
    assert counts["alone"] > 0
    assert counts["acknowledged"] > KILLS // 2


@pytest.mark.slow
def test_what_is_left_about_is_seen(tmp_path: Path) -> None:
    house = House(tmp_path)
    with house.serving() as running:
        house.create("one")
        assert running.stop() == 0
    assert remains(house) == []
    root = house.roots[0]
    head = house.git(root, "rev-parse", "HEAD").strip()
    house.git(root, "update-ref", "refs/laneyard/snapshots/nobody", head)
    for place in (house.state / "snapshots/nobody", root / ".laneyard/quarantine/nobody"):
        place.mkdir(parents=True)
    for path in (
        house.state / "blobs/nobody",
        root / ".git/objects/pack/tmp_pack_x",
        root / ".git/HEAD.lock",
    ):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
    house.git(root, "worktree", "add", "-q", "--detach", ".laneyard/worktrees/stranger")
    assert [each.split()[0] for each in remains(house)] == [
        *("blob", "directory", "directory", "ref", "registration", "snapshot", "unfinished", "unfinished")
    ]
    assert "tmp_pack_x" in house.program("doctor").stdout


@pytest.mark.slow
def test_a_storm_ends_what_a_dead_program_has_left(tmp_path: Path) -> None:
    with starter() as start:
        house = House(tmp_path, launch=start.launch)
        house.configure(f'git.program = "{house.wrapper(": >$HOUSE/held; exec sleep 600")}"\n')
        with house.serving(ready=False) as running:
            running.until("READY=1")
            body = {"repository": str(house.roots[0]), "name": "one"}
            house.ask("POST", "/v1/lanes", body, "key", wait=0)
            eventually((tmp_path / "held").exists)
            running.kill()
            assert running.ended() == -9
        assert start.storm() > 0
        assert start.storm() == 0
