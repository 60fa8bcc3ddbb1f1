"""What an index recorded of each file is what git says that it recorded."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from adapters.git.errors import IndexUnreadable
from adapters.git.index import read_index
from adapters.git.stats import mode_of, oid_of, stats
from tests.adapters.git.test_index import fill, odd_names, raw, sealed

if TYPE_CHECKING:
    from pathlib import Path

    from tests.adapters.git.conftest import Workshop

DEBUG = re.compile(
    rb"  ctime: (\d+):(\d+)\n  mtime: (\d+):(\d+)\n  dev: (\d+)\tino: (\d+)\n"
    rb"  uid: (\d+)\tgid: (\d+)\n  size: (\d+)\t"
)


def filled(workshop: Workshop, kind: str = "sha1") -> Path:
    root = workshop.repository("root", f"--object-format={kind}")
    for name in ("a", "b/c", "b/d", "e"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(name)
    (root / "link").symlink_to("a")
    (root / "e").chmod(0o755)
    workshop.git(root, "add", ".")
    return root


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize(("kind", "oid_bytes"), [("sha1", 20), ("sha256", 32)])
def test_the_recorded_status_is_the_files(
    workshop: Workshop, version: str, kind: str, oid_bytes: int
) -> None:
    root = filled(workshop, kind)
    workshop.git(root, "update-index", "--index-version", version)
    if version == "3":
        workshop.git(root, "update-index", "--skip-worktree", "a")
    read = stats(raw(root), oid_bytes)
    assert read.version == int(version)
    entries = {path: read.layout.unpack(fixed) for path, fixed in read.entries.items()}
    assert {path: mode_of(fixed) for path, fixed in read.entries.items()} == {
        path: each[6] for path, each in entries.items()
    }
    for path, each in entries.items():
        status = os.lstat(os.path.join(os.fsencode(root), path))
        assert each[0] * 10**9 + each[1] == status.st_ctime_ns
        assert each[2] * 10**9 + each[3] == status.st_mtime_ns
        assert each[5] == status.st_ino & 0xFFFFFFFF
        assert each[7:10] == (status.st_uid, status.st_gid, status.st_size)
    assert {path: each[6] for path, each in entries.items()} == {
        b"a": 0o100644,
        b"b/c": 0o100644,
        b"b/d": 0o100644,
        b"e": 0o100755,
        b"file": 0o100644,
        b"link": 0o120000,
    }
    shown = DEBUG.findall(workshop.git(root, "ls-files", "--debug"))
    assert [tuple(map(int, each)) for each in shown] == [
        (*each[:6], *each[7:10]) for each in entries.values()
    ]


@pytest.mark.parametrize("version", ["2", "4"])
def test_names_of_all_kinds_are_read_as_by_the_other_reader(workshop: Workshop, version: str) -> None:
    root = workshop.repository("root")
    oid = workshop.git(root, "hash-object", "-w", "--stdin").decode().strip()
    fill(workshop, root, odd_names(), oid)
    workshop.git(root, "update-index", "--index-version", version)
    entries = stats(raw(root), 20).entries
    assert [(path, oid_of(fixed)) for path, fixed in entries.items()] == [
        (each.path, each.oid) for each in read_index(raw(root), 20).entries
    ]


def test_what_is_unmerged_or_only_intended_is_told_apart(workshop: Workshop) -> None:
    root = filled(workshop)
    (root / "new").write_text("new")
    workshop.git(root, "add", "--intent-to-add", "new")
    oid = workshop.git(root, "rev-parse", ":a").decode().strip()
    lines = f"0 {'0' * 40}\ta\n100644 {oid} 1\ta\n100644 {oid} 2\ta\n"
    workshop.git(root, "update-index", "--index-info", stdin=lines.encode())
    read = stats(raw(root), 20)
    assert (set(read.intents), read.unmerged) == ({b"new"}, (oid, oid))
    assert b"new" in read.entries
    assert b"a" not in read.entries


def test_an_extension_is_read_whole(workshop: Workshop) -> None:
    root = filled(workshop)
    tree = workshop.git(root, "write-tree").decode().strip()
    known = stats(raw(root), 20).sections[b"TREE"]
    assert known.startswith(b"\x006 1\n" + bytes.fromhex(tree))


def test_an_index_that_breaks_off_is_unreadable_wherever(workshop: Workshop) -> None:
    root = filled(workshop)
    for version in ("2", "4"):
        workshop.git(root, "update-index", "--index-version", version)
        body = raw(root)[:-20]
        with pytest.raises(IndexUnreadable, match="checksum"):
            stats(body + bytes(19) + b"\x01", 20)
        whole = {len(body), len(body) - 8 - len(stats(raw(root), 20).sections.get(b"TREE", b""))}
        for end in range(12, len(body) + 1):
            assert is_read(sealed(body[:end])) == (end in whole)


def is_read(data: bytes) -> bool:
    try:
        stats(data, 20)
    except IndexUnreadable:
        return False
    return True
