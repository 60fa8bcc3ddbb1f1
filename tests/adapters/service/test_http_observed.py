"""Health and metrics: what operators look at."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import trio
from prometheus_client.parser import text_string_to_metric_families

from tests.adapters.service.front import until
from tests.adapters.service.http_house import TEXT, house

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.adapters.service.http_house import House

Sample = tuple[str, frozenset[tuple[str, str]]]
LABELS = {"method", "route", "status", "state", "outcome", "le", "repository", "transport", "reason"}


async def measured(served: House) -> dict[Sample, float]:
    """Returns every sample by its name and labels."""
    answer = await served.get("/metrics", TEXT)
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(samples: dict[Sample, float], name: str, **labels: str) -> float:
    return samples.get((name, frozenset(labels.items())), 0.0)


async def test_metrics_can_be_parsed_and_move_with_what_happens(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        before = await measured(served)
        lane = await served.lane()
        await served.post(f"/v1/lanes/{lane}/restore")
        await served.client.get("/v1/lanes")
        after = await measured(served)
    assert value(before, "laneyard_log_position") == 0
    assert value(after, "laneyard_log_position") == served.world.events()[-1].position
    assert value(after, "laneyard_lanes", state="active") == 2
    assert value(after, "laneyard_commands_ended_total", outcome="done") == 1
    assert value(after, "laneyard_commands_ended_total", outcome="failed") == 1
    labels = {"method": "POST", "route": "/v1/lanes", "status": "201"}
    assert value(after, "laneyard_http_requests_total", **labels) == 1
    assert value(after, "laneyard_http_seconds_count", route="/v1/lanes") == 2


async def test_no_request_adds_a_label_of_its_own(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        lane = await served.lane()
        for number in range(5):
            await served.get(f"/nowhere/{number}")
            await served.get(f"/v1/lanes/nobody-{number}")
            await served.get(f"/v1/commands/key-{number}")
            await served.client.request(f"BREW{number}", "/v1/lanes")
        found = await measured(served)
    values = {pair for _, labels in found for pair in labels}
    assert {name for name, _ in values} <= LABELS
    assert not [each for _, each in values if lane in each or "nobody" in each or "key-" in each]
    assert {each for name, each in values if name == "method"} == {"GET", "POST", "other"}
    assert "none" in {each for name, each in values if name == "route"}


async def test_what_is_refused_at_the_door_is_counted_by_its_reason(tmp_path: Path) -> None:
    async with house(tmp_path, header_bytes=4096) as served:
        await served.raw(b"GARBAGE\r\n\r\n")
        await served.raw(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 5000 + b"\r\n\r\n")
        served.service.connections.refuse("unauthorised")  # as the guard of TCP does
        found = await measured(served)
    refused = [
        value(found, "laneyard_door_refused_total", reason=each) for each in ("malformed", "large_head")
    ]
    assert refused == [1, 1]
    assert value(found, "laneyard_door_refused_total", reason="unauthorised") == 1
    assert value(found, "laneyard_connections", transport="unix") == 1
    assert value(found, "laneyard_connections", transport="tcp") == 0
    assert value(found, "laneyard_connections_accepted_total") == 3


async def test_a_client_that_goes_away_within_its_body_is_no_bug_of_ours(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    head = (
        b"POST /v1/lanes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    )
    with caplog.at_level(logging.DEBUG):
        async with house(tmp_path) as served:
            for _ in range(5):
                async with await trio.open_unix_socket(os.fsdecode(served.socket)) as client:
                    await client.send_all(head + b'{"re')
            await until(lambda: served.service.connections.open == 0)
            found = await measured(served)
    assert [
        sample for sample in found if "http_requests" in sample[0] and ("status", "500") in sample[1]
    ] == []
    assert [
        each for each in caplog.records if each.levelno > logging.DEBUG and "request" in each.message
    ] == []
    assert any("has gone before" in each.message for each in caplog.records)


async def test_health_tells_whether_commands_are_taken(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        ready = await served.get("/v1/health")
        assert (ready.status_code, ready.json()["status"]) == (200, "ready")
        assert ready.headers["laneyard-outcome"] == "done"
        for status in ("recovering", "stopping"):
            served.service.status = status
            answer = await served.get("/v1/health")
            assert (answer.status_code, answer.json()["status"]) == (503, status)
            assert answer.headers["laneyard-outcome"] == "unavailable"
            assert (await served.get("/v1/health", TEXT)).text == f"the service is {status}\n"
            assert value(await measured(served), "laneyard_ready") == 0
        served.service.status = "ready"


async def test_a_service_that_stops_takes_no_new_command_and_says_when_to_come_back(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        made = await served.create(idempotency_key="key")
        served.service.commands.stop()
        refused = await served.create("other")
        assert (refused.status_code, refused.json()["code"]) == (503, "stopping")
        assert refused.headers["laneyard-outcome"] == "unavailable" or int(refused.headers["retry-after"]) > 0
        assert int(refused.headers["retry-after"]) > 0
        assert (await served.create(idempotency_key="key")).content == made.content
        assert (await served.get("/v1/lanes")).status_code == 200
