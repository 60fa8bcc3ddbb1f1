"""The client of the service, on real sockets."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.client.calls import call, exit_code, new_key
from adapters.client.connection import HEAD, Connection
from adapters.client.targets import packed, quoted, target
from adapters.client.wire import BadAnswer, Lost, NoService, Silent, Wire
from domain.paths import pack
from tests.adapters.services import Asked, Reply, reciting, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def in_turn(*replies: Reply) -> Callable[[Asked], Reply]:
    """Returns what gives these answers one after the other, and the last one from then on."""
    left = list(replies)
    return lambda asked: left.pop(0) if len(left) > 1 else left[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s"


@pytest.fixture
def connection(path: Path) -> Iterator[Connection]:
    with Connection(os.fsencode(path)) as made:
        yield made


@given(st.binary().filter(lambda path: b"\0" not in path))
def test_a_path_is_packed_as_the_log_does_it(path: bytes) -> None:
    assert packed(path) == pack(path)


@given(st.text(st.characters(codec="utf-8")))
def test_text_is_quoted_as_the_standard_library_does_it(text: str) -> None:
    assert quoted(text) == quote(text)


def test_a_target_leaves_out_what_is_not_said() -> None:
    assert target("/v1/lanes", near=None, all="true", lane="a b&c") == "/v1/lanes?all=true&lane=a%20b%26c"
    assert target("/v1/lanes", near=None) == "/v1/lanes"


def test_a_key_is_a_random_uuid() -> None:
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(
        re.fullmatch("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", k) for k in keys
    )


def test_every_outcome_has_its_exit_code() -> None:
    codes = [exit_code(each) for each in ("done", "refused", "unfinished", "unavailable")]
    assert codes == [0, 1, 3, 4]
    with pytest.raises(BadAnswer):
        exit_code("")


def test_requests_share_a_connection_while_both_sides_keep_it(path: Path, connection: Connection) -> None:
    two = tuple(OK + b"Content-Length: 1\r\n\r\n" + each for each in (b"a", b"b"))
    with reciting(os.fsencode(path), two) as received:
        assert [connection.request("GET", f"/{n}").body for n in range(2)] == [b"a", b"b"]
    assert [each.partition(b" HTTP")[0] for each in received] == [b"GET /0", b"GET /1"]


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 1\r\nConnection: close\r\n\r\na",
        OK + b"\r\na",
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
    ],
)
def test_a_connection_that_is_not_kept_is_made_anew(
    path: Path, connection: Connection, answer: bytes
) -> None:
    with reciting(os.fsencode(path), (answer,), (answer,)):
        assert [connection.request("GET", "/").body for _ in range(2)] == [b"a", b"a"]


def test_what_is_left_of_an_answer_does_not_get_into_the_next(path: Path, connection: Connection) -> None:
    with reciting(os.fsencode(path), (CHUNKED + b"3\r\nold\r\n",), (OK + b"Content-Length: 3\r\n\r\nnew",)):
        assert next(iter(connection.stream("GET", "/"))) == b"old"
        assert connection.request("GET", "/").body == b"new"


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (CHUNKED + b"3\r\nabc\r\n00A;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n", b"abc0123456789"),
        (CHUNKED + b"0\r\n\r\n", b""),
        (OK + b"content-LENGTH:  3 \r\n\r\nabc", b"abc"),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\n"
            + OK
            + b"Content-Length: 1\r\n\r\nx",
            b"x",
        ),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_an_answer_is_read_however_it_is_cut(
    path: Path, connection: Connection, answer: bytes, body: bytes, size: int
) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def drip() -> None:
        made, _ = listener.accept()
        with made:
            made.recv(1 << 16)
            for start in range(0, len(answer), size):
                made.sendall(answer[start : start + size])
            made.recv(1)

    thread = threading.Thread(target=drip)
    thread.start()
    with listener:
        assert connection.request("GET", "/").body == body
        connection.close()
        thread.join(10)


def test_the_answer_to_a_head_request_has_no_body(path: Path, connection: Connection) -> None:
    with reciting(os.fsencode(path), (OK + b"Content-Length: 5\r\n\r\n",)):
        assert connection.request("HEAD", "/").headers["content-length"] == "5"


def test_a_stream_gives_each_piece_as_it_comes(path: Path, connection: Connection) -> None:
    go_on = threading.Event()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def stream() -> None:
        made, _ = listener.accept()
        with made:
            made.recv(1 << 16)
            made.sendall(CHUNKED + b"2\r\n1\n\r\n")
            assert go_on.wait(10)
            made.sendall(b"2\r\n2\n\r\n0\r\n\r\n")

    thread = threading.Thread(target=stream)
    thread.start()
    with listener:
        incoming = connection.stream("GET", "/v1/events/stream", {"Accept": "text/plain"})
        assert incoming.status == 200
        pieces = iter(incoming)
        assert next(pieces) == b"1\n"  # and the server sends no more before it may
        go_on.set()
        assert list(pieces) == [b"2\n"]
        thread.join(10)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "no HTTP"),
        (b"HTTP/2 200 OK\r\n\r\n", "no HTTP"),
        (b"HTTP/1.1 20 OK\r\n\r\n", "no HTTP"),
        (OK + b"no colon\r\n\r\n", "no header"),
        (OK + b"Folded: a\r\n b: c\r\n\r\n", "no header"),
        (OK + b"Content-Length: -1\r\n\r\n", "no length"),
        (OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "no length"),
        (OK + b"Content-Length: 99999999999999999999\r\n\r\n", "no length"),
        (OK + b"Content-Length: 1_0\r\n\r\n", "no length"),
        (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "transfer encoding"),
        (CHUNKED + b"0x3\r\nabc\r\n", "no length"),
        (CHUNKED + b"\r\n", "no length"),
        (CHUNKED + b"2\r\nabc\r\n", "longer than it says"),
        (OK + b"A: " + b"a" * HEAD + b"\r\n\r\n", "no end within"),
        (b"a" * (HEAD + 10), "no end within"),
    ],
)
def test_what_is_no_answer_is_refused(path: Path, connection: Connection, answer: bytes, words: str) -> None:
    with reciting(os.fsencode(path), (answer,)), pytest.raises(BadAnswer, match=words):
        connection.request("GET", "/")


@pytest.mark.parametrize(
    "answer", [b"", OK, OK + b"Content-Length: 5\r\n\r\nabc", CHUNKED + b"5\r\nabc", CHUNKED + b"1\r\na\r\n"]
)
def test_an_answer_that_breaks_off_is_lost(path: Path, connection: Connection, answer: bytes) -> None:
    with reciting(os.fsencode(path), (answer,)), pytest.raises(Lost):
        connection.request("GET", "/")


def test_an_answer_that_does_not_come_is_not_waited_for_for_ever(path: Path, connection: Connection) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        with pytest.raises(Silent):
            connection.request("GET", "/", timeout=0.05)


def test_a_service_that_accepts_nothing_is_not_waited_for_for_ever(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(0)
        first = Wire(os.fsencode(path), 0.05)  # the queue is full with it
        with pytest.raises(Silent):
            Wire(os.fsencode(path), 0.05)
        first.close()


def test_a_full_queue_is_waited_for(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(0)
        first = Wire(os.fsencode(path), 10)
        second: list[Wire] = []
        thread = threading.Thread(target=lambda: second.append(Wire(os.fsencode(path), 10)))
        thread.start()
        accepted, _ = listener.accept()
        thread.join(10)
        assert second
        accepted.close()
        for each in (first, *second):
            each.close()


def test_an_early_answer_is_read_although_the_request_was_not(path: Path, connection: Connection) -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"
    with reciting(os.fsencode(path), (refusal,)):
        assert connection.request("POST", "/", body=b"a" * (1 << 22)).body == b"no"


@pytest.mark.parametrize("kind", ["missing", "stale", "file", "directory", "no directory"])
def test_nobody_serves_where_nobody_listens(path: Path, connection: Connection, kind: str) -> None:
    if kind == "stale":
        with socket.socket(socket.AF_UNIX) as left_behind:
            left_behind.bind(str(path))
    elif kind == "file":
        path.write_bytes(b"")
    elif kind == "directory":
        path.mkdir()
    elif kind == "no directory":
        connection.path += b"/below/s"
    with pytest.raises(NoService):
        connection.request("GET", "/")


@pytest.mark.parametrize("name", [b"laneyard.sock", b"\xff\n %"])
def test_a_socket_is_reached_however_long_its_path_is(tmp_path: Path, name: bytes) -> None:
    directory = os.fsencode(tmp_path) + b"/" + b"d" * 120
    os.mkdir(directory)
    opened = os.open(directory, os.O_RDONLY)
    before = set(os.listdir("/proc/self/fd"))
    short = b"/proc/self/fd/%d/%s" % (opened, name)
    answer = OK + b"Content-Length: 1\r\n\r\nx"
    with reciting(short, (answer,)), Connection(directory + b"/" + name) as connection:
        assert connection.request("GET", "/").body == b"x"
    assert set(os.listdir("/proc/self/fd")) <= before
    os.close(opened)


@pytest.mark.parametrize("bad", ["/a b", "/\r\nX: y", "/é"])
def test_what_would_not_stay_on_its_line_is_not_sent(connection: Connection, bad: str) -> None:
    with pytest.raises(ValueError, match="printable"):
        connection.request("GET", bad)
    with pytest.raises(ValueError, match="printable"):
        connection.request("GET", "/", {"A": bad.replace(" ", "\n")})


def test_a_command_carries_a_key_and_who_asks(path: Path, connection: Connection) -> None:
    with serving(path, in_turn(Reply())) as asked:
        call(
            connection, "POST", "/v1/lanes", client="ide\né", key="k", body=b"{}", headers={"If-Match": '"3"'}
        )
        call(connection, "POST", "/v1/lanes/x/reap")
    headers = asked[0].headers
    assert asked[0].body == b"{}"
    assert (headers["idempotency-key"], headers["prefer"], headers["if-match"]) == ("k", "wait=30", '"3"')
    assert (headers["laneyard-client"], headers["content-type"]) == ("ide??", "application/json")
    assert len(asked[1].headers["idempotency-key"]) == 36
    assert asked[1].headers["content-length"] == "0"


def test_a_lost_command_is_sent_again_with_its_key(path: Path, connection: Connection) -> None:
    replies = in_turn(Reply(hang_up=True), Reply(hang_up=True), Reply(body=b"done"))
    with serving(path, replies) as asked:
        assert call(connection, "POST", "/v1/lanes", body=b"{}").body == b"done"
    assert len({each.headers["idempotency-key"] for each in asked}) == 1
    assert [each.body for each in asked] == [b"{}"] * 3


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "passing",
    [
        Reply(503, b"Busy. [repository_busy]\n", {"Retry-After": "0"}),
        Reply(503, b"The service is stopping. [stopping]\n"),
        Reply(503, b'{"code":"stopping"}', {"Content-Type": "application/problem+json"}),
    ],
)
def test_a_service_that_is_not_ready_is_asked_again(
    path: Path, connection: Connection, method: str, passing: Reply
) -> None:
    with serving(path, in_turn(passing, Reply(body=b"done"))) as asked:
        assert call(connection, method, "/v1/lanes").body == b"done"
    assert len(asked) == 2


def test_a_problem_that_does_not_pass_is_the_answer(path: Path, connection: Connection) -> None:
    with serving(path, in_turn(Reply(503, b"Silent. [repository_silent]"))) as asked:
        assert call(connection, "POST", "/").status == 503
    assert len(asked) == 1


def test_patience_ends_with_the_problem_that_stands(path: Path, connection: Connection) -> None:
    with serving(path, in_turn(Reply(503, b"[stopping]", {"Retry-After": "9999"}))) as asked:
        assert call(connection, "POST", "/", patience=0.05).status == 503
    assert len(asked) == 2  # at once, and when patience has ended


def test_patience_ends_with_the_loss(path: Path, connection: Connection) -> None:
    with serving(path, in_turn(Reply(hang_up=True))), pytest.raises(Lost):
        call(connection, "POST", "/", patience=0.05)


def test_a_command_that_was_taken_is_not_said_to_have_met_no_service(
    path: Path, connection: Connection
) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def die() -> None:
        accepted, _ = listener.accept()
        listener.close()
        with accepted:
            accepted.recv(1 << 16)

    thread = threading.Thread(target=die)
    thread.start()
    with pytest.raises(Lost, match="not come back"):
        call(connection, "POST", "/", patience=0.05)
    thread.join(10)


def test_a_command_that_was_not_taken_has_met_no_service(path: Path, connection: Connection) -> None:
    refusal = b"HTTP/1.1 503 Stopping\r\nContent-Length: 10\r\nConnection: close\r\n\r\n[stopping]"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def refuse() -> None:
        accepted, _ = listener.accept()
        listener.close()
        with accepted:
            accepted.recv(1 << 16)
            accepted.sendall(refusal)

    thread = threading.Thread(target=refuse)
    thread.start()
    with pytest.raises(NoService):
        call(connection, "POST", "/")
    thread.join(10)


def test_a_command_is_not_waited_for_where_there_was_no_service(connection: Connection) -> None:
    with pytest.raises(NoService):
        call(connection, "POST", "/")


def test_a_command_outlives_a_restart_of_the_service(path: Path, connection: Connection) -> None:
    answers: list[bytes] = []
    arrived = threading.Event()

    def crash(asked: Asked) -> Reply:
        arrived.set()
        return Reply(hang_up=True)

    def ask() -> None:
        answers.append(call(connection, "POST", "/v1/lanes", body=b"{}").body)

    thread = threading.Thread(target=ask)
    with serving(path, crash) as before:
        thread.start()
        assert arrived.wait(10)
    with serving(path, in_turn(Reply(body=b"done"))) as after:
        thread.join(10)
    assert answers == [b"done"]
    assert after[0].headers["idempotency-key"] == before[0].headers["idempotency-key"]


def test_a_question_is_left_to_the_caller_where_the_service_has_gone(
    path: Path, connection: Connection
) -> None:
    with reciting(os.fsencode(path), (b"",)):
        raised: list[BaseException] = []

        def ask() -> None:
            try:
                call(connection, "GET", "/")
            except NoService as error:
                raised.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
    thread.join(10)
    assert len(raised) == 1


LONG = Reply(202, headers={"Location": "/v1/commands/7"})


def test_a_long_command_is_followed_to_its_end(path: Path, connection: Connection) -> None:
    with serving(
        path, in_turn(LONG, LONG, Reply(body=b"done", headers={"Laneyard-Outcome": "done"}))
    ) as asked:
        answer = call(connection, "POST", "/v1/lanes/x/reap", accept="application/json", client="ide")
    assert answer.headers["laneyard-outcome"] == "done"
    assert [(each.method, each.target) for each in asked[1:]] == [("GET", "/v1/commands/7")] * 2
    for each in asked[1:]:
        assert each.headers["prefer"] == "wait=30"
        assert each.headers["accept"] == "application/json"
        assert each.headers["laneyard-client"] == "ide"
        assert "idempotency-key" not in each.headers


FORGETTING = (
    Reply(404, b"No such command. [no_such_command]\n"),
    Reply(410, b'{"code":"answer_forgotten"}', {"Content-Type": "application/problem+json"}),
    Reply(hang_up=True),
    Reply(503, b"[stopping]"),
)


@pytest.mark.parametrize("mishap", FORGETTING)
def test_a_command_that_cannot_be_followed_is_asked_for_with_its_key(
    path: Path, connection: Connection, mishap: Reply
) -> None:
    with serving(path, in_turn(LONG, mishap, Reply(body=b"done"))) as asked:
        assert call(connection, "POST", "/v1/lanes/x/reap", key="k").body == b"done"
    assert [each.headers.get("idempotency-key") for each in asked] == ["k", None, "k"]


def test_a_long_command_that_ends_with_a_problem_is_not_asked_for_again(
    path: Path, connection: Connection
) -> None:
    with serving(path, in_turn(LONG, Reply(404, b"No lane is called so. [no_such_lane]\n"))) as asked:
        assert call(connection, "POST", "/v1/lanes/x/reap").status == 404
    assert len(asked) == 2


def test_a_long_command_without_a_place_is_no_answer(path: Path, connection: Connection) -> None:
    with serving(path, in_turn(Reply(202))), pytest.raises(BadAnswer):
        call(connection, "POST", "/")


CALLING = """
import sys
sys.path.insert(0, {root!r})
from adapters.client.calls import call
from adapters.client.connection import Connection
try:
    call(Connection({path!r}), "POST", "/v1/lanes/x/reap")
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.slow
def test_an_interrupt_ends_the_waiting_and_asks_for_nothing(path: Path) -> None:
    arrived, end = threading.Event(), threading.Event()

    def hold(asked: Asked) -> Reply:
        arrived.set()
        end.wait(10)
        return Reply(hang_up=True)

    with serving(path, hold) as asked:
        code = CALLING.format(root=str(ROOT), path=os.fsencode(path))
        with subprocess.Popen([sys.executable, "-I", "-c", code]) as child:
            assert arrived.wait(10)
            child.send_signal(signal.SIGINT)
            assert child.wait(10) == 130
        end.set()
    assert len(asked) == 1
