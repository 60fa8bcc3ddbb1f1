import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
import trio

from adapters.api.problems import problem as told
from adapters.service.front.connections import Limits
from adapters.service.front.token import Authorised, UnsafeToken, read_token
from tests.adapters.service.front import (
    Receive,
    Scope,
    Send,
    first,
    front,
    hello,
    problem,
    read_all,
    status,
)

NOBODY = 65534
TOKEN = b"Authorization: Bearer secret\r\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "token"


def token_at(path: Path) -> str:
    return read_token(os.fsencode(path))


def test_a_token_is_made_once_for_its_owner_alone(path: Path) -> None:
    token = token_at(path)
    assert len(token) >= 43
    assert path.stat().st_mode & 0o7777 == 0o600
    assert token_at(path) == token
    assert os.listdir(path.parent) == ["token"]


def test_a_token_of_the_owners_choice_is_read_without_its_line_end(path: Path) -> None:
    path.touch(0o600)
    path.write_text("secret-word\n")
    assert token_at(path) == "secret-word"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o602, 0o660])
def test_a_token_that_others_may_use_is_refused(path: Path, mode: int) -> None:
    path.write_text("secret")
    path.chmod(mode)
    with pytest.raises(UnsafeToken, match=f"{mode:04o}") as caught:
        token_at(path)
    assert "secret" not in str(caught.value)
    meant = told(caught.value)
    assert meant is not None
    assert (meant.code, meant.outcome) == ("unsafe_token", "unavailable")


@pytest.mark.parametrize(
    "content", [b"", b" \n", b"two words", b"\xff\xfe", "é".encode(), b"x" * 5000, b"a\0b"]
)
def test_what_is_no_token_is_refused(path: Path, content: bytes) -> None:
    path.touch(0o600)
    path.write_bytes(content)
    with pytest.raises(UnsafeToken):
        token_at(path)


def test_a_token_of_another_user_is_refused(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to give a file away")
    token_at(path)
    os.chown(path, NOBODY, NOBODY)
    with pytest.raises(UnsafeToken, match="65534"):
        token_at(path)


@pytest.mark.parametrize("kind", ["link", "dangling link", "directory", "fifo", "socket"])
def test_what_is_no_regular_file_is_refused_without_waiting(path: Path, kind: str) -> None:
    target = path.parent / "target"
    if kind == "link":
        target.touch(0o600)
        target.write_text("secret")
    if kind.endswith("link"):
        path.symlink_to(target)
    elif kind == "directory":
        path.mkdir(0o700)
    elif kind == "fifo":
        os.mkfifo(path, 0o600)
    else:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(os.fsencode(path))
    with pytest.raises(UnsafeToken, match="no regular file"):
        token_at(path)
    assert target.exists() == (kind == "link")


def test_a_directory_that_is_missing_is_an_error_of_the_system(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        token_at(path / "token")


def request(*headers: bytes) -> bytes:
    lines = [b"GET / HTTP/1.1", b"Host: x", b"Connection: close", *headers, b"", b""]
    return b"\r\n".join(lines)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [b"Authorization: Bearer wrong"],
        [b"Authorization: Bearer"],
        [b"Authorization: Bearer secret2"],
        [b"Authorization: Bearer secre"],
        [b"Authorization: Bearer s\xc3\xa9cret\xff"],
        [b"Authorization: Basic secret"],
        [b"Authorization: secret"],
        [b"Authorization: Bearer secret", b"Authorization: Bearer secret"],
        [b"X-Authorization: Bearer secret"],
    ],
)
async def test_over_tcp_a_request_without_the_token_is_refused(tmp_path: Path, headers: list[bytes]) -> None:
    async with front(Authorised(hello, "secret"), tmp_path, tcp=True) as door:
        response = await door.ask(request(*headers))
    assert (status(response), problem(response)["code"]) == (401, "unauthorised")
    assert b'www-authenticate: Bearer realm="laneyard"' in response


@pytest.mark.parametrize("given", [b"Authorization: Bearer secret", b"authorization: bEARER  secret "])
async def test_over_tcp_a_request_with_the_token_is_answered(tmp_path: Path, given: bytes) -> None:
    async with front(Authorised(hello, "secret"), tmp_path, tcp=True) as door:
        assert status(await door.ask(request(given))) == 200


async def test_a_refusal_closes_the_connection_and_is_counted(tmp_path: Path) -> None:
    refused: list[str] = []
    guard = Authorised(hello, "secret", refused.append)
    async with front(guard, tmp_path, tcp=True) as door, await door.connect() as client:
        for headers, expected in ((TOKEN, 200), (b"", 401)):
            await client.send_all(b"GET / HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")
            answer = await first(client)
            assert status(answer) == expected
            assert (b"connection: close" in answer) == (expected == 401)
        assert await read_all(client) == b""
    assert refused == ["unauthorised"]


@pytest.mark.slow
async def test_over_tcp_only_who_has_shown_the_token_may_rest(tmp_path: Path) -> None:
    guard, limits = Authorised(hello, "secret"), Limits(head_seconds=0.3)
    async with (
        front(guard, tmp_path, tcp=True, both=True, limits=limits) as door,
        await trio.open_unix_socket(os.fsdecode(door.path)) as owner,
        await door.connect() as known,
        await door.connect() as silent,
        await door.connect() as late,
    ):
        begun = trio.current_time()
        await known.send_all(b"GET / HTTP/1.1\r\nHost: x\r\n" + TOKEN + b"\r\n")
        assert status(await first(known)) == 200
        await trio.sleep(0.2)
        await late.send_all(b"GET / HT")
        assert await read_all(silent) == b""
        assert problem(await read_all(late))["code"] == "head_too_slow"
        assert trio.current_time() - begun < 0.6  # the first byte gives no more time
        await trio.sleep(0.2)
        await known.send_all(b"GET / HTTP/1.1\r\nHost: x\r\n" + TOKEN + b"\r\n")
        assert status(await first(known)) == 200
        await owner.send_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert status(await first(owner)) == 200


async def test_over_the_unix_socket_no_token_is_asked_for(tmp_path: Path) -> None:
    async with front(Authorised(hello, "secret"), tmp_path) as door:
        assert status(await door.ask()) == 200


@pytest.mark.parametrize("state", [{}, {"state": {}}, {"state": {"transport": "other"}}])
async def test_a_request_of_which_nobody_says_how_it_came_needs_the_token(state: dict[str, Any]) -> None:
    sent: list[Any] = []

    async def send(message: object) -> None:
        sent.append(message)

    async def receive() -> None:
        return None

    await Authorised(hello, "secret")({"type": "http", "headers": [], **state}, receive, send)
    assert sent[0]["status"] == 401
    assert json.loads(sent[1]["body"])["outcome"] == "refused"


async def test_the_applications_start_and_end_pass() -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    async def nothing(*message: object) -> None:
        return None

    await Authorised(app, "secret")({"type": "lifespan"}, nothing, nothing)
    assert seen == ["lifespan"]
