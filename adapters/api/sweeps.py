"""Sweeps, as they are answered: what would be done, and what was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.api import showing
from adapters.yard import ending

if TYPE_CHECKING:
    from adapters.api.answers import Answer
    from adapters.engine import Request
    from adapters.yard.yard import Yard


def candidates(yard: Yard, repository: str | None) -> Answer:
    """Returns what a sweep of one repository or of all would do."""
    return showing.candidates(ending.candidates(yard, repository))


async def sweep(yard: Yard, repository: str | None, request: Request) -> Answer:
    """Reaps what has rested long enough; one lane's trouble is no other's."""
    return showing.swept(await ending.sweep(yard, repository, request))
