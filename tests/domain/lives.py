"""Whole lives of the lane, as the streams of facts that tell them."""

from msgspec.structs import replace

from domain.events import (
    CreationFailed,
    CreationUndone,
    Fact,
    LaneSnapshotted,
    ReapingPlanned,
    SnapshotPlanned,
    TreeResisted,
)
from domain.evidence import Consent
from tests.domain.facts import (
    LATER,
    PLACE,
    RESTING,
    adopted,
    applied,
    checked_out,
    created,
    creation_failed,
    creation_planned,
    creation_undone,
    deregistered,
    destroyed,
    dropped,
    explained,
    forced_planned,
    freed,
    let_go,
    locked,
    moved,
    quarantined,
    reaped,
    reaping_planned,
    rebuild_planned,
    rebuildable_planned,
    rebuilt,
    rebuilt_whole,
    rejoined,
    removal_abandoned,
    removal_planned,
    removal_step_failed,
    restore_abandoned,
    restore_planned,
    restore_step_failed,
    restored,
    retried,
    returned,
    snapshot_failed,
    snapshot_planned,
    snapshotted,
    step_failed,
    unexplained,
)

CREATED: tuple[Fact, ...] = (creation_planned, checked_out, created)
CREATED_LATE = (creation_planned, step_failed, checked_out, step_failed, created)
SNAPSHOTTED = (*CREATED, snapshot_planned, snapshotted)
LEAVING = (*SNAPSHOTTED, removal_planned)
REMOVED = (*LEAVING, locked, moved, freed, quarantined)
FORCED = (*SNAPSHOTTED, forced_planned, locked, moved, freed, dropped, quarantined)
LET_GO = (*CREATED, rebuildable_planned, let_go, locked, moved, freed, quarantined)
ABANDONED = (*LEAVING, locked, removal_step_failed, removal_abandoned)
RETURNED = (*REMOVED, restore_planned, returned, rejoined, restored)
REAPING = (*REMOVED, reaping_planned)
REAPED = (*REAPING, explained, destroyed, reaped)
REBUILT = (*REAPED, rebuild_planned, rebuilt, applied, rejoined, rebuilt_whole)
IN_REVIEW = (*REAPING, unexplained)
PUT_BACK = (*IN_REVIEW, restore_planned, returned, rejoined, restored)
RESNAPSHOTTED = (
    *IN_REVIEW,
    SnapshotPlanned(snapshot="s-2", tolerant=False),
    LaneSnapshotted(snapshot=LATER),
)
WORN = (*REAPING, explained, unexplained)  # the deletion may have begun
WORN_RESNAPSHOTTED = (
    *WORN,
    SnapshotPlanned(snapshot="s-2", tolerant=False),
    LaneSnapshotted(snapshot=LATER),
)
REMNANT_REAPED = (
    *WORN_RESNAPSHOTTED,
    ReapingPlanned(journal_format=1, edition=1, snapshot_id="s-2", consent=None),
    explained,
    destroyed,
    reaped,
)
DISCARDED = (
    *IN_REVIEW,
    ReapingPlanned(
        journal_format=1, edition=1, snapshot_id="s-1", consent=Consent(("notes.txt",), "not needed")
    ),
    explained,
    destroyed,
    reaped,
)
GAVE_UP = TreeResisted(path=RESTING, step="destroy", attempt=1, reason="busy", left=("mnt",), final=True)
RESIDUAL = (*REAPING, explained, GAVE_UP)
RETRIED = (*RESIDUAL, retried, destroyed, reaped)

NOTHING_LEFT = CreationFailed(
    step="checkout", code="git_failed", reason="no space left", left=None, branch_made=False
)
FAILED_AT_ONCE = (creation_planned, NOTHING_LEFT, creation_undone)
UNDOING = (creation_planned, creation_failed)
UNDONE = (*UNDOING, explained, destroyed, deregistered, creation_undone)
FAILED_TO_UNLOCK = (
    creation_planned,
    checked_out,
    CreationFailed(step="unlock", code="io_failed", reason="read only", left=PLACE, branch_made=True),
    explained,
    destroyed,
    deregistered,
    CreationUndone(code="io_failed", reason="read only"),
)
UNDOING_IN_REVIEW = (*UNDOING, unexplained)
REBUILD_FAILED = (*REAPED, rebuild_planned, rebuilt, restore_step_failed)
REBUILD_UNDONE = (*REBUILD_FAILED, explained, destroyed, restore_abandoned)
REBUILD_IN_REVIEW = (*REBUILD_FAILED, unexplained)
RETURN_ABANDONED = (*REMOVED, restore_planned, restore_abandoned)

LIVES: dict[str, tuple[Fact, ...]] = {
    "created": CREATED,
    "created at the second go": CREATED_LATE,
    "adopted": (adopted,),
    "snapshotted": SNAPSHOTTED,
    "snapshotted at the second go": (*CREATED, snapshot_planned, step_failed, snapshotted),
    "snapshot failed": (*CREATED, snapshot_planned, snapshot_failed),
    "removed": REMOVED,
    "removed by force": FORCED,
    "removed with what can be made again": LET_GO,
    "removal abandoned": ABANDONED,
    "removed by a newer program": (*CREATED, replace(removal_planned, journal_format=5)),
    "restored from quarantine": RETURNED,
    "restore abandoned": RETURN_ABANDONED,
    "reaped": REAPED,
    "restored from a snapshot": REBUILT,
    "in review": IN_REVIEW,
    "put back": PUT_BACK,
    "snapshotted in review": RESNAPSHOTTED,
    "discarded": DISCARDED,
    "reaped in two goes": REMNANT_REAPED,
    "residual": RESIDUAL,
    "retried": RETRIED,
    "failed at once": FAILED_AT_ONCE,
    "undone": UNDONE,
    "failed to unlock": FAILED_TO_UNLOCK,
    "undoing in review": UNDOING_IN_REVIEW,
    "rebuild undone": REBUILD_UNDONE,
    "rebuild in review": REBUILD_IN_REVIEW,
}
