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
from projections.table import Change, Get, Happening, Key, Table

TABLE = Table(
    "claim",
    (("repository", "TEXT"), ("kind", "TEXT"), ("value", "TEXT"), ("stream", "TEXT")),
    keys=3,
)
VERSION = 1


def claims(lane: Lane) -> frozenset[Key]:
    """Returns what a lane in this state holds: (repository, kind, value)."""
    if isinstance(lane, Nowhere):
        return frozenset()
    held = {("slug", value) for value in _slugs(lane)}
    held |= {("path", value) for value in _paths(lane)}
    held |= {("branch", value) for value in _branches(lane)}
    return frozenset((lane.record.repository, kind, value) for kind, value in held)


def _slugs(lane: Lane) -> set[str]:
    match lane:
        case Nowhere() | Failed() | Reaped():
            return set()
        case Returning(plan=plan, record=record):
            return {plan.slug, record.slug}
        case _:
            return {lane.record.slug}


def _paths(lane: Lane) -> set[str]:
    match lane:
        case Opening(path=path):
            return {path}
        case Active(place=place):
            return {place.path}
        case Snapshotting(of=of):
            return _paths(of)
        case Leaving(plan=plan):
            return {plan.place.path, plan.resting}
        case Quarantined(place=place, origin=origin):
            return {place.path, origin}
        case Returning(plan=plan, home=home):
            return {plan.path} | _paths(home)
        case Reaping(home=home, demolition=doomed) | NeedsReview(home=home, demolition=doomed):
            return {doomed.place.path} | _paths(home)
        case Undoing(demolition=doomed) if doomed is not None:
            return {doomed.place.path}
        case _:
            return set()


def _branches(lane: Lane) -> set[str]:
    match lane:
        case Snapshotting(of=of):
            return _branches(of)
        case Opening() | Active() | Leaving() if lane.record.kind != "primary":
            return {lane.record.branch} if lane.record.branch else set()
        case _:
            return set()


def conflicts(happening: Happening, get: Get) -> tuple[Key, ...]:
    """Returns the claims that the event would make and another stream holds."""
    wanted = claims(happening.after) - claims(happening.before)
    held = ((key, get(key)) for key in sorted(wanted, key=str))
    return tuple(key for key, row in held if row is not None and row[-1] != happening.event.stream)


def apply(happening: Happening, get: Get) -> Iterable[Change]:
    """Returns the claims that are let go and made."""
    before, after = claims(happening.before), claims(happening.after)
    stream = happening.event.stream
    for key in sorted(before - after, key=str):
        row = get(key)
        if row is not None and row[-1] == stream:
            yield key, None
    for key in sorted(after - before, key=str):
        if get(key) is None:
            yield key, (*key, stream)
