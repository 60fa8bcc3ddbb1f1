from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from adapters.git.door import Git, Location, parse_version
from adapters.git.errors import (
    GitFailed,
    GitMissing,
    GitNotStarted,
    GitOutputUnreadable,
    GitStatusLost,
    GitTalksTooMuch,
    GitTimedOut,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.adapters.git.conftest import Workshop


def at(place: Path) -> Location:
    return Location(os.fsencode(place / ".git"), os.fsencode(place))


async def gone(path: Path) -> None:
    """Waits until the process whose number the file has is no more."""
    process = int(await trio.Path(path).read_text())
    try:
        end = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        with trio.fail_after(5):
            await trio.lowlevel.wait_readable(end)
    finally:
        os.close(end)


@pytest.fixture(autouse=True)
def descriptors() -> Iterator[None]:
    """Fails a test that leaves a descriptor open."""
    before = set(os.listdir("/proc/self/fd"))
    yield
    assert set(os.listdir("/proc/self/fd")) <= before


async def test_a_command_answers(workshop: Workshop, door: Git) -> None:
    root = workshop.repository()
    ran = await door.run(b"rev-parse", b"--show-toplevel", repository=at(root))
    assert (ran.code, ran.out, ran.err) == (0, os.fsencode(root) + b"\n", b"")
    assert door.started == 1


async def test_a_code_is_an_error_unless_it_is_allowed(workshop: Workshop, door: Git) -> None:
    root = at(workshop.repository())
    with pytest.raises(
        GitFailed, match="git rev-parse --verify none: ended with 128: fatal: Needed"
    ) as raised:
        await door.run(b"rev-parse", b"--verify", b"none", repository=root)
    assert raised.value.code == 128
    assert raised.value.says("Needed a single revision")
    assert not raised.value.says(b"index.lock")
    ran = await door.run(b"rev-parse", b"--verify", b"-q", b"none", repository=root, allow=(0, 1))
    assert ran.code == 1


async def test_a_commit_has_the_parents_that_it_names_whatever_a_graft_says(
    workshop: Workshop, door: Git
) -> None:
    place = workshop.repository()
    other = workshop.git(place, "commit-tree", "-m", "other", "HEAD^{tree}")
    head = workshop.git(place, "rev-parse", "HEAD")
    (place / ".git/info").mkdir(exist_ok=True)
    (place / ".git/info/grafts").write_bytes(head.strip() + b" " + other)
    ran = await door.run(b"rev-list", b"--parents", b"HEAD", repository=at(place))
    assert (ran.out, ran.err) == (head, b"")


async def test_the_callers_environment_cannot_redirect_git(workshop: Workshop) -> None:
    root, other = workshop.repository(), workshop.repository("other")
    (root / "new").touch()
    hostile = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / "no-index"),
        "GIT_OBJECT_DIRECTORY": str(other / "no-objects"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "status.showUntrackedFiles",
        "GIT_CONFIG_VALUE_0": "no",
        "GIT_TRACE": "1",
        "LC_ALL": "de_DE.UTF-8",
    }
    door = Git(b"git", workshop.environment | hostile)
    ran = await door.run(b"status", b"--porcelain", b"-z", repository=at(root))
    assert (ran.out, ran.err) == (b"?? new\0", b"")


async def test_no_hook_and_no_monitor_ever_runs(workshop: Workshop, door: Git) -> None:
    root, trace = workshop.repository(), workshop.home / "trace"
    for program in (root / ".git/hooks/post-checkout", workshop.home / "monitor"):
        program.write_text(f"#!/bin/sh\necho $0 >> {trace}\n")
        program.chmod(0o755)
    workshop.git(root, "config", "core.fsmonitor", str(workshop.home / "monitor"))
    await door.run(b"status", repository=at(root))
    await door.run(b"status", repository=at(root), write=True)
    await door.run(b"checkout", b"-q", b"-b", b"topic", repository=at(root), write=True)
    assert not trace.exists()
    workshop.git(root, "checkout", "-q", "main")
    assert {Path(line).name for line in trace.read_text().splitlines()} == {"post-checkout", "monitor"}


async def test_reading_never_rewrites_the_index(workshop: Workshop, door: Git) -> None:
    root = workshop.repository()
    os.utime(root / "file", (1, 1))
    before = (root / ".git/index").read_bytes()
    await door.run(b"status", repository=at(root))
    assert (root / ".git/index").read_bytes() == before
    await door.run(b"status", repository=at(root), write=True)
    assert (root / ".git/index").read_bytes() != before


async def test_a_place_need_not_have_a_name_in_utf_8(workshop: Workshop, door: Git) -> None:
    odd = Path(os.fsdecode(os.fsencode(workshop.repository()) + b"-\xff\n"))
    (workshop.home / "root").rename(odd)
    ran = await door.run(b"rev-parse", b"--show-toplevel", repository=at(odd))
    assert ran.out == os.fsencode(odd) + b"\n"


async def test_what_is_given_is_read_and_nothing_else_is(workshop: Workshop) -> None:
    door = workshop.fake("exec cat")
    given = bytes(range(256)) * 4000
    assert (await door.run(repository=workshop.location, stdin=given)).out == given
    assert (await door.run(repository=workshop.location, stdin=b"")).out == b""
    assert (await door.run(repository=workshop.location)).out == b""


async def test_a_program_need_not_read_what_it_is_given(workshop: Workshop) -> None:
    ran = await workshop.fake("exec true").run(repository=workshop.location, stdin=b"x" * 1_000_000)
    assert ran.code == 0


async def test_a_timeout_ends_the_whole_group(workshop: Workshop) -> None:
    door = workshop.fake("sleep 1000 & echo $! > $HERE/grandchild; echo $$ > $HERE/child; wait")
    with pytest.raises(GitTimedOut, match=r"no answer within 0\.2 seconds"):
        await door.run(b"status", repository=workshop.location, timeout=0.2)
    await gone(workshop.home / "child")
    await gone(workshop.home / "grandchild")


@pytest.mark.slow
async def test_a_group_that_ignores_a_polite_end_is_killed(workshop: Workshop) -> None:
    door = workshop.fake("trap '' TERM; sleep 1000 & echo $! > $HERE/grandchild; wait; sleep 1000")
    with pytest.raises(GitTimedOut):
        await door.run(repository=workshop.location, timeout=0.2)
    await gone(workshop.home / "grandchild")


async def test_an_ended_command_may_still_clean_up(workshop: Workshop) -> None:
    script = "trap 'echo bye > $HERE/farewell; exit 1' TERM; sleep 1000 & wait"
    door = workshop.fake(script, read_timeout=0.2)
    with pytest.raises(GitTimedOut):
        await door.run(repository=workshop.location)
    assert (workshop.home / "farewell").read_text() == "bye\n"


async def test_cancellation_ends_the_group_before_it_returns(workshop: Workshop) -> None:
    os.mkfifo(workshop.home / "fifo")
    fifo = os.open(workshop.home / "fifo", os.O_RDWR | os.O_NONBLOCK)
    door = workshop.fake("echo $$ > $HERE/fifo; sleep 1000 & wait")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: door.run(repository=workshop.location))
        with trio.fail_after(5):
            await trio.lowlevel.wait_readable(fifo)
        nursery.cancel_scope.cancel()
    process = int(os.read(fifo, 100))
    os.close(fifo)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


async def test_a_flood_is_an_error(workshop: Workshop) -> None:
    door = workshop.fake("echo $$ > $HERE/child; exec yes", output_limit=200_000)
    with pytest.raises(GitTalksTooMuch, match="more than 200000 bytes"):
        await door.run(b"log", repository=workshop.location)
    await gone(workshop.home / "child")


async def test_a_flood_on_standard_error_is_cut_in_the_middle(workshop: Workshop) -> None:
    script = "echo first >&2; yes | head -c 3000000 >&2; echo last >&2; echo answer; exit 3"
    ran = await workshop.fake(script).run(repository=workshop.location, allow=(3,))
    assert ran.out == b"answer\n"
    assert len(ran.err) < 70_000
    assert ran.err.startswith(b"first\n")
    assert ran.err.endswith(b"y\nlast\n")
    with pytest.raises(GitFailed, match="ended with 3: last") as raised:
        await workshop.fake(script).run(repository=workshop.location)
    assert len(raised.value.err) <= 4096
    assert raised.value.says("first")


async def test_a_daemon_left_behind_does_not_keep_us(workshop: Workshop) -> None:
    door = workshop.fake("sleep 1000 & echo $! > $HERE/daemon; echo answer")
    ran = await door.run(repository=workshop.location, timeout=5)
    os.kill(int((workshop.home / "daemon").read_text()), signal.SIGKILL)
    assert ran.out == b"answer\n"


async def test_death_by_a_signal_is_a_failure(workshop: Workshop) -> None:
    with pytest.raises(GitFailed, match="ended by SIGBUS") as raised:
        await workshop.fake("kill -BUS $$").run(repository=workshop.location)
    assert raised.value.code == -signal.SIGBUS


async def test_a_status_that_somebody_else_collects_is_not_a_success(workshop: Workshop) -> None:
    door = workshop.fake("exit 1")
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(GitStatusLost):
            await door.run(repository=workshop.location)
    finally:
        signal.signal(signal.SIGCHLD, before)


async def test_a_missing_program_and_a_missing_place_are_told_apart(workshop: Workshop) -> None:
    (workshop.home / "text").write_text("not a program")
    for name in ("none", "text"):
        door = Git(os.fsencode(workshop.home / name), {})
        with pytest.raises(GitMissing):
            await door.run(b"version", repository=workshop.location)
    with pytest.raises(GitMissing):
        await Git(b"no-such-git", {"PATH": str(workshop.home)}).version()
    with pytest.raises(GitNotStarted) as raised:
        await workshop.fake("exit 0").run(repository=Location(os.fsencode(workshop.home / "nowhere")))
    assert not isinstance(raised.value, GitMissing)
    assert door.started == 0


async def test_the_version_is_asked_once(door: Git) -> None:
    version = await door.version()
    assert version >= (2, 30)
    assert await door.version() == version
    assert door.started == 1


async def test_nonsense_is_no_version(workshop: Workshop) -> None:
    with pytest.raises(GitOutputUnreadable, match="hello"):
        await workshop.fake("echo hello").version()
    with pytest.raises(GitFailed):
        await workshop.fake("exit 1").version()


def test_versions_of_all_vendors_are_read() -> None:
    assert parse_version(b"git version 2.39.5 (Apple Git-154)\n") == (2, 39, 5)
    assert parse_version(b"git version 2.51.0.rc1\n") == (2, 51, 0)
    assert parse_version(b"git version 2.43.0.windows.1\n") == (2, 43, 0)


async def test_many_commands_run_at_once(workshop: Workshop, door: Git) -> None:
    root = at(workshop.repository())
    answers: list[bytes] = []

    async def ask() -> None:
        answers.append((await door.run(b"rev-parse", b"HEAD", repository=root)).out)

    async with trio.open_nursery() as nursery:
        for _ in range(16):
            nursery.start_soon(ask)
    assert len(answers) == 16
    assert len(set(answers)) == 1
    assert door.started == 16


async def test_a_git_that_is_killed_takes_what_it_has_started_along(workshop: Workshop) -> None:
    started = "sh -c 'echo $$ >$0.new; mv $0.new $0; exec sleep 60' $HERE/pid &"
    door = workshop.fake(f"{started} while ! [ -e $HERE/pid ]; do :; done; kill -9 $$")
    with pytest.raises(GitFailed):
        await door.run(b"x", repository=workshop.location)
    await gone(workshop.home / "pid")


async def test_what_writes_holds_the_lock_that_we_hold(workshop: Workshop) -> None:
    door = workshop.fake("ls -l /proc/$$/fd")

    async def holds(*, write: bool) -> bool:
        return b"/lock" in (await door.run(b"x", repository=workshop.location, write=write)).out

    lock = os.open(workshop.home / "lock", os.O_RDWR | os.O_CREAT)
    try:
        with door.holding(lock):
            assert await holds(write=True)
            assert not await holds(write=False)
        assert not await holds(write=True)
    finally:
        os.close(lock)
