"""The lanes table: one row per lane, as it is now. A creation that was undone leaves none."""

from collections.abc import Iterable

from domain.envelope import lane_of
from domain.states import (
    Active,
    Blocked,
    Failed,
    Lane,
    Leaving,
    NeedsReview,
    Nowhere,
    Opening,
    Quarantined,
    Reaped,
    Reaping,
    Returning,
    Snapshotting,
    Undoing,
    name,
)
from projections.table import Change, Get, Happening, Table

TABLE = Table(
    "lane",
    (
        ("id", "TEXT"),
        ("repository", "TEXT"),
        ("slug", "TEXT"),
        ("name", "TEXT"),
        ("state", "TEXT"),
        ("kind", "TEXT"),
        ("path", "TEXT"),
        ("branch", "TEXT"),
        ("head", "TEXT"),
        ("base_ref", "TEXT"),
        ("base_commit", "TEXT"),
        ("parent", "TEXT"),
        ("owner", "TEXT"),
        ("edition", "INTEGER"),
        ("created_at", "TEXT"),
        ("since", "TEXT"),
        ("position", "INTEGER"),
        ("version", "INTEGER"),
        ("owed", "TEXT"),
        ("blocked", "TEXT"),
        ("detail", "TEXT"),
    ),
    keys=1,
)
VERSION = 3
_CREATED_AT = TABLE.names.index("created_at")
_SINCE = TABLE.names.index("since")
_STATE = TABLE.names.index("state")


def apply(happening: Happening, get: Get) -> Iterable[Change]:
    """Returns the lane's row after the event; `since` is when it came into its state.

    A lane whose first fact is not understood may have no name but its id.
    """
    event, lane = happening.event, happening.after
    lane_id = lane_of(event.stream)
    if lane_id is None or isinstance(lane, Nowhere):
        return ()
    key, state = (lane_id,), name(lane)
    before = get(key)
    if isinstance(lane, Failed):  # what never came to be is no lane; the log keeps what was tried
        return ((key, None),) if before else ()
    created = before[_CREATED_AT] if before else event.time
    since = before[_SINCE] if before and before[_STATE] == state else event.time
    record = lane.record
    row = (
        lane_id,
        record.repository,
        record.slug or lane_id[:8],
        record.name or lane_id[:8],
        state,
        record.kind,
        where(lane),
        record.branch,
        record.head,
        record.base_ref,
        record.base_commit,
        record.parent,
        record.owner,
        record.edition,
        created,
        since,
        event.position,
        event.version,
        happening.owed,
        lane.reason if isinstance(lane, Blocked) else None,
        lane.detail if isinstance(lane, NeedsReview) else None,
    )
    return ((key, row),)


def where(lane: Lane) -> str | None:
    """Returns the packed path where the lane's tree is, or was last."""
    match lane:
        case Opening(path=path):
            return path
        case Active(place=place) | Quarantined(place=place):
            return place.path
        case Snapshotting(of=of):
            return where(of)
        case Leaving(plan=plan, moved=moved):
            return plan.resting if moved else plan.place.path
        case Returning(plan=plan, place=place, home=home):
            return plan.path if place else where(home)
        case Reaping(demolition=doomed) | NeedsReview(demolition=doomed):
            return doomed.place.path
        case Undoing(demolition=doomed):
            return doomed.place.path if doomed else None
        case Reaped(record=record):
            return record.editions[-1].path
        case Blocked(of=of, paths=paths):
            return where(of) or next(iter(paths), None)
        case Failed() | Nowhere():
            return None
