"""Completion, in a real shell: what a person gets who presses the tabulator."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from adapters.cli.completion import SHELLS, script
from tests.adapters.cli.conftest import PROGRAM, Desk
from tests.adapters.cli.test_documents import commands
from tests.adapters.services import Reply, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.adapters.cli.conftest import Ran

# Sets the line as readline does, and prints what it would offer.
PRESS_TAB = """\
eval "$(cat script)"
COMP_WORDS=({words}) COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
_shtab_laneyard
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
SLUGS = ("fix-login", "fix-logout", "other")
ANSWERED = {"Content-Type": "application/json", "Laneyard-Outcome": "done"}

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


@pytest.fixture
def shell(desk: Desk) -> Callable[..., list[str]]:
    """Completes a line, of which the last word is being typed."""
    program = desk.home / "laneyard"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAM)} "$@"\n')
    program.chmod(0o755)
    (desk.root / "script").write_text(script("bash"))

    def complete(*words: str) -> list[str]:
        line = shlex.join([str(program), *words])
        ran = subprocess.run(
            ["bash", "--norc", "--noprofile", "-u", "-c", PRESS_TAB.format(words=line)],
            cwd=desk.root,
            env=desk.environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        assert ran.stderr == ""
        return ran.stdout.split()

    return complete


def serve_lanes(desk: Desk, slugs: tuple[str, ...] = SLUGS) -> Reply:
    desk.state.mkdir(mode=0o700, exist_ok=True)
    return Reply(body=json.dumps([{"slug": slug} for slug in slugs]).encode(), headers=ANSWERED)


@needs_bash
def test_commands_are_completed(shell: Callable[..., list[str]]) -> None:
    assert shell("") == list(commands())
    assert shell("re") == ["remove", "restore", "reap", "review", "replay", "rebuild"]
    assert shell("-C", "x", "--json", "reb") == ["rebuild"]


@needs_bash
def test_options_are_completed(shell: Callable[..., list[str]]) -> None:
    assert shell("remove", "--d") == ["--delete-branch"]
    assert shell("list", "--a") == ["--all", "--at"]
    assert shell("completion", "") == list(SHELLS)


@needs_bash
@pytest.mark.slow
def test_the_words_of_snapshot_are_completed_beside_lanes(
    shell: Callable[..., list[str]], desk: Desk
) -> None:
    for slug in ("shop", "gone"):
        assert desk.program("create", slug).code == 0
    (desk.tree("gone") / "new").touch()
    assert desk.program("remove", "gone", "--reap").code == 0
    assert shell("snapshot", "") == ["primary", "shop", "list", "show", "diff", "cat", "extract"]
    assert shell("snapshot", "sh") == ["shop", "show"]
    assert shell("snapshot", "extract", "x", "--t") == ["--to"]
    assert shell("snapshot", "cat", "x", "--sta") == ["--state-dir", "--staged"]
    assert shell("snapshot", "show", "--ve") == ["--verify"]
    assert shell("snapshot", "cat", "g") == shell("snapshot", "list", "g") == ["gone"]
    (desk.root / "docs").mkdir()
    assert shell("snapshot", "extract", "x", ".", "--to", "do") == ["docs"]
    assert shell("snapshot", "--inc") == ["--include-ignored"]


@pytest.mark.parametrize("shell_name", SHELLS)
def test_every_shell_is_told_the_words_of_snapshot(shell_name: str) -> None:
    text = script(shell_name)
    assert "extract" in text
    if shell_name != "tcsh":  # for which the generator knows of no options behind a second word
        assert all(each in text for each in ("--staged", "--verify", "--to"))


@needs_bash
def test_directories_are_completed(shell: Callable[..., list[str]], desk: Desk) -> None:
    (desk.root / "docs").mkdir()
    assert shell("-C", "do") == ["docs"]
    assert shell("list", "--state-dir", "do") == ["docs"]


@pytest.mark.engine_only("a pretended service answers")
@needs_bash
@pytest.mark.slow
def test_names_of_lanes_come_from_the_service(shell: Callable[..., list[str]], desk: Desk) -> None:
    reply = serve_lanes(desk)
    with serving(desk.state / "laneyard.sock", lambda asked: reply) as asked:
        assert shell("remove", "fix-log") == ["fix-login", "fix-logout"]
        assert shell("restore", "--edition", "2", "o") == ["other"]
    assert [each.target for each in asked] == [
        f"/v1/lanes?near={desk.root}&observe=none",
        f"/v1/lanes?near={desk.root}&all=true&observe=none",
    ]


@pytest.mark.engine_only("a pretended service answers")
@needs_bash
@pytest.mark.slow
def test_the_line_says_whose_lanes_are_meant(shell: Callable[..., list[str]], desk: Desk) -> None:
    reply = serve_lanes(desk)
    elsewhere = desk.home / "elsewhere"
    elsewhere.mkdir()
    with serving(elsewhere / "laneyard.sock", lambda asked: reply) as asked:
        assert shell("-C", "~/a", "--state-dir", "=", str(elsewhere), "snapshot", "o") == ["other"]
        for typed in ("'/a b'", '"/a b"', "/a\\ b", "'/a $(touch run)'"):
            shell("-C", typed, "--state-dir", str(elsewhere), "snapshot", "o")
    asked_for = [each.target.removeprefix("/v1/lanes?repository=") for each in asked]
    assert asked_for[0] == f"{desk.home}/a&observe=none"
    assert asked_for[1:4] == ["/a%20b&observe=none"] * 3
    assert not (desk.root / "run").exists()


ZSH = """\
compdef() { : }
compadd() { print -rl -- "${found[@]}" }
eval "$(cat script)"
_laneyard_parsed() { words=(cut off) CURRENT=2; _laneyard_lanes }
words=(PROGRAM -C '~/a\\ b' --state-dir=STATE remove f) CURRENT=6
_shtab_laneyard
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
@pytest.mark.engine_only("a pretended service answers")
def test_names_of_lanes_come_from_the_service_in_zsh(desk: Desk) -> None:
    reply = serve_lanes(desk)
    program = desk.home / "laneyard"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(PROGRAM)} "$@"\n')
    program.chmod(0o755)
    (desk.root / "script").write_text(script("zsh"))
    code = ZSH.replace("PROGRAM", str(program)).replace("STATE", str(desk.state))
    with serving(desk.state / "laneyard.sock", lambda asked: reply) as asked:
        ran = subprocess.run(
            ["zsh", "-f", "-c", code],
            cwd=desk.root,
            env=desk.environment,
            capture_output=True,
            text=True,
            check=True,
        )
    assert (ran.stdout.split(), ran.stderr) == (list(SLUGS), "")
    assert [each.target for each in asked] == [f"/v1/lanes?repository={desk.home}/a%20b&observe=none"]


@pytest.mark.engine_only("a pretended service answers")
@needs_bash
@pytest.mark.slow
def test_a_name_is_never_run(shell: Callable[..., list[str]], desk: Desk) -> None:
    reply = serve_lanes(desk, ("$(touch$IFS.a)", "`touch${IFS}b`", "*"))
    with serving(desk.state / "laneyard.sock", lambda asked: reply):
        assert shell("remove", "") == ["$(touch$IFS.a)", "*", "`touch${IFS}b`"]
    assert sorted(path.name for path in desk.root.iterdir()) == [".git", "file", "script"]


@needs_bash
@pytest.mark.slow
def test_names_of_lanes_come_from_the_log_without_a_service(
    shell: Callable[..., list[str]], desk: Desk
) -> None:
    assert desk.program("create", "Fix login").code == 0
    assert shell("show", "f") == ["fix-login"]


@pytest.mark.engine_only("a pretended service answers")
@needs_bash
@pytest.mark.slow
def test_nothing_is_offered_where_nothing_can_be_known(shell: Callable[..., list[str]], desk: Desk) -> None:
    assert shell("remove", "") == []
    problem = Reply(503, b"{}", {"Content-Type": "application/problem+json", "Retry-After": "60"})
    serve_lanes(desk)
    with serving(desk.state / "laneyard.sock", lambda asked: problem):
        assert shell("remove", "") == []


@pytest.mark.engine_only("there is no log")
def test_asking_for_lanes_says_nothing_but_them(laneyard: Callable[..., Ran]) -> None:
    ran = laneyard("completion", "lanes")
    assert (ran.code, ran.out, ran.err) == (4, "", "")


def test_an_unknown_shell_is_a_wrong_use(laneyard: Callable[..., Ran]) -> None:
    ran = laneyard("completion", "csh")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith("laneyard: 'csh' is none of bash, zsh, tcsh [usage]\n")
    assert laneyard("completion", "csh", "--json").error["code"] == "usage"


@pytest.mark.parametrize("shell_name", SHELLS)
def test_the_script_is_printed(laneyard: Callable[..., Ran], shell_name: str) -> None:
    ran = laneyard("completion", shell_name)
    assert (ran.code, ran.out) == (0, script(shell_name) + "\n")


@pytest.mark.parametrize("shell_name", SHELLS)
def test_a_shell_can_read_its_script(tmp_path: Path, shell_name: str) -> None:
    program = shutil.which(shell_name)
    if program is None:
        pytest.skip(f"{shell_name} is not installed")
    (tmp_path / "script").write_text(script(shell_name))
    ran = subprocess.run([program, "-n", tmp_path / "script"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
