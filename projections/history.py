"""The history: one sentence per event, for people."""

from collections.abc import Iterable

from domain import events as e
from domain.envelope import Envelope, lane_of
from domain.formats import Foreign
from domain.naming import short_branch
from domain.paths import display
from projections.table import Change, Get, Table

TABLE = Table(
    "history",
    (("position", "INTEGER"), ("lane", "TEXT"), ("time", "TEXT"), ("sentence", "TEXT")),
    keys=1,
)
VERSION = 3


def apply(event: Envelope, get: Get) -> Iterable[Change]:
    """Returns the event's row."""
    row = (event.position, lane_of(event.stream), event.time, sentence(event.fact))
    return (((event.position,), row),)


def sentence(fact: e.Fact) -> str:
    """Returns what happened in one sentence."""
    match fact:
        case e.RepositoryRegistered():
            return f"the repository {display(fact.common)} came under our care"
        case e.LaneAdopted():
            return f"adopted {display(fact.place.path)} as it is"
        case e.SnapshotPlanned():
            return f"snapshot {fact.snapshot[:8]} begins"
        case e.LaneSnapshotted():
            taken = fact.snapshot
            size = f"{_entries(taken.entries)}, {taken.bytes} bytes"
            return f"snapshot {taken.id[:8]} verified: {size}, at {taken.ref}"
        case e.SnapshotFailed():
            return f"snapshot {fact.snapshot[:8]} was not made: {fact.reason}"
        case _:
            return _creation(fact)


def _creation(fact: e.Fact) -> str:
    match fact:
        case e.CreationPlanned():
            branch = short_branch(fact.branch)
            return f"planned on branch {branch} from {fact.base_ref} ({fact.base_commit[:12]})"
        case e.LaneCheckedOut():
            return f"checked out at {display(fact.place.path)}"
        case e.LaneCreated():
            return f"ready to be worked in at {display(fact.path)}"
        case e.CreationFailed():
            return f"{fact.step} failed and is being undone: {fact.reason}"
        case e.CreationUndone():
            return f"the creation was undone: {fact.reason}"
        case e.StepFailed():
            return f"{fact.step} failed (attempt {fact.attempt}): {fact.reason}"
        case _:
            return _removal(fact)


def _removal(fact: e.Fact) -> str:
    match fact:
        case e.RemovalPlanned():
            kept = f"work kept in snapshot {fact.snapshot_id[:8]}" if fact.snapshot_id else "nothing to keep"
            consented = f", {_paths(len(fact.consent.named))} consented to" if fact.consent else ""
            return f"removal {fact.edition} planned ({fact.mode}): {kept}{consented}"
        case e.IgnoredLetGo():
            size = sum(each.bytes for each in fact.ignored)
            return f"not held by what can be made again: {_ignored(len(fact.ignored))}, {size} bytes"
        case e.WorktreeLocked():
            return "the registration is locked"
        case e.WorktreeMoved():
            return f"moved to {display(fact.path)}"
        case e.BranchFreed():
            return "the branch is free" if fact.held is None else f"the branch is still held: {fact.held}"
        case e.BranchDropped():
            branch = short_branch(fact.branch)
            return f"branch {branch} deleted" if fact.kept is None else f"branch {branch} kept: {fact.kept}"
        case e.RemovalStepFailed():
            return f"{fact.step} failed (attempt {fact.attempt}): {fact.reason}"
        case e.RemovalAbandoned():
            return f"the removal was abandoned, the lane is as it was: {fact.reason}"
        case e.LaneQuarantined():
            return f"in quarantine as edition {fact.edition}"
        case _:
            return _restore(fact)


def _restore(fact: e.Fact) -> str:
    match fact:
        case e.RestorePlanned():
            return f"restore of edition {fact.edition} from the {fact.source} planned"
        case e.WorktreeReturned():
            return f"moved back to {display(fact.place.path)}"
        case e.WorktreeRebuilt():
            return f"rebuilt at {display(fact.place.path)}"
        case e.SnapshotApplied():
            return f"the snapshot is in place and verified ({fact.content[:12]})"
        case e.BranchRejoined():
            if fact.branch:
                return f"on branch {short_branch(fact.branch)} again"
            return f"detached: {fact.why or 'as it was'}"
        case e.RestoreStepFailed():
            return f"{fact.step} failed (attempt {fact.attempt}): {fact.reason}"
        case e.RestoreAbandoned():
            return f"the restore was abandoned: {fact.reason}"
        case e.LaneRestored():
            less = f"; {'; '.join(fact.differences)}" if fact.differences else ""
            return f"edition {fact.edition} restored from the {fact.source}{less}"
        case _:
            return _reaping(fact)


def _reaping(fact: e.Fact) -> str:
    match fact:
        case e.ReapingPlanned():
            return f"reaping of edition {fact.edition} planned"
        case e.TreeExplained():
            size = f"{fact.bytes} bytes, digest {fact.digest[:12]}"
            return f"{_entries(fact.entries)} explained, all of them ({size})"
        case e.TreeUnexplained():
            return f"nothing more is deleted, a person has to look: {fact.reason}"
        case e.TreeDestroyed():
            return f"{_entries(fact.entries)} deleted"
        case e.TreeDeregistered():
            return "no longer registered with git"
        case e.TreeResisted():
            return f"{fact.step} could not be finished (attempt {fact.attempt}): {fact.reason}"
        case e.TreeRetried():
            return "the deletion is tried again"
        case e.LaneReaped():
            return f"edition {fact.edition} reaped: {_entries(fact.entries)}, {fact.bytes} bytes"
        case _:
            return _sweep(fact)


def _sweep(fact: e.Fact) -> str:
    match fact:
        case e.SweepPlanned():
            where = f" of {display(fact.repository)}" if fact.repository is not None else ""
            return f"a sweep{where} found {_lanes(len(fact.lanes))} due"
        case e.SweepFinished():
            troubled = sum(each.code is not None for each in fact.results)
            less = f", {troubled} of them not to the end" if troubled else ""
            return f"the sweep has seen to {_lanes(len(fact.results))}{less}"
        case Foreign():
            return f"{fact.why}: update Laneyard"
        case _:
            return fact.TAG


def _lanes(number: int) -> str:
    return "1 lane" if number == 1 else f"{number} lanes"


def _ignored(number: int) -> str:
    return "1 ignored path" if number == 1 else f"{number} ignored paths"


def _paths(number: int) -> str:
    return "1 path" if number == 1 else f"{number} paths"


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"
