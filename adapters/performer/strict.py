"""The look that is owed to a removal which has recorded nothing of the tree, before anything moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.clock import now
from adapters.inspector import Inspector
from domain.effects import NotDone
from domain.errors import Refusal
from domain.strictness import require_nothing_to_lose

if TYPE_CHECKING:
    from adapters.performer.world import World
    from domain.evidence import Place


async def objection(world: World, place: Place) -> NotDone | None:
    """Returns why the tree must stay where it is, or None if nothing but its commit is in it."""
    try:
        require_nothing_to_lose(place, await Inspector(world.git, now).look(place))
    except Refusal as error:
        why = f"the removal had not recorded what the tree holds, and {error.cause}"
        return NotDone(step="move", code=error.code, reason=why)
    return None
