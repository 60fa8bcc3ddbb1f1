"""From what a command has led to, to its answer; where it did not reach its goal, to why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.api.answers import Answer, NotReached
from adapters.api.documents import GoneLane
from adapters.api.lanes import changed_document
from adapters.api.problems import plain
from adapters.api.words import legible
from domain.creation import KEPT
from domain.events import ReapingPlanned
from domain.states import NeedsReview, Quarantined, Reaped, Reaping, Returning, Undoing, name

if TYPE_CHECKING:
    from adapters.api.documents import Outcome
    from adapters.store.reader import Record as Row
    from adapters.yard.yard import Done
    from domain.states import Record

RESIDUAL = ("residual", "what is to be deleted could not be deleted whole")


def changed(done: Done, sentence: str) -> Answer:
    """Returns what has become of the lane. Raises NotReached."""
    row = done.row
    if row is None:
        return _never_came_to_be(done)
    stuck = isinstance(done.lane, Undoing | Returning | Reaping) and row["owed"] is None
    problem = done.problem or (RESIDUAL if stuck else None)
    unfinished = stuck or isinstance(done.lane, NeedsReview) or row["owed"] is not None
    if problem is not None:
        code, reason = problem
        details: dict[str, object] = {"lane": row["id"], "state": row["state"], "reason": reason}
        message = f"{plain(code, reason)}. {_ending(row, stuck=stuck)}"
        raise NotReached(code, message, details, "unfinished" if unfinished else "refused")
    warned = isinstance(done.lane, Quarantined) and bool(done.warnings)
    outcome: Outcome = "unfinished" if unfinished or warned else "done"
    document = changed_document(row, done.warnings, outcome)
    lines = (sentence, *(f"note: {legible(warning)}" for warning in done.warnings))
    return Answer(document=document, text="\n".join(lines), outcome=outcome)


def _never_came_to_be(done: Done) -> Answer:
    """Tells of a lane that has no row: its creation is undone, or what one had left is deleted."""
    if done.problem is None:
        gone = GoneLane(id=done.lane_id, state=name(done.lane), warnings=(), outcome="done")
        return Answer(document=gone, text="what was left of a failed creation is deleted")
    code, reason = done.problem
    details: dict[str, object] = {"lane": done.lane_id, "state": name(done.lane), "reason": reason}
    if KEPT in reason:
        message = f"{reason}. All else was undone; no worktree or directory is left."
        raise NotReached(code, message, details, "unfinished")
    message = f"{plain(code, reason)}. Everything was undone; no worktree, branch or directory is left."
    raise NotReached(code, message, details, "refused")


def _ending(row: Row, *, stuck: bool) -> str:
    if stuck:
        return "What is left is tried again by 'laneyard sweep --apply'."
    if row["state"] == "needs-review":
        return f"What is not explained stays; 'laneyard review {row['slug']}' shows the ways out."
    return f"The lane is {row['state']}, as it was before."


def reaped(slug: str, done: Done) -> str:
    """Returns what has become of a lane that was to be reaped, in a sentence."""
    if not isinstance(done.lane, Reaped):
        return f"{slug} is {name(done.lane)}"
    record = done.lane.record
    taken = record.editions[-1].snapshot_id
    if taken is None:
        return f"{slug} is reaped; no snapshot has what it held"
    return (
        f"{slug} is reaped; snapshot {taken[:8]} has {_held(record, done)}. "
        f"Bring it back with: laneyard restore {slug}"
    )


def _held(record: Record, done: Done) -> str:
    """Returns how much of the lane its snapshot has."""
    left = record.left_of(record.edition)
    if left is not None and left == record.editions[-1].snapshot_id:
        return "what was left of it"
    consented = any(isinstance(fact, ReapingPlanned) and fact.consent for fact in done.facts)
    if left is not None:
        return "what it held before its deletion began" + (", but what was consented to" if consented else "")
    return "all that it held but what was consented to" if consented else "what it held"
