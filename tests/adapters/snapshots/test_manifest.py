"""A manifest is what was written, or it is damaged; nothing in between is believed."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import msgspec
import pytest

from adapters.git.parse import TreeEntry
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import (
    FORMAT,
    Expected,
    Held,
    Manifest,
    digest_of,
    load,
    parents,
    save,
)

if TYPE_CHECKING:
    from pathlib import Path

OID = "a" * 40
FILE, LINK, SUBMODULE = 0o100644, 0o120000, 0o160000


def manifest(*entries: Held, format_: int = FORMAT) -> Manifest:
    return Manifest(
        format=format_,
        id="one",
        lane="lane",
        repository="/repository",
        head=OID,
        branch=None,
        commit=OID,
        tree=OID,
        file_mode=0o644,
        directory_mode=0o755,
        entries=entries,
        registration=(),
        omitted=(),
        content="",
    )


@pytest.fixture
def directory(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path)


def test_what_is_saved_is_loaded_and_the_digest_is_of_the_file(directory: bytes) -> None:
    saved = manifest(Held("a%0Ab%FF", "file", 0o644, 3, OID))
    digest = save(directory, saved)
    assert load(directory, digest) == saved
    assert digest == digest_of(directory)
    with open(os.path.join(directory, b"manifest.json"), "rb") as file:
        assert hashlib.sha256(file.read()).hexdigest() == digest


def test_another_digest_than_the_logs_is_damage(directory: bytes) -> None:
    save(directory, manifest())
    with pytest.raises(SnapshotDamaged, match="not the one that was written"):
        load(directory, "0" * 64)


@pytest.mark.parametrize("data", [b"", b"{}", b"{", b'{"format": "one"}', b"\xff"])
def test_a_manifest_that_cannot_be_read_is_damage(directory: bytes, data: bytes) -> None:
    with open(os.path.join(directory, b"manifest.json"), "wb") as file:
        file.write(data)
    with pytest.raises(SnapshotDamaged, match="cannot be read"):
        load(directory, None)


def test_a_manifest_that_is_missing_is_damage(directory: bytes) -> None:
    with pytest.raises(SnapshotDamaged, match="No such file"):
        load(directory, None)


def test_a_format_that_is_unknown_is_refused_by_its_number(directory: bytes) -> None:
    digest = save(directory, manifest(format_=FORMAT + 1))
    with pytest.raises(SnapshotDamaged, match=f"format {FORMAT + 1}"):
        load(directory, digest)


def test_a_changed_bit_of_a_manifest_is_noticed(directory: bytes) -> None:
    digest = save(directory, manifest(Held("file", "file", 0o644, 3, OID)))
    path = os.path.join(directory, b"manifest.json")
    with open(path, "rb") as file:
        data = file.read()
    for at in range(0, len(data), 7):
        with open(path, "wb") as file:
            file.write(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(SnapshotDamaged):
            load(directory, digest)


def test_a_directory_that_only_leads_to_what_is_absent_is_not_expected() -> None:
    tree = {b"a/b/c": TreeEntry(FILE, OID), b"d": TreeEntry(FILE, OID)}
    expected = Expected(manifest(Held("a/b/c", "absent", 0, 0, None)), tree)
    assert expected.directories == set()
    assert list(expected.wanted()) == [b"d"]


def test_a_submodule_that_is_not_checked_out_is_an_expected_directory() -> None:
    expected = Expected(manifest(), {b"sub/module": TreeEntry(SUBMODULE, OID)})
    assert expected.directories == {b"sub", b"sub/module"}
    assert expected.wanted()[b"sub/module"].kind == "directory"


def test_a_directory_comes_before_what_is_in_it_whatever_the_names() -> None:
    tree = {path: TreeEntry(FILE, OID) for path in (b"a-b", b"a/b", b"a.b", b"a/b-c/d", b"a/b.c")}
    wanted = list(Expected(manifest(), tree).wanted())
    assert wanted == [b"a", b"a/b", b"a/b-c", b"a/b-c/d", b"a/b.c", b"a-b", b"a.b"]


def test_what_is_held_has_its_own_mode_and_the_rest_the_ordinary_one() -> None:
    tree = {b"tool": TreeEntry(0o100755, OID), b"link": TreeEntry(LINK, OID), b"d/f": TreeEntry(FILE, OID)}
    wanted = Expected(manifest(Held("d", "directory", 0o700, 0, None)), tree).wanted()
    assert {path: (each.kind, each.mode) for path, each in wanted.items()} == {
        b"d": ("directory", 0o700),
        b"d/f": ("file", 0o644),
        b"link": ("link", 0o777),
        b"tool": ("file", 0o755),
    }


def test_the_parents_of_paths_are_every_directory_that_leads_to_them() -> None:
    assert parents([b"a/b/c", b"a/d", b"e"]) == {b"a", b"a/b"}


def test_a_manifest_is_json_that_anybody_can_read(directory: bytes) -> None:
    save(directory, manifest(Held("a", "absent", 0, 0, None)))
    with open(os.path.join(directory, b"manifest.json"), "rb") as file:
        read = msgspec.json.decode(file.read())
    assert read["entries"] == [{"path": "a", "kind": "absent", "mode": 0, "size": 0, "oid": None}]
