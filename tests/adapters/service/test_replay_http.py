"""A replay over HTTP: lines of JSON or text, of any length, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from adapters.api.replay_documents import DryDrive, ReplayedEvent
from tests.adapters.service.http_house import NDJSON, TEXT, house

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


async def test_a_lane_is_explained_in_lines_and_in_words(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        lane = await served.lane()
        await served.post(f"/v1/lanes/{lane}/remove")
        address = f"/v1/lanes/{lane}/replay"
        answer = await served.get(address, NDJSON)
        assert answer.headers["content-type"].startswith(NDJSON)
        assert answer.headers["laneyard-outcome"] == "done"
        lines = answer.text.splitlines()
        assert len([msgspec.json.decode(each, type=ReplayedEvent) for each in lines]) == len(lines)
        told: list[dict[str, Any]] = [json.loads(each) for each in lines]
        events = (await served.get("/v1/events", lane=lane)).json()["events"]
        assert [each["position"] for each in told] == [each["position"] for each in events]
        words = (await served.get(address, TEXT)).text
        assert all(each["told"] in words for each in told)
        assert (await served.client.head(address)).content == b""
        some = await served.get(address, NDJSON, to=events[1]["position"])
        assert some.text.splitlines() == lines[:2]


async def test_a_dry_drive_is_a_document_and_words(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        lane = await served.lane()
        position = (await served.get("/v1/events", lane=lane)).json()["events"][0]["position"]
        address, position_before = f"/v1/lanes/{lane}/dry-drive", served.service.tail.head
        found = msgspec.convert((await served.get(address, to=position)).json(), DryDrive)
        assert (found.state, found.pending and found.pending.step) == ("opening", "Checkout")
        assert (await served.get(address, TEXT)).text.endswith("owes nothing: it is at rest\n")
        assert served.service.tail.head == position_before


@pytest.mark.parametrize("which", ["replay", "dry-drive"])
async def test_what_is_no_lane_or_position_is_refused(tmp_path: Path, which: str) -> None:
    async with house(tmp_path) as served:
        lane = await served.lane()
        address = f"/v1/lanes/{lane}/{which}"
        for status, code, asked in (
            (404, "before_the_lane", served.get(address, to=1)),
            (404, "no_such_position", served.get(address, to=9999)),
            (404, "no_such_lane", served.get(f"/v1/lanes/nobody/{which}")),
            (400, "invalid_request", served.get(address, to="null")),
            (400, "invalid_request", served.get(address, at=1)),
        ):
            answer = await asked
            assert (answer.status_code, answer.json()["code"]) == (status, code)
