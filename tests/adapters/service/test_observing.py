"""What lists tell of the disk: no older than they say, and looked at once for all who ask."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
import trio

from adapters.glances import Glances
from tests.adapters.service.http_house import House, house

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from adapters.glances import Glance
    from adapters.store.reader import Record

pytestmark = pytest.mark.slow


class Counted(Glances):
    """Glances that count how often they look."""

    looks = 0

    def look(self, rows: Sequence[Record], at: str) -> dict[str, Glance]:
        Counted.looks += 1
        return super().look(rows, at)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> type[Counted]:
    monkeypatch.setattr("adapters.service.building.Glances", Counted)
    monkeypatch.setattr(Counted, "looks", 0)
    return Counted


async def listed(at: House, name: str = "work", **query: Any) -> dict[str, Any]:  # noqa: ANN401
    answer = await at.get("/v1/lanes", **query)
    assert answer.status_code == 200
    found: dict[str, Any] = next(each for each in answer.json() if each["slug"] == name)
    return found


async def test_many_lists_within_a_second_cost_one_look(tmp_path: Path, counted: type[Counted]) -> None:
    async with house(tmp_path, look_age=3600) as at:
        await at.lane()
        first = await listed(at)
        assert counted.looks == 1
        assert [await listed(at) for _ in range(20)] == [first] * 20
        assert counted.looks == 1
        assert (await listed(at, observe="now"))["head_now"]["at"] > first["head_now"]["at"]
        assert counted.looks == 2


async def test_now_sees_what_has_just_happened_and_recent_sees_it_soon(tmp_path: Path) -> None:
    async with house(tmp_path, look_age=0.3) as at:
        await at.lane()
        before = await listed(at)
        lane = os.fsencode(before["path"])
        at.world.git(lane, "switch", "-q", "-c", "elsewhere")
        assert (await listed(at, observe="now"))["branch_now"]["value"] == "refs/heads/elsewhere"
        at.world.git(lane, "switch", "-q", "work")
        await trio.sleep(0.3)  # that time passes is what is tested
        assert (await listed(at))["branch_now"]["value"] == "refs/heads/work"


async def test_a_look_that_will_soon_be_too_old_is_renewed_before_anybody_waits_for_it(
    tmp_path: Path, counted: type[Counted]
) -> None:
    async with house(tmp_path, look_age=0.4) as at:
        await at.lane()
        before = await listed(at)
        await trio.sleep(0.32)  # that time passes is what is tested
        assert await listed(at) == before
        while await listed(at) == before:
            continue
        assert counted.looks == 2


async def test_a_lane_that_has_changed_is_never_told_as_it_was_before(tmp_path: Path) -> None:
    async with house(tmp_path, look_age=3600) as at:
        lane = await at.lane()
        await listed(at)
        removed = await at.post(f"/v1/lanes/{lane}/remove")
        assert removed.status_code == 200
        shown = await listed(at)
        assert shown["state"] == "quarantined"
        assert shown["branch_now"]["value"] is None  # detached, where it rests
        assert shown["present"]["at"] > removed.json()["created_at"]


async def test_a_lane_that_has_just_come_to_be_is_looked_at(tmp_path: Path) -> None:
    async with house(tmp_path, look_age=3600) as at:
        await at.lane("one")
        await listed(at, "one")
        await at.lane("two")
        assert (await listed(at, "two"))["present"]["value"] is True


async def test_who_asks_for_now_at_the_same_time_shares_looks(tmp_path: Path, counted: type[Counted]) -> None:
    async with house(tmp_path) as at:
        await at.lane()
        async with trio.open_nursery() as nursery:
            for _ in range(40):
                nursery.start_soon(lambda: listed(at, observe="now"))
        assert 1 <= counted.looks <= 20


async def test_a_text_is_never_answered_where_json_was_asked_for(tmp_path: Path) -> None:
    async with house(tmp_path, look_age=3600) as at:
        await at.lane()
        plain = await at.get("/v1/lanes", accept="text/plain")
        assert (await at.get("/v1/lanes")).json()[0]["slug"] == "primary"
        assert (await at.get("/v1/lanes", accept="text/plain")).text == plain.text
        assert (
            (await at.get("/v1/lanes", observe="none")).json()[0].keys().isdisjoint({"present", "head_now"})
        )


async def test_a_look_that_breaks_makes_its_own_lanes_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: Glances, rows: Sequence[Record], at: str) -> dict[str, Glance]:
        raise ZeroDivisionError("a bug")

    async with house(tmp_path, look_age=0) as at:
        await at.lane()
        with monkeypatch.context() as patch:
            patch.setattr(Glances, "look", broken)
            assert (await listed(at))["head_now"] == {"unknown": "a bug"}
        assert "value" in (await listed(at))["head_now"]
