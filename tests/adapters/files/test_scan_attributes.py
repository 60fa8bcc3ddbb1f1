"""Extended attributes are part of an entry, and of the digest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import pytest

from adapters.files.blob import blob_oid
from adapters.files.scan import Entry, Told, digest, scan

if TYPE_CHECKING:
    from pathlib import Path


def seen(root: Path, algorithm: str | None = "sha1") -> dict[bytes, Entry]:
    return {entry.path: entry for entry in scan(os.fsencode(root), algorithm)}


def mark(path: Path, name: str = "user.laneyard", value: bytes = b"\0\xff") -> None:
    try:
        os.setxattr(path, name, value, follow_symlinks=False)
    except OSError:
        pytest.skip("the file system has no such attributes")


def test_attributes_of_files_and_directories_are_read_in_order(root: Path) -> None:
    (root / "file").write_bytes(b"hello\n")
    (root / "directory").mkdir()
    mark(root / "directory", "user.b", b"")
    mark(root / "directory", "user.a\udcff", b"1")
    mark(root / "file")
    found = seen(root)
    assert found[b"directory"].xattrs == ((b"user.a\xff", b"1"), (b"user.b", b""))
    assert found[b"file"].xattrs == ((b"user.laneyard", b"\0\xff"),)


def test_attributes_of_a_link_are_its_own_and_not_its_targets(root: Path) -> None:
    (root / "file").write_bytes(b"hello\n")
    mark(root / "file")
    (root / "link").symlink_to("file")
    assert seen(root)[b"link"].xattrs == ()
    if os.geteuid() == 0:
        mark(root / "link", "trusted.laneyard")
        assert seen(root)[b"link"].xattrs == ((b"trusted.laneyard", b"\0\xff"),)


def test_without_an_algorithm_no_attributes_are_read(root: Path) -> None:
    (root / "file").write_bytes(b"hello\n")
    mark(root / "file")
    assert seen(root, None)[b"file"].xattrs == ()


def test_the_digest_follows_names_and_values_of_attributes(root: Path) -> None:
    (root / "file").write_bytes(b"hello\n")
    entry = seen(root)[b"file"]
    pairs = [(), ((b"a", b"bc"),), ((b"ab", b"c"),), ((b"a", b"b"), (b"c", b"")), ((b"a", b""), (b"bc", b""))]
    digests = {digest([replaced(entry, xattrs)]) for xattrs in pairs}
    assert len(digests) == len(pairs)


def replaced(entry: Entry, xattrs: tuple[tuple[bytes, bytes], ...]) -> Entry:
    return msgspec.structs.replace(entry, xattrs=xattrs)


def test_an_entry_without_attributes_has_the_digest_of_format_1(root: Path) -> None:
    (root / "file").write_bytes(b"hello\n")
    (root / "file").chmod(0o644)
    assert digest(seen(root).values()) == FORMAT_1


def test_what_is_known_is_neither_read_nor_asked_for_attributes(root: Path) -> None:
    for name in ("both", "neither", "oid", "alone", "left"):
        (root / name).write_bytes(b"hello\n")
        mark(root / name)
    answers: dict[bytes, Told] = {
        b"both": ("told", ((b"told", b""),)),
        b"neither": None,
        b"oid": ("told", None),
        b"alone": "told",
        b"left": (None, None),
    }
    found = {e.path: e for e in scan(os.fsencode(root), "sha1", known=lambda path, status: answers[path])}
    own = ((b"user.laneyard", b"\0\xff"),)
    assert {path: (each.oid, each.xattrs) for path, each in found.items()} == {
        b"alone": ("told", own),
        b"both": ("told", ((b"told", b""),)),
        b"left": (None, own),
        b"neither": (blob_oid("sha1", b"hello\n"), own),
        b"oid": ("told", own),
    }


def test_a_file_of_the_length_at_which_reading_changes_is_read_whole(root: Path) -> None:
    for size in ((1 << 20) - 1, 1 << 20):
        (root / str(size)).write_bytes(b"x" * size)
    assert {e.oid for e in seen(root).values()} == {
        blob_oid("sha1", b"x" * int(e.path)) for e in seen(root).values()
    }


# The SHA-256 of `laneyard-tree-1`, a line feed, and `4 file 644 6 ce0136…464a file`.
FORMAT_1 = "c3c7663d349b77d99d02667f80b548e91f6d09276d9f10b0aeef19145df78f27"
