"""What holds a lane where it is: everything that is not certain, or not ours to decide."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from adapters.yard.putting_away import SnapshotNotMade
from domain.errors import CannotHold, EvidenceUnavailable, ForeignLock, IdentityChanged
from domain.states import Active, NeedsReview, Quarantined
from tests.sagas.scenarios import clean, dirty, place_of, removed, removed_clean, resting
from tests.sagas.trees import write
from tests.sagas.worlds import walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from domain.events import Mode
    from tests.sagas.worlds import Open, World

pytestmark = pytest.mark.slow

MODES: tuple[Mode, ...] = ("safe", "force")


def admin_of(opened: Open) -> bytes:
    return os.path.join(opened.world.common, b"worktrees/work")


@pytest.fixture
def mounted(home: Path) -> Iterator[Path]:
    """Lends a directory outside, whose bind mount is put where the test says by `mount`."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    outside = home / "outside"
    write(os.fsencode(outside / "theirs"), b"theirs\n")
    yield outside
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if (place := line.split()[4]).startswith(f"{home}/"):
            unmount(os.fsencode(place))


def mount(outside: Path, place: bytes) -> None:
    os.makedirs(place, exist_ok=True)
    done = subprocess.run(["mount", "--bind", outside, place], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"mount is not permitted here: {done.stderr!r}")


def unmount(place: bytes) -> None:
    subprocess.run(["umount", place], check=True)


async def test_a_lane_with_a_mount_inside_is_not_captured(world: World, mounted: Path) -> None:
    async with world.open() as opened:
        await dirty(opened)
        mount(mounted, os.path.join(place_of(opened), b"mnt"))
        with pytest.raises(SnapshotNotMade):
            await opened.remove()
        assert opened.state() == "active"
    assert (mounted / "theirs").read_bytes() == b"theirs\n"


async def test_a_mount_in_the_quarantine_holds_the_reaper_and_is_unharmed(
    world: World, mounted: Path
) -> None:
    async with world.open() as opened:
        await removed(opened)
        mount(mounted, os.path.join(resting(opened), b"empty"))
        done = await opened.reap()
        assert isinstance(done.lane, NeedsReview)
        assert (done.lane.detail, done.lane.paths, done.lane.count) == ("mount_inside", (), 0)
        assert done.lane.reason == "mount point in the tree: empty"
        done = await opened.discard()
        assert isinstance(done.lane, NeedsReview)
        assert (mounted / "theirs").read_bytes() == b"theirs\n"
        unmount(os.path.join(resting(opened), b"empty"))
        done = await opened.restore()
        assert isinstance(done.lane, Active)
    assert await world.complaints() == []


async def test_a_mount_that_comes_between_explanation_and_deletion_is_unharmed(
    world: World, mounted: Path
) -> None:
    def notice(moment: str, step: str) -> None:
        if (moment, step) == ("before-effect", "Destroy"):
            mount(mounted, os.path.join(resting(opened), b"empty"))

    async with world.open(notice) as opened:
        await removed(opened)
        done = await opened.reap()
        assert isinstance(done.lane, NeedsReview)
        assert (done.lane.detail, done.lane.count) == ("mount_inside", 0)
        assert (mounted / "theirs").read_bytes() == b"theirs\n"


@pytest.mark.parametrize("mode", MODES)
async def test_another_directory_in_the_lanes_place_is_not_removed(world: World, mode: Mode) -> None:
    async with world.open() as opened:
        await clean(opened)
        place = place_of(opened)
        os.rename(place, place + b"-away")
        write(os.path.join(place, b".git"), walk(place + b"-away")[b".git"][2])
        with pytest.raises(IdentityChanged):
            await opened.remove(mode=mode)
        assert walk(place).keys() == {b".git"}


async def test_another_directory_in_the_quarantine_is_not_deleted(world: World) -> None:
    async with world.open() as opened:
        await removed(opened)
        place = resting(opened)
        away = os.path.join(world.root, b"away")
        os.rename(place, away)
        write(os.path.join(place, b".git"), walk(away)[b".git"][2])
        done = await opened.reap()
        assert isinstance(done.lane, NeedsReview)
        assert done.lane.detail == "identity_changed"
        assert walk(place).keys() == {b".git"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pointer", [None, b"gitdir: /nowhere\n", b"nonsense", b""])
async def test_a_lane_whose_pointer_is_gone_or_wrong_is_held(
    world: World, pointer: bytes | None, mode: Mode
) -> None:
    async with world.open() as opened:
        await dirty(opened)
        dot_git = os.path.join(place_of(opened), b".git")
        os.unlink(dot_git)
        if pointer is not None:
            write(dot_git, pointer)
        with pytest.raises(EvidenceUnavailable):
            await opened.remove(mode=mode)


async def test_a_pointer_to_another_lane_is_held(world: World) -> None:
    async with world.open() as opened:
        await clean(opened)
        await opened.create("other")
        write(os.path.join(place_of(opened), b".git"), walk(place_of(opened, "other"))[b".git"][2])
        with pytest.raises(EvidenceUnavailable):
            await opened.remove(mode="force")


@pytest.mark.parametrize("mode", MODES)
async def test_a_foreign_lock_is_respected(world: World, mode: Mode) -> None:
    async with world.open() as opened:
        await dirty(opened)
        world.git(world.root, "worktree", "lock", "--reason", "on a stick", place_of(opened))
        with pytest.raises(ForeignLock):
            await opened.remove(mode=mode)
        assert walk(admin_of(opened))[b"locked"][2] == b"on a stick\n"


async def test_a_lock_without_a_reason_is_somebodys_too(world: World) -> None:
    async with world.open() as opened:
        await clean(opened)
        world.git(world.root, "worktree", "lock", place_of(opened))
        with pytest.raises(ForeignLock):
            await opened.remove(mode="force")


async def test_a_foreign_lock_in_the_quarantine_holds_the_reaper(world: World) -> None:
    async with world.open() as opened:
        await removed(opened)
        world.git(world.root, "worktree", "unlock", resting(opened))
        world.git(world.root, "worktree", "lock", "--reason", "mine", resting(opened))
        done = await opened.reap()
        assert done.problem is not None
        assert b"locked" in walk(admin_of(opened))


@pytest.mark.parametrize("name", [b"HEAD.lock", b"index.lock"])
async def test_a_git_that_is_at_work_holds_a_lane(world: World, name: bytes) -> None:
    async with world.open() as opened:
        await dirty(opened)
        write(os.path.join(admin_of(opened), name), b"")
        with pytest.raises(CannotHold):
            await opened.remove()
        assert opened.state() == "active"


async def test_a_head_that_is_locked_meanwhile_stays_on_its_branch_and_says_so(world: World) -> None:
    def notice(moment: str, step: str) -> None:
        if (moment, step) == ("before-effect", "FreeBranch"):
            write(os.path.join(admin_of(opened), b"HEAD.lock"), b"")

    async with world.open(notice) as opened:
        await clean(opened)
        done = await opened.remove()
        assert isinstance(done.lane, Quarantined)
        assert len(done.warnings) == 1
        os.unlink(os.path.join(admin_of(opened), b"HEAD.lock"))
        restored = await opened.restore()
        assert restored.warnings == ()
        assert world.git(place_of(opened), "symbolic-ref", "HEAD") == b"refs/heads/work\n"
    assert await world.complaints() == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("command", ["status", "ls-tree"])
async def test_evidence_that_git_does_not_give_is_never_clean(world: World, mode: Mode, command: str) -> None:
    async with world.open() as opened:
        await dirty(opened)
        before = walk(place_of(opened))
    world.fake(f'case " $* " in *" {command} "*) echo broken >&2; exit 128; esac')
    async with world.open() as opened:
        if command == "status":
            with pytest.raises(EvidenceUnavailable):
                await opened.remove(mode=mode)
        elif mode == "safe":
            with pytest.raises(SnapshotNotMade):
                await opened.remove()
        else:
            await opened.remove(mode="force")
            done = await opened.restore()
            assert isinstance(done.lane, Active)
        assert walk(place_of(opened)) == before


async def test_a_reaper_that_cannot_read_the_commit_deletes_nothing(world: World) -> None:
    async with world.open() as opened:
        await removed(opened)
        before = walk(resting(opened))
    world.fake('case " $* " in *" ls-tree "*) exit 128; esac')
    async with world.open() as opened:
        done = await opened.reap()
        assert isinstance(done.lane, NeedsReview)
        assert walk(resting(opened)) == before


async def test_a_snapshot_whose_ref_somebody_moved_deletes_nothing(world: World) -> None:
    async with world.open() as opened:
        await removed(opened)
        taken = opened.lane().record.snapshots[0]  # type: ignore[union-attr]
        world.git(world.root, "update-ref", taken.ref, "refs/heads/main")
        done = await opened.reap()
        assert isinstance(done.lane, NeedsReview)
        assert done.lane.detail == "snapshot_damaged"
        assert walk(resting(opened))[b"secret"][2] == b"untracked secret"


async def test_a_lane_without_a_change_is_captured_before_it_is_reaped(world: World) -> None:
    async with world.open() as opened:
        await removed_clean(opened)
        await opened.reap()
        done = await opened.restore()
        assert isinstance(done.lane, Active)
        assert walk(place_of(opened))[b"file"][2] == b"one\n"
