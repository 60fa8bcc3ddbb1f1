"""Holes that were found by attacking, each with the smallest way through it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adapters.config import Settings
from domain.errors import NotTheLanesBranch, StateInside
from domain.states import NeedsReview, Quarantined, Reaped
from tests.sagas.scenarios import clean, dirty, place_of
from tests.sagas.trees import write
from tests.sagas.worlds import World, walk

pytestmark = pytest.mark.slow


async def test_a_consent_to_lose_a_lock_of_git_is_none_to_lose_a_directory_of_that_name(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        lane = place_of(opened)
        write(os.path.join(world.git(lane, "rev-parse", "--git-dir").strip(), b"index.lock"), b"")
        await opened.remove(mode="force")
        resting = opened.lane()
        assert isinstance(resting, Quarantined)
        write(os.path.join(os.fsencode(resting.place.path), b"index.lock", b"late"), b"work")
        done = await opened.reap()
    assert isinstance(done.lane, NeedsReview)
    assert os.path.exists(os.path.join(os.fsencode(resting.place.path), b"index.lock", b"late"))


async def test_a_file_larger_than_any_answer_of_git_comes_back(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        lane = place_of(opened)
        write(os.path.join(lane, b"large"), os.urandom(1 << 20) * 70)
        before = walk(lane)
        await opened.remove()
        assert isinstance((await opened.reap()).lane, Reaped)
        await opened.restore()
        assert walk(lane) == before


async def test_a_replaced_object_is_not_taken_for_the_one_that_is_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        lane = place_of(opened)
        name = world.git(lane, "ls-files").split(b"\n")[0]
        blob = world.git(lane, "rev-parse", b"HEAD:" + name).strip()
        other = world.git(lane, "hash-object", "-w", "--stdin", stdin=b"quite another").strip()
        before = walk(lane)
        world.git(lane, "replace", blob, other)
        await opened.remove()
        await opened.reap()
        world.git(world.root, "replace", "-d", blob)
        await opened.restore()
        assert walk(lane) == before


async def test_another_branch_than_the_lanes_own_is_not_deleted(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        world.git(place_of(opened), "switch", "-q", "-c", "shared")
        with pytest.raises(NotTheLanesBranch):
            await opened.remove(delete_branch=True)
    assert world.git(world.root, "branch", "--list", "shared").strip()


async def test_a_lane_that_holds_the_log_is_not_moved(tmp_path: Path) -> None:
    class Nested(World):
        @property
        def settings(self) -> Settings:
            outer = super().settings
            inner = os.path.join(self.root, b".laneyard", b"worktrees", b"work", b"state")
            return Settings(
                state_dir=inner if os.path.isdir(os.path.dirname(inner)) else outer.state_dir,
                environment=outer.environment,
                client=outer.client,
                configuration=outer.configuration,
            )

    world = Nested(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        opened.yard.settings = world.settings
        with pytest.raises(StateInside):
            await opened.remove(mode="force")


async def test_a_repository_of_the_lanes_own_can_be_put_away_by_force(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        lane = place_of(opened)
        inner = next(
            os.path.dirname(path) for path in world.git(lane, "ls-files").split(b"\n") if b"/" in path
        )
        world.git(os.path.join(lane, inner), "init", "-q")
        done = await opened.remove(mode="force")
    assert isinstance(done.lane, Quarantined), done.problem


async def test_a_tree_that_was_moved_away_is_missing_and_not_deleted(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await dirty(opened)
        await opened.remove()
        resting = opened.lane()
        assert isinstance(resting, Quarantined)
        place, elsewhere = os.fsencode(resting.place.path), os.fsencode(tmp_path / "elsewhere")
        os.rename(place, elsewhere)
        done = await opened.reap()
        assert isinstance(done.lane, NeedsReview)
        assert done.lane.detail == "tree_missing"
        os.rename(elsewhere, place)
        await opened.restore()
        assert opened.state() == "active"


async def test_a_tree_that_has_the_only_good_copy_is_not_deleted(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        lane = place_of(opened)
        name = world.git(lane, "ls-files").split(b"\n")[0]
        blob = world.git(lane, "rev-parse", b"HEAD:" + name).strip().decode()
        await opened.remove()
        loose = os.path.join(world.common, b"objects", blob[:2].encode(), blob[2:].encode())
        os.chmod(loose, 0o644)
        Path(os.fsdecode(loose)).write_bytes(Path(os.fsdecode(loose)).read_bytes()[:-3] + b"\0\0\0")
        done = await opened.reap()
    assert not isinstance(done.lane, Reaped)
    assert isinstance(done.lane, NeedsReview | Quarantined)


async def test_a_commit_made_while_the_tree_goes_is_kept(tmp_path: Path) -> None:
    world = World(tmp_path)
    made: list[bytes] = []

    def commit(moment: str, step: str) -> None:
        if (moment, step) == ("before-effect", "Destroy"):
            admin = b"--git-dir=" + os.path.join(world.common, b"worktrees/work")
            made.append(
                world.git(world.root, admin, "commit-tree", "-m", "late", "HEAD^{tree}", "-p", "HEAD")
            )
            world.git(world.root, admin, "update-ref", "--no-deref", "HEAD", made[0].strip())

    async with world.open(commit) as opened:
        await clean(opened)
        await opened.remove()
        done = await opened.reap()
    late = made[0].decode().strip()
    assert isinstance(done.lane, NeedsReview)
    assert done.lane.detail == "changed_while_reaping"
    world.git(world.root, "gc", "-q", "--prune=now")
    assert world.git(world.root, "cat-file", "-t", late).strip() == b"commit"


async def test_a_commit_that_only_the_branchs_log_knows_outlives_the_branch(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        lane = place_of(opened)
        head = world.git(lane, "rev-parse", "HEAD").strip()
        lost = world.git(lane, "commit-tree", "-m", "lost", "-p", "HEAD", "HEAD^{tree}").strip()
        world.git(world.root, "update-ref", "refs/heads/work", lost)
        world.git(world.root, "update-ref", "refs/heads/work", head)
        await opened.remove(delete_branch=True)
        await opened.reap()
    world.git(world.root, "reflog", "expire", "--expire=now", "--all")
    world.git(world.root, "gc", "-q", "--prune=now")
    assert world.git(world.root, "cat-file", "-t", lost).strip() == b"commit"


@pytest.mark.parametrize("when", ["Apply", "Rejoin"])
async def test_a_commit_in_a_half_restored_lane_is_kept(tmp_path: Path, when: str) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await dirty(opened)
        lane = place_of(opened)
        await opened.remove()
        await opened.reap()

    class Stopped(BaseException):
        """The end of the process."""

    def die(moment: str, step: str) -> None:
        if (moment, step) == ("after-effect", when):
            raise Stopped

    with pytest.raises(Stopped):
        async with world.open(die) as opened:
            await opened.restore()
    world.git(lane, "commit", "-q", "--allow-empty", "-m", "early")
    early = world.git(lane, "rev-parse", "HEAD").strip()
    async with world.open() as opened:
        assert opened.state() in ("active", "needs-review")
        assert world.git(lane, "rev-parse", "HEAD").strip() == early


async def test_a_head_that_somebody_has_put_elsewhere_stays_there(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await clean(opened)
        await opened.remove()
        resting = opened.lane()
        assert isinstance(resting, Quarantined)
        world.git(os.fsencode(resting.place.path), "switch", "-q", "-c", "other")
        done = await opened.restore()
        assert world.git(place_of(opened), "branch", "--show-current").strip() == b"other"
        assert opened.row()["branch"] == "refs/heads/other"
        assert "HEAD is on other by now, not on work" in done.warnings


async def test_a_head_without_a_commit_holds_the_reaper(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await dirty(opened)
        await opened.remove()
        resting = opened.lane()
        assert isinstance(resting, Quarantined)
        world.git(os.fsencode(resting.place.path), "symbolic-ref", "HEAD", "refs/heads/gone")
        done = await opened.reap()
        assert isinstance(done.lane, NeedsReview)
        assert done.lane.detail == "registration_changed"
        await opened.restore()
        assert opened.state() == "active"


async def test_a_lock_that_a_killed_attempt_has_left_is_taken_over(tmp_path: Path) -> None:
    world = World(tmp_path)
    admin = os.path.join(world.common, b"worktrees", b"work")

    def leave(moment: str, step: str) -> None:
        if (moment, step) == ("before-effect", "FreeBranch"):
            write(os.path.join(admin, b"HEAD.lock"), world.git(world.root, "rev-parse", "HEAD"))
            write(os.path.join(admin, b"logs", b".laneyard-0123456789abcdef"), b"half")

    async with world.open(leave) as opened:
        await clean(opened)
        done = await opened.remove()
        assert (done.problem, done.warnings) == (None, ())
        assert not os.path.exists(os.path.join(admin, b"HEAD.lock"))
        assert isinstance((await opened.reap()).lane, Reaped)


async def test_a_lock_that_says_something_else_is_somebodys(tmp_path: Path) -> None:
    world = World(tmp_path)
    lock = os.path.join(world.common, b"worktrees", b"work", b"HEAD.lock")

    def leave(moment: str, step: str) -> None:
        if (moment, step) == ("before-effect", "FreeBranch"):
            write(lock, b"ref: refs/heads/other\n")

    async with world.open(leave) as opened:
        await clean(opened)
        done = await opened.remove()
        assert isinstance(done.lane, Quarantined)
        assert len(done.warnings) == 1
        assert os.path.exists(lock)


async def test_a_crash_does_not_skip_the_last_look(tmp_path: Path) -> None:
    world = World(tmp_path)

    class Stopped(BaseException):
        """The end of the process."""

    def die(moment: str, step: str) -> None:
        if (moment, step) == ("after-effect", "Destroy"):
            raise Stopped

    async with world.open() as opened:
        await clean(opened)
        await opened.remove()
    with pytest.raises(Stopped):
        async with world.open(die) as opened:
            await opened.reap()
    admin = os.path.join(world.common, b"worktrees", b"work")
    made = world.git(world.root, "commit-tree", "-m", "late", "-p", "HEAD", "HEAD^{tree}").strip()
    write(os.path.join(admin, b"HEAD"), made + b"\n")
    async with world.open() as opened:
        assert opened.state() == "needs-review"
    assert os.path.isdir(admin)
