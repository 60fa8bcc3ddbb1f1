"""An index is given the stat data of other files, and git believes it; whatever else it says is kept."""

from __future__ import annotations

import hashlib
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from adapters.git.errors import IndexUnreadable
from adapters.git.index import read_index
from adapters.git.restamp import SplitIndex, restamp, stamp, untouched

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.adapters.git.conftest import Workshop

OLD = 1_500_000_000


def copied(root: Path) -> Path:
    """Returns a copy of a repository whose files have other inodes, and whose index names the old ones."""
    copy = root.with_name("copy")
    shutil.copytree(root, copy, symlinks=True)
    return copy


def stamps_in(root: Path) -> Callable[[bytes], bytes | None]:
    def stamp_of(path: bytes) -> bytes | None:
        try:
            return stamp(os.lstat(os.path.join(os.fsencode(root), path)))
        except FileNotFoundError:
            return None

    return stamp_of


def populated(workshop: Workshop, *options: str) -> Path:
    """Makes a repository with entries of every plain kind, all of them old."""
    root = workshop.repository("root", *options)
    (root / "sub").mkdir()
    (root / "sub" / "program").write_text("#!/bin/sh\n")
    (root / "sub" / "program").chmod(0o755)
    (root / "sub" / "program with a longer name").write_text("two\n")
    (root / ("x" * 200)).write_text("")
    (root / "link").symlink_to("file")
    workshop.git(root, "add", ".")
    for path in root.rglob("*"):
        if ".git" not in path.parts:
            os.utime(path, (OLD, OLD), follow_symlinks=False)
    workshop.git(root, "update-index", "-q", "--refresh")
    return root


def renewed(workshop: Workshop, root: Path, oid_bytes: int = 20, *stale: bytes) -> bytes:
    """Writes the index anew for the files that are there, and returns what git then has to look at."""
    index = root / ".git" / "index"
    index.write_bytes(restamp(index.read_bytes(), oid_bytes, stamps_in(root), frozenset(stale)))
    return workshop.git(root, "diff-files", "--name-only", "-z")


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_git_believes_the_new_stat_data(workshop: Workshop, version: int, algorithm: str) -> None:
    root = populated(workshop, "--object-format", algorithm)
    workshop.git(root, "update-index", "--index-version", str(version))
    if version > 2:
        workshop.git(root, "update-index", "--skip-worktree", "file")
    copy = copied(root)
    assert workshop.git(copy, "diff-files", "--name-only") != b""
    listed = workshop.git(copy, "ls-files", "--stage", "-v", "-z")
    assert renewed(workshop, copy, 20 if algorithm == "sha1" else 32) == b""
    assert workshop.git(copy, "ls-files", "--stage", "-v", "-z") == listed
    assert workshop.git(copy, "fsck") == b""


def test_a_path_without_a_stamp_is_left_as_it_is(workshop: Workshop) -> None:
    root = populated(workshop)
    data = (root / ".git" / "index").read_bytes()
    assert restamp(data, 20, lambda path: None) == data


def test_a_changed_file_that_is_stale_is_looked_at_and_found(workshop: Workshop) -> None:
    root = populated(workshop)
    (root / "file").write_text("two\n")
    os.utime(root / "file", (OLD, OLD))
    copy = copied(root)
    assert renewed(workshop, copy, 20, b"file", b"link") == b"file\0link\0"
    workshop.git(copy, "update-index", "-q", "--refresh", check=False)
    assert workshop.git(copy, "diff-files", "--name-only", "-z") == b"file\0"


def test_a_stale_path_keeps_the_size_by_which_git_tells_that_it_is_another(workshop: Workshop) -> None:
    """Without it git would convert the file first, and find the line endings that it ignores."""
    root = populated(workshop)
    workshop.git(root, "config", "core.autocrlf", "input")
    (root / "file").write_bytes(b"one\r\n")
    copy = copied(root)
    before = workshop.git(root, "--no-optional-locks", "status", "--porcelain", "--", "file")
    renewed(workshop, copy, 20, b"file")
    assert workshop.git(copy, "--no-optional-locks", "status", "--porcelain", "--", "file") == before
    assert before != b""


def test_conflicts_submodules_and_flags_keep_what_they_had(workshop: Workshop) -> None:
    root = populated(workshop)
    oid = workshop.git(root, "hash-object", "-w", "file").decode().strip()
    told = f"160000 {oid} 0\tmodule\n" + "".join(f"100644 {oid} {stage}\ttorn\n" for stage in (1, 2, 3))
    workshop.git(root, "update-index", "--index-info", stdin=told.encode())
    workshop.git(root, "update-index", "--assume-unchanged", "file")
    (root / "torn").write_text("torn\n")
    (root / "module").mkdir()
    data = (root / ".git" / "index").read_bytes()
    asked: list[bytes] = []

    def stamp_of(path: bytes) -> bytes:
        asked.append(path)
        return stamp(os.lstat(os.path.join(os.fsencode(root), path)))

    made = restamp(data, 20, stamp_of)
    assert b"torn" not in asked
    assert b"module" not in asked
    assert read_index(made, 20) == read_index(data, 20)


def test_an_index_without_a_checksum_stays_without_one(workshop: Workshop) -> None:
    root = populated(workshop)
    data = (root / ".git" / "index").read_bytes()
    made = restamp(data[:-20] + bytes(20), 20, stamps_in(copied(root)))
    assert made[-20:] == bytes(20)
    assert made[:-20] != data[:-20]


def with_extension(data: bytes, name: bytes, body: bytes) -> bytes:
    whole = data[:-20] + name + len(body).to_bytes(4, "big") + body
    return whole + hashlib.sha1(whole).digest()


def test_what_a_monitor_has_said_is_left_out_and_other_extensions_stay(workshop: Workshop) -> None:
    root = populated(workshop)
    workshop.git(root, "write-tree")
    workshop.git(root, "-c", "index.threads=2", "update-index", "--force-write-index")
    data = (root / ".git" / "index").read_bytes()
    data = with_extension(data, b"FSMN", b"\0\0\0\2token\0")
    data = with_extension(data, b"ABCD", b"unheard-of")
    (root / ".git" / "index").write_bytes(data)
    assert renewed(workshop, root) == b""
    kept = (root / ".git" / "index").read_bytes()
    assert b"ABCD\0\0\0\x0aunheard-of" in kept
    assert b"TREE" in kept
    assert b"FSMN" not in kept


def test_a_split_index_is_said_to_be_one(workshop: Workshop) -> None:
    root = populated(workshop)
    workshop.git(root, "update-index", "--split-index")
    with pytest.raises(SplitIndex):
        restamp((root / ".git" / "index").read_bytes(), 20, stamps_in(root))


def test_a_sparse_index_keeps_its_directories(workshop: Workshop) -> None:
    root = populated(workshop)
    workshop.git(root, "commit", "-q", "-m", "second")
    workshop.git(root, "sparse-checkout", "set", "--cone", "--sparse-index")
    data = (root / ".git" / "index").read_bytes()
    assert b"sdir" in data
    assert renewed(workshop, root) == b""
    assert workshop.git(root, "status", "--porcelain") == b""


@pytest.mark.parametrize("cut", [1, 30, 60, 100])
def test_a_damaged_index_is_refused(workshop: Workshop, cut: int) -> None:
    data = (populated(workshop) / ".git" / "index").read_bytes()
    with pytest.raises(IndexUnreadable):
        restamp(data[:-cut], 20, lambda path: None)
    short = data[:-cut] + bytes(20)
    with pytest.raises(IndexUnreadable):
        restamp(short, 20, lambda path: None)


def test_what_was_touched_since_the_index_saw_it_is_told_from_what_was_not(workshop: Workshop) -> None:
    root = populated(workshop)
    (root / "file").write_text("two\n")
    data = (root / ".git" / "index").read_bytes()
    found = untouched(data, 20, stamps_in(root))
    assert found == {b"link", b"sub/program", b"sub/program with a longer name", b"x" * 200}
