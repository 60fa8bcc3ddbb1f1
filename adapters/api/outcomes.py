"""What a performer has seen, as far as the fact that was learnt from it tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.api.words import count
from domain import events as e
from domain.naming import short_branch
from domain.paths import display

if TYPE_CHECKING:
    from domain.evidence import Place


def seen(fact: e.Fact) -> str:
    """Returns what was seen after the effect. A fact that a command has decided tells of no look."""
    match fact:
        case e.LaneCheckedOut(place=place) | e.WorktreeRebuilt(place=place):
            return f"the worktree is {_at(place)}, registered and locked"
        case e.LaneCreated() | e.LaneRestored(differences=()):
            return "the registration has no lock of ours"
        case e.LaneRestored():
            return "all is back that could be; what differs is in the fact"
        case e.LaneSnapshotted(snapshot=taken):
            size = f"{count(taken.entries, 'entry')}, {count(taken.bytes, 'byte')}"
            return f"the snapshot is durable, and was read back: {size}"
        case e.WorktreeLocked():
            return "the registration has our lock"
        case e.WorktreeMoved(path=path):
            return f"the tree is at {display(path)}, and its registration points there"
        case e.WorktreeReturned(place=place):
            return f"the tree is {_at(place)}, and its registration points there"
        case e.BranchFreed(held=held):
            return "HEAD is detached" if held is None else f"HEAD is not detached: {held}"
        case e.BranchDropped(kept=kept):
            return "the branch is gone" if kept is None else f"the branch is there: {kept}"
        case e.BranchRejoined(branch=None, why=why):
            return f"HEAD is detached: {why or 'as it was'}"
        case e.BranchRejoined(branch=branch):
            return f"HEAD is on branch {short_branch(branch)}"
        case e.SnapshotApplied(differences=found):
            return f"every entry was compared with the manifest; {count(len(found), 'difference')}"
        case _:
            return _ended(fact)


def _ended(fact: e.Fact) -> str:
    match fact:
        case e.CreationFailed(code=code, reason=reason, left=left):
            rest = f"; left behind: a worktree {_at(left)}" if left else "; no worktree was left behind"
            return f"{_failed(code, reason)}{rest}{', and the branch' if fact.branch_made else ''}"
        case e.StepFailed() | e.RemovalStepFailed() | e.RestoreStepFailed() | e.SnapshotFailed():
            left = getattr(fact, "left", None)
            return _failed(fact.code, fact.reason) + (
                f"; left behind: a worktree {_at(left)}" if left else ""
            )
        case e.CreationUndone():
            return "nothing of the lane is left, but for what the reason names"
        case e.RemovalAbandoned():
            return "the lane is where it was, but for what the reason names"
        case e.RestoreAbandoned():
            return "nothing of what the restore had begun is left"
        case e.LaneQuarantined():
            return (
                "all steps are done" if not fact.warnings else "what could be done is done; see the warnings"
            )
        case e.TreeExplained():
            return f"every entry is explained: {count(fact.entries, 'entry')}, {count(fact.bytes, 'byte')}"
        case e.TreeUnexplained(cause=cause, paths=paths):
            named = f", first {display(paths[0])}" if paths else ""
            return f"{cause}: {count(fact.count, 'entry')}{named}"
        case e.TreeDestroyed():
            return "the tree is gone"
        case e.TreeResisted(left=left):
            return f"{fact.reason}; {count(len(left), 'path')} named as left"
        case e.TreeDeregistered() | e.LaneReaped():
            return "git does not list the worktree any more"
        case _:
            raise AssertionError(f"no words for {fact.TAG}")


def _failed(code: str, reason: str) -> str:
    return f"it did not take: {reason} [{code}]"


def _at(place: Place) -> str:
    return f"at {display(place.path)} (inode {place.identity.inode})"
