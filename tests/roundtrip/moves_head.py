"""Class 3: HEAD, commits that only its log reaches, and the refs and configuration of the worktree."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.roundtrip.scene import HEADS, LAST, Spot, move

if TYPE_CHECKING:
    from collections.abc import Iterator


@move(3, order=HEADS + 5, group="head")
def detached(spot: Spot) -> None:
    """A detached HEAD with a commit that nothing else reaches"""
    spot.git("checkout", "-q", "--detach")
    spot.commit(spot.write(b"file"))


@move(3, order=LAST + 7, group="head operation")
def orphan(spot: Spot) -> Iterator[None]:
    """HEAD on a branch without a commit, with everything staged"""
    spot.write(b"file")
    yield
    spot.git("checkout", "-q", "--orphan", "unborn")
    spot.write(b"file", b"changed\n")


@move(3, order=LAST + 7, group="head operation")
def orphan_empty(spot: Spot) -> Iterator[None]:
    """HEAD on a branch without a commit, with an empty index and untracked files"""
    spot.write(b"file")
    yield
    spot.git("checkout", "-q", "--orphan", "fresh/start")
    spot.git("rm", "-rfq", "--cached", ".")


@move(3, order=HEADS, group="head")
def other_branch(spot: Spot) -> None:
    """HEAD on another branch than the lane's own"""
    spot.git("checkout", "-q", "-b", "topic/other")
    spot.commit(spot.write(b"file"))


@move(3, order=HEADS + 1)
def amended(spot: Spot) -> None:
    """A commit that was amended, and is only in the log of HEAD"""
    path = spot.write(b"file", b"first\n")
    spot.commit(path)
    spot.write(b"file", b"second\n")
    spot.git("commit", "-q", "--amend", "-m", "amended", "--", path)


@move(3, order=HEADS + 2)
def reset_hard(spot: Spot) -> None:
    """Commits that were taken back by `reset --hard`"""
    spot.commit(spot.write(b"file"))
    spot.commit(spot.write(b"more"))
    spot.git("reset", "-q", "--hard", "HEAD~2")


@move(3, order=HEADS + 3)
def reset_soft(spot: Spot) -> None:
    """A commit that was taken back by `reset --soft`, its changes staged"""
    spot.commit(spot.write(b"file"))
    spot.git("reset", "-q", "--soft", "HEAD~1")


@move(3, order=HEADS + 1)
def wandered(spot: Spot) -> None:
    """Commits made while HEAD was detached, and left behind"""
    before = spot.git("rev-parse", "--abbrev-ref", "HEAD").decode().strip()
    back = spot.git("rev-parse", "HEAD").decode().strip() if before == "HEAD" else before
    spot.git("checkout", "-q", "--detach")
    spot.commit(spot.write(b"file"))
    spot.git("checkout", "-q", back)


@move(3)
def refs_worktree(spot: Spot) -> None:
    """`refs/worktree/*` that alone reach a commit, a tree and a blob"""
    blob = spot.git("hash-object", "-w", "--stdin", stdin=b"only here\n").decode().strip()
    tree = spot.git("mktree", stdin=f"100644 blob {blob}\tname\n".encode()).decode().strip()
    other = spot.git("hash-object", "-w", "--stdin", stdin=b"nor anywhere else\n").decode().strip()
    commit = spot.git("commit-tree", "-m", "nobody's", tree).decode().strip()
    for name, oid in (("commit", commit), ("tree", tree), ("deep/er/blob", other)):
        spot.git("update-ref", f"refs/worktree/{name}", oid)
    spot.git("update-ref", "--create-reflog", "refs/worktree/logged", "HEAD")
    spot.git("symbolic-ref", "refs/worktree/symbolic", "refs/worktree/commit")


@move(3)
def refs_bisect_and_rewritten(spot: Spot) -> None:
    """`refs/bisect/*` and `refs/rewritten/*` that were set by hand"""
    tree = spot.git("mktree", stdin=b"").decode().strip()
    for number, name in enumerate(("refs/bisect/found", "refs/rewritten/label")):
        commit = spot.git("commit-tree", "-m", f"number {number}", tree).decode().strip()
        spot.git("update-ref", name, commit)


@move(3)
def shared_tag(spot: Spot) -> None:
    """An annotated tag of `refs/tags/` that a ref of the worktree names too"""
    spot.git("tag", "-a", "-m", "said", "shared")
    spot.git("update-ref", "refs/worktree/tag", "refs/tags/shared")


@move(3, holds="private-tag")
def private_tag(spot: Spot) -> None:
    """An annotated tag that only a ref of the worktree reaches"""
    spot.git("tag", "-a", "-m", "said", "passing")
    oid = spot.git("rev-parse", "refs/tags/passing").decode().strip()
    spot.git("update-ref", "refs/worktree/tag", oid)
    spot.git("update-ref", "-d", "refs/tags/passing")


@move(3)
def pseudo_refs(spot: Spot) -> None:
    """ORIG_HEAD, FETCH_HEAD and a pseudo ref of somebody's own"""
    spot.git("fetch", "-q", ".", "HEAD")
    tree = spot.git("mktree", stdin=b"").decode().strip()
    for name in ("ORIG_HEAD", "MY_OWN_HEAD"):
        spot.git("update-ref", name, spot.git("commit-tree", "-m", name, tree).decode().strip())


@move(3)
def stashed(spot: Spot) -> Iterator[None]:
    """A stash, which the whole repository shares"""
    path = spot.write(b"file")
    yield
    spot.write(b"file", b"stashed\n")
    spot.git("stash", "push", "-q", "--", path)


@move(3)
def own_files(spot: Spot) -> None:
    """Files and directories of somebody's own in the registration"""
    admin = spot.git("rev-parse", "--absolute-git-dir").rstrip(b"\n")
    os.makedirs(os.path.join(admin, b"theirs/empty"))
    for name, mode in ((b"theirs/state", 0o600), (b"description", 0o644), (b"\xff\nname", 0o755)):
        with open(os.path.join(admin, name), "wb") as file:
            file.write(spot.own)
        os.chmod(os.path.join(admin, name), mode)
    os.symlink(b"theirs/state", os.path.join(admin, b"a-link"))


@move(3, order=HEADS - 1)
def description(spot: Spot) -> None:
    """Messages and the log of a commit that was begun and given up"""
    spot.git("commit", "--allow-empty", "-q", "-m", "", fails=True)
