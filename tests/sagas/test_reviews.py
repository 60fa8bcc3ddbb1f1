"""What a review finds, what is safe meanwhile, and that each of its ways leads out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import pytest

from adapters.api import lanes as listing
from adapters.api import showing
from adapters.api.answers import encoded
from adapters.yard.capturing import SnapshotNotMade
from domain.errors import Refusal
from domain.states import Active, NeedsReview, Reaped
from tests.sagas.scenarios import place_of, reaped, removed, resting
from tests.sagas.trees import write
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sagas.worlds import Open

pytestmark = pytest.mark.slow
# The registration that a restore has made has its index, and somebody's git is at work in it.
BUSY = """case " $* " in *" --no-checkout "*)
    git "$@" || exit
    git --git-dir="$MAIN/.git/worktrees/work" read-tree HEAD
    : >"$MAIN/.git/worktrees/work/index.lock"
    exit;; esac"""


def shape(opened: Open) -> dict[str, object]:
    told = msgspec.json.decode(encoded(showing.review(opened.yard.reader, opened.row()).document))
    assert isinstance(told, dict)
    return told


async def half_restored(world: World) -> bytes:
    """Leaves a restore that has failed with something of somebody's in its tree; returns the tree's place."""

    def notice(moment: str, step: str) -> None:
        if (moment, step) == ("before-effect", "Explain"):
            os.unlink(os.path.join(world.common, b"worktrees/work/index.lock"))
            write(os.path.join(place_of(opened), b"late"), b"late\n")

    async with world.open() as opened:
        await reaped(opened)
    world.fake(BUSY)
    async with world.open(notice) as opened:
        done = await opened.restore()
        assert isinstance(done.lane, NeedsReview)
        assert isinstance(done.lane.home, Reaped)
        place = place_of(opened)
    world.program = "git"
    return place


async def test_what_a_failed_restore_left_is_captured_before_it_goes(tmp_path: Path) -> None:
    world = World(tmp_path)
    place = await half_restored(world)
    async with world.open() as opened:
        told = shape(opened)
        assert (told["cause"], told["exits"]) == ("unexplained_entries", ["--resnapshot", "--discard"])
        assert "what a failed restore has left" in str(told["safe"])
        done = await opened.resnapshot()
        assert isinstance(done.lane, Reaped)
        assert not os.path.lexists(place)
        left = done.lane.record.left_of(1)
        whole = done.lane.record.editions[-1].snapshot_id
        assert left not in (None, whole)
        assert isinstance((await opened.restore()).lane, Active)
        assert not os.path.lexists(os.path.join(place, b"late"))
        await opened.remove()
        await opened.reap()
        restored = await opened.restore(edition=1, snapshot=left)
        assert any("not whole" in each for each in restored.warnings)
        with open(os.path.join(place, b"late"), "rb") as file:  # noqa: ASYNC230
            assert file.read() == b"late\n"
    assert await world.complaints() == []


async def test_what_a_failed_restore_left_is_discarded(tmp_path: Path) -> None:
    world = World(tmp_path)
    place = await half_restored(world)
    async with world.open() as opened:
        assert isinstance((await opened.discard()).lane, Reaped)
        assert not os.path.lexists(place)
        assert isinstance((await opened.restore()).lane, Active)
    assert await world.complaints() == []


async def test_somebody_in_the_place_of_a_deleted_tree_is_reviewed_and_leads_out(tmp_path: Path) -> None:
    world, places = World(tmp_path), list[bytes]()

    def notice(moment: str, step: str) -> None:
        if (moment, step) == ("before-effect", "Deregister"):
            write(os.path.join(places[0], b"theirs"), b"theirs\n")

    async with world.open(notice) as opened:
        await removed(opened)
        places.append(resting(opened))
        done = await opened.reap()
        assert isinstance(done.lane, NeedsReview)
        assert done.problem is not None
        assert done.problem[0] == "tree_present"
        told = shape(opened)
        assert (told["cause"], told["exits"]) == ("conflicting_paths", ["--discard"])
    theirs = os.path.join(places[0], b"theirs")
    async with world.open() as opened:
        assert isinstance((await opened.discard()).lane, NeedsReview)  # it is not ours
        assert os.path.exists(theirs)
        os.unlink(theirs)
        os.rmdir(places[0])
        assert isinstance((await opened.discard()).lane, Reaped)
        assert isinstance((await opened.restore()).lane, Active)
    assert await world.complaints() == []


async def test_a_review_is_told_by_the_list_and_by_show(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await removed(opened)
        write(os.path.join(resting(opened), b"late"), b"late\n")
        assert isinstance((await opened.reap()).lane, NeedsReview)
        rows = opened.yard.reader.lanes()
        listed = listing.list_lanes(rows, None, None, include_gone=False)
        [told] = [each for each in msgspec.json.decode(encoded(listed.document)) if each["slug"] == "work"]
        assert (told["cause"], told["detail"]) == ("unexplained_entries", "unexplained_entries")
        assert "work needs review: the tree holds what no snapshot, commit or consent has" in str(listed.text)
        shown = showing.show(opened.yard.reader, opened.row(), None)
        told = msgspec.json.decode(encoded(shown.document))
        assert told["exits"] == ["--put-back", "--resnapshot", "--discard"]
        assert told["safe"] in str(shown.text)
        assert "cause" not in msgspec.json.decode(
            encoded(showing.show(opened.yard.reader, opened.row("primary"), None).document)
        )


async def test_what_is_refused_leaves_nothing_to_review(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.open() as opened:
        await opened.create()
        write(os.path.join(place_of(opened), b"precious.log"), b"x")
        write(os.path.join(world.common, b"info/exclude"), b"*.log\n/.laneyard/\n")
        await refused(opened, opened.remove())
        await opened.remove(mode="force")
        os.mkfifo(os.path.join(resting(opened), b"pipe"))
        await refused(opened, opened.resnapshot())
        await refused(opened, opened.restore(edition=7))


async def refused(opened: Open, asked: object) -> None:
    """Awaits a command that is refused, and finds the log and the lane as they were."""
    before, state = opened.yard.reader.head().position, opened.state()
    with pytest.raises((Refusal, SnapshotNotMade)):
        await asked  # type: ignore[misc]
    assert (opened.yard.reader.head().position, opened.state()) == (before, state)
