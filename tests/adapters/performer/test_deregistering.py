"""A registration goes when its tree has, and only if nobody has used git in it since it was captured."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from adapters.performer import proof
from adapters.performer.deletion import deregister
from domain.effects import (
    Deregister,
    Deregistered,
    Destroy,
    Destroyed,
    Explain,
    Explained,
    NotDone,
    Unexplained,
)
from domain.evidence import Consent
from tests.adapters.snapshots.lanes import REASON
from tests.sagas.trees import write

if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.effects import Outcome
    from domain.states import Basis
    from tests.adapters.snapshots.lanes import Lane


async def deleted(lane: Lane, basis: Basis) -> Deregister:
    """Deletes the lane's tree, and returns what comes next."""
    place, repository = lane.place, lane.repository
    explained = await lane.perform(Explain(repository=repository, place=place, basis=basis))
    assert isinstance(explained, Explained)
    effect = Destroy(repository=repository, place=place, basis=basis, digest=explained.digest)
    assert await lane.perform(effect) == Destroyed()
    return Deregister(repository=repository, place=place, reason=REASON)


async def done(lane: Lane, effect: Deregister) -> Outcome:
    return await deregister(lane.means, effect)  # in a process that has seen nothing of what was before


async def captured(lane: Lane) -> Basis:
    lane.world.dirty(lane.path)
    return lane.basis(await lane.captured())


async def test_what_nobody_has_touched_goes_once(lane: Lane) -> None:
    effect = await deleted(lane, await captured(lane))
    for _ in range(2):
        assert await done(lane, effect) == Deregistered()
        assert not os.path.lexists(lane.admin)


def in_admin(lane: Lane, *arguments: str) -> None:
    lane.world.git(lane.world.root, b"--git-dir=" + lane.admin, *arguments)


WORK: dict[str, Callable[[Lane], object]] = {
    "ref": lambda lane: in_admin(lane, "update-ref", "refs/worktree/mine", "HEAD"),
    "stage": lambda lane: in_admin(lane, "update-index", "--force-remove", "tool"),
    "head": lambda lane: write(os.path.join(lane.admin, b"HEAD"), b"1" * 40 + b"\n"),
    "file": lambda lane: write(os.path.join(lane.admin, b"BISECT_LOG"), b"# bad\n"),
}


@pytest.mark.parametrize("work", WORK.values(), ids=list(WORK))
async def test_what_somebody_has_done_there_since_is_kept(lane: Lane, work: Callable[[Lane], object]) -> None:
    effect = await deleted(lane, await captured(lane))
    work(lane)
    outcome = await done(lane, effect)
    assert isinstance(outcome, Unexplained)
    assert (outcome.cause, outcome.count) == ("registration_changed", len(outcome.paths))
    assert outcome.paths
    assert os.path.isdir(lane.admin)


async def test_a_snapshot_that_is_damaged_by_then_keeps_it(lane: Lane) -> None:
    effect = await deleted(lane, await captured(lane))
    os.unlink(os.path.join(lane.directory(), b"manifest.json"))
    outcome = await done(lane, effect)
    assert isinstance(outcome, NotDone)
    assert outcome.code == "snapshot_damaged"


async def test_a_consent_to_what_was_done_there_is_none_for_what_comes_next(lane: Lane) -> None:
    effect = await deleted(lane, await captured(lane))
    in_admin(lane, "update-ref", "refs/worktree/mine", "HEAD")
    outcome = await done(lane, effect)
    assert isinstance(outcome, Unexplained)
    assert outcome.paths == (".git/refs/worktree/mine",)
    agreed = replace(effect, consent=Consent(outcome.paths, "seen"))
    in_admin(lane, "update-ref", "refs/worktree/later", "HEAD")
    later = await done(lane, agreed)
    assert isinstance(later, Unexplained)
    assert later.paths == (".git/refs/worktree/later",)
    in_admin(lane, "update-ref", "-d", "refs/worktree/later")
    assert await done(lane, agreed) == Deregistered()


async def test_who_agrees_to_lose_all_is_not_held_by_what_was_proved_before(lane: Lane) -> None:
    effect = await deleted(lane, await captured(lane))
    os.unlink(os.path.join(lane.directory(), b"manifest.json"))
    in_admin(lane, "update-ref", "refs/worktree/mine", "HEAD")
    assert await done(lane, replace(effect, consent=Consent((".",), "seen"))) == Deregistered()


async def test_a_tree_without_a_snapshot_is_compared_with_its_commit(lane: Lane) -> None:
    effect = await deleted(lane, lane.basis(None))
    write(os.path.join(lane.admin, b"HEAD"), b"1" * 40 + b"\n")
    outcome = await done(lane, effect)
    assert isinstance(outcome, Unexplained)
    assert outcome.cause == "registration_changed"


async def test_a_proof_of_an_earlier_version_holds_nothing(lane: Lane) -> None:
    effect = await deleted(lane, await captured(lane))
    path = os.path.join(lane.admin, proof.NAME)
    with open(path, "rb") as file:  # noqa: ASYNC230
        first = file.readline()
    write(path, first)
    assert proof.of(effect.place) is None
    assert await done(lane, effect) == Deregistered()


async def test_a_proof_of_another_directory_says_nothing_of_this(lane: Lane) -> None:
    effect = await deleted(lane, await captured(lane))
    identity = replace(effect.place.identity, inode=effect.place.identity.inode + 1)
    assert proof.of(effect.place) is not None
    assert proof.of(replace(effect.place, identity=identity)) is None
