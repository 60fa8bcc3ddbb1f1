"""A restore that was killed while git filled the tree can be undone: what git has left there is ours."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
import trio

from domain.effects import Destroy, Destroyed, Explain, Explained, Unexplained
from tests.adapters.snapshots.applying import CONVERTIBLE, apply, convertible, fresh
from tests.adapters.snapshots.handmade import snapshot
from tests.sagas.crashes import in_a_process
from tests.sagas.trees import walk, write

if TYPE_CHECKING:
    from domain.evidence import Place, Snapshot
    from tests.adapters.snapshots.lanes import Lane

BIG = b"big.crlf"


def begun(lane: Lane) -> tuple[Snapshot, Place]:
    """Takes a lane away that a checkout would convert, and makes the worktree that it comes back to."""
    convertible(lane)
    lane.write(b"untracked.crlf", b"one\ntwo\n")
    lane.write(BIG, b"big\n" * 1_000)
    taken = snapshot(lane, apart=(BIG,), stood_in=(BIG,))
    return taken, trio.run(fresh, lane, taken)


def killed(lane: Lane, taken: Snapshot, place: Place, also: str = "") -> None:
    """Lets a restore die when git has filled the tree, before we look at it."""
    lane.world.fake(f'case " $* " in *" read-tree "*) git "$@"; {also} kill -9 $PPID; exit;; esac')
    assert in_a_process(lambda: trio.run(apply, lane, taken, place)) == -signal.SIGKILL
    lane.world.program = "git"


def undo(lane: Lane, taken: Snapshot, place: Place) -> None:
    basis = lane.basis(taken, partial=True)
    where = {"repository": lane.repository, "place": place, "basis": basis}
    explained = trio.run(lane.perform, Explain(**where))  # type: ignore[arg-type]
    assert isinstance(explained, Explained), explained
    assert trio.run(lane.perform, Destroy(digest=explained.digest, **where)) == Destroyed()  # type: ignore[arg-type]
    assert not os.path.lexists(lane.path)


@pytest.mark.slow
def test_what_git_has_converted_goes(lane: Lane) -> None:
    taken, place = begun(lane)
    killed(lane, taken, place)
    there = walk(lane.path)
    assert there[b"lines.crlf"][2] == b"one\r\ntwo\r\n"
    assert there[BIG][2].startswith(b"laneyard: held apart")
    assert there[BIG][2].endswith(b"\r\n")
    assert there[b"text.wide"][2].startswith(b"\xff\xfe")
    undo(lane, taken, place)


@pytest.mark.slow
def test_beginnings_of_what_git_converts_go(lane: Lane) -> None:
    taken, place = begun(lane)
    tree = os.fsdecode(lane.path)
    paths = (*CONVERTIBLE, b"untracked.crlf", BIG)
    cut = "".join(f'truncate -s 5 "{tree}/{os.fsdecode(path)}"; ' for path in paths)
    killed(lane, taken, place, cut + f'rm "{tree}/file";')
    undo(lane, taken, place)


@pytest.mark.slow
def test_beginnings_go_where_the_attributes_had_not_come_yet(lane: Lane) -> None:
    taken, place = begun(lane)
    tree = os.fsdecode(lane.path)
    killed(lane, taken, place, f'rm "{tree}/.gitattributes" "{tree}/text.wide";')
    undo(lane, taken, place)


@pytest.mark.slow
def test_what_a_stranger_has_put_there_meanwhile_stays(lane: Lane) -> None:
    taken, place = begun(lane)
    killed(lane, taken, place)
    write(lane.at(b"lines.crlf"), b"one\r\ntwo\r\nthree\r\n")
    write(lane.at(b"theirs"), b"theirs\n")
    basis = lane.basis(taken, partial=True)
    outcome = trio.run(lane.perform, Explain(repository=lane.repository, place=place, basis=basis))
    assert isinstance(outcome, Unexplained)
    assert outcome.paths == ("lines.crlf", "theirs")
