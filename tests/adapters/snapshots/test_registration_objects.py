"""What a registration names is found, so that git does not delete it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adapters.git.errors import IndexUnreadable
from adapters.snapshots.files import PIECE
from adapters.snapshots.registration import registration
from adapters.snapshots.registration.index_meaning import meaning_of
from tests.adapters.snapshots.lanes import Lane
from tests.adapters.snapshots.registrations import commit, conflicted, files_of, kept, put
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from pathlib import Path


def names_in(lane: Lane) -> frozenset[bytes]:
    return registration.object_names(files_of(lane), tuple(kept(lane).values()))


def staged(lane: Lane) -> list[tuple[bytes, int, str, bool]]:
    """Returns what the kept index says."""
    entries = registration.staged(files_of(lane), tuple(kept(lane).values())).entries
    return [(each.path, each.mode, each.oid, each.skip_worktree) for each in entries]


def listed(lane: Lane) -> list[tuple[bytes, int, str, bool]]:
    """Returns what git says that the index says."""
    found = []
    for line in lane.git("ls-files", "--stage", "-t", "-z").split(b"\0")[:-1]:
        (tag, mode, oid, _), path = line.split(b"\t")[0].split(b" "), line.partition(b"\t")[2]
        found.append((path, int(mode, 8), oid.decode(), tag == b"S"))
    return found


def blob(lane: Lane, data: bytes) -> bytes:
    return lane.world.git(lane.path, "hash-object", "-w", "--stdin", stdin=data).strip()


def test_commits_of_logs_and_own_refs_are_named(lane: Lane) -> None:
    lost = commit(lane, "file", "lost\n").encode()
    lane.git("reset", "-q", "--hard", "HEAD~1")
    own = lane.git("commit-tree", "-m", "own", "HEAD^{tree}").strip()
    lane.git("update-ref", "refs/worktree/mine", own)
    assert {lost, own} <= names_in(lane)
    assert not any(token.strip(b"0") == b"" for token in names_in(lane))


@pytest.mark.parametrize(
    ("name", "data", "named"),
    [
        ("rebase-merge/done", b"pick 12ab first\n", {b"12ab"}),
        ("rebase-merge/git-rebase-todo", b"pick 12ab first\n", {b"12ab"}),
        ("sequencer/todo", b"pick 12ab first\n", {b"12ab"}),
        ("rebase-apply/0001", b"index 12ab34c..98fe76d 100644\n", {b"12ab34c", b"98fe76d"}),
        ("FETCH_HEAD", b"a" * 40 + b"\t\tbranch 'x' of y\n", {b"a" * 40}),
        ("other", b"b" * 64 + b"\n", {b"b" * 64}),
        ("other", b"12ab\n" + b"c" * 65 + b"\nx1234567 1234567_ ABCDEF01\n", set()),
        ("SQUASH_MSG", b"commit 1234567\n", {b"1234567"}),
        ("modules/sub/HEAD", b"1234567\n", set()),
        ("sharedindex.1", b"1234567\n", set()),
        ("logs/binary", b"1234567\n\0\xff", {b"1234567"}),
        ("binary", b"1234567\n\0\xff", {b"1234567"}),
        ("large", b"1234567\n" * (1 << 17), {b"1234567"}),
        ("logs/large", b"1234567\n" * (1 << 17), {b"1234567"}),
    ],
)
def test_tokens_are_names(lane: Lane, name: str, data: bytes, named: set[bytes]) -> None:
    before = names_in(lane)
    put(lane, name, data)
    assert names_in(lane) - before == named


@pytest.mark.parametrize("before", range(1, 72, 7))
def test_a_name_that_lies_across_two_pieces_of_a_file_is_found(lane: Lane, before: int) -> None:
    put(lane, "FETCH_HEAD", b"\n" * (PIECE - before) + b"5" * 64 + b"\n")
    assert b"5" * 64 in names_in(lane)


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_both_sides_of_a_conflict_are_named_also_when_it_is_resolved(home: Path, algorithm: str) -> None:
    lane = Lane(World(home, f"--object-format={algorithm}"))
    theirs = conflicted(lane)
    sides = {lane.git("rev-parse", f"{at}:file").strip() for at in (theirs, "HEAD", "HEAD~1")}
    assert sides <= names_in(lane)
    lane.write(b"file", b"both\n")
    lane.git("add", "file")
    assert sides <= names_in(lane)


def test_a_split_index_is_read_whole(lane: Lane) -> None:
    lane.git("update-index", "--split-index")
    assert staged(lane) == listed(lane)
    only = blob(lane, b"only in the shared index\n")
    lane.git("update-index", "--add", "--cacheinfo", f"100644,{only.decode()},added")
    lane.git("update-index", "--split-index")
    lane.write(b"file", b"replaced\n")
    lane.write(b"another", b"new\n")
    lane.git("add", "file", "another")
    lane.git("rm", "-q", "--cached", "added", "both")
    lane.git("update-index", "--skip-worktree", "plain")
    assert staged(lane) == listed(lane)
    assert only in names_in(lane)


@pytest.mark.slow
def test_a_large_split_index_is_read_whole(lane: Lane) -> None:
    oid = blob(lane, b"").decode()
    info = "".join(f"100644 {oid} 0\tmany/{number:05}\n" for number in range(5_000))
    lane.world.git(lane.path, "update-index", "--index-info", stdin=info.encode())
    lane.git("update-index", "--split-index")
    gone = "".join(f"0 {'0' * 40} 0\tmany/{number:05}\n" for number in range(100, 3_000))
    other = "".join(f"100755 {oid} 0\tmany/{number:05}\n" for number in range(3_001, 5_000, 7))
    lane.world.git(
        lane.path,
        "-c",
        "splitIndex.maxPercentChange=100",
        "update-index",
        "--index-info",
        stdin=(gone + other).encode(),
    )
    assert any(name.startswith("sharedindex.") for name in kept(lane))
    assert staged(lane) == listed(lane)


def test_half_of_a_split_index_is_no_index(lane: Lane) -> None:
    lane.git("update-index", "--split-index")
    entries = tuple(each for name, each in kept(lane).items() if not name.startswith("sharedindex."))
    with pytest.raises(IndexUnreadable, match="missing"):
        registration.staged(files_of(lane), entries)


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_an_index_of_any_version_says_the_same(lane: Lane, version: str) -> None:
    lane.git("update-index", "--index-version", version)
    assert staged(lane) == listed(lane)


def test_no_index_says_nothing(lane: Lane) -> None:
    assert meaning_of(b"", lambda name: b"").entries == ()
    put(lane, "index", b"not an index, but long enough to have a checksum\n")
    with pytest.raises(IndexUnreadable):
        names_in(lane)
