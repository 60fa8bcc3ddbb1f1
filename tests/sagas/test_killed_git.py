"""Git is killed while it makes a worktree: at each of its stages, what it leaves is undone or finished."""

from __future__ import annotations

import fcntl
import os

import pytest
import trio

from tests.sagas.crashes import in_a_process
from tests.sagas.worlds import World, walk

pytestmark = pytest.mark.slow

TREE, ADMIN = "$MAIN/.laneyard/worktrees/work", "$MAIN/.git/worktrees/work"
EMPTY = f'cd "{TREE}"; find . -mindepth 1 ! -name .git -delete; cd "{ADMIN}"; rm -r index logs ORIG_HEAD'
BLANK = f"{EMPTY} HEAD commondir refs"
# What `git worktree add` has made when it is killed, in its own order.
STAGES = {
    "the branch": f'rm -r "{TREE}" "{ADMIN}"',
    "the lock": f'{BLANK} gitdir; rm -r "{TREE}"',
    "the directory": f'{BLANK} gitdir; rm "{TREE}/.git"',
    "the pointer of the registration": f'{BLANK}; rm "{TREE}/.git"',
    "an empty pointer of the worktree": f'{BLANK}; : >"{TREE}/.git"',
    "both pointers": BLANK,
    "a HEAD of zeros": f"{EMPTY}; echo {'0' * 40} >HEAD",
    "HEAD": EMPTY,
    "half of the files": f'cd "{TREE}"; rm -r sub plain; printf o >file; cd "{ADMIN}"; mv index index.lock',
}


def killed_at(world: World, stage: str, victim: str) -> None:
    world.fake(
        f'case " $* " in *" worktree add "*) git "$@" || exit; {STAGES[stage]}; kill -9 {victim}; esac'
    )


async def create(world: World) -> str:
    async with world.open() as opened:
        await opened.create()
        return opened.state()


def assert_nothing_is_left(world: World) -> None:
    assert trio.run(world.complaints) == []
    managed = os.path.join(world.root, b".laneyard/worktrees")
    assert walk(managed) == {}
    assert walk(os.path.join(world.common, b"worktrees")) == {}
    assert world.git(world.root, "for-each-ref", "--format=%(refname)") == b"refs/heads/main\n"


@pytest.mark.parametrize("stage", STAGES)
def test_a_creation_whose_git_was_killed_is_undone(world: World, stage: str) -> None:
    killed_at(world, stage, "$$")
    assert trio.run(create, world) == "failed"
    assert_nothing_is_left(world)


@pytest.mark.parametrize("stage", STAGES)
def test_a_creation_that_was_killed_with_its_git_is_finished_or_undone(world: World, stage: str) -> None:
    killed_at(world, stage, "$PPID")
    assert in_a_process(lambda: trio.run(create, world)) == -9
    world.program = "git"

    async def recover() -> str:
        async with world.open() as opened:
            return opened.state()

    state = trio.run(recover)
    assert state in ("active", "failed")
    if state == "failed":
        assert_nothing_is_left(world)
    else:
        assert trio.run(world.complaints) == []
        listed = world.git(world.root, "worktree", "list", "--porcelain")
        assert listed.count(b"worktree ") == 2
        assert (
            world.git(os.path.join(world.root, b".laneyard/worktrees/work"), "status", "--porcelain") == b""
        )


ORPHAN = f"""case " $* " in *" worktree add "*)
    git "$@" || exit
    kill -9 $PPID
    while ! [ -e "$WORLD/awaited" ]; do sleep 0.01; done
    echo late >>"{TREE}/file"
    git -C "{TREE}" checkout -q -- file
    exit;; esac"""


def test_a_git_that_outlives_us_is_waited_for(world: World) -> None:
    """Its lock goes on with it: the recovery neither undoes nor finishes what is still being written."""
    world.fake(ORPHAN)
    assert in_a_process(lambda: trio.run(create, world)) == -9
    world.program = "git"
    lock = os.path.join(world.common, b"laneyard/lock")
    with open(lock, "rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def notice(moment: str, step: str) -> None:
        if (moment, step) == ("before-effect", "Checkout"):  # what was begun is looked at anew
            (world.home / "awaited").touch()

    async def recover() -> str:
        async with world.open(notice) as opened:
            return opened.state()

    assert trio.run(recover) == "active"
    assert (world.home / "awaited").exists()
    assert trio.run(world.complaints) == []
    assert world.git(os.path.join(world.root, b".laneyard/worktrees/work"), "status", "--porcelain") == b""


WRITER = """case " $* " in *" fast-import "*)
    echo progress begun
    sed '/^done$/q' >"$WORLD/asked"
    kill -9 $PPID
    while ! [ -e "$WORLD/awaited" ]; do sleep 0.01; done
    tries=50; while ! [ -e "$WORLD/early" ] && [ $((tries -= 1)) -gt 0 ]; do sleep 0.01; done
    git "$@" <"$WORLD/asked"
    : >"$WORLD/ended"
    exit;; esac"""
FOLLOWER = """case " $* " in *" fast-import "*) [ -e "$WORLD/ended" ] || : >"$WORLD/early";; esac"""


def test_a_git_that_still_writes_a_snapshot_is_waited_for(world: World) -> None:
    """Two that make the same ref disturb each other, so the recovery begins when the first has ended."""
    world.fake(WRITER)

    async def begin() -> None:
        async with world.open() as opened:
            await opened.create()
            world.dirty(os.path.join(world.root, b".laneyard/worktrees/work"))
            await opened.snapshot()

    def notice(moment: str, step: str) -> None:
        if (moment, step) == ("before-effect", "Capture"):
            (world.home / "awaited").touch()

    async def recover() -> None:
        async with world.open(notice):
            assert world.tags()[-1] == "lane.snapshotted@2"

    assert in_a_process(lambda: trio.run(begin)) == -9
    world.fake(FOLLOWER)
    trio.run(recover)
    assert (world.home / "ended").exists()
    assert not (world.home / "early").exists()
    assert trio.run(world.complaints) == []
