import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from adapters.service.front.connections import Limits
from tests.adapters.service.front import (
    GET,
    LAST,
    App,
    Front,
    Receive,
    Scope,
    Send,
    answer,
    body_of,
    first,
    front,
    hello,
    problem,
    read_all,
    status,
    until,
)

CHECKOUT = Path(__file__).parents[3]
NOBODY = 65534
KNOCK = """
import os, socket, sys
os.setgroups([]), os.setgid(65534), os.setuid(65534)
client = socket.socket(socket.AF_UNIX)
client.connect(b"/proc/self/fd/%d/s" % int(sys.argv[1]))
sys.stdout.buffer.write(client.recv(65536))
"""
TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(189))
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")
H2C = (
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n"
    b"HTTP2-Settings: AAMAAABk\r\n\r\n"
)
VERSION_3 = b"GET / HTTP/3.0\r\nHost: x\r\n\r\n"
HEADERS = b"".join(b"h%d: v\r\n" % number for number in range(10_000))
WEB_SOCKET = (
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


async def who(scope: Scope, receive: Receive, send: Send) -> None:
    peer = scope["state"]["peer"]
    await answer(send, json.dumps([peer.uid, peer.pid, scope["state"]["transport"], scope["type"]]).encode())


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, await body_of(receive))


@pytest.mark.parametrize("tcp", [False, True])
async def test_the_application_hears_who_asks_and_how(tmp_path: Path, tcp: bool) -> None:
    async with front(who, tmp_path, tcp=tcp) as door:
        response = await door.ask()
    known = [None, None, "tcp"] if tcp else [os.getuid(), os.getpid(), "unix"]
    assert json.loads(response.partition(b"\r\n\r\n")[2]) == [*known, "http"]
    assert b"server:" not in response.lower()


async def test_an_answer_whose_length_is_known_comes_in_one_piece(tmp_path: Path) -> None:
    async with front(hello, tmp_path) as door, await door.connect() as client:
        for asked, end in ((GET, b"ok"), (GET.replace(b"GET", b"HEAD"), b"\r\n\r\n"), (GET, b"ok")):
            await client.send_all(asked)
            assert (await client.receive_some()).endswith(end)


async def test_the_head_of_a_stream_comes_before_its_first_event(tmp_path: Path) -> None:
    go_on = trio.Event()

    async def stream(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await go_on.wait()
        await send({"type": "http.response.body", "body": b"event"})

    async with front(stream, tmp_path) as door, await door.connect() as client:
        await client.send_all(LAST)
        assert status(await client.receive_some()) == 200
        go_on.set()
        assert b"event" in await read_all(client)


async def test_requests_follow_each_other_on_one_connection_also_ahead_of_their_answers(
    tmp_path: Path,
) -> None:
    async with front(hello, tmp_path) as door:
        response = await door.ask(GET * 20 + LAST)
        assert response.count(b"HTTP/1.1 200") == 21
        assert door.counters.accepted == 1
        await door.empty()


async def test_another_user_is_refused_without_being_read(tmp_path: Path) -> None:
    async with front(hello, tmp_path, uid=os.getuid() + 1) as door:
        response = await door.ask(b"")
        assert problem(response)["code"] == "foreign_user"
        assert b"connection: close" in response
        assert (door.counters.accepted, door.counters.refused) == (0, {"foreign_user": 1})


async def test_a_real_other_user_is_refused_even_where_the_files_mode_lets_it_in(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to become another user")
    tmp_path.chmod(0o755)
    folder = os.open(tmp_path, os.O_RDONLY)
    command = [sys.executable, "-I", "-S", "-c", KNOCK, str(folder)]
    async with front(hello, tmp_path) as door:
        (tmp_path / "s").chmod(0o666)
        done = await trio.run_process(command, capture_stdout=True, pass_fds=[folder])
        assert problem(done.stdout)["details"] == {"uid": NOBODY}
        assert status(await door.ask()) == 200
    os.close(folder)


async def test_more_connections_than_the_limit_are_told_to_come_again(tmp_path: Path) -> None:
    async with front(hello, tmp_path, limits=Limits(connections=2)) as door:
        async with await door.connect(), await door.connect():
            await until(lambda: door.counters.open == 2)
            refused = await door.ask()
            assert (problem(refused)["code"], problem(refused)["outcome"]) == (
                "too_many_connections",
                "unavailable",
            )
            assert b"retry-after: 1\r\n" in refused
        await door.empty()
        assert status(await door.ask()) == 200


async def test_tcp_has_half_of_the_connections_and_the_socket_the_rest(tmp_path: Path) -> None:
    async with (
        front(hello, tmp_path, tcp=True, both=True, limits=Limits(connections=4)) as door,
        await door.connect(),
        await door.connect(),
    ):
        await until(lambda: door.counters.here == {"tcp": 2, "unix": 0})
        refused = await door.ask()
        assert (problem(refused)["code"], problem(refused)["details"]) == (
            "too_many_connections",
            {"limit": 2},
        )
        async with await unix(door), await unix(door):
            await until(lambda: door.counters.here == {"tcp": 2, "unix": 2})
            full = await unix(door)
            assert problem(await read_all(full))["details"] == {"limit": 4}
            await full.aclose()


async def unix(door: Front) -> trio.SocketStream:
    return await trio.open_unix_socket(os.fsdecode(door.path))


@pytest.mark.slow
async def test_600_idle_connections_leave_the_service_alive_and_go_without_a_trace(tmp_path: Path) -> None:
    async with front(hello, tmp_path) as door, await door.connect() as regular:
        clients = [await door.connect() for _ in range(600)]
        await until(lambda: door.counters.refused.get("too_many_connections") == 89)
        await regular.send_all(GET)
        assert status(await first(regular)) == 200
        for client in clients:
            await client.aclose()
        await until(lambda: door.counters.open == 1)
        assert status(await door.ask()) == 200


@pytest.mark.slow
async def test_a_head_that_drips_is_closed_in_time(tmp_path: Path) -> None:
    limits = Limits(head_seconds=0.3)
    async with front(hello, tmp_path, limits=limits) as door, await door.connect() as client:
        begun = trio.current_time()
        async with trio.open_nursery() as nursery:

            async def drip() -> None:
                for byte in b"GET / HTTP/1.1\r\nX: " + b"x" * 10_000:
                    await client.send_all(bytes([byte]))
                    await trio.sleep(0.01)

            nursery.start_soon(drip)
            response = await client.receive_some()
            nursery.cancel_scope.cancel()
        assert problem(response)["code"] == "head_too_slow"
        assert 0.25 < trio.current_time() - begun < 2
        await client.aclose()
        await door.empty()
        assert door.counters.refused == {"slow_head": 1}


@pytest.mark.slow
async def test_the_time_for_a_head_begins_with_its_first_byte_and_ends_with_the_head(tmp_path: Path) -> None:
    limits = Limits(head_seconds=0.2)
    async with front(echo, tmp_path, limits=limits) as door, await door.connect() as client:
        for _ in range(2):
            await trio.sleep(0.3)
            await client.send_all(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n")
            await trio.sleep(0.3)
            await client.send_all(b"ab")
            assert (await first(client)).endswith(b"ab")


@pytest.mark.slow
async def test_an_idle_connection_is_closed_after_its_time_without_a_word(tmp_path: Path) -> None:
    limits = Limits(idle_seconds=0.3)
    async with front(hello, tmp_path, limits=limits) as door:
        async with await door.connect() as silent, await door.connect() as client:
            await client.send_all(GET)
            assert status(await first(client)) == 200
            begun = trio.current_time()
            assert await read_all(client) == b""
            assert 0.2 < trio.current_time() - begun < 2
            assert await read_all(silent) == b""
        assert door.counters.refused == {}


@pytest.mark.parametrize("headers", [HEADERS, b"h: " + b"v" * 20_000])
async def test_a_head_over_the_limit_is_refused(tmp_path: Path, headers: bytes) -> None:
    async with front(hello, tmp_path) as door:
        response = await door.ask(b"GET / HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n\r\n")
        assert (status(response), problem(response)["code"]) == (431, "head_too_large")
        await door.empty()
        assert door.counters.refused == {"large_head": 1}


async def test_a_head_of_exactly_the_limit_is_taken_and_one_byte_more_is_not(tmp_path: Path) -> None:
    def request(size: int) -> bytes:
        rest = size - len(LAST) - len(b"h: \r\n")
        return LAST.removesuffix(b"\r\n") + b"h: " + b"v" * rest + b"\r\n\r\n"

    async with front(hello, tmp_path) as door:
        for _ in range(2):
            assert status(await door.ask(request(16384))) == 200
            assert status(await door.ask(request(16385))) == 431
            assert status(await door.ask(GET + request(16384))) == 200


@pytest.mark.parametrize(
    "data",
    [
        TLS_HELLO,
        bytes(range(256)) * 8,
        b"\r\n\r\n",
        b"get / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"Get / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",  # no host
        b"GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
@pytest.mark.parametrize("tcp", [False, True])
async def test_what_is_no_http_is_refused_as_such(tmp_path: Path, data: bytes, tcp: bool) -> None:
    async with front(hello, tmp_path, tcp=tcp) as door:
        response = await door.ask(data)
        assert problem(response)["code"] == "not_http"
        assert b"laneyard-outcome: refused" in response
        await door.empty()
        assert (door.counters.refused, door.counters.failed) == ({"malformed": 1}, 0)


@pytest.mark.parametrize("pieces", [[b"\r\n" + LAST], [b"\r\n", LAST], [GET, b"\r\n", LAST]])
async def test_an_empty_line_before_a_request_is_passed_over(tmp_path: Path, pieces: list[bytes]) -> None:
    async with front(hello, tmp_path) as door, await door.connect() as client:
        for piece in pieces:
            await client.send_all(piece)
            await trio.testing.wait_all_tasks_blocked(0.005)
        answers = await read_all(client)
        assert answers.count(b"HTTP/1.1 200") == sum(b"GET" in each for each in pieces)
        assert b"HTTP/1.1 400" not in answers


async def test_garbage_in_a_body_ends_that_connection_only(tmp_path: Path) -> None:
    async with front(echo, tmp_path) as door:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert status(await door.ask(head + b"2\r\nab\r\nzz\r\n")) == 400
        assert status(await door.ask()) == 200
        await door.empty()


@pytest.mark.parametrize("pieces", [[PREFACE], [PREFACE[:2], PREFACE[2:10], PREFACE[10:]], [VERSION_3]])
async def test_other_versions_of_http_are_not_spoken(tmp_path: Path, pieces: list[bytes]) -> None:
    async with front(hello, tmp_path) as door, await door.connect() as client:
        for piece in pieces:
            await client.send_all(piece)
            await trio.testing.wait_all_tasks_blocked(0.005)
        assert problem(await read_all(client))["code"] == "unknown_http"
        await client.aclose()
        await door.empty()
        assert door.counters.refused == {"version": 1}


@pytest.mark.parametrize("request_", [H2C, WEB_SOCKET])
async def test_a_wish_for_another_protocol_is_passed_over(tmp_path: Path, request_: bytes) -> None:
    async with front(who, tmp_path) as door:
        response = await door.ask(request_)
        assert status(response) == 200
        assert response.endswith(b'"http"]')
        await door.empty()


async def test_a_client_that_has_closed_its_half_still_gets_its_answer(tmp_path: Path) -> None:
    async def late(scope: Scope, receive: Receive, send: Send) -> None:
        await body_of(receive)
        await receive()  # the news that the client sends nothing more
        await answer(send)

    async with front(late, tmp_path) as door, await door.connect() as client:
        await client.send_all(GET)
        await client.send_eof()
        assert (await read_all(client)).endswith(b"ok")
        await door.empty()


async def test_a_client_that_goes_away_frees_its_place_at_once(tmp_path: Path) -> None:
    async with front(hello, tmp_path) as door:
        async with await door.connect() as silent, await door.connect() as client:
            await client.send_all(GET)
            assert status(await first(client)) == 200
            await silent.send_all(b"GET / HT")
            await until(lambda: door.counters.open == 2)
        await door.empty()
        assert (door.counters.refused.get("malformed", 0), door.counters.failed) == (1, 0)


@pytest.mark.slow
async def test_a_reader_that_has_stopped_is_dropped_and_the_application_hears_of_it(tmp_path: Path) -> None:
    told = trio.Event()

    async def flood(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(1 << 24), "more_body": True})
        await body_of(receive)
        assert (await receive())["type"] == "http.disconnect"
        told.set()

    async with (
        front(flood, tmp_path, limits=Limits(send_seconds=0.3)) as door,
        await door.connect() as client,
    ):
        begun = trio.current_time()
        await client.send_all(GET)
        await told.wait()
        assert 0.25 < trio.current_time() - begun < 3
        await door.empty()
        assert door.counters.refused == {"slow_reader": 1}


@pytest.mark.slow
async def test_a_slow_reader_that_does_read_gets_all_of_it(tmp_path: Path) -> None:
    async def big(scope: Scope, receive: Receive, send: Send) -> None:
        await answer(send, bytes(1 << 20))

    async with front(big, tmp_path, limits=Limits(send_seconds=0.3)) as door, await door.connect() as client:
        await client.send_all(LAST)
        got = 0
        while piece := await client.receive_some(1 << 16):
            got += len(piece)
            await trio.sleep(0.05)
        assert got > 1 << 20
        await client.aclose()
        await door.empty()


@pytest.mark.parametrize("tcp", [False, True])
async def test_an_answer_before_the_end_of_a_large_body_arrives(tmp_path: Path, tcp: bool) -> None:
    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        await answer(send, b"too large", 413)

    size = 10 << 20
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size
    async with front(refuse, tmp_path, tcp=tcp) as door:
        response = await door.ask(head + bytes(size))
        assert (status(response), response[-9:]) == (413, b"too large")
        await door.empty()


async def test_an_application_that_does_not_read_a_body_holds_nobody_up(tmp_path: Path) -> None:
    async def deaf(scope: Scope, receive: Receive, send: Send) -> None:
        await trio.sleep(0.1)  # the queue of pieces fills up
        await answer(send)

    body = b"".join(b"1\r\nx\r\n" for _ in range(1000)) + b"0\r\n\r\n"
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with front(deaf, tmp_path) as door:
        assert (await door.ask(head + body)).endswith(b"ok")
        await door.empty()


async def test_a_body_arrives_whole(tmp_path: Path) -> None:
    body = os.urandom(3 << 20)
    head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with front(echo, tmp_path) as door:
        assert (await door.ask(head + body)).partition(b"\r\n\r\n")[2] == body


async def raises(scope: Scope, receive: Receive, send: Send) -> None:
    raise RuntimeError("boom")


async def exits(scope: Scope, receive: Receive, send: Send) -> None:
    raise SystemExit(3)


async def raises_in_a_group(scope: Scope, receive: Receive, send: Send) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(raises, scope, receive, send)
        nursery.start_soon(trio.sleep_forever)


async def says_nothing(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()


async def stops_in_the_middle(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
    await send({"type": "http.response.body", "body": b"half", "more_body": True})
    raise RuntimeError("boom")


async def sends_too_much(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1")]})
    await send({"type": "http.response.body", "body": b"too much"})


async def sends_bad_headers(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"a b", b"\r\n")]})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize(
    ("app", "code"),
    [
        (raises, 500),
        (exits, 500),
        (raises_in_a_group, 500),
        (says_nothing, 500),
        (stops_in_the_middle, 200),
        (sends_too_much, None),
        (sends_bad_headers, None),
    ],
)
async def test_a_request_that_fails_ends_at_most_its_own_connection(
    tmp_path: Path, app: App, code: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def either(scope: Scope, receive: Receive, send: Send) -> None:
        await (app if scope["path"] == "/bad" else hello)(scope, receive, send)

    async with front(either, tmp_path) as door, await door.connect() as neighbour:
        await neighbour.send_all(GET)
        assert status(await first(neighbour)) == 200
        response = await door.ask(LAST.replace(b"/ ", b"/bad "))
        assert (status(response) if response else None) in (code, 500)
        await neighbour.send_all(GET)
        assert status(await first(neighbour)) == 200
        await until(lambda: door.counters.open == 1)
        assert status(await door.ask()) == 200
    if app is not says_nothing:
        assert any(record.exc_info for record in caplog.records)


async def test_a_client_that_resets_in_the_middle_of_an_answer_harms_nobody(tmp_path: Path) -> None:
    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        gone = trio.Event()

        async def listen() -> None:
            while (await receive())["type"] != "http.disconnect":
                continue
            gone.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            while not gone.is_set():
                await send({"type": "http.response.body", "body": bytes(65536), "more_body": True})

    async with front(endless, tmp_path, tcp=True) as door:
        async with await door.connect() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            await client.send_all(GET)
            await client.receive_some(10)
        await door.empty()
        assert door.counters.failed == 0


async def test_at_the_stop_idle_connections_close_at_once_and_running_requests_finish(tmp_path: Path) -> None:
    asked, go_on = trio.Event(), trio.Event()

    async def waits(scope: Scope, receive: Receive, send: Send) -> None:
        asked.set()
        await go_on.wait()
        await answer(send)

    async with (
        front(waits, tmp_path, grace=5) as door,
        await door.connect() as idle,
        await door.connect() as busy,
        await door.connect() as begun,
    ):
        await busy.send_all(GET)
        await begun.send_all(b"GET / HT")
        await asked.wait()
        door.stopping.set()
        assert await read_all(idle) == b""
        assert await read_all(begun) == b""
        await until(lambda: door.counters.open == 1)
        go_on.set()
        response = await read_all(busy)
        assert b"connection: close" in response
        assert response.endswith(b"ok")


async def test_at_the_stop_no_more_connections_are_taken(tmp_path: Path) -> None:
    async with front(hello, tmp_path) as door:
        door.listener.close()
        door.stopping.set()
        await trio.testing.wait_all_tasks_blocked(0.01)
        with pytest.raises(ConnectionRefusedError):
            await trio.open_unix_socket(os.fsdecode(door.path))


@pytest.mark.slow
@pytest.mark.parametrize("stuck", ["in the application", "in a write"])
async def test_what_has_not_finished_after_the_grace_is_ended(tmp_path: Path, stuck: str) -> None:
    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if stuck == "in a write":
            await send({"type": "http.response.body", "body": bytes(1 << 26), "more_body": True})
        await trio.sleep_forever()

    async with front(never, tmp_path, grace=0.3) as door, await door.connect() as client:
        await client.send_all(GET)
        await client.receive_some(10)
        begun = trio.current_time()
        door.stopping.set()
        await door.empty()
        assert 0.25 < trio.current_time() - begun < 2


async def test_a_cancelled_service_ends_at_once_even_in_a_write(tmp_path: Path) -> None:
    async def flood(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(1 << 26), "more_body": True})

    with trio.fail_after(5):
        with trio.CancelScope() as scope:
            async with front(flood, tmp_path) as door, await door.connect() as client:
                await client.send_all(GET)
                await client.receive_some(10)
                scope.cancel()
                await trio.sleep_forever()
    assert scope.cancelled_caught


SERVE_WITH_FEW_DESCRIPTORS = """
import logging, os, resource, sys
from functools import partial
import trio
from adapters.service.front.connections import Limits, serve
from adapters.service.logs import configure
from adapters.service.front.sockets import listen_unix
from tests.adapters.service.front import hello

async def main():
    listener = listen_unix(os.fsencode(sys.argv[1]))
    start = partial(serve, hello, [listener], Limits(), logging.getLogger(), uid=os.getuid(), grace=1.0)
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(start, stopping=trio.Event()))
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
        print("ready", flush=True)

configure(sys.stderr, True, "info")
trio.run(main)
"""


@pytest.mark.slow
def test_a_service_without_descriptors_says_so_once_and_recovers(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    command = [sys.executable, "-c", SERVE_WITH_FEW_DESCRIPTORS, path]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert child.stderr is not None
            assert child.stdout.readline() == b"ready\n"
            crowd = [knock(path) for _ in range(60)]
            assert first_answer(crowd[0]) == b"HTTP/1.1 200"
            crowd[-1].settimeout(0.5)
            crowd[-1].sendall(GET)
            with pytest.raises(TimeoutError):
                crowd[-1].recv(12)
            for client in crowd[:-1]:
                client.close()
            crowd[-1].settimeout(5)
            assert crowd[-1].recv(12) == b"HTTP/1.1 200"
            crowd[-1].close()
            said = [child.stderr.readline(), child.stderr.readline()]  # a thread writes them
        finally:
            child.send_signal(signal.SIGKILL)
        _, errors = child.communicate(timeout=10)
    assert [json.loads(line)["message"] for line in [*said, *errors.splitlines()]] == [
        "no connection can be accepted",
        "connections are accepted again",
    ]


def knock(path: str) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(5)
    client.connect(path)
    return client


def first_answer(client: socket.socket) -> bytes:
    client.sendall(GET)
    return client.recv(12)
