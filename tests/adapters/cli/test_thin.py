"""`list` while a service runs: what is asked of it, and what is printed, here and by the whole program."""

from __future__ import annotations

import contextlib
import io
import json
import os
import statistics
import subprocess
import sys
import time
from argparse import Namespace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.cli import main
from adapters.cli.failures import tell
from adapters.cli.parser import Misused, build_parser
from adapters.cli.thin import Wanted, complain, understood
from domain.paths import pack
from tests.adapters.cli.conftest import PROGRAM, Desk
from tests.adapters.services import Asked, Reply, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.adapters.cli.conftest import Ran

pytestmark = pytest.mark.engine_only("a pretended service answers, or none")

TABLE = b"LANE  STATE\nfix   active\n"
DONE = {"Content-Type": "text/plain; charset=utf-8", "Laneyard-Outcome": "done"}
DONE_JSON = {"Content-Type": "application/json", "Laneyard-Outcome": "done"}
WORDS = (
    *("list", "list", "--json", "--all", "-C", "-Crepo", "-C=repo", "--state-dir", "--state-dir=dir"),
    *("--state-dir=", "-C", "repo", "a b", "-", "--", "", "--at", "--at=1", "1", "-1", "-h", "--help", "--j"),
    *("--state", "show", "--json=1", "-Ca=b", "-C-x", "-C--json", "-C list", "--all=x", "=x", "-x", "é"),
)


def by_argparse(words: list[str]) -> dict[str, object] | None:
    """Returns what the parser understands, or None where it prints its help or complains."""
    try:
        return vars(build_parser().parse_args(words))
    except Misused:
        return None
    except SystemExit:
        return None


@given(st.lists(st.sampled_from(WORDS) | st.text(max_size=4), max_size=7))
def test_what_is_understood_is_what_the_parser_understands(words: list[str]) -> None:
    wanted = understood(words)
    if wanted is not None:
        expected = {"command": "list", "at": None, **vars(wanted)}
        assert by_argparse(words) == expected


OPTIONS = st.sampled_from(
    [("-C", "x"), ("-Cy",), ("-C", "list"), ("--state-dir", "d"), ("--state-dir=e",), ("--json",)]
)


@given(st.lists(OPTIONS, max_size=4), st.lists(OPTIONS | st.just(("--all",)), max_size=4))
def test_every_plain_list_is_understood(before: list[tuple[str, ...]], after: list[tuple[str, ...]]) -> None:
    wanted = understood([word for each in (*before, ("list",), *after) for word in each])
    assert wanted is not None
    assert wanted.json == (("--json",) in (*before, *after))


@pytest.mark.parametrize(
    "line",
    ["", "list --at 3", "list -h", "--help list", "list x", "list --", "list list", "--all list", "list -C"],
)
def test_what_is_not_plain_is_for_the_parser(line: str) -> None:
    assert understood(line.split()) is None


@pytest.fixture
def socket(desk: Desk) -> Path:
    desk.state.mkdir(mode=0o700)
    return desk.state / "laneyard.sock"


def always(reply: Reply) -> Callable[[Asked], Reply]:
    return lambda asked: reply


def test_the_table_comes_from_the_service(laneyard: Callable[..., Ran], desk: Desk, socket: Path) -> None:
    with serving(socket, always(Reply(body=TABLE, headers=DONE))) as asked:
        ran = laneyard("list")
    assert (ran.code, ran.out, ran.err) == (0, TABLE.decode(), "")
    assert (asked[0].method, asked[0].headers["accept"]) == ("GET", "text/plain")
    assert asked[0].headers["laneyard-client"] == "laneyard"
    assert asked[0].target == f"/v1/lanes?near={desk.root}&observe=now"


def test_what_is_asked_for_is_what_was_meant(
    laneyard: Callable[..., Ran], desk: Desk, socket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LANEYARD_CLIENT", "ide")
    with serving(socket, always(Reply(body=b"[]", headers=DONE_JSON))) as asked:
        ran = laneyard("-C", "a b/../%\udcff", "--json", "list", "--all")
    assert (ran.code, ran.json) == (0, [])
    assert (asked[0].headers["accept"], asked[0].headers["laneyard-client"]) == ("application/json", "ide")
    path = f"{desk.root}/a%20b/../%2525%25FF"
    assert asked[0].target == f"/v1/lanes?repository={path}&all=true&observe=now"
    assert pack(os.fsencode("%\udcff")) == "%25%FF"


@pytest.mark.parametrize(("body", "shown"), [(b"a\nb", "a\nb\n"), (b"a\n", "a\n"), (b"", "")])
def test_what_is_printed_ends_with_its_last_line(
    laneyard: Callable[..., Ran], socket: Path, body: bytes, shown: str
) -> None:
    with serving(socket, always(Reply(body=body, headers=DONE))):
        assert laneyard("list").out == shown


@pytest.mark.parametrize(
    ("outcome", "code"), [("done", 0), ("refused", 1), ("unfinished", 3), ("unavailable", 4)]
)
def test_the_exit_code_is_the_outcome(
    laneyard: Callable[..., Ran], socket: Path, outcome: str, code: int
) -> None:
    with serving(socket, always(Reply(body=TABLE, headers={**DONE, "Laneyard-Outcome": outcome}))):
        assert laneyard("list").code == code


DETAILS = {"path": "/ä\u2028", "n": [1, None, True, 1.5]}


def problem(asked: Asked) -> Reply:
    headers = {"Laneyard-Outcome": "refused", "Content-Type": "text/plain; charset=utf-8"}
    if "json" not in asked.headers["accept"]:
        return Reply(404, "No repositöry there. [not_a_repository]\n".encode(), headers)
    document = {
        **{"type": "about:blank", "title": "x", "status": 404, "outcome": "refused"},
        **{"code": "not_a_repository", "detail": "No repositöry there.", "details": DETAILS},
    }
    return Reply(404, json.dumps(document).encode(), {**headers, "Content-Type": "application/problem+json"})


@pytest.mark.parametrize("as_json", [False, True])
def test_a_problem_is_told_as_every_command_tells_it(
    laneyard: Callable[..., Ran], socket: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    with serving(socket, problem):
        ran = laneyard("list", *(["--json"] if as_json else []))
    details = DETAILS if as_json else {}
    tell(Namespace(json=as_json), "not_a_repository", "No repositöry there.", details, "refused")
    assert (ran.code, ran.out, ran.err) == (1, "", capsys.readouterr().err)


EVIDENCE = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 53), 1 << 53) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
)


@pytest.mark.slow
@settings(max_examples=50)
@given(st.dictionaries(st.text(st.characters(codec="utf-8")), EVIDENCE))
def test_evidence_is_written_as_the_engine_writes_it(details: dict[str, object]) -> None:
    told = Namespace(json=True), "code", "Why", details
    with contextlib.redirect_stderr(io.StringIO()) as ours:
        complain(*told, 1)
    with contextlib.redirect_stderr(io.StringIO()) as engines:
        tell(*told, "refused")
    assert ours.getvalue() == engines.getvalue()


def test_a_problem_that_knows_only_json_is_told_in_words(laneyard: Callable[..., Ran], socket: Path) -> None:
    body = json.dumps({"code": "busy", "detail": "Too many.", "details": {}, "outcome": "unavailable"})
    headers = {"Content-Type": "application/problem+json", "Laneyard-Outcome": "unavailable"}
    with serving(socket, always(Reply(503, body.encode(), headers))):
        ran = laneyard("list")
    assert (ran.code, ran.out, ran.err) == (4, "", "laneyard: Too many. [busy]\n")


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, b"<html>", {"Content-Type": "text/html", "Laneyard-Outcome": "done"}),
        Reply(200, TABLE, {"Content-Type": "text/plain"}),
        Reply(200, b"\xff", DONE),
        Reply(400, b""),
        Reply(404, b"[]", {"Content-Type": "application/problem+json", "Laneyard-Outcome": "refused"}),
        Reply(404, b"{}", {"Content-Type": "application/problem+json", "Laneyard-Outcome": "refused"}),
        Reply(404, b"?", {"Content-Type": "application/problem+json", "Laneyard-Outcome": "refused"}),
    ],
)
def test_what_is_no_answer_is_said_to_be_none(
    laneyard: Callable[..., Ran], socket: Path, reply: Reply
) -> None:
    with serving(socket, always(reply)):
        ran, as_object = laneyard("list"), laneyard("list", "--json")
    assert (ran.code, ran.out) == (4, "")
    assert ran.err.startswith(f"laneyard: The service has answered {reply.status}")
    assert ran.err.endswith("[bad_answer]\n")
    assert (as_object.code, as_object.error["code"]) == (4, "bad_answer")


@pytest.mark.parametrize("left", ["nothing", "a stale socket", "a file"])
def test_without_a_service_the_log_is_read_here(
    laneyard: Callable[..., Ran], socket: Path, left: str
) -> None:
    if left == "a stale socket":
        with serving(socket, always(Reply())):
            os.link(socket, f"{socket}.kept")
        os.rename(f"{socket}.kept", socket)
    elif left == "a file":
        socket.touch()
    ran = laneyard("list")
    assert (ran.code, ran.out) == (0, "no lanes; 'laneyard create NAME' makes one\n")


def test_a_lost_directory_is_for_the_program_to_complain_of(
    laneyard: Callable[..., Ran], desk: Desk, socket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = desk.home / "lost"
    lost.mkdir()
    monkeypatch.chdir(lost)
    lost.rmdir()
    with serving(socket, always(Reply(body=TABLE, headers=DONE))) as asked:
        assert laneyard("list").code != 0
    assert asked == []
    monkeypatch.chdir(desk.root)


@pytest.mark.parametrize(("encoding", "shown"), [("ascii", b"?\n"), ("utf-8", "é\n".encode())])
def test_what_the_terminal_cannot_show_is_replaced(
    laneyard: Callable[..., Ran], socket: Path, monkeypatch: pytest.MonkeyPatch, encoding: str, shown: bytes
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding, write_through=True))
    with serving(socket, always(Reply(body="é".encode(), headers=DONE))):
        assert main(["list"]) == 0
    assert raw.getvalue() == shown


def test_a_closed_output_is_written_nothing(
    laneyard: Callable[..., Ran], socket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with serving(socket, always(Reply(body=TABLE, headers=DONE))):
        assert main(["list"]) == 0


def test_a_full_output_is_told_as_every_command_tells_it(
    laneyard: Callable[..., Ran],
    socket: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with (
        open("/dev/full", "w", buffering=1) as full,
        serving(socket, always(Reply(body=TABLE, headers=DONE))),
    ):
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["list"]) == 4
        monkeypatch.undo()
        assert capsys.readouterr().err.endswith("[disk_full]\n")
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), full.fileno()
        )  # what is left in the buffer has to go somewhere


def test_a_broken_pipe_ends_the_program_quietly(
    laneyard: Callable[..., Ran], socket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end, pipe = os.pipe()
    os.close(end)
    broken = os.fdopen(pipe, "w", buffering=1)
    with serving(socket, always(Reply(body=TABLE, headers=DONE))):
        monkeypatch.setattr(sys, "stdout", broken)
        assert main(["list"]) == 0
    monkeypatch.undo()
    with pytest.raises(BrokenPipeError):
        broken.close()


# Modules that cost more than they are worth on this way; `socket` alone is as long as everything else.
SLOW = ("trio", "litestar", "msgspec", "argparse", "re", "typing", "dataclasses", "socket", "json", "asyncio")
IMPORTS = PROGRAM[3].replace("sys.exit(main())", "main(); sys.stderr.write(' '.join(sys.modules) + '\\n')")


@pytest.mark.slow
def test_nothing_slow_is_imported(desk: Desk, socket: Path) -> None:
    with serving(socket, always(Reply(body=TABLE, headers=DONE))):
        ran = subprocess.run(
            [PROGRAM[0], "-I", "-S", "-c", IMPORTS, "list"],
            cwd=desk.root,
            env=desk.environment,
            capture_output=True,
            text=True,
            check=True,
        )
    assert ran.stdout == TABLE.decode()
    assert set(ran.stderr.split()).isdisjoint(SLOW)


@pytest.mark.slow
def test_a_list_is_quick(desk: Desk, socket: Path) -> None:
    program = (*PROGRAM, "list")
    nothing = (sys.executable, "-I", "-c", "pass")
    taken: dict[tuple[str, ...], list[float]] = {program: [], nothing: []}
    with serving(socket, always(Reply(body=TABLE, headers=DONE))):
        for _ in range(15):
            for command, times in taken.items():
                begun = time.perf_counter()
                subprocess.run(command, cwd=desk.root, env=desk.environment, check=True, capture_output=True)
                times.append(time.perf_counter() - begun)
    ours, python = (statistics.median(times[1:]) for times in taken.values())
    assert ours <= 2.5 * python


def test_wanted_has_the_names_of_the_parser() -> None:
    assert vars(Wanted()).keys() | {"command", "at"} == (by_argparse(["list"]) or {}).keys()
