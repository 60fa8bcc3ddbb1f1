"""A file is known without being read only while nothing can have made it differ."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from adapters.files.durable import read_file
from adapters.git.stats import stats
from adapters.snapshots.capture.looks import Look
from adapters.snapshots.capture.trusting import Trust, converted, keeps_line_ends, may_name_attributes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.adapters.snapshots.lanes import Lane

BIG = 1 << 30
LATER = 1 << 62  # nanoseconds; later than any file here


def trust(lane: Lane, *, mtime_ns: int = LATER, raw: bool = True) -> Trust:
    index = stats(read_file(os.path.join(lane.admin, b"index")), 20)
    return Trust(index, mtime_ns, {}, raw=raw)


def refreshed(lane: Lane) -> None:
    """Makes the index know every file, as a `git status` a moment later does."""
    lane.git("update-index", "-q", "--really-refresh")


def asked(known: Trust, lane: Lane, path: bytes = b"file") -> str | None:
    found = known.known(BIG)(path, os.lstat(lane.at(path)))
    return found if found is None or isinstance(found, str) else found[0]


def committed(lane: Lane, path: str = "file") -> str:
    return lane.git("rev-parse", f"HEAD:{path}").decode().strip()


async def test_a_file_that_is_as_the_index_saw_it_has_its_object(lane: Lane) -> None:
    refreshed(lane)
    known = trust(lane)
    assert asked(known, lane) == committed(lane)
    assert (known.trusted, known.stale) == ([b"file"], [])
    assert asked(known, lane, b"tool") == committed(lane, "tool")


def append(path: bytes) -> None:
    with open(path, "ab") as file:
        file.write(b"x")


def swap(path: bytes) -> None:
    append(path + b"-new")
    os.rename(path + b"-new", path)


WRITES: dict[str, Callable[[bytes], object]] = {
    "appended": append,
    "touched": os.utime,
    "replaced": swap,
    "made executable": lambda path: os.chmod(path, 0o755),
    "linked": lambda path: os.link(path, path + b"-too"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=list(WRITES))
async def test_a_file_that_was_written_since_is_not_known(
    lane: Lane, write: Callable[[bytes], object]
) -> None:
    refreshed(lane)
    known = trust(lane)
    write(lane.at(b"file"))
    assert asked(known, lane) is None
    assert (known.trusted, known.stale) == ([], [b"file"])


async def test_a_file_as_young_as_the_index_is_not_known_and_not_stale(lane: Lane) -> None:
    refreshed(lane)
    ctime = os.lstat(lane.at(b"file")).st_ctime_ns
    for mtime, oid in ((ctime + 20_000_000, None), (ctime + 20_000_001, committed(lane))):
        known = trust(lane, mtime_ns=mtime)
        assert (asked(known, lane), known.stale) == (oid, [])


async def test_a_file_with_a_mtime_in_the_future_is_not_known(lane: Lane) -> None:
    os.utime(lane.at(b"file"), ns=(1, time.time_ns() + 10**12))
    refreshed(lane)
    assert asked(trust(lane, mtime_ns=time.time_ns() + 10**9), lane) is None


async def test_flags_mean_nothing(lane: Lane) -> None:
    lane.git("update-index", "--assume-unchanged", "file")
    lane.git("update-index", "--skip-worktree", "plain")
    for path in (b"file", b"plain"):
        append(lane.at(path))
        assert asked(trust(lane), lane, path) is None


async def test_what_is_only_intended_to_be_added_is_stale(lane: Lane) -> None:
    lane.write(b"new", b"")
    lane.git("add", "--intent-to-add", "new")
    known = trust(lane)
    assert (asked(known, lane, b"new"), known.stale) == (None, [b"new"])


async def test_where_anything_may_be_converted_nothing_is_known_but_what_is_stale(lane: Lane) -> None:
    refreshed(lane)
    known = trust(lane, raw=False)
    assert (asked(known, lane), known.stale) == (None, [])
    append(lane.at(b"file"))
    assert (asked(known, lane), known.stale) == (None, [b"file"])


async def test_what_may_be_converted_is_not_known(lane: Lane) -> None:
    refreshed(lane)
    known = trust(lane)
    assert not known.distrust(frozenset((b"file",)))
    assert asked(known, lane) is None
    assert asked(known, lane, b"plain") == committed(lane, "plain")
    assert known.distrust(frozenset((b"plain",)))


async def test_a_split_index_knows_nothing_and_a_sparse_one_only_what_is_stale(lane: Lane) -> None:
    lane.git("update-index", "--split-index")
    known = trust(lane)
    append(lane.at(b"file"))
    assert (known.index, asked(known, lane), known.stale) == (None, None, [])
    lane.git("checkout", "-q", "--", "file")
    lane.git("update-index", "--no-split-index")
    lane.git("sparse-checkout", "set", "--cone", "--sparse-index")
    refreshed(lane)
    known = trust(lane)
    assert (asked(known, lane), known.stale) == (None, [])
    append(lane.at(b"file"))
    assert (asked(known, lane), known.stale) == (None, [b"file"])


async def test_what_was_read_earlier_is_known_until_it_is_written(lane: Lane) -> None:
    lane.write(b"new", b"new\n")
    status = os.lstat(lane.at(b"new"))
    times = status.st_mtime_ns, status.st_ctime_ns
    look = Look(status.st_ino, status.st_size, *times, "oid", ((b"a", b"b"),), "sha256")
    known = Trust(None, 0, {b"new": look}, raw=False)
    assert known.known(BIG)(b"new", status) == ("oid", ((b"a", b"b"),))
    assert (known.remembered, known.apart) == ([b"new"], {b"new": "sha256"})
    os.chmod(lane.at(b"new"), 0o600)
    assert asked(known, lane, b"new") is None
    assert (known.remembered, known.apart) == ([], {})


async def test_what_is_big_and_not_known_is_left_unread(lane: Lane) -> None:
    lane.write(b"new", b"1234")
    known = Trust(None, 0, {}, raw=True)
    assert known.known(4)(b"new", os.lstat(lane.at(b"new"))) == (None, None)
    assert known.known(5)(b"new", os.lstat(lane.at(b"new"))) is None


async def test_the_index_says_that_it_is_the_commits_tree_until_something_is_staged(lane: Lane) -> None:
    tree = lane.git("rev-parse", "HEAD^{tree}").decode().strip()
    lane.git("read-tree", "HEAD")
    read = trust(lane).tree(tree)
    assert read is not None
    listed = lane.git("ls-tree", "-r", "-z", "HEAD").split(b"\0")[:-1]
    assert [b"%06o blob %b\t%b" % (e.mode, e.oid.encode(), p) for p, e in read.items()] == sorted(
        listed, key=lambda line: line.partition(b"\t")[2]
    )
    append(lane.at(b"file"))
    lane.git("add", "file")
    assert trust(lane).tree(tree) is None
    lane.git("write-tree")
    assert trust(lane).tree(tree) is None


async def test_line_ends_are_kept_unless_the_settings_convert_them(lane: Lane) -> None:
    assert await keeps_line_ends(lane.door, lane.admin)
    for value, keeps in (("false", True), ("no", True), ("input", False), ("true", False), ("", False)):
        lane.git("config", "core.autocrlf", value)
        assert await keeps_line_ends(lane.door, lane.admin) == keeps, value


async def told(lane: Lane) -> frozenset[bytes]:
    return await converted(lane.door, lane.admin, lane.path, trust(lane).index)


ATTRIBUTES = {
    "* text=auto": True,
    "* text": True,
    "* eol=crlf": True,
    "* crlf=input": True,
    "* ident": True,
    "* filter=lfs": True,
    "* working-tree-encoding=UTF-16": True,
    "* binary": False,
    "* -text diff=python": False,
    "other text": False,
}


@pytest.mark.parametrize(("line", "converts"), ATTRIBUTES.items())
async def test_an_attribute_that_converts_is_seen_wherever_it_is_written(
    lane: Lane, line: str, converts: bool
) -> None:
    text = line.encode() + b"\n"
    for path in (
        lane.at(b".gitattributes"),
        os.path.join(lane.world.common, b"info/attributes"),
        os.path.join(os.fsencode(lane.world.home), b"git/attributes"),  # where XDG_CONFIG_HOME says
    ):
        lane.write(path, text)
        assert (b"file" in await told(lane)) == converts
        os.unlink(path)
        assert await told(lane) == frozenset()


async def test_attributes_of_the_repository_are_seen_coming(lane: Lane) -> None:
    assert not may_name_attributes(trust(lane).index, lane.world.common)
    lane.write(b"sub/.gitattributes", b"")
    lane.git("add", "sub/.gitattributes")
    assert may_name_attributes(trust(lane).index, lane.world.common)
    lane.git("reset", "-q")
    lane.write(os.path.join(lane.world.common, b"info/attributes"), b"")
    assert may_name_attributes(trust(lane).index, lane.world.common)
