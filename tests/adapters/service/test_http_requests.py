"""What may be asked and how: representations, bodies, addresses, methods, sizes and times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adapters.service import refusals
from adapters.service.front import denials
from adapters.service.web import misuse
from adapters.service.web.described import codes_by_status
from tests.adapters.service.http_house import JSON, NDJSON, PROBLEM, TEXT, house
from tests.adapters.service.test_http_keys import code

if TYPE_CHECKING:
    import httpx

    from tests.adapters.service.http_house import House

ROOT = Path(__file__).parents[3]
NEST = 100_000


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        (None, JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        ("text/plain", TEXT),
        ("text/*", TEXT),
        ("application/json;q=0.1, text/plain;q=0.9", TEXT),
        ("text/plain;q=0.1, application/json", JSON),
        ("text/html, application/xml;q=0.9, */*;q=0.1", JSON),
        ("image/png", JSON),
        ("garbage", JSON),
        (";;;,,,q=x", JSON),
    ],
)
async def test_an_answer_is_what_the_client_likes_best_and_else_json(
    tmp_path: Path, accept: str | None, media: str
) -> None:
    async with house(tmp_path) as served:
        headers = {} if accept is None else {"accept": accept}
        served.client.headers.pop("accept")
        good = await served.client.get("/v1/repositories", headers=headers)
        bad = await served.client.get("/v1/lanes/nobody", headers=headers)
    assert good.headers["content-type"].partition(";")[0] == media
    assert bad.headers["content-type"].partition(";")[0] == (PROBLEM if media == JSON else TEXT)
    assert (good.headers["vary"], bad.headers["vary"]) == ("Accept", "Accept")


async def test_a_problem_is_a_document_or_a_line_with_its_code(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        shown = await served.get("/v1/lanes/nobody")
        line = await served.get("/v1/lanes/nobody", TEXT)
    document = shown.json()
    assert set(document) == {"type", "title", "status", "detail", "code", "outcome", "details"}
    assert document["type"].endswith("#no_such_lane")
    assert (shown.status_code, document["status"], document["details"]) == (404, 404, {"lane": "nobody"})
    assert shown.headers["laneyard-outcome"] == line.headers["laneyard-outcome"] == "refused"
    assert line.text == f"{document['detail']} [no_such_lane]\n"


def test_every_code_of_the_service_is_on_the_page_of_errors() -> None:
    page = (ROOT / "docs/errors.md").read_text()
    listed = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    assert {code for codes in codes_by_status().values() for code in codes} - {"internal_error"} <= listed
    assert "internal_error" in page
    for module in (denials, misuse, refusals):
        assert module.__doc__


BODIES: list[tuple[bytes, int]] = [
    (b"", 409),  # understood: an active lane cannot be restored
    (b"{}", 409),
    (b"null", 409),
    (b'{"edition": 1, "edition": 2}', 409),
    (b'{"snapshot": "\\u0000"}', 409),
    (b"[]", 400),
    (b'"x"', 400),
    (b"{", 400),
    (b"{} x", 400),
    (b"\xff", 400),
    (b"\xef\xbb\xbf{}", 400),
    (b'{"edition": NaN}', 400),
    (b'{"edition": 1e400}', 400),
    (b'{"edition": 1.0}', 409),
    (b'{"edition": 1.5}', 400),
    (b'{"edition": 1e300}', 400),
    (b'{"edition": 0}', 400),
    (b'{"edition": "1"}', 400),
    (b'{"edition": true}', 400),
    (b'{"snapshot": 1}', 400),
    (b'{"edition": ' + b"9" * 10_000 + b"}", 400),
    (b'{"snapshot": "\\ud800"}', 400),
    (b'{"snapshot": "%s"}' % (b"x" * 4096), 409),
    (b'{"snapshot": "%s"}' % (b"y" * 4097), 400),
    (b'{"bogus": 1}', 400),
    (b"[" * NEST, 400),
    (b"[" * NEST + b"]" * NEST, 400),
    (b'{"a":' * NEST + b"1" + b"}" * NEST, 400),
]


@pytest.mark.slow
async def test_a_body_is_understood_or_refused_whatever_it_holds(tmp_path: Path) -> None:
    headers = {"content-type": "application/json"}
    async with house(tmp_path) as served:
        address = f"/v1/lanes/{await served.lane()}/restore"
        found = {}
        for body, _ in BODIES:
            answer = await served.client.post(address, content=body, headers=headers)
            found[body[:40]] = (answer.status_code, answer.json()["code"])
    codes = {400: "invalid_request", 409: "wrong_state"}
    assert found == {body[:40]: (status, codes[status]) for body, status in BODIES}


async def test_what_does_not_fit_is_told_by_the_name_that_the_client_uses(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        told = [
            (await served.get("/v1/lanes", all="maybe")).json()["detail"],
            (await served.get("/v1/lanes", sate="active")).json()["detail"],
            (await served.get("/v1/events", type="")).json()["detail"],
            (await served.client.get("/v1/lanes?at=1&at=2")).json()["detail"],
            (await served.client.get("/v1/diff?from=1")).json()["detail"],
            (await served.post("/v1/lanes", {"repository": served.root, "nam": "x"})).json()["detail"],
            (await served.post("/v1/lanes")).json()["detail"],
            (await served.post("/v1/lanes/x/reap", if_match="x")).json()["detail"],
        ]
    names = ("all:", "'sate'", "type:", "'at'", "'to'", "nam", "body", "If-Match must be one version")
    assert [name for name, detail in zip(names, told, strict=True) if name not in detail] == []
    assert "data" not in told[-1]


@pytest.mark.parametrize(
    ("media", "status"),
    [
        (None, 200),
        ("application/json", 200),
        ("Application/JSON; charset=UTF-8", 200),
        ("application/json; charset=utf-16", 415),
        ("application/merge-patch+json", 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/x-msgpack", 415),
        ("garbage", 415),
    ],
)
async def test_a_body_that_does_not_say_that_it_is_json_is_refused(
    tmp_path: Path, media: str | None, status: int
) -> None:
    headers = {} if media is None else {"content-type": media}
    async with house(tmp_path) as served:
        body = json.dumps({"path": served.root}).encode()
        answer = await served.client.post("/v1/repositories", content=body, headers=headers)
        empty = await served.client.post("/v1/rebuild", headers=headers)
    assert answer.status_code == status
    assert status == 200 or code(answer) == (415, "unsupported_media")
    assert empty.status_code == 200


async def test_nothing_is_forced_by_what_is_no_boolean(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        lane = await served.lane()
        for value in ("true", "yes", 1, "1", None):
            refused = await served.post(f"/v1/lanes/{lane}/remove", {"force": value})
            assert code(refused) == (400, "invalid_request")


CREATIONS: list[tuple[dict[str, object], int, str]] = [
    ({"name": ""}, 422, "invalid_name"),
    ({"name": "a\0b"}, 422, "invalid_name"),
    ({"name": "x" * 4096}, 422, "invalid_name"),
    ({"name": "x" * 4097}, 400, "invalid_request"),
    ({"base": "x" * 4096}, 422, "unknown_base"),
    ({"base": "x" * 4097}, 400, "invalid_request"),
    ({"parent": "x" * 4096}, 404, "no_such_lane"),
    ({"parent": "x" * 4097}, 400, "invalid_request"),
    ({"branch": "x" * 4096}, 422, "invalid_branch_name"),
    ({"branch": "x" * 4097}, 400, "invalid_request"),
    ({"owner": "x" * 200}, 422, "invalid_owner"),
    ({"owner": "session:" + "x" * 193}, 400, "invalid_request"),
    ({"name": 7}, 400, "invalid_request"),
    ({"repository": "relative"}, 404, "not_a_repository"),
    ({"repository": "/a\0b"}, 404, "not_a_repository"),
    ({"repository": "/%00"}, 404, "not_a_repository"),
    ({"repository": ""}, 400, "invalid_request"),
    ({"parent": "\0"}, 404, "no_such_lane"),
    ({"base": "\0"}, 422, "unknown_base"),
    ({"base": "--help"}, 422, "unknown_base"),
    ({"branch": "\0"}, 422, "invalid_branch_name"),
    ({"branch": "-x"}, 422, "invalid_branch_name"),
    ({"owner": "session:"}, 422, "invalid_owner"),
]


@pytest.mark.slow
async def test_names_and_paths_that_nothing_can_have_are_refused(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        for body, status, named in CREATIONS:
            answer = await served.post("/v1/lanes", {"repository": served.root, "name": "work", **body})
            assert code(answer) == (status, named), body
        assert (await served.get("/v1/lanes")).json() == []


ADDRESSES: list[tuple[str, int]] = [
    ("/v1/repositories", 200),
    ("/v1/repositories/", 200),
    ("//v1//repositories", 200),
    ("http://elsewhere.example/v1/repositories", 200),
    ("HTTP://x:80/v1/repositories?", 200),
    ("http://elsewhere.example", 404),
    ("/", 404),
    ("/v1", 404),
    ("/V1/repositories", 404),
    ("/v1/repositories/x", 404),
    ("/v1%2Frepositories", 404),
    ("/v1/lanes/%2F", 404),
    ("/v1/lanes/a%2Fb", 404),
    ("/v1/lanes/%2e%2e", 404),
    ("/v1/lanes/..", 404),
    ("/v1/lanes/%00", 404),
    ("/v1/lanes/%ff", 404),
    ("/v1/lanes/%C3%A9", 404),
    ("/v1/lanes/" + "x" * 65, 400),
    ("/v1/commands/%C3%A9", 400),
    ("*", 404),
    ("/v1/commands/a%20b", 400),
    ("/v1/repositories#x", 404),
    ("/v1/lanes/\xe9", 400),
    ("/v1/lanes?near=relative", 400),
    ("/v1/lanes?near=/", 200),
    ("/v1/lanes?at=null", 400),
    ("/v1/lanes?repository=/", 404),
]


async def test_an_address_is_read_as_it_is_written(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        found = {}
        for target, _ in ADDRESSES:
            head = f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            answer = await served.raw(head.encode("latin-1"))
            found[target] = int(answer.split(b" ", 2)[1])
    assert found == dict(ADDRESSES)


@pytest.mark.slow
async def test_head_is_get_without_the_body(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        lane = f"/v1/lanes/{await served.lane()}"
        for address in (lane, "/v1/repositories", "/v1/lanes/nobody", "/openapi.json"):
            got, head = await served.get(address), await served.client.head(address)
            assert (head.status_code, head.content) == (got.status_code, b"")
            assert head.headers["content-type"] == got.headers["content-type"]
            assert head.headers.get("etag") == got.headers.get("etag")
        stream = await served.client.head("/v1/events/stream")
        assert stream.status_code == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert (await served.get(lane)).status_code == 200
    assert served.service.tail.subscribers == 0


async def test_methods_that_an_address_does_not_take_are_refused_with_those_that_it_does(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as served:
        for address, methods in (
            ("/v1/lanes", {"GET", "HEAD", "OPTIONS", "POST"}),
            ("/v1/sweeps", {"GET", "HEAD", "OPTIONS", "POST"}),
            ("/v1/health", {"GET", "HEAD", "OPTIONS"}),
            ("/v1/lanes/x/reap", {"OPTIONS", "POST"}),
        ):
            told = await served.client.options(address)
            assert (told.status_code, told.content) == (204, b"")
            assert set(told.headers["allow"].split(", ")) == methods
            for method in {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW"} - methods:
                refused = await served.client.request(method, address)
                assert refused.status_code == 405, (method, address)
                assert set(refused.headers["allow"].split(", ")) == methods


async def test_a_body_that_is_too_large_is_refused_and_the_connection_goes_on(tmp_path: Path) -> None:
    async with house(tmp_path, body_bytes=10_000) as served:
        large = await served.client.post(
            "/v1/repositories", content=b" " * (10 << 20), headers={"content-type": "application/json"}
        )
        assert code(large) == (413, "request_too_large")
        for _ in range(3):
            assert (await served.get("/v1/health")).status_code == 200


async def test_a_body_that_is_announced_too_large_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    head = (
        b"POST /v1/rebuild HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Connection: close\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    )
    async with house(tmp_path, body_bytes=10_000) as served:
        refused = await served.raw(head % 10_001)
        taken = await served.raw(head % 2 + b"{}")
    assert refused.startswith(b"HTTP/1.1 413 ")
    assert b"request_too_large" in refused
    assert b" 100 " not in refused
    assert taken.startswith(b"HTTP/1.1 100 ")
    assert b"HTTP/1.1 200 " in taken


async def test_the_methods_of_the_service_itself_can_be_asked_for(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        answer = await served.raw(b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 204 ")


async def test_a_problem_is_one_line_of_text_whatever_it_is_about(tmp_path: Path) -> None:
    path = "/no\nsuch\r\x1b[31mplace\x07"
    async with house(tmp_path) as served:
        told = [
            await served.get("/v1/lanes", TEXT, repository=path),
            await served.get("/v1/events", TEXT, lane="a\nb"),
            await served.get("/v1/lanes/a%0Ab", TEXT),
        ]
        exact = await served.get("/v1/lanes", repository=path)
    assert [each.status_code for each in told] == [404, 404, 404]
    for each in told:
        assert each.text.endswith("]\n")
        assert each.text[:-1].isprintable()
    assert exact.json()["details"]["path"].startswith(path)


async def test_a_body_that_comes_too_slowly_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path, body_timeout=0.1) as served:
        answer = await served.raw(
            b"POST /v1/rebuild HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 10\r\nConnection: close\r\n\r\n{"
        )
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"request_too_slow" in answer


async def test_a_head_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path, header_bytes=4096) as served:
        lines = b"".join(b"X-%d: y\r\n" % number for number in range(2000))
        answer = await served.raw(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 431 ")


@pytest.mark.slow
async def test_lanes_are_found_by_state_and_by_slug(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        gone = await served.lane("gone")
        for name in ("one", "two", "away"):
            await served.lane(name)
        away = (await served.get("/v1/lanes", slug="away")).json()[0]["id"]
        await served.post(f"/v1/lanes/{away}/remove")
        await served.post(f"/v1/lanes/{gone}/remove", {"reap": True})

        async def found(query: str) -> list[str]:
            return [each["slug"] for each in (await served.client.get(f"/v1/lanes?{query}")).json()]

        assert await found("") == ["primary", "one", "two", "away"]
        assert await found("all=true") == ["primary", "gone", "one", "two", "away"]
        assert await found("state=quarantined") == ["away"]
        assert await found("state=reaped&state=quarantined") == ["gone", "away"]
        assert await found("slug=two") == ["two"]
        assert await found("slug=two&state=reaped") == []
        assert await found("slug=gone") == []
        assert code(await served.get("/v1/lanes", state="lost")) == (400, "invalid_request")


async def test_the_same_question_as_lines_of_json_is_answered_so_only_where_it_is_offered(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as served:
        assert await media(served, "/v1/events") == NDJSON
        assert await media(served, "/v1/lanes") == JSON


async def media(served: House, address: str) -> str:
    answer: httpx.Response = await served.get(address, NDJSON)
    return answer.headers["content-type"].partition(";")[0]
