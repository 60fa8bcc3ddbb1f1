"""Which lane is meant: by slug, by id, by a path from somewhere, and never by what is no path at all."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from adapters.api import resolve
from adapters.store.journal import Journal
from adapters.store.reader import Reader
from domain.errors import AmbiguousLane, NoSuchLane
from domain.events import CreationFailed, CreationUndone
from domain.paths import pack
from tests.adapters.store.lives import REPOSITORY, entry, noon, planned

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIRST, SECOND, UNDONE = "aaaa-1", "aaaa-2", "bbbb-1"
FAILED = CreationFailed(step="checkout", code="git_failed", reason="full", left=None, branch_made=False)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """Two lanes with directories below `tmp_path`, and one that never came to be."""
    store = bytes(tmp_path / "journal.db")
    with closing(Journal(store, noon)) as journal:
        for lane in (FIRST, SECOND):
            tree = tmp_path / "trees" / lane
            (tree / "deep").mkdir(parents=True)
            opened = replace(planned(lane), path=pack(bytes(tree)))
            journal.submit(entry(lane, opened)).result()
        undone = CreationUndone(code="git_failed", reason="full")
        journal.submit(entry(UNDONE, planned(UNDONE), FAILED, undone)).result()
    with Reader(store) as reader:
        yield reader


@pytest.mark.parametrize("wanted", ["fix-aaaa-1", FIRST])
def test_a_lane_is_meant_by_its_slug_and_by_its_id(reader: Reader, wanted: str) -> None:
    found = resolve.find(reader, wanted, REPOSITORY, None)
    assert (found.id, found.slug, found.repository) == (FIRST, "fix-aaaa-1", REPOSITORY)


def test_the_beginning_of_an_id_may_mean_several(reader: Reader) -> None:
    with pytest.raises(AmbiguousLane):
        resolve.find(reader, "aaaa", None, None)


def test_a_slug_means_a_lane_of_the_repository_only(reader: Reader) -> None:
    with pytest.raises(NoSuchLane):
        resolve.find(reader, "fix-aaaa-1", "/srv/another/.git", None)
    assert resolve.find(reader, FIRST, "/srv/another/.git", None).id == FIRST


@pytest.mark.parametrize("wanted", ["aaaa-2/deep", "./aaaa-2", "aaaa-1/../aaaa-2", "aaaa-2/not/there"])
def test_a_relative_path_is_taken_from_where_the_caller_is(
    reader: Reader, tmp_path: Path, wanted: str
) -> None:
    assert resolve.find(reader, wanted, None, bytes(tmp_path / "trees")).id == SECOND


def test_a_single_word_is_a_path_only_where_such_a_directory_is(reader: Reader, tmp_path: Path) -> None:
    assert resolve.find(reader, "deep", None, bytes(tmp_path / "trees" / SECOND)).id == SECOND
    with pytest.raises(NoSuchLane):
        resolve.find(reader, "shallow", None, bytes(tmp_path / "trees" / SECOND))


def test_without_a_place_to_start_from_only_absolute_paths_are_meant(
    reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path / "trees")
    with pytest.raises(NoSuchLane):
        resolve.find(reader, "./aaaa-2", None, None)
    assert resolve.find(reader, str(tmp_path / "trees" / SECOND), None, None).id == SECOND


@pytest.mark.parametrize(
    "wanted",
    ["", "/\0", "a/\0", "\udcff", "a\ud800/x", chr(0xD800), "/" * 9000, "x" * 9000 + "/", "ü"],
)
@pytest.mark.parametrize("undone", [False, True])
def test_what_can_be_no_path_means_no_lane(
    reader: Reader, tmp_path: Path, wanted: str, *, undone: bool
) -> None:
    for near in (None, bytes(tmp_path), bytes(tmp_path) + b"\0"):
        with pytest.raises(NoSuchLane):
            resolve.find(reader, wanted, None, near, undone=undone)


def test_a_path_that_is_not_utf_8_is_found(tmp_path: Path) -> None:
    tree, store = os.path.join(bytes(tmp_path), b"caf\xe9"), bytes(tmp_path / "journal.db")
    os.mkdir(tree)
    with closing(Journal(store, noon)) as journal:
        journal.submit(entry(FIRST, replace(planned(FIRST), path=pack(tree)))).result()
    with Reader(store) as reader:
        assert resolve.find(reader, "caf\udce9", None, bytes(tmp_path)).id == FIRST


def test_a_lane_that_never_came_to_be_is_meant_only_where_its_events_are(reader: Reader) -> None:
    with pytest.raises(NoSuchLane):
        resolve.find(reader, UNDONE, None, None)
    found = resolve.find(reader, UNDONE, None, None, undone=True)
    assert (found.id, found.slug, found.repository) == (UNDONE, "fix-bbbb-1", REPOSITORY)
    with pytest.raises(NoSuchLane):
        resolve.find(reader, "fix-bbbb-1", None, None, undone=True)
