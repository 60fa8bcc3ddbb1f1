from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.git.door import Location
from adapters.git.errors import GitOutputUnreadable
from adapters.git.parse import (
    Change,
    TreeEntry,
    ascii_lines,
    parse_batch_check,
    parse_ls_tree,
    parse_status,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.git.door import Git
    from tests.adapters.git.conftest import Workshop

A, B = b"a" * 40, b"b" * 40
HEADERS = b"# branch.oid " + A + b"\0# branch.head main\0"
MODES = b" 100644 100644 100644 "
STATUS = (b"status", b"--porcelain=v2", b"-z", b"--branch", b"--untracked-files=all", b"--ignored=matching")


def test_a_clean_status_has_its_headers_and_nothing_else() -> None:
    status = parse_status(HEADERS + b"# branch.upstream origin/main\0# branch.ab +1 -2\0")
    assert (status.head, status.branch) == ("a" * 40, b"main")
    assert (status.changes, status.untracked, status.ignored) == ((), (), ())


def test_every_kind_of_change_is_read() -> None:
    one = b"1 .M N..." + MODES + A + b" " + B + b" with space\nand \xff\0"
    two = b"2 R. N..." + MODES + A + b" " + B + b" R100 new\0? old\0"
    unmerged = b"u UU S.MU 100644" + MODES + A + b" " + A + b" " + B + b" both\0"
    status = parse_status(HEADERS + one + two + unmerged + b"? new file\0! ignored/\0")
    assert status.changes == (
        Change(".M", "N...", b"with space\nand \xff"),
        Change("R.", "N...", b"new", b"? old"),
        Change("UU", "S.MU", b"both", unmerged=True),
    )
    assert (status.untracked, status.ignored) == ((b"new file",), (b"ignored/",))


def test_an_unborn_branch_and_a_detached_head_are_told_apart() -> None:
    assert parse_status(b"# branch.oid (initial)\0# branch.head main\0").head is None
    assert parse_status(b"# branch.oid " + b"c" * 64 + b"\0# branch.head (detached)\0").branch is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"? only\0",
        b"# branch.oid " + A + b"\0",
        b"# branch.oid abc\0# branch.head main\0",
        HEADERS + b"? unfinished",
        HEADERS + b"\0",
        HEADERS + b"?\0",
        HEADERS + b"? \0",
        HEADERS + b"3 .M what\0",
        HEADERS + b"1 .M N..." + MODES + A + b" " + B + b" \0",
        HEADERS + b"1 .Y N..." + MODES + A + b" " + B + b" path\0",
        HEADERS + b"1 .M N..." + MODES + A[1:] + b" " + B + b" path\0",
        HEADERS + b"2 R. N..." + MODES + A + b" " + B + b" R100 new\0",
        HEADERS + b"fatal: not a git repository\n\0",
    ],
)
def test_a_status_that_is_not_whole_is_not_clean(data: bytes) -> None:
    with pytest.raises(GitOutputUnreadable):
        parse_status(data)


async def test_a_real_status_is_read(workshop: Workshop, door: Git) -> None:
    root = workshop.repository()
    odd = os.fsencode(root) + b"/new\n\xff"
    for path in (odd, os.fsencode(root / "ignored")):
        os.close(os.open(path, os.O_CREAT))
    (root / ".git/info/exclude").write_text("ignored\n")
    workshop.git(root, "mv", "file", "moved")
    repository = Location(os.fsencode(root / ".git"), os.fsencode(root))
    status = parse_status((await door.run(*STATUS, repository=repository)).out)
    assert status.head == workshop.git(root, "rev-parse", "HEAD").decode().strip()
    assert status.branch == b"main"
    assert status.changes == (Change("R.", "N...", b"moved", b"file"),)
    assert (status.untracked, status.ignored) == ((b"new\n\xff",), (b"ignored",))


async def test_a_real_tree_is_read(workshop: Workshop, door: Git) -> None:
    root = workshop.repository()
    head = workshop.git(root, "rev-parse", "HEAD").decode().strip()
    workshop.git(root, "update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    tree = workshop.git(root, "write-tree").strip()
    repository = Location(os.fsencode(root / ".git"))
    entries = parse_ls_tree((await door.run(b"ls-tree", b"-r", b"-z", tree, repository=repository)).out)
    blob = workshop.git(root, "rev-parse", ":file").decode().strip()
    assert entries == {b"file": TreeEntry(0o100644, blob), b"sub": TreeEntry(0o160000, head)}


@pytest.mark.parametrize(
    "data",
    [
        b"100644 blob " + A + b"\tpath",
        b"100644 blob " + A + b"\t\0",
        b"100644 blob " + A + b" path\0",
        b"100644 tree " + A + b"\tpath\0",
        b"100644 blob " + A + b"\tsame\0" + b"100644 blob " + A + b"\tsame\0",
        b"\0",
    ],
)
def test_nonsense_is_no_tree(data: bytes) -> None:
    with pytest.raises(GitOutputUnreadable, match="ls-tree"):
        parse_ls_tree(data)


async def test_objects_come_in_the_order_in_which_they_were_asked_for(workshop: Workshop, door: Git) -> None:
    repository = Location(os.fsencode(workshop.repository() / ".git"))
    asked = b"HEAD:file\nnone with spaces\nHEAD^{tree}\n"
    ran = await door.run(b"cat-file", b"--batch-check", repository=repository, stdin=asked)
    blob, none, tree = parse_batch_check(ran.out, 3)
    assert blob is not None
    assert tree is not None
    assert (blob[1:], none, tree[1]) == (("blob", 4), None, "tree")


def test_nonsense_is_no_object() -> None:
    assert parse_batch_check(b"abc ambiguous\n" + A + b" missing\n", 2) == [None, None]
    for data in (A + b" blob 4", A + b" blob x\n", A + b" thing 4\n", b"abc blob 4\n", b"\n"):
        with pytest.raises(GitOutputUnreadable, match="cat-file"):
            parse_batch_check(data, 1)


PIECES = [
    b"\0",
    b"\n",
    b" ",
    b"\t",
    A,
    B,
    HEADERS,
    MODES,
    b"1 .M N...",
    b"2 R. N...",
    b"u UU N...",
    b"R100",
    b"path",
]
PIECES += [
    b"? ",
    b"! ",
    b"# ",
    b"100644 blob ",
]
PIECES += [b" blob 12\n", b" missing\n"]
bytes_like_gits = st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=12).map(b"".join)


@pytest.mark.parametrize("parse", [parse_status, parse_ls_tree, lambda data: parse_batch_check(data, 1)])
@given(data=st.binary(max_size=200) | bytes_like_gits)
def test_any_bytes_are_a_value_or_unreadable(parse: Callable[[bytes], object], data: bytes) -> None:
    try:
        assert parse(data) is not None
    except GitOutputUnreadable:
        return


@pytest.mark.parametrize("data", [b"", A + b" missing\n", 3 * (A + b" missing\n")])
def test_an_answer_to_other_than_what_was_asked_for_says_nothing(data: bytes) -> None:
    with pytest.raises(GitOutputUnreadable, match="2 names"):
        parse_batch_check(data, 2)


def test_lines_are_of_printable_words() -> None:
    assert ascii_lines("x", b"") == []
    assert ascii_lines("x", b"a b\nc\n") == ["a b", "c"]
    for data in (b"a", b"\xff\n", b"a  b\n", b"\n", b"a\0\n"):
        with pytest.raises(GitOutputUnreadable, match="x"):
            ascii_lines("x", data)
