from __future__ import annotations

import hashlib
import os
import random
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.git.errors import IndexUnreadable
from adapters.git.index import read_index, survey_index

if TYPE_CHECKING:
    from pathlib import Path

    from adapters.git.index import Index
    from tests.adapters.git.conftest import Workshop

EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def raw(root: Path) -> bytes:
    return (root / ".git/index").read_bytes()


def sealed(body: bytes) -> bytes:
    return body + hashlib.sha1(body).digest()


def told(workshop: Workshop, root: Path) -> list[tuple[bytes, int, str, int]]:
    """What git says of its index: path, mode, id and stage."""
    entries = []
    for line in workshop.git(root, "ls-files", "--stage", "-z").split(b"\0")[:-1]:
        header, _, path = line.partition(b"\t")
        mode, oid, stage = header.split(b" ")
        entries.append((path, int(mode, 8), oid.decode(), int(stage)))
    return entries


def read(index: Index) -> list[tuple[bytes, int, str, int]]:
    return [(entry.path, entry.mode, entry.oid, entry.stage) for entry in index.entries]


def fill(workshop: Workshop, root: Path, paths: list[bytes], oid: str) -> None:
    lines = b"".join(b"100644 " + oid.encode() + b" 0\t" + path + b"\0" for path in paths)
    workshop.git(root, "update-index", "-z", "--index-info", stdin=lines)


def odd_names() -> list[bytes]:
    """Five hundred names of all lengths and bytes, the one that does not fit into the flags among them."""
    draw = random.Random(7)
    letters = bytes(byte for byte in range(1, 256) if byte not in b"/.")
    names = {bytes(draw.choices(letters, k=draw.randint(1, 120))) for _ in range(497)}
    return [*names, b"new\nline", b"\xff\xfe", b"/".join([b"d" * 200] * 22)]


def shown_as_hidden(workshop: Workshop, root: Path) -> list[bytes]:
    """The paths to which `ls-files -v` gives a small letter or an S."""
    lines = workshop.git(root, "ls-files", "-v", "-z").split(b"\0")[:-1]
    return [line[2:] for line in lines if line[:1].islower() or line[:1] == b"S"]


@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize(("kind", "oid_bytes"), [("sha1", 20), ("sha256", 32)])
def test_names_of_all_kinds_are_read_as_git_reads_them(
    workshop: Workshop, version: str, kind: str, oid_bytes: int
) -> None:
    root = workshop.repository("root", f"--object-format={kind}")
    oid = workshop.git(root, "hash-object", "-w", "--stdin").decode().strip()
    fill(workshop, root, odd_names(), oid)
    workshop.git(root, "update-index", "--index-version", version)
    index, survey = read_index(raw(root), oid_bytes), survey_index(raw(root), oid_bytes)
    assert index.version == survey.version == int(version)
    assert read(index) == told(workshop, root)
    assert survey.count == len(index.entries) == 501
    assert survey.checksum_ok
    assert survey.hidden + survey.conflicted + survey.submodules + survey.intent_to_add == ()


@pytest.mark.parametrize("version", ["3", "4"])
def test_all_that_status_passes_over_is_found(workshop: Workshop, version: str) -> None:
    root = workshop.repository()
    workshop.git(root, "hash-object", "-w", "--stdin")
    fill(workshop, root, [b"assumed", b"skipped", b"both", b"plain"], EMPTY)
    head = workshop.git(root, "rev-parse", "HEAD").decode().strip()
    workshop.git(root, "update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    (root / "intended").touch()
    workshop.git(root, "add", "-N", "intended")
    workshop.git(root, "update-index", "--assume-unchanged", "assumed", "both")
    workshop.git(root, "update-index", "--skip-worktree", "skipped", "both")
    workshop.git(root, "update-index", "--index-version", version)
    index, survey = read_index(raw(root), 20), survey_index(raw(root), 20)
    assert (index.version, read(index)) == (int(version), told(workshop, root))
    assert list(survey.hidden) == shown_as_hidden(workshop, root) == [b"assumed", b"both", b"skipped"]
    assert (survey.submodules, survey.intent_to_add) == ((b"sub",), (b"intended",))
    assert [entry.path for entry in index.entries if entry.skip_worktree] == [b"both", b"skipped"]
    assert [entry.path for entry in index.entries if entry.assume_unchanged] == [b"assumed", b"both"]
    assert [entry.path for entry in index.entries if entry.intent_to_add] == [b"intended"]


def test_each_conflicted_path_is_named_once(workshop: Workshop) -> None:
    root = workshop.repository()
    workshop.git(root, "hash-object", "-w", "--stdin")
    stages = "".join(f"100644 {EMPTY} {stage}\tboth\n" for stage in (1, 2, 3))
    workshop.git(root, "update-index", "--index-info", stdin=stages.encode())
    assert read(read_index(raw(root), 20)) == told(workshop, root)
    assert survey_index(raw(root), 20).conflicted == (b"both",)


def test_a_split_index_says_that_it_is_one(workshop: Workshop) -> None:
    root = workshop.repository()
    workshop.git(root, "hash-object", "-w", "--stdin")
    fill(workshop, root, [b"other"], EMPTY)
    expected = told(workshop, root)
    workshop.git(root, "update-index", "--split-index")
    assert survey_index(raw(root), 20).split
    assert b"link" in read_index(raw(root), 20).extensions
    (shared,) = (root / ".git").glob("sharedindex.*")
    assert read(read_index(shared.read_bytes(), 20)) == expected
    workshop.git(root, "update-index", "--assume-unchanged", "other")
    replaced = read_index(raw(root), 20)
    assert (b"", True) in [(entry.path, entry.assume_unchanged) for entry in replaced.entries]
    assert survey_index(raw(root), 20).split


def test_a_sparse_index_says_that_it_is_one(workshop: Workshop) -> None:
    root = workshop.repository()
    (root / "out").mkdir()
    (root / "out/side").touch()
    workshop.git(root, "add", ".")
    workshop.git(root, "commit", "-q", "-m", "second")
    workshop.git(root, "sparse-checkout", "init", "--cone", "--sparse-index")
    survey = survey_index(raw(root), 20)
    assert survey.sparse
    assert survey.hidden == (b"out/",)
    assert [(entry.path, entry.mode) for entry in read_index(raw(root), 20).entries][1] == (b"out/", 0o40000)


def test_an_index_without_a_checksum_is_accepted_and_a_wrong_one_is_not(workshop: Workshop) -> None:
    data = raw(workshop.repository())
    skipped, wrong = data[:-20] + bytes(20), data[:-1] + bytes([data[-1] ^ 1])
    assert read_index(skipped, 20) == read_index(data, 20)
    assert survey_index(skipped, 20).checksum_ok
    assert not survey_index(wrong, 20).checksum_ok
    with pytest.raises(IndexUnreadable, match="checksum"):
        read_index(wrong, 20)


def test_an_extension_that_must_be_understood_is_not_passed_over(workshop: Workshop) -> None:
    body = raw(workshop.repository())[:-20]
    assert read_index(sealed(body + b"NEWS\0\0\0\1x"), 20).extensions[-1] == b"NEWS"
    for ending in (b"news\0\0\0\1x", b"NEWS\0\0\0\2x", b"NEWS\0"):
        for reader in (read_index, survey_index):
            with pytest.raises(IndexUnreadable, match=r"extension|NEWS"):
                reader(sealed(body + ending), 20)


def test_what_is_no_index_is_unreadable(workshop: Workshop) -> None:
    data = raw(workshop.repository())
    one_more = sealed(data[:11] + b"\2" + data[12:-20])
    longer_name = bytearray(data[:-20])
    longer_name[12 + 61] += 1
    for wrong in (
        b"",
        b"DIRC",
        data[:-21],
        b"X" + data[1:],
        data[:7] + b"\5" + data[8:],
        one_more,
        sealed(bytes(longer_name)),
    ):
        for reader in (read_index, survey_index):
            with pytest.raises(IndexUnreadable):
                reader(wrong, 20)
    with pytest.raises(IndexUnreadable, match="21 bytes"):
        read_index(data, 21)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """An index that is nearly right: a few bytes changed, cut at any place, its checksum right."""
    version = draw(st.sampled_from([2, 3, 4]))
    stat = bytes(24) + (0o100644).to_bytes(4, "big") + bytes(12) + b"i" * 20
    entry = stat + (b"\0\4\0" if version == 4 else b"\0\4") + b"name" + (b"\0" if version == 4 else bytes(6))
    body = bytearray(b"DIRC" + bytes([0, 0, 0, version, 0, 0, 0, 2]) + entry * 2 + b"TREE\0\0\0\1x")
    for at, byte in draw(st.lists(st.tuples(st.integers(8, len(body) - 1), st.integers(0, 255)), max_size=6)):
        body[at] = byte
    return sealed(bytes(body[: draw(st.integers(12, len(body)))]))


@pytest.mark.slow
@given(st.binary(max_size=120).map(lambda tail: b"DIRC\0\0\0" + tail) | damaged())
def test_any_bytes_are_an_index_or_unreadable(data: bytes) -> None:
    try:
        survey = survey_index(data, 20)
    except IndexUnreadable:
        with pytest.raises(IndexUnreadable):
            read_index(data, 20)
        return
    if survey.checksum_ok:
        index = read_index(data, 20)
        assert survey.count == len(index.entries)
        hidden = [entry.path for entry in index.entries if entry.skip_worktree or entry.assume_unchanged]
        assert list(survey.hidden) == hidden


@pytest.mark.slow
def test_a_hundred_thousand_entries_are_surveyed_in_a_moment(workshop: Workshop) -> None:
    root = workshop.repository()
    fill(workshop, root, [b"src/package%d/module_%d.py" % (i // 1000, i) for i in range(100_000)], EMPTY)
    data = raw(root)
    spent = []
    for _ in range(5):
        begun = time.thread_time()
        assert survey_index(data, 20).count == 100_001
        spent.append(time.thread_time() - begun)
    assert min(spent) < 0.12
    assert os.path.getsize(root / ".git/index") == len(data)
