"""What only a lane's registration names is found, whatever it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.files.durable import read_file
from adapters.git.door import Git
from adapters.snapshots.capture.keeping_alive import Alive, _last, named_in_log, only_here

if TYPE_CHECKING:
    from tests.adapters.snapshots.lanes import Lane


async def logged(lane: Lane) -> tuple[str, ...]:
    names = named_in_log(read_file(os.path.join(lane.admin, b"logs/HEAD")), 40)
    return (await alive(lane, *names)).commits


async def alive(lane: Lane, *names: bytes | str) -> Alive:
    asked = {name.encode() if isinstance(name, str) else name for name in names}
    return await only_here(lane.door, lane.world.common, asked, lane.head())


async def test_an_amended_commit_is_only_in_the_log(lane: Lane) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "first try")
    old = lane.head()
    lane.git("commit", "-q", "--amend", "--allow-empty", "-m", "second try")
    assert await logged(lane) == (old,)


@pytest.mark.parametrize(
    "ref", ["refs/heads/kept", "refs/remotes/origin/topic", "refs/tags/kept", "refs/bisect/bad", "refs/x"]
)
async def test_a_commit_that_another_ref_reaches_is_only_here_all_the_same(lane: Lane, ref: str) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "one")
    one = lane.head()
    lane.git("reset", "-q", "--hard", "HEAD~1")
    lane.git("update-ref", ref, one)
    assert await logged(lane) == (one,)


async def test_a_commit_that_head_reaches_is_not_only_here(lane: Lane) -> None:
    for name in ("one", "two", "three"):
        lane.git("commit", "-q", "--allow-empty", "-m", name)
    assert await logged(lane) == ()


async def test_where_a_commit_has_lost_its_history_every_named_one_is_kept(lane: Lane) -> None:
    tree = lane.git("rev-parse", "HEAD^{tree}").decode().strip()
    line, lost = [lane.head()], lane.git("commit-tree", tree, "-m", "lost").decode().strip()
    for name in ("a", "b"):
        made = lane.git("commit-tree", tree, "-p", line[-1], "-p", lost, "-m", name)
        line.append(made.decode().strip())
    os.unlink(os.path.join(lane.world.common, b"objects", lost[:2].encode(), lost[2:].encode()))
    assert set((await alive(lane, lost, *line)).commits) == set(line[1:])


async def test_where_the_history_is_longer_than_git_may_tell_every_named_commit_is_kept(lane: Lane) -> None:
    made = [lane.git("commit-tree", "HEAD^{tree}", "-m", f"{number}") for number in range(2)]
    names = sorted(each.decode().strip() for each in made)
    narrow = Git(b"git", lane.world.environment, output_limit=20)
    assert await _last(narrow, lane.world.common, tuple(names), lane.head()) == tuple(names)


async def test_of_a_line_of_commits_the_last_is_enough(lane: Lane) -> None:
    start = lane.head()
    for name in ("one", "two", "three"):
        lane.git("commit", "-q", "--allow-empty", "-m", name)
    last = lane.head()
    lane.git("reset", "-q", "--hard", start)
    assert await logged(lane) == (last,)


async def test_a_commit_that_only_the_main_checkouts_head_knows_is_only_in_the_log(lane: Lane) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "tried there, too")
    old = lane.head()
    lane.world.git(lane.world.root, "checkout", "-q", "--detach", old)
    lane.git("reset", "-q", "--hard", "HEAD~1")
    assert await logged(lane) == (old,)


async def test_a_log_with_nonsense_in_it_names_what_it_can(lane: Lane) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "one")
    old = lane.head()
    lane.git("reset", "-q", "--hard", "HEAD~1")
    text = (
        b"\xff\xfe nonsense\n\n" + b"e" * 40 + b" " + old.encode() + b" Ada\nrefs/heads/" + b"x" * 29 + b"\n"
    )
    assert named_in_log(text, 40) == {b"e" * 40, old.encode()}
    assert (await alive(lane, *named_in_log(text, 40))).commits == (old,)


async def test_a_short_name_is_one_of_a_commit_and_a_word_is_none(lane: Lane) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "one")
    old = lane.head()
    lane.git("reset", "-q", "--hard", "HEAD~1")
    assert (await alive(lane, old[:7], "deadbeef", "0" * 40)).commits == (old,)


async def test_blobs_and_trees_are_kept_as_they_are(lane: Lane) -> None:
    lane.write(b"new", b"new\n")
    blob = lane.git("hash-object", "-w", "new").decode().strip()
    tree = lane.git("rev-parse", "HEAD^{tree}").decode().strip()
    found = await alive(lane, blob, tree)
    assert (found.commits, set(found.others)) == ((), {(blob, False), (tree, True)})


async def test_a_tag_is_private_until_a_tag_or_branch_is_at_it_and_its_commit_is_kept(lane: Lane) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "tagged")
    commit = lane.head()
    lane.git("tag", "-a", "-m", "a tag", "annotated")
    tag = lane.git("rev-parse", "annotated").decode().strip()
    lane.git("reset", "-q", "--hard", "HEAD~1")
    assert await alive(lane, tag) == Alive(commits=(commit,))
    for ref in ("refs/worktree/mine", "refs/remotes/origin/odd"):
        lane.git("update-ref", ref, tag)
    lane.git("tag", "-d", "annotated")
    assert await alive(lane, tag) == Alive(commits=(commit,), tags=(tag,))


async def test_without_names_nothing_is_asked(lane: Lane) -> None:
    door = lane.door
    assert await only_here(door, lane.world.common, {lane.head().encode()}, lane.head()) == Alive()
    assert door.started == 0
