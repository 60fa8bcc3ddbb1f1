"""One reading for both steps: what Explain has read, Destroy need not, as long as nothing was touched."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.performer import deletion
from adapters.performer.performer import GitPerformer
from adapters.snapshots.explain import explain
from domain.effects import Destroy, Destroyed, Explain, Explained, Unexplained
from tests.sagas.trees import walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from trio.testing import MockClock

    from adapters.git.door import Git
    from domain.effects import Effect, Outcome
    from domain.states import Basis
    from tests.adapters.snapshots.lanes import Lane


class Reaping:
    """A captured lane and one service that reaps it."""

    def __init__(self, lane: Lane, basis: Basis) -> None:
        self.lane, self.basis, self.place = lane, basis, lane.place
        self._means = lane.means
        self._performer = GitPerformer(self._means)

    @property
    def door(self) -> Git:
        return self._means.git

    async def perform(self, effect: Effect) -> Outcome:
        return await self._performer.perform(effect)

    async def explain(self) -> Destroy:
        """Explains the tree, and returns the deletion that follows."""
        where = {"repository": self.lane.repository}
        outcome = await self.perform(Explain(place=self.place, basis=self.basis, **where))
        assert isinstance(outcome, Explained), outcome
        return Destroy(place=self.place, basis=self.basis, digest=outcome.digest, **where)

    async def refused(self, effect: Destroy) -> Unexplained:
        outcome = await self.perform(effect)
        assert isinstance(outcome, Unexplained), outcome
        return outcome


@pytest.fixture
async def reaping(lane: Lane) -> Reaping:
    lane.world.dirty(lane.path)
    return Reaping(lane, lane.basis(await lane.captured()))


async def started(reaping: Reaping, effect: Destroy) -> int:
    before = reaping.door.started
    assert await reaping.perform(effect) == Destroyed()
    return reaping.door.started - before


async def test_what_was_just_explained_is_deleted_without_asking_git_again(reaping: Reaping) -> None:
    assert await started(reaping, await reaping.explain()) == 0
    assert not os.path.lexists(reaping.lane.path)


async def test_another_process_reads_everything_itself(reaping: Reaping) -> None:
    effect = await reaping.explain()
    assert await started(Reaping(reaping.lane, reaping.basis), effect) > 0


async def test_an_explanation_of_something_else_serves_no_deletion(reaping: Reaping) -> None:
    effect = await reaping.explain()
    other = Destroy(
        repository=effect.repository, place=effect.place, basis=reaping.lane.basis(None), digest=effect.digest
    )
    assert (await reaping.refused(other)).cause == "changed_while_reaping"
    assert await started(reaping, effect) > 0


async def test_an_explanation_serves_one_deletion(reaping: Reaping) -> None:
    effect = await reaping.explain()
    reaping.lane.write(b"late", b"late\n")
    await reaping.refused(effect)
    os.unlink(reaping.lane.at(b"late"))
    assert await started(reaping, effect) > 0


async def test_an_explanation_does_not_serve_for_long(lane: Lane, mock_clock: MockClock) -> None:
    reaping = Reaping(lane, lane.basis(await lane.captured()))
    effect = await reaping.explain()
    mock_clock.jump(deletion.FRESH + 1)
    assert await started(reaping, effect) > 0


async def test_only_the_last_explanations_are_kept(reaping: Reaping) -> None:
    waiting = deletion._WAITING
    for _ in range(2):
        await reaping.explain()
    assert len(waiting[reaping._means]) == 1
    before = len(waiting)
    await started(reaping, await reaping.explain())
    assert not waiting[reaping._means]
    assert len(waiting) == before


def write_and_put_times_back(lane: Lane) -> None:
    before = os.stat(lane.at(b"untracked"))
    lane.write(b"untracked", b"UNtracked untracked")
    os.utime(lane.at(b"untracked"), ns=(before.st_atime_ns, before.st_mtime_ns))


def lead_elsewhere(lane: Lane) -> None:
    os.unlink(lane.at(b"link"))
    os.symlink(b"elsewhere", lane.at(b"link"))


CHANGES: dict[str, tuple[bytes, Callable[[Lane], object]]] = {
    "bytes": (b"untracked", write_and_put_times_back),
    "mode": (b"secret", lambda lane: os.chmod(lane.at(b"secret"), 0o640)),
    "new": (b"deep/late", lambda lane: lane.write(b"deep/late", b"late\n")),
    "link": (b"link", lead_elsewhere),
}


@pytest.mark.parametrize(("path", "change"), CHANGES.values(), ids=list(CHANGES))
async def test_what_changes_after_the_explanation_is_kept(
    reaping: Reaping, path: bytes, change: Callable[[Lane], object]
) -> None:
    effect = await reaping.explain()
    change(reaping.lane)
    outcome = await reaping.refused(effect)
    assert (outcome.cause, outcome.paths) == ("changed_while_reaping", (path.decode(),))
    assert {b".git", path} <= walk(reaping.lane.path).keys()


def lose_the_ref(lane: Lane) -> None:
    lane.git("update-ref", "-d", "refs/laneyard/snapshots/one")


def damage_the_manifest(lane: Lane) -> None:
    with open(os.path.join(lane.directory(), b"manifest.json"), "ab") as file:
        file.write(b" ")


DAMAGES: dict[str, Callable[[Lane], object]] = {
    "ref": lose_the_ref,
    "manifest": damage_the_manifest,
    "commit": lambda lane: lane.git("commit", "-q", "-m", "late"),
    "stage": lambda lane: lane.git("add", "untracked"),
    "private ref": lambda lane: lane.git("update-ref", "refs/worktree/mine", "HEAD"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=list(DAMAGES))
async def test_a_snapshot_or_registration_that_changed_since_deletes_nothing(
    reaping: Reaping, damage: Callable[[Lane], object]
) -> None:
    effect = await reaping.explain()
    before = walk(reaping.lane.path)
    damage(reaping.lane)
    assert (await reaping.refused(effect)).cause == "changed_while_reaping"
    assert walk(reaping.lane.path) == before


async def test_a_file_written_just_before_it_was_read_is_read_again(
    lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane.write(b"fresh", b"fresh\n")
    reaping = Reaping(lane, lane.basis(await lane.captured()))
    monkeypatch.setattr(explain, "_write_back", lambda root: os.utime(lane.at(b"fresh")))
    await reaping.explain()
    (kept,) = deletion._WAITING[reaping._means].values()
    assert b"fresh" not in kept.explanation.looks
