"""The commit of a snapshot has what was captured and nothing else, or the snapshot is damaged."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.git.errors import GitOutputUnreadable
from adapters.git.parse import TreeEntry
from adapters.snapshots.differences import differences, parse_raw, require_captured
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import Held

if TYPE_CHECKING:
    from tests.adapters.snapshots.lanes import Lane

A, B = "a" * 40, "b" * 40
FILE, TOOL, LINK, MODULE = 0o100644, 0o100755, 0o120000, 0o160000


async def test_every_difference_is_read_as_git_tells_it(lane: Lane) -> None:
    before = lane.head()
    lane.write(b"new\nline\xff", b"new\n")
    os.chmod(lane.at(b"file"), 0o755)
    os.unlink(lane.at(b"gone"))
    lane.git("add", "-A")
    lane.git("commit", "-q", "-m", "changed")
    new, file, gone = (
        lane.git("rev-parse", f"{name}").decode().strip()
        for name in (":0:file", f"{before}:file", f"{before}:gone")
    )
    found = await differences(lane.door, lane.world.common, before, lane.head())
    assert found.keys() == {b"new\nline\xff", b"file", b"gone"}
    assert found[b"file"] == (TreeEntry(FILE, file), TreeEntry(TOOL, new))
    assert found[b"gone"] == (TreeEntry(FILE, gone), None)
    assert found[b"new\nline\xff"][0] is None


async def test_without_a_head_everything_differs(lane: Lane) -> None:
    found = await differences(lane.door, lane.world.common, "", lane.head())
    listed = set(lane.git("ls-tree", "-r", "-z", "--name-only", "HEAD").split(b"\0")[:-1])
    assert found.keys() == listed


@pytest.mark.parametrize("data", [b"x", b"x\0", b"x\0y\0", b":100644 100644 a b M\0\0", b":1 2 3 4 5\0x"])
def test_what_git_never_says_is_unreadable(data: bytes) -> None:
    with pytest.raises(GitOutputUnreadable):
        parse_raw(data)


MOVED = (TreeEntry(0o160000, "1" * 40), TreeEntry(0o160000, "2" * 40))


def test_a_submodule_may_be_at_another_commit_and_nothing_else() -> None:
    work = Held("new/file", "file", 0o644, 1, "3" * 40, apart="4" * 64)
    require_captured([work], {b"sub": MOVED, b"new": (None, MOVED[1])}, {}, "sha1")
    for path, change in ((b"other", (None, MOVED[1])), (b"sub", (TreeEntry(0o100644, "1" * 40), MOVED[1]))):
        with pytest.raises(SnapshotDamaged):
            require_captured([work], {path: change}, {}, "sha1")


RIGHT = [
    (Held("p", "file", 0o644, 1, A), TreeEntry(FILE, A)),
    (Held("p", "file", 0o600, 1, A), TreeEntry(0o100664, A)),
    (Held("p", "file", 0o700, 1, A), TreeEntry(TOOL, A)),
    (Held("p", "link", 0o777, 1, A), TreeEntry(LINK, A)),
    (Held("p", "absent", 0, 0, None), None),
    (Held("p", "directory", 0o700, 0, None), None),
    (Held("p", "directory", 0o700, 0, None), TreeEntry(MODULE, A)),
    (Held("p", "file", 0o644, 1, A, apart="c" * 64), None),
    (Held("p", "file", 0o644, 1, A, twin="first"), None),
]
WRONG = [
    (Held("p", "file", 0o644, 1, A), None),
    (Held("p", "file", 0o644, 1, A), TreeEntry(FILE, B)),
    (Held("p", "file", 0o644, 1, A), TreeEntry(TOOL, A)),
    (Held("p", "file", 0o755, 1, A), TreeEntry(FILE, A)),
    (Held("p", "link", 0o777, 1, A), TreeEntry(FILE, A)),
    (Held("p", "absent", 0, 0, None), TreeEntry(FILE, A)),
    (Held("p", "absent", 0, 0, None), TreeEntry(MODULE, A)),
    (Held("p", "directory", 0o700, 0, None), TreeEntry(FILE, A)),
    (Held("p", "file", 0o644, 1, A, apart="c" * 64), TreeEntry(FILE, A)),
]


@pytest.mark.parametrize(("held", "after"), RIGHT)
def test_what_was_captured_is_right_by_its_difference_and_by_the_head(
    held: Held, after: TreeEntry | None
) -> None:
    require_captured([held], {b"p": (TreeEntry(FILE, B), after)}, {}, "sha1")
    require_captured([held], {}, {} if after is None else {b"p": after}, "sha1")


@pytest.mark.parametrize(("held", "after"), WRONG)
def test_anything_else_is_damage(held: Held, after: TreeEntry | None) -> None:
    with pytest.raises(SnapshotDamaged, match="as captured"):
        require_captured([held], {b"p": (TreeEntry(FILE, B), after)}, {}, "sha1")
    with pytest.raises(SnapshotDamaged, match="as captured"):
        require_captured([held], {}, {} if after is None else {b"p": after}, "sha1")


def test_a_difference_that_was_not_captured_is_damage() -> None:
    with pytest.raises(SnapshotDamaged, match="another"):
        require_captured([], {b"p": (None, TreeEntry(FILE, A))}, {}, "sha1")
