"""The lanes table: one row per lane, as it is now."""

from collections.abc import Iterable

from domain.envelope import lane_of
from domain.lane import pending
from domain.states import (
    Active,
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
from projections.table import Change, Get, Happening, Row, Table

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
    ),
    keys=1,
)
VERSION = 1
_CREATED_AT = TABLE.names.index("created_at")
_SINCE = TABLE.names.index("since")
_STATE = TABLE.names.index("state")


def apply(happening: Happening, get: Get) -> Iterable[Change]:
    """Returns the lane's row after the event; `since` is when it came into its state."""
    event, lane = happening.event, happening.after
    lane_id = lane_of(event.stream)
    if lane_id is None or isinstance(lane, Nowhere):
        return
    before = get((lane_id,))
    created = before[_CREATED_AT] if before else event.time
    same = before is not None and before[_STATE] == name(lane)
    since = before[_SINCE] if before and same else event.time
    yield (lane_id,), _row(lane_id, lane, (created, since, event.position, event.version))


def _row(lane_id: str, lane: Lane, times: Row) -> Row:
    assert not isinstance(lane, Nowhere)
    record, owed = lane.record, pending(lane)
    return (
        lane_id,
        record.repository,
        record.slug,
        record.name,
        name(lane),
        record.kind,
        where(lane),
        record.branch,
        record.head,
        record.base_ref,
        record.base_commit,
        record.parent,
        record.owner,
        record.edition,
        *times,
        type(owed).__name__ if owed else None,
    )


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
        case Failed() | Nowhere():
            return None
