"""What only a lane's registration names is found, whatever it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters.files.durable import read_file
from adapters.snapshots.capture.keeping_alive import Alive, named_in_log, only_here

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
    lane.git("branch", "kept", old)
    assert await logged(lane) == ()


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


async def test_a_commit_that_only_a_passing_ref_knows_is_only_here(lane: Lane) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "one")
    one = lane.head()
    lane.git("reset", "-q", "--hard", "HEAD~1")
    for ref in ("refs/worktree/x", "refs/bisect/bad", "refs/rewritten/x", "refs/laneyard/snapshots/x"):
        lane.git("update-ref", ref, one)
    assert (await alive(lane, one)).commits == (one,)


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


async def test_a_tag_is_private_until_a_lasting_ref_is_at_it_and_its_commit_is_kept(lane: Lane) -> None:
    lane.git("commit", "-q", "--allow-empty", "-m", "tagged")
    commit = lane.head()
    lane.git("tag", "-a", "-m", "a tag", "annotated")
    tag = lane.git("rev-parse", "annotated").decode().strip()
    lane.git("reset", "-q", "--hard", "HEAD~1")
    assert await alive(lane, tag) == Alive()
    lane.git("update-ref", "refs/worktree/mine", tag)
    lane.git("tag", "-d", "annotated")
    assert await alive(lane, tag) == Alive(commits=(commit,), tags=(tag,))


async def test_without_names_nothing_is_asked(lane: Lane) -> None:
    door = lane.door
    assert await only_here(door, lane.world.common, {lane.head().encode()}, lane.head()) == Alive()
    assert door.started == 0
