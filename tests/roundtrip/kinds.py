"""Class 8: kinds of repositories."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.roundtrip.scene import FIRST, Spot, move
from tests.sagas.worlds import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def _some(spot: Spot) -> None:
    """Makes a little of everything."""
    spot.git("add", "--", spot.write(b"staged"))
    spot.write(b"untracked")
    spot.write(b"tracked", b"changed\n")


def _sha256(home: Path) -> World:
    return World(home, "--object-format=sha256")


def _cloned(*options: str, before: Callable[[World], None] | None = None) -> Callable[[Path], World]:
    """Returns how to make a world whose repository is a clone of another, with these options."""

    def build(home: Path) -> World:
        world = World(home, root=b"origin")
        for number in range(2):
            with open(os.path.join(world.root, b"more"), "wb") as file:
                file.write(b"number %d\n" % number)
            world.git(world.root, "add", "more")
            world.git(world.root, "commit", "-q", "-m", f"number {number}")
        world.git(world.root, "config", "uploadpack.allowFilter", "true")
        world.git(world.root, "config", "uploadpack.allowAnySHA1InWant", "true")
        origin, root = world.root, os.path.join(os.fsencode(home), b"root")
        world.git(os.fsencode(home), "clone", "-q", *options, b"file://" + origin, root)
        world.root = root
        return world

    return build


def _worktree_config(home: Path) -> World:
    world = World(home)
    world.git(world.root, "config", "extensions.worktreeConfig", "true")
    return world


def _bare(home: Path) -> World:
    world = World(home)
    bare = os.fsencode(home / "bare.git")
    world.git(os.fsencode(home), "clone", "-q", "--bare", world.root, bare)
    world.root = bare
    return world


def _alternates(home: Path) -> World:
    world = World(home, root=b"origin")
    root = os.path.join(os.fsencode(home), b"root")
    world.git(os.fsencode(home), "clone", "-q", "--shared", world.root, root)
    world.root = root
    return world


def _unfetchable(spot: Spot) -> None:
    """Makes every attempt to fetch a promised object fail, and leave a mark."""
    spot.configure("remote.origin.uploadpack", spot.program("fetched", "exit 1"))


@move(8, order=FIRST, group="kind", world=_sha256)
def sha256(spot: Spot) -> Iterator[None]:
    """A repository of SHA-256 objects"""
    spot.write(b"tracked")
    yield
    _some(spot)


@move(8, order=FIRST, group="kind", world=_cloned("--depth=1"))
def shallow(spot: Spot) -> Iterator[None]:
    """A shallow clone"""
    spot.write(b"tracked")
    yield
    _some(spot)


@move(8, order=FIRST, group="kind", world=_cloned("--filter=blob:none"))
def partial(spot: Spot) -> Iterator[None]:
    """A partial clone in which nothing is missing that the lane needs"""
    spot.write(b"tracked")
    yield
    _some(spot)
    _unfetchable(spot)


@move(8, order=FIRST, group="kind head", world=_cloned("--filter=blob:none"), holds="missing-object")
def partial_missing(spot: Spot) -> Iterator[None]:
    """A partial clone without an object that the lane needs, which is not fetched"""
    spot.write(b"tracked")
    yield
    _unfetchable(spot)
    # The first commit of `more` was never checked out here; somebody has written the very file by hand.
    commit = spot.git("rev-parse", "origin/main~1").decode().strip()
    spot.git("update-ref", "--no-deref", "HEAD", commit)
    spot.git("read-tree", commit)
    with open(os.path.join(spot.scene.place, b"more"), "wb") as file:
        file.write(b"number 0\n")
    spot.git("update-index", "-q", "--refresh")


@move(8, order=FIRST, group="kind", world=_worktree_config)
def worktree_config(spot: Spot) -> Iterator[None]:
    """`extensions.worktreeConfig`, with a configuration of the worktree's own"""
    spot.write(b"tracked")
    yield
    spot.git("config", "--worktree", "user.name", "Somebody else")
    spot.git("config", "--worktree", "core.editor", "true")
    _some(spot)


@move(8, order=FIRST, group="kind", world=_alternates)
def alternates(spot: Spot) -> Iterator[None]:
    """A repository whose objects come through alternates"""
    spot.write(b"tracked")
    yield
    _some(spot)


@move(8, order=FIRST, group="kind", world=_bare)
def bare(spot: Spot) -> Iterator[None]:
    """A lane of a bare repository"""
    spot.write(b"tracked")
    yield
    _some(spot)
