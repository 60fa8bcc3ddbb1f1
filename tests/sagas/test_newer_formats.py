"""What only a newer program knows of a lane blocks that lane, and no other; and nothing of it is touched."""

from __future__ import annotations

import json
import os
import re
from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
import trio

from adapters.api import operations
from adapters.store.connection import connect, transaction
from adapters.store.reader import Reader
from adapters.store.verify import verify
from adapters.wiring import new_request
from adapters.yard import sweeping
from domain.envelope import stream_of
from domain.errors import BranchExists, BranchInUse, WrongState
from domain.formats import LaneBlocked
from domain.states import Blocked
from tests.sagas.crashes import made, stop
from tests.sagas.old_formats import retold, rows
from tests.sagas.scenarios import SCENARIOS, nothing, place_of
from tests.sagas.trees import walk

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from _pytest.mark import ParameterSet

    from tests.sagas.old_formats import Row
    from tests.sagas.trees import Entry
    from tests.sagas.worlds import Open, World

BY_NAME = {each.name: each for each in SCENARIOS}
REMOVAL = "removal.planned@4"
_OURS = re.compile(rb"/work(-|/|$)")
JOURNALS = {  # by the fact that begins it: a command that is stopped in its midst
    "creation.planned@1": "create-second",
    REMOVAL: "remove-dirty",
    "restore.planned@1": "restore-moved",
    "reaping.planned@1": "reap",
    "snapshot.planned@2": "snapshot",
}


def newer_tag(row: Row) -> Row:
    """Returns an event in the next shape of its kind."""
    stream, version, tag, data = row
    name, _, number = tag.partition("@")
    return stream, version, f"{name}@{int(number) + 1}", data


def newer_format(row: Row) -> Row:
    """Returns a plan in a format that is not known."""
    stream, version, tag, data = row
    state = json.loads(data)
    state["fact"]["journal_format"] = 99
    return stream, version, tag, json.dumps(state).encode()


def unknown_tag(row: Row) -> Row:
    """Returns an event of a kind that is not known."""
    return row[0], row[1], "lane.teleported@1", row[3]


def cases() -> list[ParameterSet]:
    """Returns every journal in every way of being newer; one is quick to tell that something is wrong."""
    ways = {"tag": tuple(JOURNALS), "format": tuple(JOURNALS)[:-1], "unknown": (REMOVAL,)}
    quick = {(REMOVAL, "tag")}
    return [
        pytest.param(plan, way, marks=[] if (plan, way) in quick else [pytest.mark.slow])
        for way, plans in ways.items()
        for plan in plans
    ]


WAYS: dict[str, Callable[[Row], Row]] = {"tag": newer_tag, "format": newer_format, "unknown": unknown_tag}


def asked(world: World, act: Callable[[Open], Awaitable[object]]) -> object:
    """Opens the yard anew, which drives on what was interrupted, and asks."""

    async def main() -> object:
        async with world.open() as opened:
            return await act(opened)

    return trio.run(main)


def blocked(home: Path, plan: str, way: str) -> tuple[World, str]:
    """Returns a world with an open journal that a newer program has begun, and its lane.

    Another lane has an open journal as well.
    """
    world, _ = made(home, BY_NAME[JOURNALS[plan]])

    async def another(opened: Open) -> None:
        await opened.create("another")

    asked(world, another)
    begun = BY_NAME[JOURNALS[plan]]
    last = max(number for number, (when, _) in enumerate(begun.moments) if when == "after-effect")
    stop(world, begun.act, last, dies=False)
    stream = next(row[0] for row in reversed(rows(world)) if row[2] == plan)
    retold(world, lambda row: WAYS[way](row) if (row[0], row[2]) == (stream, plan) else row)
    stop(world, lambda opened: opened.remove("another"), 5, dies=False)
    return world, stream.partition("-")[2]


def untouched(world: World, lane: str) -> tuple[dict[bytes, Entry], list[Row]]:
    """Returns all that may not change: the lane's tree, registration and branch, and its stream."""
    seen = walk(world.root)
    mine = {path: fact for path, fact in seen.items() if _OURS.search(path)}
    assert mine
    return mine, [row for row in rows(world) if row[0] == stream_of(lane)]


@pytest.mark.parametrize(("plan", "way"), cases())
def test_a_newer_journal_blocks_its_lane_and_no_other(home: Path, plan: str, way: str) -> None:
    world, lane = blocked(home, plan, way)
    before = untouched(world, lane)
    with Reader(world.settings.store) as reader:
        assert (reader.row(lane) or {})["state"] == "blocked"
        assert stream_of(lane) not in {row["stream"] for row in reader.open_journals()}

    async def look(opened: Open) -> None:
        assert opened.state("another") == "quarantined"
        assert isinstance(opened.yard.reader.lane(lane)[0], Blocked)
        row = opened.yard.reader.row(lane)
        assert row is not None
        assert (row["state"], row["owed"], row["slug"]) == ("blocked", None, "work")
        assert "and this program knows" in str(row["blocked"]) or "unknown type" in str(row["blocked"])
        assert [each.row["id"] for each in sweeping.candidates(opened.yard, None)] != [lane]

    asked(world, look)
    assert untouched(world, lane) == before
    with closing(connect(world.settings.store, read_only=True)) as connection:
        [finding] = list(verify(connection))
    assert (finding.check, finding.message.count("update Laneyard")) == ("decode", 1)


async def test_every_name_of_a_blocked_lane_stays_its_own_and_every_command_is_refused(home: Path) -> None:
    world, lane = await trio.to_thread.run_sync(blocked, home, REMOVAL, "tag")
    async with world.open() as opened:
        before = untouched(world, lane)
        for command in (opened.remove, opened.restore, opened.reap, opened.snapshot, opened.discard):
            with pytest.raises((LaneBlocked, WrongState)) as caught:
                await command()
            assert "blocked" in str(caught.value)
        for body, operation in operations.ON_LANES.values():
            said, request = msgspec.convert({}, body), new_request(world.settings)
            with pytest.raises(LaneBlocked) as refused:
                await cast("Any", operation)(opened.yard, lane, said, request)
            assert (refused.value.code, refused.value.lane) == ("lane_blocked", "work")
        with pytest.raises(LaneBlocked):
            operations.review(opened.yard, lane)
        with pytest.raises(LaneBlocked):
            await opened.create("child", parent="work")
        with pytest.raises((BranchInUse, BranchExists)):
            await opened.create("fresh", branch="work")
        assert untouched(world, lane) == before
        await opened.create("work")
        assert opened.row("work-2")["state"] == "active"
        assert place_of(opened, "work-2") != place_of(opened)
        assert untouched(world, lane)[1] == before[1]


def test_a_lane_of_which_only_the_beginning_is_newer_keeps_its_place(home: Path) -> None:
    """Its folder is not there yet, so nothing but the claim keeps others out."""
    world, _ = made(home, BY_NAME["create-second"])
    stop(world, BY_NAME["create-second"].act, 1, dies=False)
    stream = rows(world)[-1][0]
    retold(world, lambda row: newer_tag(row) if row[0] == stream else row)

    async def look(opened: Open) -> None:
        await opened.create()
        states = {row["slug"]: row["state"] for row in opened.yard.reader.lanes()}
        assert states == {"primary": "active", "other": "active", "work": "blocked", "work-2": "active"}
        assert not os.path.lexists(place_of(opened))

    asked(world, look)


def test_tables_of_a_newer_program_are_made_anew_and_not_believed(home: Path) -> None:
    world, lane = blocked(home, REMOVAL, "tag")
    before = untouched(world, lane)
    with closing(connect(world.settings.store)) as newer, transaction(newer):
        newer.execute("DROP TABLE IF EXISTS lane; CREATE TABLE lane(id TEXT PRIMARY KEY, colour TEXT) STRICT")
        newer.execute("DROP TABLE IF EXISTS claim; DROP TABLE IF EXISTS open_journal")
        newer.execute("DELETE FROM tracking WHERE name GLOB 'tables@*'")
        newer.execute("INSERT INTO tracking SELECT 'tables@99', max(position) FROM event")
    with Reader(world.settings.store) as reader:
        seen = {row["slug"]: row["state"] for row in reader.lanes()}
        assert seen == {"primary": "active", "another": "leaving", "work": "blocked"}
        assert (reader.row(lane) or {})["state"] == "blocked"
        assert len(reader.open_journals()) == 1
    with closing(connect(world.settings.store, read_only=True)) as connection:
        assert {finding.check for finding in verify(connection)} == {"tables", "decode"}

    async def look(opened: Open) -> None:
        assert {row["slug"]: row["state"] for row in opened.yard.reader.lanes()} == seen | {
            "another": "quarantined"
        }

    asked(world, look)
    assert untouched(world, lane) == before


def test_a_program_that_knows_the_format_finds_the_lane_as_it_is(home: Path) -> None:
    world, lane = blocked(home, REMOVAL, "tag")
    asked(world, nothing)

    def known_again(row: Row) -> Row:
        return (row[0], row[1], REMOVAL, row[3]) if row[2] == "removal.planned@5" else row

    retold(world, known_again)
    asked(world, nothing)
    with Reader(world.settings.store) as reader:
        row = reader.row(lane)
        assert row is not None
        assert (row["state"], row["blocked"]) == ("quarantined", None)
    assert trio.run(world.complaints) == []


async def test_a_sweep_leaves_a_blocked_lane_alone(home: Path) -> None:
    world, lane = await trio.to_thread.run_sync(blocked, home, "reaping.planned@1", "tag")
    world.retention = "0s"
    async with world.open() as opened:
        before = untouched(world, lane)
        swept = await opened.sweep("once")
        assert [each.candidate.row["slug"] for each in swept] == ["another"]
        assert untouched(world, lane) == before
