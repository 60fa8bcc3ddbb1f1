"""Making a worktree, finding what a killed attempt has left, and taking a registration out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from adapters.performer.checkout import find_ours
from domain.effects import CheckedOut, Deregister, Deregistered, NotDone, Unlock, Unlocked
from domain.paths import unpack
from tests.adapters.snapshots.lanes import REASON, elsewhere
from tests.sagas.trees import walk, write

if TYPE_CHECKING:
    from domain.effects import Checkout, Outcome
    from tests.adapters.snapshots.lanes import Lane

BRANCH = "refs/heads/fresh"


def fresh(lane: Lane, branch: str | None = BRANCH) -> Checkout:
    path = os.path.join(os.path.dirname(lane.path), b"fresh")
    return replace(lane.checking_out(lane.head(), branch), path=os.fsdecode(path))


def registrations(lane: Lane) -> set[bytes]:
    return set(os.listdir(os.path.join(lane.world.common, b"worktrees")))


async def made(lane: Lane, branch: str | None = BRANCH) -> CheckedOut:
    outcome = await lane.perform(fresh(lane, branch))
    assert isinstance(outcome, CheckedOut), outcome
    return outcome


async def test_a_worktree_is_made_locked_on_its_branch_and_out_of_sight(lane: Lane) -> None:
    outcome = await made(lane)
    path = unpack(outcome.place.path)
    assert outcome.head == lane.head()
    assert lane.world.git(path, "symbolic-ref", "HEAD") == BRANCH.encode() + b"\n"
    assert lane.world.git(path, "status", "--porcelain") == b""
    assert walk(unpack(outcome.place.admin))[b"locked"][2].strip() == REASON.encode()
    assert lane.world.git(lane.world.root, "status", "--porcelain") == b""


async def test_a_detached_worktree_is_empty_but_for_its_pointer(lane: Lane) -> None:
    outcome = await made(lane, None)
    assert walk(unpack(outcome.place.path)).keys() == {b".git"}


@pytest.mark.parametrize("branch", [BRANCH, None])
async def test_making_it_twice_is_making_it_once(lane: Lane, branch: str | None) -> None:
    first = await made(lane, branch)
    before = walk(unpack(first.place.path))
    assert await made(lane, branch) == first
    assert walk(unpack(first.place.path)) == before
    assert registrations(lane) == {b"work", b"fresh"}


async def test_an_attempt_that_got_as_far_as_the_branch_is_finished(lane: Lane) -> None:
    lane.git("update-ref", BRANCH, "HEAD")
    assert (await made(lane)).head == lane.head()


async def test_somebodys_branch_is_not_taken(lane: Lane) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "elsewhere")
    lane.git("branch", "fresh")
    effect = replace(fresh(lane), commit=lane.git("rev-parse", "HEAD~1").decode().strip())
    outcome = await lane.perform(effect)
    assert isinstance(outcome, NotDone)
    assert (outcome.code, outcome.left, outcome.branch_made) == ("branch_exists", None, False)
    assert lane.git("rev-parse", BRANCH) == lane.git("rev-parse", "HEAD")


async def test_somebodys_directory_is_not_taken(lane: Lane) -> None:
    path = unpack(fresh(lane).path)
    write(os.path.join(path, b"theirs"), b"theirs\n")
    outcome = await lane.perform(fresh(lane))
    assert isinstance(outcome, NotDone)
    assert (outcome.code, outcome.left) == ("path_in_use", None)
    assert walk(path)[b"theirs"][2] == b"theirs\n"


async def test_a_worktree_without_its_index_is_wrong_and_named_as_ours(lane: Lane) -> None:
    first = await made(lane)
    os.unlink(os.path.join(unpack(first.place.admin), b"index"))
    outcome = await lane.perform(fresh(lane))
    assert isinstance(outcome, NotDone)
    assert (outcome.code, outcome.left, outcome.branch_made) == ("wrong_checkout", first.place, True)


async def test_a_worktree_at_another_commit_is_wrong(lane: Lane) -> None:
    first = await made(lane)
    lane.world.git(unpack(first.place.path), "commit", "-q", "--allow-empty", "-m", "moved on")
    outcome = await lane.perform(fresh(lane))
    assert isinstance(outcome, NotDone)
    assert outcome.code == "wrong_checkout"


async def test_a_git_that_dies_half_way_tells_what_is_left(lane: Lane) -> None:
    lane.world.fake('case " $* " in *" worktree add "*) git "$@"; kill -9 $$; esac')
    outcome = await lane.perform(fresh(lane))
    assert isinstance(outcome, NotDone)
    assert (outcome.code, outcome.branch_made) == ("git_failed", True)
    assert outcome.left is not None
    assert outcome.left.path == fresh(lane).path
    lane.world.program = "git"
    assert isinstance(await lane.perform(fresh(lane)), CheckedOut)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({b"locked": REASON.encode()}, True),
        ({b"locked": REASON.encode(), b"gitdir": b""}, True),
        ({b"locked": REASON.encode(), b"gitdir": b"{path}/.git\n"}, True),
        ({b"locked": REASON.encode(), b"gitdir": b"/else/.git\n"}, False),
        ({b"locked": b"initializing", b"gitdir": b"{path}/.git\n"}, False),
        ({b"gitdir": b"{path}/.git\n"}, False),
        ({}, False),
    ],
    ids=["lock", "empty pointer", "pointer", "another path", "another lock", "no lock", "nothing"],
)
def test_ours_is_what_carries_our_lock_and_names_our_path_or_none_yet(
    lane: Lane, files: dict[bytes, bytes], found: bool
) -> None:
    path = unpack(fresh(lane).path)
    admin = os.path.join(lane.world.common, b"worktrees/fresh1")
    os.mkdir(admin)
    for name, data in files.items():
        write(os.path.join(admin, name), data.replace(b"{path}", path))
    assert find_ours(lane.world.common, path, REASON) == (admin if found else None)


def test_a_damaged_neighbour_hides_nothing(lane: Lane) -> None:
    path = unpack(fresh(lane).path)
    parent = os.path.join(lane.world.common, b"worktrees")
    os.makedirs(os.path.join(parent, b"fresh/locked"))
    write(os.path.join(parent, b"fresh1/locked"), REASON.encode() + b"\n")
    assert find_ours(lane.world.common, path, REASON) == os.path.join(parent, b"fresh1")


async def test_the_lock_is_taken_off_once_and_a_foreign_one_stays(lane: Lane) -> None:
    first = await made(lane)
    unlock = Unlock(repository=lane.repository, admin=first.place.admin, reason=REASON)
    assert [await lane.perform(unlock) for _ in range(2)] == [Unlocked(), Unlocked()]
    lock = os.path.join(unpack(first.place.admin), b"locked")
    for reason in (b"theirs\n", b""):
        write(lock, reason)
        outcome = await lane.perform(unlock)
        assert isinstance(outcome, NotDone)
        assert outcome.code == "foreign_lock"
        assert os.path.exists(lock)


async def test_a_registration_that_is_gone_has_no_lock(lane: Lane) -> None:
    lane.away()
    unlock = Unlock(repository=lane.repository, admin=os.fsdecode(lane.admin), reason=REASON)
    assert await lane.perform(unlock) == Unlocked()


def without_a_tree(lane: Lane) -> Deregister:
    effect = Deregister(repository=lane.repository, place=lane.place, reason=REASON)
    os.rename(lane.path, os.path.join(os.fsencode(lane.world.home), b"elsewhere"))
    write(os.path.join(lane.admin, b"locked"), REASON.encode() + b"\n")
    return effect


async def leaves_nothing(lane: Lane, effect: Deregister) -> None:
    outcome: Outcome = await lane.perform(effect)
    assert outcome == Deregistered()
    assert not os.path.lexists(lane.admin)
    assert b"work" not in lane.world.git(lane.world.root, "worktree", "list")
    assert lane.world.litter() == []


async def test_a_registration_is_taken_out_once(lane: Lane) -> None:
    effect = without_a_tree(lane)
    await leaves_nothing(lane, effect)
    await leaves_nothing(lane, effect)


@pytest.mark.parametrize("left", [b"HEAD", b"logs/HEAD", None])
async def test_a_registration_that_is_half_deleted_is_finished(lane: Lane, left: bytes | None) -> None:
    effect = without_a_tree(lane)
    retired = os.path.join(lane.world.common, b"laneyard/retired-work")
    os.makedirs(os.path.dirname(retired), exist_ok=True)
    os.rename(lane.admin, retired)
    for path, entry in walk(retired).items():
        if entry[0] == "file" and path != left:
            os.unlink(os.path.join(retired, path))
    await leaves_nothing(lane, effect)


async def test_a_tree_that_is_still_there_keeps_its_registration(lane: Lane) -> None:
    outcome = await lane.perform(Deregister(repository=lane.repository, place=lane.place, reason=REASON))
    assert isinstance(outcome, NotDone)
    assert outcome.code == "tree_present"
    assert os.path.isdir(lane.admin)


async def test_a_registration_that_somebody_locked_is_kept(lane: Lane) -> None:
    effect = without_a_tree(lane)
    write(os.path.join(lane.admin, b"locked"), b"theirs\n")
    outcome = await lane.perform(effect)
    assert isinstance(outcome, NotDone)
    assert outcome.code == "foreign_lock"
    assert os.path.isdir(lane.admin)


async def test_a_registration_whose_name_has_gone_to_another_worktree_is_kept(lane: Lane) -> None:
    effect = Deregister(
        repository=lane.repository, place=elsewhere(lane.place, lane.path + b"-before"), reason=REASON
    )
    assert await lane.perform(effect) == Deregistered()
    assert lane.git("rev-parse", "--show-toplevel").strip() == lane.path
