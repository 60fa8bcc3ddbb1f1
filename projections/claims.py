"""Claims: a slug, a path and a branch belong to at most one lane of a repository at a time.

They are derived from states. A command that would claim what another holds is refused; an outcome never is
(what has happened is written down), so there the first holder keeps the claim.
"""

from collections.abc import Iterable

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
    Record,
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
VERSION = 2

_KINDS = ("slug", "path", "branch")
_Held = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]  # the values of each kind
_NOTHING: _Held = ((), (), ())


def claims(lane: Lane) -> frozenset[Key]:
    """Returns what a lane in this state holds: (repository, kind, value)."""
    return frozenset(_keys(_repository(lane), _held(lane), _NOTHING))


def _repository(lane: Lane) -> str:
    return "" if isinstance(lane, Nowhere) else lane.record.repository


def _keys(repository: str, held: _Held, other: _Held) -> list[Key]:
    """Returns the claims to what is held and not held in the other."""
    return [
        (repository, kind, value)
        for kind, values, others in zip(_KINDS, held, other, strict=True)
        for value in values
        if value not in others
    ]


def _held(lane: Lane) -> _Held:
    """Returns the slugs, the paths and the branch."""
    match lane:
        case Nowhere() | Failed() | Reaped():
            return _NOTHING
        case Snapshotting(of=of):
            return _held(of)
        case Blocked(of=of):  # what it has let go of since, only a newer program knows
            slugs, paths, branches = _held(of)
            return (*slugs, *lane.slugs), (*paths, *lane.paths), (*branches, *lane.branches)
        case Returning(plan=plan, home=home):
            # What it would fall back to keeps its name; a reaped lane has let go of it.
            return (plan.slug, *_held(home)[0]), _paths(lane), ()
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
    _, made = _difference(happening)
    stream = happening.event.stream
    return tuple(sorted(key for key in made if _holder(get(key)) not in (None, stream)))


def apply(happening: Happening, get: Get) -> Iterable[Change]:
    """Returns the claims that are let go and made."""
    gone, made = _difference(happening)
    if not gone and not made:
        return ()
    stream = happening.event.stream
    dropped = [(key, None) for key in gone if _holder(get(key)) == stream]
    return (*dropped, *((key, (*key, stream)) for key in made if get(key) is None))


def _difference(happening: Happening) -> tuple[list[Key], list[Key]]:
    """Returns the claims that are let go, and those that are made."""
    before, after = happening.before, happening.after
    # Within a state claims change only with the record: most events end here.
    same = type(before) is type(after) and _record(before) is _record(after) and type(after) is not Blocked
    if before is after or same:
        return [], []
    repository = _repository(before) or _repository(after)
    old, new = _held(before), _held(after)
    return _keys(repository, old, new), _keys(repository, new, old)


def _record(lane: Lane) -> Record | None:
    return None if isinstance(lane, Nowhere) else lane.record


def _holder(row: Row | None) -> Value:
    return row[-1] if row else None
