"""What the service remembers of commands: their answers, and nothing of the requests that asked for them."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING

from litestar import Request

from tests.adapters.service.front import until
from tests.adapters.service.http_house import House, house
from tests.adapters.service.test_http_keys import code
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from pathlib import Path

    import httpx
    import pytest


def requests_in_memory() -> int:
    """Returns how many requests are held by anything."""
    gc.collect()
    return sum(isinstance(each, Request) for each in gc.get_objects())


async def refused(served: House, key: str) -> httpx.Response:
    """Asks for a lane on a branch that is there already."""
    body = {"repository": served.root, "name": "x", "branch": "main"}
    answer = await served.post("/v1/lanes", body, idempotency_key=key)
    assert code(answer)[0] == 409
    return answer


async def test_nothing_of_a_refused_request_is_kept(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        answers = [await refused(served, f"key-{number}") for number in range(5)]
        followed = await served.get("/v1/commands/key-0")
        again = await served.get("/v1/commands/key-0/answer")
        assert (again.status_code, again.content) == (answers[0].status_code, answers[0].content)
        assert followed.json()["problem"] == answers[0].json()
        command = served.service.commands.find("key-4")
        assert command is not None
        assert command.error is not None
        assert command.error.__traceback__ is None
        await until(lambda: requests_in_memory() == 0)  # the last one may still be ending


async def test_nothing_of_a_request_that_met_a_bug_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("adapters.api.operations.create", broken)
    async with house(tmp_path) as served:
        assert code(await served.create(idempotency_key="one")) == (500, "internal_error")
        assert (await served.get("/v1/commands/one")).json()["problem"]["code"] == "internal_error"
        await until(lambda: requests_in_memory() == 0)  # the last one may still be ending


async def test_a_creation_that_was_undone_is_remembered_and_the_log_names_its_lane(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path)
    world.fake('case "$*" in *"worktree add"*) [ ! -e "$WORLD/fail" ] || exit 1;; esac')
    with caplog.at_level(logging.INFO, "laneyard.commands"):
        async with house(world) as served:
            lane = await served.lane("made")
            (tmp_path / "fail").touch()
            assert code(await served.create("undone", idempotency_key="undone"))[0] == 409
            shown = (await served.get("/v1/commands/undone")).json()
            again = await served.create("undone", idempotency_key="undone")
            await refused(served, "refused")
        async with house(world) as served:
            after = await served.create("undone", idempotency_key="undone")
    ends = [vars(each)["fields"]["lane"] for each in caplog.records if "a command was" in each.message]
    undone = shown["problem"]["details"]["lane"]
    assert ends == [lane, undone, undone, None, undone]
    assert shown["lane"] == ends[1]
    assert shown["problem"] == again.json() == after.json()
    assert world.tags().count("creation.planned@1") == 2
