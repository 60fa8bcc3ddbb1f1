"""What a lane needs is still there after others have deleted, pruned and collected what they had of it."""

from __future__ import annotations

import os
import shutil
import socket
from typing import TYPE_CHECKING

import pytest

from adapters.files.durable import read_file
from domain.errors import Refusal
from tests.sagas.scenarios import place_of
from tests.sagas.trees import write
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sagas.worlds import Open

pytestmark = pytest.mark.slow

NOW = ("reflog", "expire", "--expire=now", "--all"), ("gc", "-q", "--prune=now")


def collect(world: World, place: bytes) -> None:
    """Has git delete everything that no ref reaches."""
    for command in NOW:
        world.git(place, *command)


def said(world: World, place: bytes, *arguments: str) -> str:
    return world.git(place, *arguments).decode().strip()


def admin_of(opened: Open) -> bytes:
    return os.fsencode(said(opened.world, place_of(opened), "rev-parse", "--absolute-git-dir"))


def commit(world: World, place: bytes, text: str) -> str:
    write(os.path.join(place, b"new"), text.encode())
    world.git(place, "add", "new")
    world.git(place, "commit", "-q", "-m", text)
    return said(world, place, "rev-parse", "HEAD")


async def reaped(opened: Open) -> None:
    await opened.remove()
    await opened.reap()
    assert opened.state() == "reaped"


async def test_a_merge_with_a_branch_that_its_remote_deletes_goes_on_after_a_restore(world: World) -> None:
    remote = os.path.join(os.fsencode(world.home), b"remote.git")
    world.git(world.root, "clone", "-q", "--bare", world.root, remote)
    world.git(world.root, "remote", "add", "origin", remote)
    async with world.open() as opened:
        await opened.create()
        lane = place_of(opened)
        world.git(lane, "checkout", "-q", "-b", "topic")
        topic = commit(world, lane, "topic")
        world.git(lane, "push", "-q", "origin", "topic")
        world.git(lane, "checkout", "-q", "work")
        world.git(lane, "branch", "-q", "-D", "topic")
        commit(world, lane, "work")
        world.git(lane, "merge", "origin/topic", check=False)
        await reaped(opened)
        world.git(remote, "branch", "-D", "topic")
        world.git(world.root, "fetch", "-q", "--prune")
        collect(world, world.root)
        await opened.restore()
        write(os.path.join(lane, b"new"), b"both")
        world.git(lane, "add", "new")
        world.git(lane, "commit", "-q", "-m", "merged")
        assert said(world, lane, "rev-parse", "HEAD^2") == topic


@pytest.fixture
def borrower(home: Path) -> tuple[World, bytes]:
    """A repository that has everything on loan, and the one that it is from, which has a branch more."""
    world = World(home)
    lender = os.path.join(os.fsencode(home), b"lender")
    world.git(world.root, "clone", "-q", "--no-hardlinks", world.root, lender)
    world.git(lender, "checkout", "-q", "-b", "old")
    commit(world, lender, "precious")
    world.git(lender, "checkout", "-q", "main")
    world.git(lender, "gc", "-q")
    shutil.rmtree(world.root)
    world.git(os.fsencode(home), "clone", "-q", "--shared", lender, world.root)
    return world, lender


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("remembered", [False, True])
async def test_what_was_on_loan_comes_back_after_the_lender_has_deleted_it(
    borrower: tuple[World, bytes], staged: bool, remembered: bool
) -> None:
    world, lender = borrower
    async with world.open() as opened:
        await opened.create()
        lane = place_of(opened)
        world.git(lane, "update-ref", "refs/worktree/mine", "origin/old")
        mine = said(world, lane, "rev-parse", "origin/old")
        write(os.path.join(lane, b"new"), b"precious")
        if staged:
            world.git(lane, "add", "new")
            os.unlink(os.path.join(lane, b"new"))
        if remembered:
            await opened.snapshot()
        await reaped(opened)
        world.git(world.root, "remote", "remove", "origin")
        world.git(lender, "branch", "-q", "-D", "old")
        for place in (world.root, lender, world.root):  # git packs only what is its own
            collect(world, place)
        await opened.restore()
        assert said(world, lane, "rev-parse", "refs/worktree/mine") == mine
        assert world.git(lane, "show", "refs/worktree/mine:new") == b"precious"
        shown = world.git(lane, "show", ":new") if staged else read_file(os.path.join(lane, b"new"))
        assert shown == b"precious"
        assert world.git(world.root, "fsck", "--connectivity-only") == b""
    assert await world.complaints() == []


@pytest.mark.parametrize("lost_in", ["lane", "loan"])
async def test_a_lane_whose_log_names_a_commit_without_its_history_comes_back(
    borrower: tuple[World, bytes], lost_in: str, tmp_path: Path
) -> None:
    world = borrower[0] if lost_in == "loan" else World(tmp_path)
    async with world.open() as opened:
        await opened.create()
        lane, head = place_of(opened), said(world, place_of(opened), "rev-parse", "HEAD")
        lost = said(world, lane, "commit-tree", "HEAD^{tree}", "-m", "lost")
        kept = said(world, lane, "commit-tree", "HEAD^{tree}", "-p", lost, "-m", "kept")
        world.git(lane, "update-ref", "--create-reflog", "HEAD", kept)
        world.git(lane, "update-ref", "HEAD", head)
        write(os.path.join(lane, b"new"), b"new")
        os.unlink(os.path.join(world.common, b"objects", lost[:2].encode(), lost[2:].encode()))
        await reaped(opened)
        await opened.restore()
        assert kept in read_file(os.path.join(admin_of(opened), b"logs/HEAD")).decode()
        assert said(world, lane, "cat-file", "-t", kept) == "commit"
        assert read_file(os.path.join(lane, b"new")) == b"new"
    assert await world.complaints() == []


@pytest.mark.parametrize("where", ["logs/HEAD", "FETCH_HEAD", "odd"])
async def test_a_commit_is_kept_whatever_else_is_in_the_file_that_names_it(world: World, where: str) -> None:
    async with world.open() as opened:
        await opened.create()
        lane = place_of(opened)
        named = said(world, lane, "commit-tree", "HEAD^{tree}", "-m", "only named")
        write(os.path.join(lane, b"new"), b"new")
        path = os.path.join(admin_of(opened), where.encode())
        before = read_file(path) if os.path.exists(path) else b""
        text = f"{named}\t\t'refs/pull/1/head' of https://example.org/owner/repository\n".encode()
        odd = {
            "logs/HEAD": b"\0" * 100 + b"\n",
            "FETCH_HEAD": b"x" * (1 << 20) + b"\n",
            "odd": b"\0\n" * (1 << 19),
        }
        write(path, before + odd[where] + text)
        await reaped(opened)
        collect(world, world.root)
        await opened.restore()
        assert said(world, lane, "cat-file", "-t", named) == "commit"


async def test_what_only_a_graft_reaches_is_kept(world: World) -> None:
    async with world.open() as opened:
        await opened.create()
        lane, head = place_of(opened), said(world, place_of(opened), "rev-parse", "HEAD")
        named = said(world, lane, "commit-tree", "HEAD^{tree}", "-m", "only named")
        world.git(lane, "update-ref", "--create-reflog", "HEAD", named)
        world.git(lane, "update-ref", "HEAD", head)
        write(os.path.join(lane, b"new"), b"new")
        grafts = os.path.join(world.common, b"info/grafts")
        write(grafts, f"{head} {named}\n".encode())
        await reaped(opened)
        os.unlink(grafts)
        collect(world, world.root)
        assert said(world, world.root, "cat-file", "-t", named) == "commit"


async def test_line_ends_that_were_converted_by_a_setting_that_is_gone_come_back(world: World) -> None:
    write(os.path.join(world.root, b"text"), b"one\ntwo\n")
    world.git(world.root, "add", "text")
    world.git(world.root, "commit", "-q", "-m", "text")
    world.git(world.root, "config", "core.autocrlf", "true")
    async with world.open() as opened:
        await opened.create()
        lane = place_of(opened)
        text = os.path.join(lane, b"text")
        os.unlink(text)
        world.git(lane, "checkout", "--", "text")
        assert read_file(text) == b"one\r\ntwo\r\n"
        recorded_long_ago(world, lane, admin_of(opened))
        world.git(world.root, "config", "--unset", "core.autocrlf")
        write(os.path.join(lane, b"new"), b"new")
        await opened.remove()
        await opened.reap()
        assert opened.state() == "needs-review"
        await opened.resnapshot()
        assert opened.state() == "reaped"
        await opened.restore()
        assert read_file(text) == b"one\r\ntwo\r\n"


def recorded_long_ago(world: World, lane: bytes, admin: bytes) -> None:
    """Has the index know all files as they are, and be so much younger than they are that it is believed."""
    environment = {**world.environment}
    del world.environment["GIT_OPTIONAL_LOCKS"]
    world.git(lane, "update-index", "--refresh")
    world.environment.update(environment)
    later = os.stat(os.path.join(admin, b"index")).st_mtime_ns + 10 * 10**9
    os.utime(os.path.join(admin, b"index"), ns=(later, later))


async def test_the_socket_of_a_monitor_of_gits_own_holds_nothing(world: World) -> None:
    async with world.open() as opened:
        await opened.create()
        write(os.path.join(place_of(opened), b"new"), b"new")
        with socket.socket(socket.AF_UNIX) as listening:
            here = os.open(admin_of(opened), os.O_RDONLY | os.O_DIRECTORY)
            listening.bind(f"/proc/self/fd/{here}/fsmonitor--daemon.ipc")  # a socket's name has to be short
            os.close(here)
            await reaped(opened)
        await opened.restore()
        assert read_file(os.path.join(place_of(opened), b"new")) == b"new"
    assert await world.complaints() == []


async def test_staged_content_that_is_missing_is_told_with_its_path(world: World) -> None:
    async with world.open() as opened:
        await opened.create()
        lane = place_of(opened)
        write(os.path.join(lane, b'a "new" one'), b"staged\n")
        world.git(lane, "add", ".")
        oid = said(world, lane, "rev-parse", ':a "new" one')
        os.unlink(os.path.join(world.common, b"objects", oid[:2].encode(), oid[2:].encode()))
        write(os.path.join(lane, b'a "new" one'), b"another\n")
        with pytest.raises(Refusal, match="staged content is missing") as refused:
            await opened.snapshot()
        assert "fast-import" not in str(refused.value)
