"""Taking a snapshot, and applying one to a fresh checkout."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from adapters.git.refs import delete_ref, read_ref
from adapters.performer.world import EXPECTED, not_done
from adapters.snapshots.capture.capture import StillChanging
from adapters.snapshots.capture.capture import capture as capture_tree
from adapters.snapshots.capture.planning import REFS
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.position import CannotCapture
from adapters.snapshots.restore.apply import apply as apply_snapshot
from domain.effects import Applied, Apply, Capture, Captured, NotDone, Outcome
from domain.paths import unpack

if TYPE_CHECKING:
    from adapters.performer.world import World


async def capture(world: World, effect: Capture) -> Outcome:
    """Makes the snapshot durable and reads it back, or leaves nothing of it; the lane is not touched."""
    try:
        async with world.writing(effect.snapshot, new=True) as directory:
            outcome = await _capture(world, directory, effect)
            if isinstance(outcome, NotDone):
                await _take_away(world, directory, effect)
            return outcome
    except EXPECTED as error:
        return not_done("capture", error)


async def _capture(world: World, directory: bytes, effect: Capture) -> Outcome:
    try:
        return Captured(snapshot=await capture_tree(world.git, directory, effect))
    except CannotCapture as error:
        return NotDone(step="capture", code="cannot_hold", reason=str(error))
    except StillChanging as error:
        return NotDone(step="capture", code="still_changing", reason=str(error))
    except SnapshotDamaged as error:
        return NotDone(step="capture", code="snapshot_damaged", reason=str(error))
    except EXPECTED as error:
        return not_done("capture", error)


async def _take_away(world: World, directory: bytes, effect: Capture) -> None:
    """Takes away what a capture that failed has made: no fact will ever name it. What resists stays."""
    common, ref = unpack(effect.repository), (REFS + effect.snapshot).encode()
    with suppress(*EXPECTED):  # why the capture failed counts more
        if (at := await read_ref(world.git, common, ref)) is not None:
            await delete_ref(world.git, common, ref, at)
        await trio.to_thread.run_sync(shutil.rmtree, directory)


async def apply(world: World, effect: Apply) -> Outcome:
    """Turns the fresh checkout into what the snapshot holds, and compares.

    A git that an earlier attempt has left may still write there: it holds the snapshot's lock until it ends.
    """
    try:
        async with world.writing(effect.snapshot.id, new=False) as directory:
            restored = await apply_snapshot(world.git, directory, effect)
    except SnapshotDamaged as error:
        return NotDone(step="apply", code="snapshot_damaged", reason=str(error))
    except EXPECTED as error:
        return not_done("apply", error)
    return Applied(content=restored.content, differences=restored.differences)
