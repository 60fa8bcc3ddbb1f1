"""If-Match, Prefer, and what a bug leads to."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio

from adapters.api import operations
from adapters.service import building
from adapters.service.web import reading
from adapters.service.web.headers import preference
from adapters.wiring import yard_over
from domain.effects import Move
from tests.adapters.service.http_house import house
from tests.adapters.service.test_http_keys import code, held

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

    from adapters.engine import Performer
    from domain.effects import Effect, Outcome


async def test_a_command_on_the_right_version_is_done_and_the_answer_has_the_next_one(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        lane = f"/v1/lanes/{await served.lane()}"
        version = (await served.get(lane)).headers["etag"]
        done = await served.post(f"{lane}/remove", if_match=version)
        assert (done.status_code, done.json()["state"]) == (200, "quarantined")
        assert done.headers["etag"] == f'"{done.json()["version"]}"' != version
        assert (await served.get(lane)).headers["etag"] == done.headers["etag"]
        assert (await served.post(f"{lane}/restore", if_match="*")).status_code == 200


async def test_a_command_on_another_version_changes_nothing_and_tells_the_version_that_is(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as served:
        lane = f"/v1/lanes/{await served.lane()}"
        version, position = (await served.get(lane)).headers["etag"], served.service.tail.head
        for verb in ("snapshot", "remove", "restore", "reap"):
            refused = await served.post(f"{lane}/{verb}", if_match='"1"')
            assert code(refused) == (412, "version_mismatch")
            assert refused.headers["etag"] == version
            assert f'"{refused.json()["details"]["version"]}"' == version
        assert served.service.tail.head == position


@pytest.mark.parametrize("value", ['W/"3"', '"3", "4"', "3", '"x"', '""', '"99999999999999999999"', "**"])
async def test_what_is_no_single_version_is_refused(tmp_path: Path, value: str) -> None:
    async with house(tmp_path) as served:
        lane = await served.lane()
        refused = await served.post(f"/v1/lanes/{lane}/remove", if_match=value)
    assert code(refused) == (400, "invalid_request")
    assert "If-Match" in refused.json()["detail"]


@pytest.mark.slow
async def test_of_ten_who_remove_the_same_version_one_wins(tmp_path: Path) -> None:
    answers: list[httpx.Response] = []
    async with house(tmp_path) as served:
        lane = f"/v1/lanes/{await served.lane()}"
        version = (await served.get(lane)).headers["etag"]

        async def remove() -> None:
            answers.append(await served.post(f"{lane}/remove", if_match=version))

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(remove)
    assert sorted(each.status_code for each in answers) == [200, *[412] * 9]
    assert served.world.tags().count("lane.quarantined@1") == 1


@pytest.mark.parametrize(
    ("said", "seconds", "applied"),
    [
        (None, 10.0, None),
        ("", 10.0, None),
        ("wait=0", 0.0, "wait=0"),
        ("WAIT = 7", 7.0, "wait=7"),
        ('wait="7"', 7.0, "wait=7"),
        ("wait=7; strictly=1", 7.0, "wait=7"),
        ("wait=100000", 60.0, "wait=60"),
        ("wait=99999999999999999999", 60.0, "wait=60"),
        ("wait=7, wait=8", 7.0, "wait=7"),
        ("respond-async", 0.0, "respond-async"),
        ("respond-async, wait=7", 7.0, "respond-async, wait=7"),
        ("wait=7, respond-async", 7.0, "wait=7, respond-async"),
        ("wait=-1", 10.0, None),
        ("wait=1.5", 10.0, None),
        ("wait=٣", 10.0, None),
        ("wait", 10.0, None),
        ("return=minimal, handling=lenient, ;;,=", 10.0, None),
    ],
)
def test_a_preference_is_understood_or_ignored(said: str | None, seconds: float, applied: str | None) -> None:
    found = preference(said, 10.0, 60.0)
    assert (found.seconds, found.applied) == (seconds, applied)


async def test_preferences_may_take_several_lines_and_nonsense_is_ignored(tmp_path: Path) -> None:
    world, hold = held(tmp_path)
    body = {"repository": world.root.decode(), "name": "work"}
    async with house(world) as served:
        lines = [("Prefer", "nonsense"), ("Prefer", "x" * 5000), ("Prefer", "respond-async")]
        begun = await served.client.post("/v1/lanes", json=body, headers=lines)
        hold.unlink()
        assert begun.status_code == 202
        assert begun.headers["preference-applied"] == "respond-async"
        done = await served.client.get(begun.headers["location"], headers={"prefer": "wait=20"})
    assert (done.status_code, done.headers["preference-applied"]) == (201, "wait=20")


async def test_a_bug_in_a_handler_is_an_internal_error_that_the_log_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(request: object) -> None:
        raise ZeroDivisionError(request)

    async with house(tmp_path) as served:
        with monkeypatch.context() as patched, caplog.at_level(logging.ERROR):
            patched.setattr(reading, "list_repositories", broken)
            answer = await served.get("/v1/repositories")
        assert code(answer) == (500, "internal_error")
        assert answer.headers["laneyard-outcome"] == "unavailable"
        assert "ZeroDivisionError" not in answer.text
        assert [each.exc_info[0] for each in caplog.records if each.exc_info] == [ZeroDivisionError]
        assert (await served.get("/v1/repositories")).status_code == 200


async def test_a_bug_in_a_command_is_an_internal_error_of_that_command_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError("oh")

    async with house(tmp_path) as served:
        lane = f"/v1/lanes/{await served.lane()}"
        body, operation = operations.ON_LANES["snapshot"]
        with caplog.at_level(logging.ERROR):
            monkeypatch.setitem(cast("dict[str, Any]", operations.ON_LANES), "snapshot", (body, broken))
            answer = await served.post(f"{lane}/snapshot", idempotency_key="key")
            monkeypatch.setitem(cast("dict[str, Any]", operations.ON_LANES), "snapshot", (body, operation))
        assert code(answer) == (500, "internal_error")
        told = [each.fields for each in caplog.records if hasattr(each, "fields")]
        assert any(each.get("cause") == "key" and "ZeroDivisionError: oh" in each["trace"] for each in told)
        assert (await served.get("/v1/commands/key")).json()["problem"]["code"] == "internal_error"
        assert (await served.post(f"{lane}/snapshot", idempotency_key="key")).status_code == 200


class Broken:
    """A performer that meets a bug where it should move a certain lane."""

    def __init__(self, inner: Performer) -> None:
        self._inner = inner

    async def perform(self, effect: Effect) -> Outcome:
        if isinstance(effect, Move) and "/bad" in str(effect):
            raise ZeroDivisionError("a bug")
        return await self._inner.perform(effect)

    async def settle(self, effect: Effect) -> None:
        await self._inner.settle(effect)


@pytest.mark.slow
async def test_a_bug_in_one_lanes_driver_stops_that_lane_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path) as served:
        bad, good = await served.lane("bad"), await served.lane("good")
    monkeypatch.setattr(building, "yard_over", partial(yard_over, wrap=Broken))
    async with house(served.world) as served:
        assert code(await served.post(f"/v1/lanes/{bad}/remove")) == (500, "internal_error")
        done = await served.post(f"/v1/lanes/{good}/remove")
        assert (done.status_code, done.json()["state"]) == (200, "quarantined")
        assert list((await served.get("/v1/health")).json()["stopped"]) == [bad]
        assert (await served.get(f"/v1/lanes/{bad}")).json()["state"] == "leaving"
    monkeypatch.undo()
    async with house(served.world) as served:  # without the bug it is driven on
        assert (await served.get(f"/v1/lanes/{bad}")).json()["state"] == "quarantined"
        assert (await served.get("/v1/health")).json()["stopped"] == {}
