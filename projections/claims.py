"""Claims: a slug, a path and a branch belong to at most one lane of a repository at a time.

They are derived from states. A command that would claim what another holds is refused; an outcome never is
(what has happened is written down), so there the first holder keeps the claim.
"""

from collections.abc import Iterable

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
)
from projections.table import Change, Get, Happening, Key, Row, Table, Value

TABLE = Table(
    "claim",
    (("repository", "TEXT"), ("kind", "TEXT"), ("value", "TEXT"), ("stream", "TEXT")),
    keys=3,
)
VERSION = 1

_KINDS = ("slug", "path", "branch")
_Held = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]  # the values of each kind


def claims(lane: Lane) -> frozenset[Key]:
    """Returns what a lane in this state holds: (repository, kind, value)."""
    held = _held(lane)
    if held is None or isinstance(lane, Nowhere):
        return frozenset()
    repository = lane.record.repository
    return frozenset(
        (repository, kind, value) for kind, values in zip(_KINDS, held, strict=True) for value in values
    )


def _held(lane: Lane) -> _Held | None:
    """Returns the slugs, the paths and the branch, or None of a lane that holds nothing."""
    match lane:
        case Nowhere() | Failed() | Reaped():
            return None
        case Snapshotting(of=of):
            return _held(of)
        case Returning(record=record, plan=plan):
            return (plan.slug, record.slug), _paths(lane), ()
        case Opening(record=record) | Active(record=record) | Leaving(record=record):
            branch = () if record.kind == "primary" or not record.branch else (record.branch,)
            return (record.slug,), _paths(lane), branch
        case _:
            return (lane.record.slug,), _paths(lane), ()


def _paths(lane: Lane) -> tuple[str, ...]:
    match lane:
        case Opening(path=path):
            return (path,)
        case Active(place=place):
            return (place.path,)
        case Snapshotting(of=of):
            return _paths(of)
        case Leaving(plan=plan):
            return (plan.place.path, plan.resting)
        case Quarantined(place=place, origin=origin):
            return (place.path, origin)
        case Returning(plan=plan, home=home):
            return (plan.path, *_paths(home))
        case Reaping(home=home, demolition=doomed) | NeedsReview(home=home, demolition=doomed):
            return (doomed.place.path, *_paths(home))
        case Undoing(demolition=doomed) if doomed is not None:
            return (doomed.place.path,)
        case _:
            return ()


def conflicts(happening: Happening, get: Get) -> tuple[Key, ...]:
    """Returns the claims that the event would make and another stream holds."""
    if _held(happening.before) == _held(happening.after):
        return ()
    wanted = sorted(claims(happening.after) - claims(happening.before))
    held = ((key, get(key)) for key in wanted)
    return tuple(key for key, row in held if row is not None and row[-1] != happening.event.stream)


def apply(happening: Happening, get: Get) -> Iterable[Change]:
    """Returns the claims that are let go and made."""
    if _held(happening.before) == _held(happening.after):  # most steps change no claim; sets cost more
        return ()
    before, after = claims(happening.before), claims(happening.after)
    stream = happening.event.stream
    gone = ((key, None) for key in sorted(before - after) if _holder(get(key)) == stream)
    made = ((key, (*key, stream)) for key in sorted(after - before) if get(key) is None)
    return (*gone, *made)


def _holder(row: Row | None) -> Value:
    return row[-1] if row else None
