"""The repositories under our care."""

from collections.abc import Iterable

from domain.events import RepositoryRegistered
from projections.table import Change, Get, Happening, Table

TABLE = Table(
    "repository",
    (("common", "TEXT"), ("root", "TEXT"), ("object_format", "TEXT"), ("position", "INTEGER")),
    keys=1,
)
VERSION = 1


def apply(happening: Happening, get: Get) -> Iterable[Change]:
    """Returns the repository's row."""
    fact = happening.event.fact
    if not isinstance(fact, RepositoryRegistered):
        return ()
    row = (fact.common, fact.root, fact.object_format, happening.event.position)
    return (((fact.common,), row),)
