"""Class 6: repositories inside the lane, and submodules."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.roundtrip.scene import HEADS, Spot, move

if TYPE_CHECKING:
    from collections.abc import Iterator

ALLOWED = ("-c", "protocol.file.allow=always")


def _repository(spot: Spot, place: bytes, commits: int = 1) -> bytes:
    """Makes a repository with work in every corner of it."""
    same = spot.git("rev-parse", "--show-object-format").decode().strip()
    spot.git_in(os.path.dirname(place), "init", "-q", "-b", "main", f"--object-format={same}", place)
    for number in range(commits):
        _put(place, b"file", b"number %d of %s\n" % (number, spot.own))
        spot.git_in(place, "add", "file")
        spot.git_in(place, "commit", "-q", "-m", f"number {number}")
    return place


def _put(place: bytes, name: bytes, data: bytes) -> None:
    with open(os.path.join(place, name), "wb") as file:
        file.write(data)


def _work(spot: Spot, place: bytes) -> None:
    """Stashes, stages, changes and adds something there, and leaves a commit to the log alone."""
    _put(place, b"file", b"stashed\n")
    spot.git_in(place, "stash", "push", "-q")
    spot.git_in(place, "commit", "-q", "--allow-empty", "-m", "given up")
    spot.git_in(place, "reset", "-q", "--hard", "HEAD~1")
    _put(place, b"staged", b"staged\n")
    spot.git_in(place, "add", "staged")
    _put(place, b"file", b"modified\n")
    _put(place, b"untracked", b"untracked\n")


@move(6)
def nested(spot: Spot) -> None:
    """A repository in an untracked directory, with a stash, staged and untracked work"""
    _work(spot, _repository(spot, os.path.join(spot.directory(b"scratch"), b"repo"), 2))


@move(6)
def nested_without_commit(spot: Spot) -> None:
    """A repository without a commit"""
    place = _repository(spot, os.path.join(spot.directory(b"scratch"), b"repo"), 0)
    _put(place, b"staged", b"staged\n")
    spot.git_in(place, "add", "staged")
    _put(place, b"untracked", b"untracked\n")


@move(6)
def nested_in_tracked(spot: Spot) -> Iterator[None]:
    """A repository in a tracked directory"""
    spot.write(b"dir/tracked")
    yield
    _work(spot, _repository(spot, spot.at(b"dir/repo")))


@move(6)
def nested_in_ignored(spot: Spot) -> Iterator[None]:
    """A repository in an ignored directory, captured on request"""
    spot.write(b".gitignore", b"scratch/\n")
    yield
    spot.scene.includes = True
    _work(spot, _repository(spot, os.path.join(spot.directory(b"scratch"), b"repo")))


@move(6)
def nested_in_nested(spot: Spot) -> None:
    """A repository in a repository"""
    outer = _repository(spot, os.path.join(spot.directory(b"scratch"), b"outer"))
    _work(spot, _repository(spot, os.path.join(outer, b"inner")))


@move(6)
def nested_staged(spot: Spot) -> None:
    """A repository that was added as a gitlink without being a submodule"""
    place = _repository(spot, os.path.join(spot.directory(b"scratch"), b"repo"))
    spot.git("add", "--", spot.rel(b"scratch/repo"))
    _work(spot, place)


@move(6)
def nested_over_tracked(spot: Spot) -> Iterator[None]:
    """A tracked directory that has become a repository of its own"""
    spot.write(b"dir/file")
    yield
    _work(spot, _repository(spot, spot.at(b"dir")))


@move(6)
def nested_clone(spot: Spot) -> None:
    """A clone of the lane's own repository, which shares its objects by hard links, and one by alternates"""
    root = spot.world.root
    spot.git_in(spot.directory(b"scratch"), "clone", "-q", root, "linked")
    spot.git_in(spot.directory(b"scratch"), "clone", "-q", "--shared", root, "shared")
    _work(spot, spot.at(b"scratch/linked"))
    _work(spot, spot.at(b"scratch/shared"))
    # The same inodes as in the repository itself, where git touches an object that it is to write again.
    spot.scene.untimed.add(spot.rel(b"scratch/linked/.git/objects"))


@move(6)
def nested_busy(spot: Spot) -> None:
    """A repository with a merge in progress"""
    place = _repository(spot, os.path.join(spot.directory(b"scratch"), b"repo"), 2)
    spot.git_in(place, "checkout", "-q", "-b", "side", "HEAD~1")
    _put(place, b"file", b"of the side\n")
    spot.git_in(place, "commit", "-q", "-a", "-m", "side")
    spot.git_in(place, "merge", "-q", "main", fails=True)


@move(6, holds="linked-worktree")
def nested_elsewhere(spot: Spot) -> None:
    """A directory whose `.git` is a link to a git directory elsewhere"""
    theirs = _repository(spot, os.fsencode(spot.world.home / "theirs-linked"))
    spot.directory(b"scratch")
    spot.write(b"scratch/file")
    spot.link(b"scratch/.git", os.path.join(theirs, b".git"))


@move(6)
def nested_bare(spot: Spot) -> None:
    """A bare repository among untracked files"""
    spot.git_in(spot.directory(b"scratch"), "init", "-q", "--bare", "bare.git")


@move(6)
def broken_pointer(spot: Spot) -> None:
    """`.git` files and directories that are no repositories"""
    spot.write(b"empty/.git/placeholder")
    os.unlink(spot.at(b"empty/.git/placeholder"))
    spot.write(b"broken/.git", b"gitdir: /nowhere/at/all\n")
    spot.write(b"broken/file")
    spot.write(b"nonsense/.git", b"nonsense\n")


@move(6, holds="linked-worktree")
def linked_worktree(spot: Spot) -> None:
    """A worktree of another repository"""
    theirs = _repository(spot, os.fsencode(spot.world.home / "theirs"))
    spot.git_in(theirs, "worktree", "add", "-q", "-b", "ours", os.path.join(spot.directory(b"s"), b"tree"))


@move(6, holds="nested-worktrees")
def nested_with_worktrees(spot: Spot) -> None:
    """A repository with worktrees of its own elsewhere"""
    place = _repository(spot, os.path.join(spot.directory(b"scratch"), b"repo"))
    spot.git_in(place, "worktree", "add", "-q", "-b", "away", str(spot.world.home / "away"))


def _submodule(spot: Spot, name: bytes, source: bytes) -> bytes:
    spot.git(*ALLOWED, "submodule", "--quiet", "add", source, spot.rel(name))
    return spot.at(name)


@move(6)
def submodule(spot: Spot) -> Iterator[None]:
    """An initialised submodule without changes"""
    source = _repository(spot, os.fsencode(spot.world.home / "source-clean"))
    _submodule(spot, b"module", source)
    yield


@move(6)
def submodule_with_work(spot: Spot) -> Iterator[None]:
    """An initialised submodule with commits of its own, a stash and work"""
    place = _submodule(spot, b"module", _repository(spot, os.fsencode(spot.world.home / "source-work")))
    yield
    spot.git_in(place, "commit", "-q", "--allow-empty", "-m", "local")
    _work(spot, place)


@move(6)
def submodule_moved_on(spot: Spot) -> Iterator[None]:
    """A submodule at another commit than the index says, which is staged"""
    place = _submodule(spot, b"module", _repository(spot, os.fsencode(spot.world.home / "source-on")))
    yield
    spot.git_in(place, "checkout", "-q", "--detach")
    spot.git_in(place, "commit", "-q", "--allow-empty", "-m", "only here")
    spot.git("add", "--", spot.rel(b"module"))


@move(6)
def submodule_new(spot: Spot) -> None:
    """A submodule that was added and is not committed"""
    _submodule(spot, b"module", _repository(spot, os.fsencode(spot.world.home / "source-new")))


@move(6)
def submodule_in_submodule(spot: Spot) -> Iterator[None]:
    """A submodule in a submodule, both with work"""
    inner = _repository(spot, os.fsencode(spot.world.home / "source-inner"))
    outer = _repository(spot, os.fsencode(spot.world.home / "source-outer"))
    spot.git_in(outer, *ALLOWED, "submodule", "--quiet", "add", inner, "inner")
    spot.git_in(outer, "commit", "-q", "-m", "with inner")
    place = _submodule(spot, b"outer", outer)
    spot.git_in(place, *ALLOWED, "submodule", "--quiet", "update", "--init")
    yield
    _work(spot, os.path.join(place, b"inner"))
    _put(place, b"untracked", b"untracked\n")


@move(6)
def submodule_not_initialised(spot: Spot) -> Iterator[None]:
    """A submodule that is not checked out"""
    place = _submodule(spot, b"module", _repository(spot, os.fsencode(spot.world.home / "source-not")))
    yield
    spot.git("submodule", "--quiet", "deinit", "-f", "--", spot.rel(b"module"))
    assert os.listdir(place) == []


@move(6)
def submodule_gone(spot: Spot) -> Iterator[None]:
    """A submodule whose directory was deleted; its commits are in the registration alone"""
    place = _submodule(spot, b"module", _repository(spot, os.fsencode(spot.world.home / "source-gone")))
    yield
    spot.git_in(place, "commit", "-q", "--allow-empty", "-m", "only in the registration")
    for name in os.listdir(place):
        os.unlink(os.path.join(place, name))
    os.rmdir(place)


@move(6)
def submodule_embedded(spot: Spot) -> Iterator[None]:
    """A submodule with its git directory inside, as old versions of git made it"""
    source = _repository(spot, os.fsencode(spot.world.home / "source-old"))
    spot.directory(b"")
    spot.git_in(spot.at(), "clone", "-q", source, "module")
    spot.git(*ALLOWED, "submodule", "--quiet", "add", source, spot.rel(b"module"))
    yield
    _work(spot, spot.at(b"module"))


@move(6, order=HEADS - 2)
def submodule_switched_away(spot: Spot) -> Iterator[None]:
    """A submodule that only a commit left behind has, its git directory still in the registration"""
    spot.write(b"file")
    yield
    _submodule(spot, b"module", _repository(spot, os.fsencode(spot.world.home / "source-away")))
    spot.git("commit", "-q", "-m", "with a submodule")
    spot.git("reset", "-q", "--hard", "HEAD~1")
