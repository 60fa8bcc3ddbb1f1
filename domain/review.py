"""Why a lane waits for a person, what is safe meanwhile, and what leads out: the table for all who tell it.

A fact names what was met by a finer code, the detail, which is of one of six causes; a detail that is not in
the table is what kept a tree from being looked at. No way out is closed for good: what is met again is told.
"""

from typing import Literal

import msgspec

from domain.events import TreeUnexplained
from domain.paths import display
from domain.states import Demolition, Failed, NeedsReview, Quarantined, Reaped, Record

Cause = Literal[
    "identity_changed",
    "content_changed",
    "unexplained_entries",
    "evidence_unavailable",
    "conflicting_paths",
    "repeated_failure",
]
Exit = Literal["--put-back", "--resnapshot", "--discard"]

CAUSES: dict[Cause, tuple[str, str]] = {  # what it means, and what mends it
    "identity_changed": (
        "the lane's own directory is not where it was",
        "put that directory back",
    ),
    "content_changed": (
        "somebody was at work there after the deletion was allowed",
        "look at what has come, and keep it with a new snapshot",
    ),
    "unexplained_entries": (
        "the tree holds what no snapshot, commit or consent has",
        "look at it, and keep it with a new snapshot",
    ),
    "evidence_unavailable": (
        "what has to be known before anything is deleted could not be read",
        "mend what cannot be read",
    ),
    "conflicting_paths": (
        "something of somebody else's is in the tree, or in its place",
        "take it away",
    ),
    "repeated_failure": (
        "a step has failed as often as it is tried",
        "mend what the reason names",
    ),
}

DETAILS: dict[str, tuple[Cause, str]] = {
    "changed_while_reaping": ("content_changed", "entries have appeared or changed since the explanation"),
    "identity_changed": ("identity_changed", "another directory stands where the lane was"),
    "mount_inside": ("conflicting_paths", "something is mounted in the tree"),
    "registration_changed": ("content_changed", "git's registration of the tree is not what it was"),
    "repeated_failure": ("repeated_failure", "the tree could not be looked at, however often that was tried"),
    "snapshot_damaged": (
        "evidence_unavailable",
        "the snapshot that should explain the tree cannot be read back",
    ),
    "tree_missing": (
        "identity_changed",
        "there is no tree: somebody has moved or deleted it, or has used git in it until it was deleted",
    ),
    "tree_present": ("conflicting_paths", "something has come to where the deleted tree was"),
    "unexplained_entries": ("unexplained_entries", "entries are in no snapshot, commit or consent"),
    "unreadable": (
        "evidence_unavailable",
        "something in the tree may not be read; a consent to lose it covers all that is in it",
    ),
}
DAMAGED, MISSING = "snapshot_damaged", "tree_missing"  # details that leave fewer ways out

EXITS: dict[Exit, tuple[str, str]] = {  # what it does, and when it is there
    "--put-back": (
        "restore it from the quarantine",
        "the lane rests in quarantine and no deletion has begun; else it puts back what is left, and says so",
    ),
    "--resnapshot": (
        "capture it as it is now, and reap it",
        "there is a tree, which a removal or a failed restore has left",
    ),
    "--discard": (
        "delete it, with a recorded consent",
        "always; where nothing can be named yet, it looks again first",
    ),
}
LEFT: dict[Exit, str] = {  # the same, of a tree that is not a whole lane
    "--resnapshot": "capture what is left of it, and reap that",
    "--discard": "delete what is left of it, with a recorded consent",
}


class Way(msgspec.Struct, frozen=True):
    """A way out, and what it does here."""

    exit: Exit
    does: str


def waiting(
    record: Record, fact: TreeUnexplained, doomed: Demolition, home: Quarantined | Reaped | Failed
) -> NeedsReview:
    """Returns the lane that waits for a person since the fact."""
    return NeedsReview(
        record=record,
        detail=fact.cause,
        reason=fact.reason,
        paths=fact.paths,
        count=fact.count,
        demolition=doomed,
        home=home,
    )


def cause(detail: str) -> Cause:
    """Returns the cause that a detail is of, whichever version has written it."""
    return DETAILS[detail][0] if detail in DETAILS else "evidence_unavailable"


def ways(lane: NeedsReview) -> tuple[Way, ...]:
    """Returns the ways out that may lead out, as far as the log knows."""
    found: tuple[Exit, ...] = ("--discard",)
    if not is_gone(lane) and not isinstance(lane.home, Failed):
        found = ("--resnapshot", *found)
        if _is_whole(lane):
            found = ("--put-back", *found)
    words = {} if _is_whole(lane) else LEFT
    return tuple(Way(each, words.get(each, EXITS[each][0])) for each in found)


def is_gone(lane: NeedsReview) -> bool:
    """Tells whether there is no tree, as far as the log knows."""
    return lane.detail == MISSING or lane.demolition.destroyed


def safe(lane: NeedsReview) -> str:
    """Returns what still exists, and where."""
    where = display(lane.demolition.place.path)
    left = {Quarantined: "is left of the lane", Reaped: "a failed restore has left"}
    what = left.get(type(lane.home), "a failed creation has left")
    if is_gone(lane):
        told = f"nothing is at {where}, and its registration stays"
    elif cause(lane.detail) == "identity_changed":
        told = f"nothing more is deleted, and what is at {where} is not the lane's own directory"
    elif _is_whole(lane):
        told = f"nothing was deleted, and the lane rests whole at {where}"
    elif lane.demolition.begun:
        told = f"nothing more is deleted, and what {what} is at {where}"
    else:
        told = f"nothing was deleted, and what {what} is at {where}"
    taken = kept_in(lane)
    return f"{told}; snapshot {taken[:8]} has the lane" if taken else told


def kept_in(lane: NeedsReview) -> str | None:
    """Returns the snapshot that the lane comes back from, if it has one that can be read."""
    if lane.detail == DAMAGED or not lane.record.editions:
        return None
    return lane.record.editions[-1].snapshot_id


def comes_back_from(lane: NeedsReview) -> str | None:
    """Returns the snapshot of a lane that cannot come back as it rests, for it is gone or may be in part."""
    unfit = lane.demolition.begun or is_gone(lane)
    return kept_in(lane) if unfit and isinstance(lane.home, Quarantined) else None


def _is_whole(lane: NeedsReview) -> bool:
    return isinstance(lane.home, Quarantined) and not lane.demolition.begun and not is_gone(lane)
