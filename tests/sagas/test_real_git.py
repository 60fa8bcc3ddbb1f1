"""What we promise of a lane that is put away and brought back, asked of the real git."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from domain.states import Active, NeedsReview, Quarantined
from tests.sagas.scenarios import dirty, overgrown, place_of, removed, resting, written_to
from tests.sagas.trees import write
from tests.sagas.worlds import World, walk

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sagas.worlds import Open

pytestmark = pytest.mark.slow

# The commits of these worlds are old, and only what nobody knows of is to be taken.
GC = ("-c", "gc.reflogExpire=never", "-c", "gc.reflogExpireUnreachable=never", "gc", "--quiet", "--prune=now")


def seen(opened: Open, lane: str = "work") -> tuple[object, object]:
    """Returns all that a person could see of a lane: every entry, git's status and git's index."""
    place = place_of(opened, lane)
    return walk(place), opened.world.index_of(place)


def commit(opened: Open, place: bytes, path: bytes = b"new") -> str:
    write(os.path.join(place, path), b"committed in " + place)
    opened.world.git(place, "add", path)
    opened.world.git(place, "commit", "-q", "-m", "another")
    return opened.world.git(place, "rev-parse", "HEAD").decode().strip()


async def test_gc_and_prune_take_nothing_from_a_lane_at_rest(world: World) -> None:
    async with world.open() as opened:
        await opened.create()
        lost = commit(opened, place_of(opened))
        world.git(place_of(opened), "reset", "-q", "--hard", "HEAD~1")
        world.dirty(place_of(opened))
        staged = world.git(place_of(opened), "rev-parse", ":doomed").decode().strip()
        before = seen(opened)
        await opened.remove()
        snapshot = opened.lane().record.snapshots[0]  # type: ignore[union-attr]
        world.git(world.root, "update-ref", "-d", snapshot.ref)  # the registration alone must keep it all
        world.git(world.root, "worktree", "prune", "--expire=now")
        world.git(world.root, *GC)
        await opened.restore()
        assert seen(opened) == before
        assert world.git(world.root, "cat-file", "-t", lost) == b"commit\n"
        assert world.git(world.root, "cat-file", "blob", staged) == b"only in the index\n"


async def test_a_merge_in_progress_rests_and_comes_back(world: World) -> None:
    async with world.open() as opened:
        await opened.create()
        commit(opened, place_of(opened), b"file")
        commit(opened, world.root, b"file")
        world.git(place_of(opened), "merge", "main", check=False)
        before = seen(opened)
        await opened.remove(mode="force")
        await opened.restore()
        assert seen(opened) == before
        assert b"UU" in world.git(place_of(opened), "status", "--porcelain")


async def test_a_branch_that_was_taken_meanwhile_is_left_and_the_lane_stays_detached(world: World) -> None:
    async with world.open() as opened:
        await removed(opened)
        world.git(world.root, "worktree", "add", "-q", "../elsewhere", "work")
        done = await opened.restore()
        assert isinstance(done.lane, Active)
        assert "in use by" in " ".join(done.warnings)
        assert world.git(place_of(opened), "symbolic-ref", "-q", "HEAD", check=False) == b""


async def test_a_branch_that_has_moved_on_is_left_where_it_is(world: World) -> None:
    async with world.open() as opened:
        await removed(opened)
        world.git(world.root, "branch", "-f", "work", commit(opened, world.root))
        done = await opened.restore()
        assert "by now" in " ".join(done.warnings)
        assert done.lane.record.branch is None  # type: ignore[union-attr]


async def test_a_branch_that_was_deleted_is_made_again_where_it_was(world: World) -> None:
    async with world.open() as opened:
        await dirty(opened)
        before, head = seen(opened), world.git(place_of(opened), "rev-parse", "HEAD")
        await opened.remove()
        world.git(world.root, "branch", "-q", "-D", "work")
        done = await opened.restore()
        assert done.warnings == ()
        assert world.git(world.root, "rev-parse", "refs/heads/work") == head
        assert seen(opened) == before


async def test_a_lane_whose_path_is_taken_comes_back_at_the_next_free_one(world: World) -> None:
    async with world.open() as opened:
        await dirty(opened)
        before = {path: each for path, each in walk(place_of(opened)).items() if path != b".git"}
        await opened.remove()
        write(os.path.join(place_of(opened), b"somebody's"), b"")
        done = await opened.restore()
        assert isinstance(done.lane, Active)
        assert done.lane.place.path.endswith("/work-2")
        assert "the path is now" in done.warnings[0]
        after = walk(place_of(opened, "work-2"))
        assert {path: each for path, each in after.items() if path != b".git"} == before
        assert walk(place_of(opened)).keys() == {b"somebody's"}
    assert await world.complaints() == [f"{os.fsdecode(place_of(opened))} belongs to no lane"]


async def test_one_snapshot_brings_a_lane_back_more_than_once(world: World) -> None:
    async with world.open() as opened:
        await dirty(opened)
        before = seen(opened)
        await opened.remove()
        await opened.reap()
        await opened.restore()
        write(os.path.join(place_of(opened), b"later"), b"later\n")
        await opened.remove()
        await opened.reap()
        await opened.restore(edition=1)
        assert seen(opened) == before
    assert await world.complaints() == []


async def test_what_only_the_reflog_knew_survives_reaping_and_gc(world: World) -> None:
    async with world.open() as opened:
        await opened.create()
        lost = [commit(opened, place_of(opened), name) for name in (b"first", b"second")]
        world.git(place_of(opened), "reset", "-q", "--hard", "HEAD~2")
        world.dirty(place_of(opened))
        before = seen(opened)
        await opened.remove()
        await opened.reap()
        world.git(world.root, "reflog", "expire", "--expire=now", "--all")
        world.git(world.root, *GC)
        await opened.restore()
        assert seen(opened) == before
        assert [world.git(world.root, "cat-file", "-t", each) for each in lost] == [b"commit\n"] * 2
        assert lost[1].encode() in world.git(place_of(opened), "reflog", "--no-abbrev")


@pytest.mark.parametrize("way", ["put-back", "resnapshot", "discard"])
async def test_a_file_written_into_the_quarantine_is_named_unharmed_and_has_ways_out(
    world: World, way: str
) -> None:
    async with world.open() as opened:
        await written_to(opened)
        done = await opened.reap()
        assert isinstance(done.lane, NeedsReview)
        assert done.lane.paths == ("late",)
        assert walk(resting(opened))[b"late"][2] == b"late\n"
        if way == "put-back":
            await opened.restore()
        elif way == "resnapshot":
            await opened.resnapshot()
            await opened.restore()
        else:
            await opened.discard()
            await opened.restore()
        found = walk(place_of(opened))
        assert found.get(b"late") == (None if way == "discard" else ("file", 0o644, b"late\n"))
        assert found[b"both"][2] == b"staged, then modified\n"
    assert await world.complaints() == []


def rewrite(place: bytes) -> None:
    write(os.path.join(place, b"both"), b"written while you looked\n")


def replace_directory(place: bytes) -> None:
    os.rename(os.path.join(place, b"sub"), os.path.join(place, b"..", b"..", b"moved away"))
    os.symlink(b"../../moved away", os.path.join(place, b"sub"))


def add(place: bytes) -> None:
    write(os.path.join(place, b"deep/er/added"), b"added while you looked\n")


@pytest.mark.parametrize("change", [rewrite, add, replace_directory])
async def test_what_changes_between_explanation_and_deletion_is_not_deleted(
    world: World, change: object
) -> None:
    def notice(moment: str, step: str) -> None:
        if (moment, step) == ("before-effect", "Destroy"):
            assert callable(change)
            change(resting(opened))

    async with world.open(notice) as opened:
        await removed(opened)
        done = await opened.reap()
        assert isinstance(done.lane, NeedsReview)
        assert done.lane.detail == "changed_while_reaping"
        left = walk(resting(opened))
        if change is replace_directory:
            assert left[b"sub"][0] == "link"
            assert os.path.exists(os.path.join(world.root, b".laneyard/moved away/inner"))
        else:
            (path,) = done.lane.paths
            assert left[path.encode()][2].endswith(b"while you looked\n")


async def test_a_link_to_a_directory_outside_is_never_followed(world: World, home: Path) -> None:
    outside = home / "outside"
    write(os.fsencode(outside / "theirs"), b"theirs\n", 0o600)
    before = walk(os.fsencode(outside))
    async with world.open() as opened:
        await opened.create()
        os.symlink(outside, os.path.join(place_of(opened), b"out"))
        await opened.remove()
        await opened.reap()
        assert walk(os.fsencode(outside)) == before
        await opened.restore()
        assert os.readlink(os.path.join(place_of(opened), b"out")) == os.fsencode(outside)
    assert walk(os.fsencode(outside)) == before


async def test_forced_ignored_files_and_a_nested_repository_rest_whole_and_come_back(world: World) -> None:
    async with world.open() as opened:
        await overgrown(opened)
        before = seen(opened)
        done = await opened.remove(mode="force")
        assert isinstance(done.lane, Quarantined)
        assert done.lane.consent is not None
        assert set(done.lane.consent.paths) == {"build", "trace.log"}  # the repository is captured
        await opened.restore()
        assert seen(opened) == before


async def test_consent_covers_what_it_names_and_the_rest_comes_back(world: World) -> None:
    async with world.open() as opened:
        await overgrown(opened)
        before = walk(place_of(opened))
        await opened.remove(mode="force")
        await opened.reap()
        await opened.restore()
        lost = {path for path in before if path.split(b"/")[0] in (b"build", b"trace.log")}
        assert walk(place_of(opened)) == {path: each for path, each in before.items() if path not in lost}
