"""A pack that our git has not finished goes, whoever of us dies; another git's stays."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
import trio

from adapters.git.errors import GitFailed
from domain.effects import Captured, NotDone
from tests.sagas.crashes import in_a_process
from tests.sagas.trees import write

if TYPE_CHECKING:
    from tests.adapters.snapshots.lanes import Lane

STRANGERS = b"tmp_pack_strang"
KILL = 'kill -9 $(tr " " "\\n" <"/proc/$$/task/$$/children" | tac)'  # git, and only then who says so


def packs(lane: Lane) -> set[bytes]:
    """Returns the unfinished packs, beside one that another git is writing."""
    return {name for name in os.listdir(where(lane)) if name.startswith(b"tmp_")} - {STRANGERS}


def where(lane: Lane) -> bytes:
    return os.path.join(lane.world.common, b"objects/pack")


def prepared(lane: Lane) -> None:
    lane.write(b"large", os.urandom(3 << 20))
    write(os.path.join(where(lane), STRANGERS), b"PACK of somebody else")


def dying(lane: Lane, end: str) -> None:
    """Makes git's import die in the midst of what it is given."""
    script = f'{{ dd bs=64k count=30 status=none; {end}; }} | git "$@"; exit $?'
    lane.world.fake(f'case " $* " in *" fast-import "*) {script};; esac')


@pytest.mark.slow
async def test_an_import_that_fails_leaves_no_pack(lane: Lane) -> None:
    prepared(lane)
    dying(lane, "exit")
    with pytest.raises(GitFailed):
        await lane.capture()
    assert packs(lane) == set()
    assert os.listdir(where(lane)).count(STRANGERS) == 1


@pytest.mark.slow
async def test_an_import_that_is_killed_leaves_no_pack(lane: Lane) -> None:
    prepared(lane)
    dying(lane, KILL)
    outcome = await lane.perform(lane.capturing())
    assert isinstance(outcome, NotDone)
    assert packs(lane) == set()


@pytest.mark.slow
def test_what_is_left_where_all_were_killed_goes_with_the_next_attempt(lane: Lane) -> None:
    prepared(lane)
    dying(lane, f"kill -9 $PPID; {KILL}")
    assert in_a_process(lambda: trio.run(lane.perform, lane.capturing())) == -signal.SIGKILL
    assert len(packs(lane)) == 1
    lane.world.program = "git"
    assert isinstance(trio.run(lane.perform, lane.capturing()), Captured)
    assert packs(lane) == set()
    assert os.listdir(where(lane)).count(STRANGERS) == 1
    assert not os.path.exists(os.path.join(lane.directory(), b"writing"))


@pytest.mark.slow
def test_a_pack_that_took_the_noted_name_is_somebody_elses(lane: Lane) -> None:
    prepared(lane)
    dying(lane, f"kill -9 $PPID; {KILL}")
    assert in_a_process(lambda: trio.run(lane.perform, lane.capturing())) == -signal.SIGKILL
    (name,) = packs(lane)
    write(os.path.join(where(lane), b"another"), b"PACK")
    os.rename(os.path.join(where(lane), b"another"), os.path.join(where(lane), name))
    lane.world.program = "git"
    assert isinstance(trio.run(lane.perform, lane.capturing()), Captured)
    assert packs(lane) == {name}


@pytest.mark.slow
async def test_a_start_takes_away_what_a_killed_process_had_begun_to_keep(lane: Lane) -> None:
    begun = os.path.join(lane.world.settings.state_dir, b"beginnings/.laneyard-0123")
    write(begun, b"half")
    async with lane.world.open():
        assert not os.path.exists(begun)
