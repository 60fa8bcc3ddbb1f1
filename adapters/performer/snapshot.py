"""Taking a snapshot, and applying one to a fresh checkout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.performer.world import EXPECTED, not_done
from adapters.snapshots.capture.capture import StillChanging
from adapters.snapshots.capture.capture import capture as capture_tree
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.position import CannotCapture
from adapters.snapshots.restore.apply import apply as apply_snapshot
from domain.effects import Applied, Apply, Capture, Captured, NotDone, Outcome

if TYPE_CHECKING:
    from adapters.performer.world import World


async def capture(world: World, effect: Capture) -> Outcome:
    """Makes the snapshot durable and reads it back; the lane is not touched."""
    try:
        async with world.writing(effect.snapshot) as directory:
            snapshot = await capture_tree(world.git, directory, effect)
    except CannotCapture as error:
        return NotDone(step="capture", code="cannot_hold", reason=str(error))
    except StillChanging as error:
        return NotDone(step="capture", code="still_changing", reason=str(error))
    except SnapshotDamaged as error:
        return NotDone(step="capture", code="snapshot_damaged", reason=str(error))
    except EXPECTED as error:
        return not_done("capture", error)
    return Captured(snapshot=snapshot)


async def apply(world: World, effect: Apply) -> Outcome:
    """Turns the fresh checkout into what the snapshot holds, and compares.

    A git that an earlier attempt has left may still write there: it holds the snapshot's lock until it ends.
    """
    try:
        async with world.writing(effect.snapshot.id) as directory:
            restored = await apply_snapshot(world.git, directory, effect)
    except SnapshotDamaged as error:
        return NotDone(step="apply", code="snapshot_damaged", reason=str(error))
    except EXPECTED as error:
        return not_done("apply", error)
    return Applied(content=restored.content, differences=restored.differences)
