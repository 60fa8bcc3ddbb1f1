"""Residuals: directories of ours that a deletion could not finish, until it does."""

from collections.abc import Iterable

from domain.envelope import Envelope
from domain.events import (
    CreationUndone,
    LaneReaped,
    RestoreAbandoned,
    TreeDestroyed,
    TreeResisted,
    TreeUnexplained,
)
from projections.table import Change, Get, Table

TABLE = Table(
    "residual",
    (
        ("stream", "TEXT"),
        ("path", "TEXT"),
        ("step", "TEXT"),
        ("reason", "TEXT"),
        ("attempts", "INTEGER"),
        ("since", "TEXT"),
    ),
    keys=1,
)
VERSION = 1
_ENDS = (TreeDestroyed, TreeUnexplained, LaneReaped, CreationUndone, RestoreAbandoned)


def apply(event: Envelope, get: Get) -> Iterable[Change]:
    """Returns the residual's row while something resists, and drops it when it has gone."""
    fact, key = event.fact, (event.stream,)
    before = get(key)
    match fact:
        case TreeResisted():
            since = before[-1] if before else event.time
            yield key, (event.stream, fact.path, fact.step, fact.reason, fact.attempt, since)
        case _ if isinstance(fact, _ENDS) and before is not None:
            yield key, None
        case _:
            return
