"""A restore that dies, with its git or alone, is finished by the next, which waits for a git that lives."""

from __future__ import annotations

import fcntl
import os
import signal
from typing import TYPE_CHECKING

import pytest
import trio

from adapters.files.durable import read_file
from domain.effects import Applied, NotDone
from tests.adapters.snapshots.applying import CONVERTIBLE, age, apply, convertible, fresh, look
from tests.adapters.snapshots.handmade import snapshot
from tests.sagas.crashes import DEAD, in_a_process
from tests.sagas.trees import write

if TYPE_CHECKING:
    from domain.evidence import Place, Snapshot
    from tests.adapters.snapshots.applying import Fact
    from tests.adapters.snapshots.lanes import Lane

Looked = dict[bytes, "Fact"]


def begun(lane: Lane) -> tuple[Snapshot, Place, Looked]:
    """Takes a lane of every kind of entry away, and makes the worktree that it comes back to."""
    convertible(lane)
    lane.world.dirty(lane.path)
    lane.write(b"big", b"big" * 1000)
    os.link(lane.at(b"plain"), lane.at(b"sub/plain too"))
    os.setxattr(lane.at(b"plain"), b"user.note", b"note")
    age(lane)
    taken, before = snapshot(lane, apart=(b"big",), stood_in=(b"big",)), look(lane)
    return taken, trio.run(fresh, lane, taken), before


def assert_finished(lane: Lane, taken: Snapshot, place: Place, before: Looked) -> None:
    assert trio.run(apply, lane, taken, place) == Applied(content=taken.content)
    assert look(lane) == before
    litter = [name for name in os.listdir(lane.admin) if name.startswith(b".laneyard-")]
    assert litter == []


@pytest.mark.slow
def test_a_git_that_is_killed_half_way_with_us_is_made_good(lane: Lane) -> None:
    taken, place, before = begun(lane)
    tree, admin = os.fsdecode(lane.path), os.fsdecode(lane.admin)
    cut = "; ".join(f'truncate -s 3 "{tree}/{os.fsdecode(path)}"' for path in (*CONVERTIBLE, b"big"))
    gone = f'rm "{tree}/file" "{tree}/sub/inner"; cd "{admin}"; mv .laneyard-filled .laneyard-filled.lock'
    lane.world.fake(f'case " $* " in *" read-tree "*) git "$@"; {cut}; {gone}; kill -9 $PPID; exit;; esac')
    assert in_a_process(lambda: trio.run(apply, lane, taken, place)) == -signal.SIGKILL
    lane.world.program = "git"
    assert_finished(lane, taken, place, before)


@pytest.mark.slow
def test_a_lock_that_the_users_git_holds_after_we_were_killed_is_respected(lane: Lane) -> None:
    """With nothing in it, as git holds it while it looks at files, or with an index that it is to be."""
    taken, place, before = begun(lane)
    lane.world.fake('case " $* " in *" read-tree "*) git "$@"; kill -9 $PPID; exit;; esac')
    assert in_a_process(lambda: trio.run(apply, lane, taken, place)) == -signal.SIGKILL
    lane.world.program = "git"
    lock = os.path.join(lane.admin, b"index.lock")
    lane.git("reset", "-q")
    for content in (b"", read_file(os.path.join(lane.admin, b"index"))):
        write(lock, content)
        outcome = trio.run(apply, lane, taken, place)
        assert isinstance(outcome, NotDone)
        assert (outcome.code, outcome.transient) == ("locked", True)
        assert read_file(lock) == content
        os.unlink(lock)
    assert_finished(lane, taken, place, before)


@pytest.mark.slow
@pytest.mark.parametrize("split", [False, True])
def test_a_restore_that_dies_while_it_writes_the_index_gives_way_to_the_next(
    lane: Lane, monkeypatch: pytest.MonkeyPatch, split: bool
) -> None:
    """Each rename onto the index is a moment to die in, with the index's lock in our hands."""
    if split:
        lane.git("update-index", "--split-index")
    taken, place, before = begun(lane)
    rename = os.rename

    def dying(nth: int) -> None:
        left = iter(range(nth))

        def die(source: bytes, target: bytes, **directories: int) -> None:
            if target == b"index" and next(left, None) is None:
                os._exit(DEAD)
            rename(source, target, **directories)

        monkeypatch.setattr(os, "rename", die)
        trio.run(apply, lane, taken, place)

    for nth in range(1 + split):
        assert in_a_process(lambda nth=nth: dying(nth)) == DEAD  # type: ignore[misc]
        assert os.path.exists(os.path.join(lane.admin, b"index.lock"))
    assert_finished(lane, taken, place, before)


@pytest.mark.slow
def test_a_git_that_gives_up_is_done_without(lane: Lane) -> None:
    for name in (b"large", b"sub/the same", b"larger"):
        lane.write(name, b"large" * 700_000 + b"r" * name.count(b"larger"))
    taken, place, before = begun(lane)
    tree = os.fsdecode(lane.path)
    some = f'printf mod >"{tree}/file"; printf "one\\r\\nt" >"{tree}/lines.crlf"; : >"{tree}/both"'
    lane.world.fake(f'case " $* " in *" read-tree "*) {some}; exit 128;; esac')
    assert_finished(lane, taken, place, before)


@pytest.mark.slow
def test_a_git_that_lives_on_is_waited_for(lane: Lane) -> None:
    taken, place, before = begun(lane)
    lane.world.fake(
        """case " $* " in *" read-tree "*)
            kill -9 $PPID
            while ! [ -e "$WORLD/awaited" ]; do sleep 0.01; done
            git "$@"
            : >"$WORLD/ended"
            exit;; esac"""
    )
    assert in_a_process(lambda: trio.run(apply, lane, taken, place)) == -signal.SIGKILL
    lane.world.program = "git"
    lock = os.path.join(lane.directory(), b"lock")
    with open(lock, "rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    (lane.world.home / "awaited").touch()
    assert_finished(lane, taken, place, before)
    assert (lane.world.home / "ended").exists()


@pytest.mark.slow
def test_a_restore_that_is_killed_again_and_again_is_finished(lane: Lane) -> None:
    """By the clock, so that it dies wherever it happens to be, each time a little later."""
    taken, place, before = begun(lane)

    def attempt(seconds: float) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        trio.run(apply, lane, taken, place)

    ends = [in_a_process(lambda ms=ms: attempt(ms / 1000)) for ms in range(2, 120, 6)]  # type: ignore[misc]
    assert -signal.SIGALRM in ends
    assert_finished(lane, taken, place, before)
