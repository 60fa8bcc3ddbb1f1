"""Class 2: the index itself, and what is edited under its flags."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.roundtrip.scene import LAST, MOVES, SPARSE, Spot, move

if TYPE_CHECKING:
    from collections.abc import Iterator


@move(2)
def staged(spot: Spot) -> Iterator[None]:
    """Staged files, new and changed"""
    spot.write(b"old")
    yield
    spot.git("add", "--", spot.write(b"new"), spot.write(b"old", b"changed\n"))


@move(2)
def staged_then_modified(spot: Spot) -> Iterator[None]:
    """Staged, then modified"""
    spot.write(b"file")
    yield
    spot.git("add", "--", spot.write(b"file", b"staged\n"))
    spot.write(b"file", b"and modified\n")


@move(2)
def staged_then_deleted(spot: Spot) -> None:
    """Staged, then deleted from the worktree"""
    spot.git("add", "--", spot.write(b"file"))
    os.unlink(spot.at(b"file"))


@move(2)
def staged_deletion(spot: Spot) -> Iterator[None]:
    """Taken out of the index, with the file kept, kept changed or gone"""
    for name in (b"kept", b"kept-changed", b"gone"):
        spot.write(name)
    yield
    for name in (b"kept", b"kept-changed", b"gone"):
        spot.git("rm", "-q", "--cached", "--", spot.rel(name))
    spot.write(b"kept-changed")
    os.unlink(spot.at(b"gone"))


@move(2)
def staged_mode(spot: Spot) -> Iterator[None]:
    """A staged executable bit that the file does not have"""
    spot.write(b"file")
    yield
    spot.git("update-index", "--chmod=+x", "--", spot.rel(b"file"))


@move(2)
def staged_rename(spot: Spot) -> Iterator[None]:
    """A staged rename, changed afterwards"""
    spot.write(b"from", b"as long as it takes\n" * 20)
    yield
    spot.git("mv", "--", spot.rel(b"from"), spot.rel(b"to"))
    spot.write(b"to", b"as long as it takes\n" * 21)


@move(2)
def force_added(spot: Spot) -> Iterator[None]:
    """Ignored files that were added by force, then modified or deleted"""
    spot.write(b".gitignore", b"*.ign\n")
    yield
    for name in (b"a.ign", b"b.ign", b"c.ign"):
        spot.git("add", "-f", "--", spot.write(name))
    spot.write(b"b.ign", b"modified\n")
    os.unlink(spot.at(b"c.ign"))


@move(2)
def intent_to_add(spot: Spot) -> None:
    """Intent to add, with the file and without it"""
    spot.git("add", "-N", "--", spot.write(b"here"), spot.write(b"gone"))
    os.unlink(spot.at(b"gone"))


@move(2)
def intent_to_add_empty(spot: Spot) -> None:
    """Intent to add an empty file"""
    path = spot.write(b"void")
    os.truncate(spot.at(b"void"), 0)
    spot.git("add", "-N", "--", path)


@move(2)
def stages_without_operation(spot: Spot) -> Iterator[None]:
    """Conflict stages that belong to no operation, as a `stash pop` leaves them"""
    path = spot.write(b"file", b"base\n")
    yield
    spot.write(b"file", b"stashed\n")
    spot.git("stash", "push", "-q", "--", path)
    spot.write(b"file", b"committed\n")
    spot.commit(path)
    spot.git("stash", "pop", "-q", fails=True)


@move(2)
def stages_by_hand(spot: Spot) -> None:
    """Conflict stages of objects that nothing else names"""
    lines = b""
    for stage in (1, 2, 3):
        stdin = b"%d of %s\n" % (stage, spot.own)
        oid = spot.git("hash-object", "-w", "--stdin", stdin=stdin).strip()
        lines += b"100644 %s %d\t%s\0" % (oid, stage, spot.rel(b"file"))
    spot.git("update-index", "-z", "--index-info", stdin=lines)


@move(2)
def assume_unchanged(spot: Spot) -> Iterator[None]:
    """Edits and deletions under assume-unchanged"""
    paths = [spot.write(name) for name in (b"edited", b"gone", b"same")]
    yield
    spot.git("update-index", "--assume-unchanged", "--", *paths)
    spot.write(b"edited", b"hidden\n")
    os.unlink(spot.at(b"gone"))


@move(2)
def skip_worktree(spot: Spot) -> Iterator[None]:
    """Edits and deletions under skip-worktree"""
    paths = [spot.write(name) for name in (b"edited", b"gone", b"same")]
    yield
    spot.git("update-index", "--skip-worktree", "--", *paths)
    spot.write(b"edited", b"hidden\n")
    os.unlink(spot.at(b"gone"))


def _elsewhere(spot: Spot) -> list[str]:
    """Returns the corners of all other moves, which are to stay in a cone."""
    return [name for name in MOVES if name.encode() != spot.own]


@move(2, order=SPARSE, group="sparse")
def sparse_cone(spot: Spot) -> Iterator[None]:
    """A sparse checkout in cone mode, with a file outside of the cone"""
    spot.write(b"in/file")
    spot.write(b"out/file")
    spot.write(b"out/deep/file")
    yield
    spot.git("sparse-checkout", "set", "--cone", spot.rel(b"in"), *_elsewhere(spot))
    spot.write(b"in/new")
    spot.write(b"out/deep/new")


@move(2, order=SPARSE, group="sparse")
def sparse_patterns(spot: Spot) -> Iterator[None]:
    """A sparse checkout by patterns, with an edited file outside"""
    spot.write(b"in/file")
    spot.write(b"out/file")
    yield
    spot.git("sparse-checkout", "set", "--no-cone", "/*", b"!" + spot.rel(b"out"))
    spot.write(b"out/file", b"edited outside\n")


@move(2, order=SPARSE, group="sparse index")
def sparse_index(spot: Spot) -> Iterator[None]:
    """A sparse index"""
    spot.write(b"in/file")
    spot.write(b"out/file")
    yield
    spot.git("sparse-checkout", "set", "--cone", "--sparse-index", spot.rel(b"in"), *_elsewhere(spot))
    spot.write(b"in/file", b"changed\n")


@move(2, order=LAST, group="index")
def split_index(spot: Spot) -> Iterator[None]:
    """A split index"""
    spot.write(b"file")
    yield
    spot.git("update-index", "--split-index")
    spot.git("add", "--", spot.write(b"new"), spot.write(b"file", b"changed\n"))


@move(2, order=LAST, group="index")
def index_version_4(spot: Spot) -> None:
    """An index of version 4"""
    spot.git("update-index", "--index-version", "4")


@move(2, order=LAST, group="index")
def untracked_cache(spot: Spot) -> None:
    """An index with the untracked cache"""
    spot.write(b"new")
    spot.git("update-index", "--force-untracked-cache")
    spot.git("status", "--porcelain", GIT_OPTIONAL_LOCKS="1")


@move(2, order=LAST + 5, group="index", holds="evidence_unavailable")
def index_gone(spot: Spot) -> Iterator[None]:
    """No index at all, so that every file counts as untracked"""
    spot.write(b"file")
    yield
    where = spot.git("rev-parse", "--git-path", "index").rstrip(b"\n")
    os.unlink(os.path.join(spot.scene.place, where))


@move(2)
def racy(spot: Spot) -> Iterator[None]:
    """A file written in the very tick in which the index was, with the same size"""
    spot.write(b"file", b"one\n")
    yield
    spot.git("add", "--", spot.write(b"file", b"two\n"))
    with open(spot.at(b"file"), "r+b") as file:
        file.write(b"six\n")


@move(2)
def touched(spot: Spot) -> Iterator[None]:
    """A file that is as it was, and of which the index does not know it"""
    spot.write(b"file")
    yield
    os.utime(spot.at(b"file"), ns=(10**18, 10**18 + spot.rng.randrange(10**9)))
