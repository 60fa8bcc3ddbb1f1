"""What is on loan becomes the repository's own, and stays so whatever git tidies up."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.snapshots.capture.lent import borrows

if TYPE_CHECKING:
    from pathlib import Path

    from tests.adapters.snapshots.lanes import Lane


def packs(lane: Lane, suffix: bytes) -> list[bytes]:
    directory = os.path.join(lane.world.common, b"objects/pack")
    return (
        [each for each in os.listdir(directory) if each.endswith(suffix)] if os.path.isdir(directory) else []
    )


def lend(lane: Lane, text: bytes) -> None:
    """Says from where objects are on loan."""
    lane.write(os.path.join(lane.world.common, b"objects/info/alternates"), text)


@pytest.mark.parametrize(
    ("text", "expected"), [(b"", False), (b"\n", False), (b"# /lender\n", False), (b"/lender\n", True)]
)
def test_a_repository_borrows_where_a_line_says_so(lane: Lane, text: bytes, expected: bool) -> None:
    assert not borrows(lane.world.common)
    lend(lane, text)
    assert borrows(lane.world.common) is expected


def test_what_only_git_would_read_counts_as_a_loan(lane: Lane, tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(b"/lender\n")
    os.makedirs(os.path.join(lane.world.common, b"objects/info"), exist_ok=True)
    os.symlink(tmp_path / "list", os.path.join(lane.world.common, b"objects/info/alternates"))
    assert borrows(lane.world.common)


async def test_without_a_loan_there_is_one_pack_that_git_may_tidy_up(lane: Lane) -> None:
    lane.write(b"new", b"new\n")
    await lane.capture()
    assert (len(packs(lane, b".pack")), packs(lane, b".keep")) == (1, [])


@pytest.mark.slow
async def test_what_a_snapshot_reaches_beyond_head_is_in_one_pack_that_is_kept(lane: Lane) -> None:
    lender = os.path.join(os.fsencode(lane.world.home), b"lender")
    lane.world.git(lane.world.root, "init", "-q", lender)
    lane.write(os.path.join(lender, b"file"), b"borrowed\n")
    borrowed = lane.world.git(lender, "hash-object", "-w", "file").strip()
    lend(lane, os.path.join(lender, b".git/objects") + b"\n")
    lane.git("config", "pack.packSizeLimit", "1m")  # that many packs would have as many names
    lane.write(b"new", b"borrowed\n")
    for number in range(3):
        lane.write(b"random %d" % number, os.urandom(1 << 20))
    taken = await lane.capture()
    (name,) = packs(lane, b".keep")
    index = os.path.join(lane.world.common, b"objects/pack", name.removesuffix(b"keep") + b"idx")
    shown = lane.git("verify-pack", "-v", index)
    head = lane.git("rev-list", "--objects", "--no-object-names", "HEAD").split()
    wanted = lane.git("rev-list", "--objects", "--no-object-names", taken.commit, "^HEAD").split()
    found = {line.split(b" ")[0] for line in shown.splitlines()}
    assert borrowed in found
    assert set(wanted) <= found
    assert found.isdisjoint(head)
    again = await lane.capture()
    assert (again, packs(lane, b".keep")) == (taken, [name])
