"""Every entry has a reason to be given up, or the tree stays."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.files.scan import scan
from adapters.snapshots.explain.explain import RegistrationChanged
from adapters.snapshots.files import SnapshotDamaged
from domain.paths import unpack
from tests.sagas.trees import write

if TYPE_CHECKING:
    from collections.abc import Callable

    from domain.states import Basis
    from tests.adapters.snapshots.lanes import Lane


async def reasons(lane: Lane, basis: Basis) -> dict[bytes, str | None]:
    explanation = await lane.explanation(basis)
    return {entry.path: explanation.reason(entry) for entry in scan(lane.path, "sha1")}


async def unexplained(lane: Lane, basis: Basis) -> set[bytes]:
    return {unpack(path) for path in (await lane.explain(basis)).unexplained}


async def test_every_entry_has_the_reason_that_it_has(lane: Lane) -> None:
    lane.world.dirty(lane.path)
    taken = await lane.capture()
    lane.write(b"late/er", b"late\n")
    lane.write(b"trace.log", b"trace\n")
    found = await reasons(lane, lane.basis(taken, b"late"))
    assert found[b".git"] == "pointer"
    assert found[b"tool"] == found[b"sub"] == found[b"sub/inner"] == found[b"kept\xff"] == "commit"
    assert found[b"file"] == found[b"empty"] == found[b"link"] == found[b"deep/er/file"] == "snapshot"
    assert found[b"late"] == found[b"late/er"] == "consent"
    assert found[b"trace.log"] is None


async def test_without_a_snapshot_only_the_commit_explains(lane: Lane) -> None:
    lane.write(b"new", b"new\n")
    assert await unexplained(lane, lane.basis(None)) == {b"new"}


def into(lane: Lane, make: Callable[[bytes], object]) -> None:
    os.unlink(lane.at(b"secret"))
    make(lane.at(b"secret"))


@pytest.mark.parametrize(
    "change",
    [
        lambda lane: lane.write(b"secret", b"changed\n", 0o600),
        lambda lane: os.chmod(lane.at(b"secret"), 0o640),
        lambda lane: into(lane, os.mkdir),
        lambda lane: into(lane, lambda path: os.symlink(b"file", path)),
    ],
    ids=["bytes", "mode", "directory", "link"],
)
async def test_what_is_no_longer_as_it_was_captured_is_unexplained(
    lane: Lane, change: Callable[[Lane], object]
) -> None:
    lane.world.dirty(lane.path)
    taken = await lane.capture()
    assert await unexplained(lane, lane.basis(taken)) == set()
    change(lane)
    assert await unexplained(lane, lane.basis(taken)) == {b"secret"}


async def test_a_directory_that_came_later_is_unexplained_also_where_a_file_once_led_through_it(
    lane: Lane,
) -> None:
    os.unlink(lane.at(b"sub/inner"))
    os.rmdir(lane.at(b"sub"))
    taken = await lane.capture()
    os.mkdir(lane.at(b"sub"))
    os.mkdir(lane.at(b"other"))
    assert await unexplained(lane, lane.basis(taken)) == {b"sub", b"other"}


async def test_a_submodule_that_is_not_checked_out_is_explained(lane: Lane) -> None:
    lane.git("update-index", "--add", "--cacheinfo", f"160000,{lane.head()},module")
    lane.git("commit", "-q", "-m", "a submodule")
    os.mkdir(lane.at(b"module"))
    assert await unexplained(lane, lane.basis(await lane.capture())) == set()


async def test_a_consent_is_to_a_path_and_all_below_it_and_to_nothing_beside_it(lane: Lane) -> None:
    taken = await lane.capture()
    for path in (b"build/a/b", b"build2/a", b"builds", b"src/build/a"):
        lane.write(path, b"output\n")
    left = await unexplained(lane, lane.basis(taken, b"build"))
    assert left == {b"build2", b"build2/a", b"builds", b"src", b"src/build", b"src/build/a"}
    assert await unexplained(lane, lane.basis(taken, b".")) == set()


async def test_a_pointer_to_another_registration_is_unexplained(lane: Lane) -> None:
    taken = await lane.capture()
    write(lane.at(b".git"), b"gitdir: /nowhere\n")
    assert await unexplained(lane, lane.basis(taken)) == {b".git"}


async def test_a_relative_pointer_is_a_pointer(lane: Lane) -> None:
    taken = await lane.capture()
    relative = os.path.relpath(lane.admin, lane.path)
    write(lane.at(b".git"), b"gitdir: " + relative + b"\n")
    assert lane.git("status", "--porcelain") == b""
    assert await unexplained(lane, lane.basis(taken)) == set()


async def test_beginnings_explain_only_where_a_checkout_was_interrupted(lane: Lane) -> None:
    write(lane.at(b"file"), b"on")
    write(lane.at(b"plain"), b"")
    write(lane.at(b"both"), b"two\n")
    write(lane.at(b"gone"), b"gone\nand more\n")
    os.chmod(lane.at(b"sub"), 0o700)
    whole = {b"file", b"plain", b"both", b"gone", b"sub"}
    assert await unexplained(lane, lane.basis(None)) == whole
    assert await unexplained(lane, lane.basis(None, partial=True)) == {b"both", b"gone"}


async def test_a_commit_whose_blobs_are_not_all_there_explains_nothing(lane: Lane) -> None:
    oid = lane.git("rev-parse", "HEAD:file").decode().strip()
    os.unlink(os.path.join(lane.world.common, b"objects", oid[:2].encode(), oid[2:].encode()))
    with pytest.raises(SnapshotDamaged, match="missing"):
        await lane.explanation(lane.basis(None))


async def test_the_digest_is_of_the_explanation_and_not_only_of_the_tree(lane: Lane) -> None:
    taken = await lane.capture()
    lane.write(b"late", b"late\n")
    first = await lane.explain(lane.basis(taken, b"late"))
    assert (await lane.explain(lane.basis(taken, b"late"))).digest == first.digest
    assert (await lane.explain(lane.basis(taken))).digest != first.digest


async def test_a_tree_that_is_gone_needs_no_explanation(lane: Lane) -> None:
    taken = await lane.capture()
    os.rename(lane.path, lane.path + b"-away")
    assert (await lane.explain(lane.basis(taken))).entries == 0


def merge(lane: Lane) -> None:
    lane.git("branch", "other")
    lane.git("reset", "-q", "--soft", "HEAD")
    write(os.path.join(lane.admin, b"MERGE_HEAD"), lane.head().encode() + b"\n")


CHANGES: dict[str, Callable[[Lane], object]] = {
    "commit": lambda lane: lane.git("commit", "-q", "--allow-empty", "-m", "late"),
    "stage": lambda lane: lane.git("update-index", "--chmod=+x", "file"),
    "merge": merge,
    "reset": lambda lane: lane.git("reset", "-q", "--soft", "HEAD"),
    "private ref": lambda lane: lane.git("update-ref", "refs/worktree/mine", "HEAD"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
async def test_a_registration_that_was_worked_in_is_noticed(
    lane: Lane, change: Callable[[Lane], object]
) -> None:
    taken = await lane.capture()
    change(lane)
    with pytest.raises(RegistrationChanged):
        await lane.explanation(lane.basis(taken))
    await lane.explanation(lane.basis(taken, b"."))


async def test_a_reflog_that_says_less_than_was_captured_says_nothing_new(lane: Lane) -> None:
    taken = await lane.capture()
    lane.git("reflog", "expire", "--expire=now", "--all")
    await lane.explanation(lane.basis(taken))


async def test_an_index_that_was_only_refreshed_says_the_same(lane: Lane) -> None:
    lane.write(b"file", b"one\n")
    taken = await lane.capture()
    before = os.stat(os.path.join(lane.admin, b"index")).st_ino
    lane.git("update-index", "--refresh")
    assert os.stat(os.path.join(lane.admin, b"index")).st_ino != before
    await lane.explanation(lane.basis(taken))
