"""Class 4: operations in progress, each stopped by git itself, and how they are gone on with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.roundtrip.scene import OPERATIONS, Spot, move

if TYPE_CHECKING:
    from collections.abc import Iterator

ALONE = "operation"


def _sides(spot: Spot, ours: int = 1, theirs: int = 2) -> list[str]:
    """Commits that contradict each other, on HEAD and on the branch `side`; returns those of the branch."""
    back = spot.git("rev-parse", "--abbrev-ref", "HEAD").decode().strip()
    start = spot.git("rev-parse", "HEAD").decode().strip()
    path, made = spot.rel(b"file"), []
    spot.git("checkout", "-q", "-b", "side")
    for number in range(theirs):
        spot.write(b"file", b"theirs %d\n" % number)
        spot.write(b"theirs-%d" % number, b"alone %d\n" % number)
        made.append(spot.commit(path, spot.rel(b"theirs-%d" % number), message=f"theirs {number}"))
    spot.git("checkout", "-q", start if back == "HEAD" else back)
    for number in range(ours):
        spot.write(b"file", b"ours %d\n" % number)
        spot.commit(path, message=f"ours {number}")
    return made


def _base(spot: Spot) -> None:
    spot.write(b"file", b"base\n")


@move(4, order=OPERATIONS, group=ALONE)
def merging(spot: Spot) -> Iterator[None]:
    """A merge with conflicts"""
    _base(spot)
    yield
    _sides(spot)
    spot.git("merge", "-q", "side", fails=True)
    spot.scene.goes_on = "merge"


@move(4, order=OPERATIONS, group=ALONE)
def merging_resolved(spot: Spot) -> Iterator[None]:
    """A merge whose conflict is resolved and not committed, with its resolve-undo"""
    _base(spot)
    yield
    _sides(spot)
    spot.git("merge", "-q", "side", fails=True)
    spot.git("add", "--", spot.write(b"file", b"resolved by hand\n"))
    spot.scene.goes_on = "merge"


@move(4, order=OPERATIONS, group=ALONE)
def merging_without_commit(spot: Spot) -> Iterator[None]:
    """A merge that waits to be committed"""
    _base(spot)
    yield
    _sides(spot, ours=0)
    spot.git("merge", "-q", "--no-commit", "--no-ff", "side")
    spot.scene.goes_on = "merge"


@move(4, order=OPERATIONS, group=ALONE)
def merging_squashed(spot: Spot) -> Iterator[None]:
    """A squashed merge that waits to be committed"""
    _base(spot)
    yield
    _sides(spot, ours=0)
    spot.git("merge", "-q", "--squash", "side")
    spot.scene.goes_on = "merge"


@move(4, order=OPERATIONS, group=ALONE)
def merging_deleted(spot: Spot) -> Iterator[None]:
    """A merge in which one side has deleted what the other has changed, and both have added another file"""
    _base(spot)
    yield
    _sides(spot, ours=0, theirs=1)
    spot.write(b"theirs-0", b"added here too\n")
    spot.git("rm", "-q", "--", spot.rel(b"file"))
    spot.git("add", "--", spot.rel(b"theirs-0"))
    spot.git("commit", "-q", "-m", "deleted")
    spot.git("merge", "-q", "side", fails=True)
    spot.scene.goes_on = "merge"


@move(4, order=OPERATIONS, group=ALONE)
def rebasing(spot: Spot) -> Iterator[None]:
    """A rebase with conflicts (merge backend)"""
    _base(spot)
    yield
    _sides(spot, ours=3)
    spot.git("rebase", "-q", "--merge", "side", fails=True)
    spot.scene.goes_on = "rebase"


@move(4, order=OPERATIONS, group=ALONE)
def rebasing_by_patches(spot: Spot) -> Iterator[None]:
    """A rebase with conflicts (apply backend)"""
    _base(spot)
    yield
    _sides(spot, ours=3)
    spot.git("rebase", "-q", "--apply", "side", fails=True)
    spot.scene.goes_on = "rebase"


def _edited_list(spot: Spot, edit: str) -> str:
    """Returns an editor of the list of an interactive rebase."""
    program = spot.world.home / "list-editor"
    program.write_text(f'#!/bin/sh\nsed -i "{edit}" "$1"\n')
    program.chmod(0o755)
    return str(program)


@move(4, order=OPERATIONS, group=ALONE)
def rebasing_interactively(spot: Spot) -> Iterator[None]:
    """An interactive rebase that stopped at a `break`, with a fixup to come"""
    _base(spot)
    yield
    for number in range(4):
        spot.write(b"file", b"base\n" + b"line\n" * number)
        spot.commit(spot.rel(b"file"), spot.write(b"n%d" % number), message=f"number {number}")
    editor = _edited_list(spot, "1a break\n3s/^pick/fixup/")
    spot.git("rebase", "-q", "-i", "HEAD~4", GIT_SEQUENCE_EDITOR=editor)
    spot.scene.goes_on = "rebase"


@move(4, order=OPERATIONS, group=ALONE)
def rebasing_edit(spot: Spot) -> Iterator[None]:
    """An interactive rebase that stopped to edit a commit, which was amended already"""
    _base(spot)
    yield
    for number in range(3):
        spot.commit(spot.write(b"n%d" % number), message=f"number {number}")
    spot.git("rebase", "-q", "-i", "HEAD~3", GIT_SEQUENCE_EDITOR=_edited_list(spot, "1s/^pick/edit/"))
    spot.write(b"n0", b"amended\n")
    spot.git("commit", "-q", "--amend", "-m", "number 0, amended", "--", spot.rel(b"n0"))
    spot.scene.goes_on = "rebase"


@move(4, order=OPERATIONS, group=ALONE)
def rebasing_merges(spot: Spot) -> Iterator[None]:
    """A rebase of merges, with labels in `refs/rewritten/`"""
    _base(spot)
    yield
    start = spot.git("rev-parse", "HEAD").decode().strip()
    spot.commit(spot.write(b"onto"), message="onto")
    spot.git("branch", "onto")
    spot.git("reset", "-q", "--hard", start)
    spot.git("checkout", "-q", "-b", "inner")
    spot.commit(spot.write(b"inner"), message="inner")
    spot.git("checkout", "-q", "-")
    spot.commit(spot.write(b"outer"), message="outer")
    spot.git("merge", "-q", "--no-ff", "-m", "joined", "inner")
    editor = _edited_list(spot, "/^merge/i break")
    spot.git("rebase", "-q", "-i", "-r", "onto", GIT_SEQUENCE_EDITOR=editor)
    spot.scene.goes_on = "rebase"


@move(4, order=OPERATIONS, group=ALONE)
def rebasing_with_autostash(spot: Spot) -> Iterator[None]:
    """A rebase with conflicts that has put changes into an autostash"""
    _base(spot)
    spot.write(b"other")
    yield
    _sides(spot, ours=2)
    spot.write(b"other", b"stashed away\n")
    spot.git("rebase", "-q", "--autostash", "side", fails=True)
    spot.scene.goes_on = "rebase"


@move(4, order=OPERATIONS, group=ALONE)
def picking(spot: Spot) -> Iterator[None]:
    """A cherry-pick with a conflict"""
    _base(spot)
    yield
    spot.git("cherry-pick", _sides(spot)[0], fails=True)
    spot.scene.goes_on = "cherry-pick"


@move(4, order=OPERATIONS, group=ALONE)
def picking_several(spot: Spot) -> Iterator[None]:
    """A cherry-pick of several commits, stopped by a conflict"""
    _base(spot)
    yield
    spot.git("cherry-pick", *_sides(spot, theirs=3), fails=True)
    spot.scene.goes_on = "cherry-pick"


@move(4, order=OPERATIONS, group=ALONE)
def reverting_several(spot: Spot) -> Iterator[None]:
    """A revert of several commits, stopped by a conflict"""
    _base(spot)
    yield
    made = []
    for number in range(3):
        spot.write(b"file", b"number %d\n" % number)
        made.append(spot.commit(spot.rel(b"file"), spot.write(b"n%d" % number), message=f"number {number}"))
    spot.git("revert", "--no-edit", *made[:2], fails=True)
    spot.scene.goes_on = "revert"


@move(4, order=OPERATIONS, group=ALONE)
def reverting(spot: Spot) -> Iterator[None]:
    """A revert that waits to be committed"""
    _base(spot)
    yield
    spot.git("revert", "--no-commit", spot.commit(spot.write(b"file", b"changed\n"), message="changed"))
    spot.scene.goes_on = "revert"


@move(4, order=OPERATIONS, group=ALONE)
def applying_mail(spot: Spot) -> Iterator[None]:
    """`git am` of several patches, stopped by a conflict"""
    _base(spot)
    yield
    made = _sides(spot, theirs=3)
    mail = spot.git("format-patch", "--stdout", f"{made[0]}~1..{made[-1]}")
    spot.git("am", "-q", "-3", stdin=mail, fails=True)
    spot.scene.goes_on = "am"


@move(4, order=OPERATIONS, group=ALONE)
def bisecting(spot: Spot) -> Iterator[None]:
    """A bisection half way"""
    _base(spot)
    yield
    made = [spot.commit(spot.write(b"n%d" % number), message=f"number {number}") for number in range(9)]
    spot.git("bisect", "start", made[-1], made[0])
    spot.git("bisect", spot.rng.choice(("good", "bad")))
    spot.scene.goes_on = "bisect"


@move(4, order=OPERATIONS, group=ALONE)
def bisecting_own_terms(spot: Spot) -> Iterator[None]:
    """A bisection with terms of its own, just begun"""
    _base(spot)
    yield
    for number in range(5):
        spot.commit(spot.write(b"n%d" % number), message=f"number {number}")
    spot.git("bisect", "start", "--term-new=broken", "--term-old=whole")
    spot.git("bisect", "broken", "HEAD")


CONTINUED = {
    "merge": ("commit", "--no-edit"),
    "rebase": ("rebase", "--continue"),
    "cherry-pick": ("cherry-pick", "--continue"),
    "revert": ("revert", "--continue"),
    "am": ("am", "--continue"),
    "bisect": ("bisect", "bad"),
}
