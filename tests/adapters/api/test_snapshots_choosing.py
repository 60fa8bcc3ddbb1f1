"""Which snapshot is meant: by an id, its beginning, a lane, or an edition of it."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from adapters.api import choosing, snapshots
from adapters.api.choosing import UnknownSnapshot
from adapters.store.journal import Journal
from adapters.store.reader import Reader
from domain.errors import AmbiguousSnapshot, NoSuchEdition, NoSuchSnapshot
from domain.events import LaneSnapshotted, SnapshotPlanned
from domain.paths import unpack
from tests.adapters.store.lives import entry, life, noon, planned, snapshot
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sagas.worlds import Open


def changed(opened: Open, lane: str = "work", text: str = "x") -> None:
    """Leaves something new in the lane."""
    path = unpack(str(opened.row(lane)["path"])) + b"/new"
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


def find(opened: Open, wanted: str, key: str | None = None) -> choosing.Chosen:
    settings = opened.yard.settings
    return choosing.find(opened.yard.reader, settings.state_dir, wanted, key, None)


@pytest.mark.slow
async def test_a_lane_means_its_last_snapshot_and_an_edition_that_of_its_removal(tmp_path: Path) -> None:
    async with World(tmp_path).open() as opened:
        await opened.create()
        changed(opened)
        await opened.remove()
        await opened.restore()
        changed(opened)
        await opened.snapshot()
        first, last = (each.id for each in find(opened, "work").lane.snapshots)
        assert find(opened, "work").taken.id == last
        assert find(opened, "work@1").taken.id == first
        assert find(opened, str(opened.row()["id"])).taken.id == last
        assert find(opened, f"{opened.row()['path']}@1").taken.id == first
        assert find(opened, first[:8]).taken.id == find(opened, first).taken.id == first
        with pytest.raises(NoSuchEdition):
            find(opened, "work@2")


def told(home: Path, **lanes: tuple[str, ...]) -> Reader:
    """Returns a reader of a log in which each lane has been captured under these ids."""
    store = bytes(home / "journal.db")
    with closing(Journal(store, noon)) as journal:
        for slug, ids in lanes.items():
            taken = [
                fact
                for each in ids
                for fact in (
                    SnapshotPlanned(snapshot=each, tolerant=False),
                    LaneSnapshotted(snapshot=replace(snapshot(slug), id=each)),
                )
            ]
            _, *begun = life(slug)[:3]
            journal.submit(entry(slug, planned(slug, slug), *begun, *taken)).result()
    return Reader(store)


def snapshot_id(beginning: str) -> str:
    return f"{beginning:0<8}-0000-4000-8000-000000000000"


def test_a_beginning_that_more_than_one_has_is_ambiguous(tmp_path: Path) -> None:
    ids = (snapshot_id("abcd0"), snapshot_id("abcd1"))
    with told(tmp_path, work=ids) as reader:
        with pytest.raises(AmbiguousSnapshot) as refused:
            choosing.find(reader, bytes(tmp_path), "abcd", None, None)
        assert refused.value.candidates == ids
        assert choosing.find(reader, bytes(tmp_path), "abcd1", None, None).taken.id == ids[1]
        assert choosing.find(reader, bytes(tmp_path), ids[0], "/another/.git", None).taken.id == ids[0]
        with pytest.raises(NoSuchSnapshot):
            choosing.find(reader, bytes(tmp_path), "abcd1", "/another/.git", None)


def test_a_lane_goes_before_the_beginning_of_an_id(tmp_path: Path) -> None:
    with told(tmp_path, feed=(snapshot_id("1234"),), work=(snapshot_id("feedbeef"),)) as reader:
        assert choosing.find(reader, bytes(tmp_path), "feed", None, None).lane.slug == "feed"
        assert choosing.find(reader, bytes(tmp_path), "feedb", None, None).lane.slug == "work"


async def test_a_lane_without_a_snapshot_has_none_to_mean(tmp_path: Path) -> None:
    async with World(tmp_path).open() as opened:
        await opened.create()
        for wanted in ("work", "nobody", "nobody@1", "0000", "0" * 36, "../../etc", ""):
            with pytest.raises(UnknownSnapshot):
                find(opened, wanted)
        with pytest.raises(UnknownSnapshot):
            choosing.by_id(opened.yard.reader, opened.yard.settings.state_dir, "../x")


async def test_snapshots_are_listed_by_repository_and_by_lane(tmp_path: Path) -> None:
    async with World(tmp_path).open() as opened:
        await opened.create()
        await opened.create("other")
        for lane in ("work", "other"):
            changed(opened, lane)
            await opened.snapshot(lane)
        reader, key = opened.yard.reader, str(opened.row()["repository"])
        found = snapshots.listed(reader, None, None).document
        assert [each.slug for each in found] == ["work", "other"]  # type: ignore[attr-defined]
        assert snapshots.listed(reader, key, None).document == found
        assert snapshots.listed(reader, "/another/.git", None).document == []
        one = snapshots.listed(reader, key, str(opened.row("other")["id"])).document
        assert [each.slug for each in one] == ["other"]  # type: ignore[attr-defined]
        assert "other" in snapshots.listed(reader, key, None).text
