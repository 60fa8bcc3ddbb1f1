"""What was read and allowed before goes after a look, and only while it is what was read."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING

import pytest

from adapters.files import demolish as demolishing
from adapters.files.demolish import demolish
from adapters.files.identity import identify
from adapters.files.scan import Entry, scan
from tests.adapters.volumes import volume

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from adapters.files.demolish import Demolition


def looks(root: Path) -> dict[bytes, Entry]:
    return {entry.path: entry for entry in scan(os.fsencode(root), "sha1")}


def nothing(entry: Entry) -> bool:
    return False


def destroy(root: Path, known: dict[bytes, Entry], allowed: Callable[[Entry], bool] = nothing) -> Demolition:
    path = os.fsencode(root)
    return demolish(path, identify(path), "sha1", allowed, None, known)


@pytest.fixture(params=["any", "telling", "silent"])
def tree(request: pytest.FixtureRequest, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree on whatever file system there is, taken as one whose times tell of every write, or as none."""
    system = demolishing._file_system
    descriptor = os.open(root, os.O_RDONLY)
    here = system(descriptor)
    os.close(descriptor)
    if request.param == "telling":
        monkeypatch.setattr(demolishing, "TELLING", frozenset((here,)))
    elif request.param == "silent":
        monkeypatch.setattr(demolishing, "TELLING", frozenset())
    (root / "a/b").mkdir(parents=True)
    for name in (".git", "a/one", "a/b/two", "three"):
        (root / name).write_bytes(name.encode())
    (root / "link").symlink_to("three")
    return root


def test_what_is_as_it_was_goes_and_nobody_is_asked(tree: Path) -> None:
    known = looks(tree)
    asked = []

    def ask(entry: Entry) -> bool:
        asked.append(entry.path)
        return entry.path == b".git"

    done = destroy(tree, known, ask)
    assert (done.entries, done.bytes, done.refused_count, done.failed_count) == (8, 26, 0, 0)
    assert asked == [b".git"]
    assert not tree.exists()


def put_times_back(path: Path, before: os.stat_result) -> None:
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns), follow_symlinks=False)


def test_a_file_that_was_written_to_is_asked_about_whatever_its_time_says(tree: Path) -> None:
    known, before = looks(tree), (tree / "a/one").stat()
    (tree / "a/one").write_bytes(b"a/two")
    put_times_back(tree / "a/one", before)
    assert destroy(tree, known).refused == (b"a/one",)
    assert (tree / "a/one").read_bytes() == b"a/two"


def test_another_file_under_the_name_is_asked_about(tree: Path) -> None:
    known, before = looks(tree), (tree / "three").stat()
    (tree / "other").write_bytes(b"other")
    put_times_back(tree / "other", before)
    os.rename(tree / "other", tree / "three")
    assert destroy(tree, known).refused == (b"three",)


def test_a_mode_that_was_changed_is_asked_about(tree: Path) -> None:
    known = looks(tree)
    (tree / "a/one").chmod(0o600)
    (tree / "a/b").chmod(0o700)
    assert destroy(tree, known).refused == (b"a/b", b"a/one")


def test_what_is_new_is_asked_about(tree: Path) -> None:
    known = looks(tree)
    (tree / "a/new").touch()
    assert destroy(tree, known).refused == (b"a/new",)
    assert (tree / "a/new").exists()
    assert (tree / ".git").exists()


def test_a_directory_in_a_files_place_is_asked_about(tree: Path) -> None:
    known = looks(tree)
    (tree / "three").unlink()
    (tree / "three").mkdir()
    assert destroy(tree, known).refused == (b"three",)


def test_the_second_name_of_a_file_is_read_again_when_the_first_is_gone(tree: Path) -> None:
    os.link(tree / "three", tree / "twin")
    known = looks(tree)
    asked = []

    def ask(entry: Entry) -> bool:
        asked.append(entry.path)
        return entry.oid == known[b"three"].oid or entry.path == b".git"

    assert destroy(tree, known, ask).refused == ()
    assert asked == [b"twin", b".git"]


def test_a_swap_while_it_goes_leads_nowhere(tree: Path, tmp_path: Path) -> None:
    sentinel = tmp_path / "sentinel"
    sentinel.mkdir()
    (sentinel / "one").write_bytes(b"a/one")
    known = looks(tree)
    (tree / "a").rename(tmp_path / "moved")
    (tree / "a").symlink_to(sentinel)
    assert destroy(tree, known).refused == (b"a",)
    assert (sentinel / "one").exists()


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    with volume(tmp_path / "volume") as path:
        (path / "root").mkdir()
        yield path / "root"


def test_a_write_through_a_mapping_that_changes_no_time_is_seen(in_memory: Path) -> None:
    (in_memory / "file").write_bytes(b"old" * 2_000)
    with (in_memory / "file").open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[0:3] = b"OLD"
        known, before = looks(in_memory), (in_memory / "file").stat()
        mapped[0:3] = b"new"
        after = (in_memory / "file").stat()
        assert (after.st_mtime_ns, after.st_ctime_ns) == (before.st_mtime_ns, before.st_ctime_ns)
        assert destroy(in_memory, known).refused == (b"file",)
    assert (in_memory / "file").read_bytes().startswith(b"new")


@pytest.mark.slow
@pytest.mark.usefixtures("ten_thousand_files")
def test_ten_thousand_files_that_are_known_go(root: Path) -> None:
    assert destroy(root, looks(root)).entries == 10_101
    assert not root.exists()
