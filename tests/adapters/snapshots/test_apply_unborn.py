"""A lane whose HEAD was on a branch without a commit comes back, and HEAD is put on the branch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.files.durable import read_file
from domain.effects import Applied, FreeBranch, Freed, Joined, Rejoin
from tests.adapters.snapshots.applying import age, apply, fresh, look, refresh, stale_paths, told
from tests.adapters.snapshots.handmade import snapshot

if TYPE_CHECKING:
    from tests.adapters.snapshots.lanes import Lane


class TestAnUnbornBranch:
    """HEAD on a branch that has no commit yet."""

    @pytest.fixture
    def unborn(self, lane: Lane) -> Lane:
        lane.git("checkout", "-q", "--orphan", "new")
        lane.git("rm", "-q", "--cached", "sub/inner")
        return lane

    async def test_it_comes_back_and_head_is_put_on_it(self, unborn: Lane) -> None:
        age(unborn)
        refresh(unborn)
        before = look(unborn), told(unborn)
        taken = snapshot(unborn, unborn="refs/heads/new", stale=stale_paths(unborn))
        place = await fresh(unborn, taken)
        assert await apply(unborn, taken, place) == Applied(content=taken.content)
        rejoin = Rejoin(repository=unborn.repository, admin=place.admin, branch="refs/heads/new", head="")
        for _ in range(2):
            assert await unborn.perform(rejoin) == Joined(branch="refs/heads/new")
        assert (look(unborn), told(unborn)) == before

    async def test_a_branch_that_has_commits_by_now_is_left_alone(self, unborn: Lane) -> None:
        taken = snapshot(unborn, unborn="refs/heads/new")
        place = await fresh(unborn, taken)
        unborn.world.git(unborn.world.root, "branch", "new")
        rejoin = Rejoin(repository=unborn.repository, admin=place.admin, branch="refs/heads/new", head="")
        outcome = await unborn.perform(rejoin)
        assert isinstance(outcome, Joined)
        assert outcome.branch is None
        assert "has commits by now" in (outcome.why or "")

    async def test_a_branch_that_another_worktree_is_on_is_left_alone(self, unborn: Lane) -> None:
        taken = snapshot(unborn, unborn="refs/heads/new")
        place = await fresh(unborn, taken)
        unborn.world.git(unborn.world.root, "checkout", "-q", "--orphan", "new")
        rejoin = Rejoin(repository=unborn.repository, admin=place.admin, branch="refs/heads/new", head="")
        outcome = await unborn.perform(rejoin)
        assert isinstance(outcome, Joined)
        assert outcome.branch is None
        assert "in use" in (outcome.why or "")

    async def test_there_is_nothing_to_free(self, unborn: Lane) -> None:
        effect = FreeBranch(
            repository=unborn.repository, admin=unborn.place.admin, head="", branch="refs/heads/new"
        )
        assert await unborn.perform(effect) == Freed()
        assert read_file(os.path.join(unborn.admin, b"HEAD")) == b"ref: refs/heads/new\n"
