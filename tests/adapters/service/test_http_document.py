"""The document of the interface: it is the committed one, it is complete, and the service keeps to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from adapters.api import documents
from adapters.service.web.app import build
from adapters.service.web.description import describe
from domain.paths import pack
from domain.states import NAMES
from tests.adapters.cli.conftest import Desk
from tests.adapters.service.http_child import child
from tests.adapters.service.http_house import house

if TYPE_CHECKING:
    import httpx

ROOT = Path(__file__).parents[3]
COMMITTED = ROOT / "docs/openapi.json"
DOCUMENT: dict[str, Any] = json.loads(COMMITTED.read_bytes())
SECONDS = os.environ.get("LANEYARD_FUZZ_SECONDS", "60")
SEED = os.environ.get("LANEYARD_FUZZ_SEED", "1")
EXPECTED = """
generation.codec = "utf-8"
[checks]
positive_data_acceptance.expected-statuses = ["2xx", 404, 409, 410, 412, 422]
negative_data_rejection.expected-statuses = [400, 401, 404, 405, 413, 415, 431]
"""


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (address, method, operation)
        for address, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_committed_document_is_what_the_code_describes() -> None:
    assert describe(build(None)) == COMMITTED.read_bytes(), "run scripts/openapi"


async def test_the_document_is_served_as_it_is_committed(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        answer = await served.get("/openapi.json")
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.content == COMMITTED.read_bytes()


def test_every_operation_says_what_it_is_for_and_whom_it_refuses() -> None:
    tags = {each["name"] for each in DOCUMENT["tags"]}
    for address, method, operation in operations():
        assert operation["summary"], address
        assert operation["description"], address
        assert set(operation["tags"]) <= tags
        assert {"400", "401", "403", "500", "503"} <= set(operation["responses"]), address
        if method == "post":
            assert any(each["name"] == "Idempotency-Key" for each in operation["parameters"]), address
        for parameter in operation.get("parameters", ()):
            assert parameter["description"], (address, parameter["name"])


def test_every_state_of_a_lane_is_in_the_document() -> None:
    shown = DOCUMENT["components"]["schemas"]["Lane"]["properties"]["state"]["enum"]
    assert shown == list(documents.State.__args__)  # type: ignore[attr-defined]
    assert set(shown) == set(NAMES.values()) - {"none"}


def test_a_body_of_which_every_key_has_a_default_may_be_left_out() -> None:
    required = {
        address: operation["requestBody"]["required"]
        for address, _, operation in operations()
        if "requestBody" in operation
    }
    assert {address for address, must in required.items() if must} == {"/v1/lanes", "/v1/repositories"}


def populated(client: httpx.Client, root: Path) -> tuple[list[str], list[str]]:
    """Makes lanes in several states; returns their ids and those of the commands."""
    commands, lanes = [], []

    def post(address: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = client.post(address, json=body)
        assert answer.status_code < 300, answer.text
        commands.append(answer.headers["idempotency-key"])
        found: dict[str, Any] = answer.json()
        return found

    for name in ("active", "dirty", "quarantined", "reaped", "back"):
        made = post("/v1/lanes", {"repository": pack(os.fsencode(root)), "name": name})
        lanes.append(made["id"])
        if name != "active":
            Path(made["path"], "new").write_text(name)
    for lane in lanes[2:]:
        post(f"/v1/lanes/{lane}/remove", {})
    post(f"/v1/lanes/{lanes[3]}/reap", {})
    post(f"/v1/lanes/{lanes[4]}/restore", {})
    primary = next(each["id"] for each in client.get("/v1/lanes").json() if each["kind"] == "primary")
    return [*lanes, primary], commands


def known(lanes: list[str], commands: list[str], root: Path) -> dict[str, Any]:
    """Returns the document in which a good part of what is generated exists."""
    document: dict[str, Any] = json.loads(COMMITTED.read_bytes())
    real = {"lane": lanes, "command": commands, "repository": [pack(os.fsencode(root))]}
    for methods in document["paths"].values():
        for operation in methods.values():
            for each in operation.get("parameters", ()):
                if each["name"] == "If-Match":  # of its pattern the generator takes "" for an example
                    each["schema"] = {"type": "string", "enum": ["*", '"3"', '"5"']}
                if each["name"] in real and each["in"] in ("path", "query"):
                    each["schema"] = {"anyOf": [{"enum": real[each["name"]]}, each["schema"]]}
    body = document["components"]["schemas"]["CreateBody"]["properties"]
    body["repository"] = {"anyOf": [{"enum": real["repository"]}, body["repository"]]}
    del document["paths"]["/v1/events/stream"]  # it does not end
    return document


@pytest.mark.slow
def test_whatever_the_document_allows_or_forbids_is_answered_as_it_says(tmp_path: Path) -> None:
    desk = Desk(tmp_path).begin()
    with child(desk) as service:
        with service.client(desk) as client:
            lanes, commands = populated(client, desk.root)
        document = tmp_path / "openapi.json"
        document.write_text(json.dumps(known(lanes, commands, desk.root)))
        (tmp_path / "schemathesis.toml").write_text(EXPECTED)
        # One worker: with two, CPython 3.11's compiler may lose count in the generator (gh-106905).
        ran = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "--config-file", tmp_path / "schemathesis.toml"),
                *("run", document, "--url", service.url, "--max-time", SECONDS, "--seed", SEED, "--no-color"),
                *("--header", f"Authorization:Bearer {service.token}", "--request-timeout", "15"),
                *("--generation-database", "none", "--checks", "all"),
                *("--phases", "examples,coverage,fuzzing", "--continue-on-failure"),
            ],
            cwd=tmp_path, env=desk.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        with service.client(desk) as client:
            assert client.get("/v1/health").json()["status"] == "ready"
    bugs = [line for line in service.log.read_text().splitlines() if '"level":"error"' in line]
    assert (ran.returncode, bugs) == (0, []), ran.stdout[-20_000:] + ran.stderr
