"""Idempotency-Key: a command is done once and answered alike, however often and after whatever."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.adapters.service.front import until
from tests.adapters.service.http_house import PROBLEM, TEXT, House, house
from tests.sagas.worlds import World

if TYPE_CHECKING:
    import httpx

HOLD = 'case "$*" in *"worktree add"*) while [ -e "$WORLD/hold" ]; do sleep 0.01; done;; esac'
SAME = ("etag", "location", "laneyard-outcome", "idempotency-key", "content-type")


def told(answer: httpx.Response) -> tuple[int, bytes, dict[str, str | None]]:
    """Everything of an answer that may not change."""
    return answer.status_code, answer.content, {name: answer.headers.get(name) for name in SAME}


def code(answer: httpx.Response) -> tuple[int, str]:
    """The status and the code of a problem."""
    assert answer.headers["content-type"] == PROBLEM
    return answer.status_code, answer.json()["code"]


def held(home: Path) -> tuple[World, Path]:
    """A world in which git makes no worktree as long as a file is there."""
    world = World(home)
    world.fake(HOLD)
    hold = home / "hold"
    hold.touch()
    return world, hold


async def test_a_request_joins_the_same_one_that_still_runs(tmp_path: Path) -> None:
    world, hold = held(tmp_path)
    answers = []
    async with house(world) as served:

        async def create() -> None:
            answers.append(await served.create(idempotency_key="one"))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(create)
            await until(lambda: served.service.commands.counts().running == 1)
            hold.unlink()
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert world.tags().count("creation.planned@1") == 1


async def test_a_request_that_has_ended_is_answered_again_and_not_done_again(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        first = await served.create(idempotency_key="one")
        position = served.service.tail.head
        assert told(await served.create(idempotency_key="one")) == told(first)
        assert first.headers["idempotency-key"] == "one"
        assert first.headers["location"] == f"/v1/lanes/{first.json()['id']}"
        assert served.service.tail.head == position


@pytest.mark.slow
async def test_a_key_that_was_used_for_another_request_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        lane, other = await served.lane("one"), await served.lane("two")
        await served.post(f"/v1/lanes/{lane}/snapshot", idempotency_key="key")
        for again in (
            served.post(f"/v1/lanes/{lane}/remove", idempotency_key="key"),
            served.post(f"/v1/lanes/{other}/snapshot", idempotency_key="key"),
            served.create("three", idempotency_key="key"),
        ):
            assert code(await again) == (422, "command_reused")
        made = await served.create("four", idempotency_key="made")
        assert code(await served.create("five", idempotency_key="made")) == (422, "command_reused")
        assert made.status_code == 201


@pytest.mark.slow
async def test_a_key_that_was_used_for_another_request_is_refused_after_a_restart_too(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with house(world) as served:
        lane = await served.lane()
        await served.post(f"/v1/lanes/{lane}/snapshot", idempotency_key="key")
    async with house(world) as served:
        again = await served.post(f"/v1/lanes/{lane}/remove", idempotency_key="key")
        assert code(again) == (422, "command_reused")
        assert code(await served.create("other", idempotency_key="key")) == (422, "command_reused")


@pytest.mark.slow
async def test_answers_are_the_same_to_the_byte_after_a_restart_whatever_has_happened_since(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    sent: list[tuple[str, Any, str]] = []
    first: list[httpx.Response] = []

    async def send(served: House, address: str, body: Any = None) -> httpx.Response:  # noqa: ANN401
        sent.append((address, body, f"key-{len(sent)}"))
        first.append(await served.post(address, body, idempotency_key=sent[-1][2]))
        assert first[-1].status_code in (200, 201), (address, first[-1].text)
        return first[-1]

    async with house(world) as served:
        made = await send(served, "/v1/lanes", {"repository": served.root, "name": "work"})
        lane, tree = f"/v1/lanes/{made.json()['id']}", Path(made.json()["path"])
        (tree / "new").write_text("new")
        (tree / ".git-ignored").write_text("x")
        await send(served, f"{lane}/snapshot")
        (tree / "fifo-like").mkdir()
        os.mkfifo(tree / "fifo-like" / "pipe")
        await send(served, f"{lane}/remove", {"force": True, "reap": True})
        taken = {"repository": served.root, "name": "work", "branch": "other"}
        await send(served, "/v1/lanes", taken)
        await send(served, f"{lane}/restore")
        await send(served, f"{lane}/snapshot", {})
        await send(served, f"{lane}/remove", {"delete_branch": True})
        await send(served, f"{lane}/reap")
        await send(served, "/v1/sweeps", {"repository": served.root})
    assert first[2].json()["warnings"], "the removal was to have something to say"
    assert first[4].json()["slug"] != "work"
    async with house(world) as served:
        position = served.service.tail.head
        for (address, body, key), before in zip(sent, first, strict=True):
            assert told(await served.post(address, body, idempotency_key=key)) == told(before), address
        assert served.service.tail.head == position


@pytest.mark.parametrize(
    "key", ["", "a b", "a/b", '"', "é", ".", "a%b", "a?b", "a#b", "x" * 256, 'a"b', "a\\b"]
)
async def test_a_key_that_could_be_no_part_of_an_address_is_refused(tmp_path: Path, key: str) -> None:
    async with house(tmp_path) as served:
        headers = [(b"idempotency-key", key.encode()), (b"content-type", b"application/json")]
        answer = await served.client.post("/v1/rebuild", headers=headers)
    assert code(answer) == (400, "invalid_request")
    assert "Idempotency-Key must be a letter or digit, then" in answer.json()["detail"]


@pytest.mark.parametrize(
    "key", ["7", "550e8400-e29b-41d4-a716-446655440000", "a-b_c.d~e&f=+:;@!$'()*,", "x" * 255]
)
async def test_a_key_is_taken_plain_or_in_quotes_and_can_be_followed(tmp_path: Path, key: str) -> None:
    async with house(tmp_path) as served:
        begun = await served.create(idempotency_key=f'"{key}"', prefer="respond-async")
        assert begun.status_code == 202
        assert begun.headers["idempotency-key"] == key
        answer = await served.get(begun.headers["location"])
        assert answer.status_code == 201
        assert told(answer) == told(await served.create(idempotency_key=key))
        shown = await served.get(begun.headers["location"].removesuffix("/answer"))
        assert shown.json()["id"] == key


async def test_without_a_key_one_is_made_and_told(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        made = await served.create()
        again = await served.create(idempotency_key=made.headers["idempotency-key"])
    assert told(again) == told(made)


@pytest.mark.slow
async def test_a_refusal_is_not_remembered(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        lane = await served.lane()
        shown = (await served.get(f"/v1/lanes/{lane}")).json()
        Path(served.world.root.decode(), ".git/info/exclude").write_text(".env\n/.laneyard/\n")
        secret = Path(shown["path"], ".env")
        secret.write_text("SECRET=1")
        refused = await served.post(f"/v1/lanes/{lane}/remove", idempotency_key="key")
        assert code(refused) == (409, "unknown_ignored")
        followed = (await served.get("/v1/commands/key")).json()
        assert (followed["state"], followed["problem"]["code"]) == ("failed", "unknown_ignored")
        assert code(await served.get("/v1/commands/key/answer")) == (409, "unknown_ignored")
        secret.unlink()
        done = await served.post(f"/v1/lanes/{lane}/remove", idempotency_key="key")
    assert (done.status_code, done.json()["state"]) == (200, "quarantined")


@pytest.mark.slow
async def test_a_command_in_the_log_is_known_after_a_restart_and_its_answer_is_to_be_asked_for_again(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    async with house(world) as served:
        made = await served.create(idempotency_key="key")
        assert code(await served.get("/v1/commands/other")) == (404, "no_such_command")
    async with house(world) as served:
        shown = (await served.get("/v1/commands/key")).json()
        assert (shown["state"], shown["lane"], shown["answer"]) == ("done", made.json()["id"], None)
        assert code(await served.get("/v1/commands/key/answer")) == (410, "answer_forgotten")
        assert code(await served.get("/v1/commands/other/answer")) == (404, "no_such_command")
        assert told(await served.create(idempotency_key="key")) == told(made)
        assert told(await served.get("/v1/commands/key/answer")) == told(made)


async def test_a_command_is_waiting_running_and_done_and_can_be_waited_for(tmp_path: Path) -> None:
    world, hold = held(tmp_path)
    async with house(world, running=1) as served:
        begun = await served.create("one", idempotency_key="one", prefer="respond-async")
        later = await served.create("two", idempotency_key="two", prefer="wait=0")
        assert [each.status_code for each in (begun, later)] == [202, 202]
        assert begun.headers["laneyard-outcome"] == "unfinished"
        assert int(begun.headers["retry-after"]) >= 1
        await until(lambda: served.service.commands.counts().running == 1)
        states = [(await served.get(f"/v1/commands/{key}")).json()["state"] for key in ("one", "two")]
        assert states == ["running", "waiting"]
        text = await served.get("/v1/commands/one", TEXT)
        assert text.text == "command one is running\n"
        hold.unlink()
        headers = {"prefer": "wait=20"}
        shown = (await served.client.get("/v1/commands/two", headers=headers)).json()
        answer = await served.client.get(later.headers["location"], headers=headers)
    assert shown["state"] == "done"
    assert shown["answer"] == answer.json()
    assert answer.headers["preference-applied"] == "wait=20"


async def test_a_client_that_goes_away_cancels_nothing(tmp_path: Path) -> None:
    world, hold = held(tmp_path)
    async with house(world) as served:
        with trio.move_on_after(10) as gone:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(served.create, "work")
                await until(lambda: served.service.commands.counts().running == 1)
                gone.cancel()
        hold.unlink()
        assert await served.service.commands.drain(10)
        lanes = (await served.get("/v1/lanes", slug="work")).json()
    assert [each["state"] for each in lanes] == ["active"]


@pytest.mark.parametrize(
    ("address", "other"),
    [("/v1/repositories", "/v1/rebuild"), ("/v1/rebuild", "/v1/sweeps"), ("/v1/sweeps", "/v1/rebuild")],
)
async def test_what_is_no_lanes_is_remembered_by_its_key_too(
    tmp_path: Path, address: str, other: str
) -> None:
    world = World(tmp_path)
    answers = []
    for _ in range(2):
        async with house(world) as served:
            body = {"path": served.root} if address == "/v1/repositories" else {}
            answers += [await served.post(address, body, idempotency_key="one") for _ in range(2)]
            assert code(await served.post(other, {}, idempotency_key="one")) == (422, "command_reused")
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert await world.complaints() == []
