"""Which effect is performed by what."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from adapters.performer import checkout, deletion, moving, snapshot
from domain import effects as e

if TYPE_CHECKING:
    from adapters.performer.world import World

AnyEffect = (
    e.Checkout
    | e.Lock
    | e.Unlock
    | e.Move
    | e.FreeBranch
    | e.Rejoin
    | e.DropBranch
    | e.Capture
    | e.Apply
    | e.Explain
    | e.Destroy
    | e.Deregister
)


class GitPerformer:
    """Performs every effect on the real git and the real file system."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def perform(self, effect: e.Effect) -> e.Outcome:
        """Does it, unless it is done already, and returns what a second look has seen."""
        assert isinstance(effect, AnyEffect)
        return _legible(await self._perform(effect))

    async def _perform(self, effect: AnyEffect) -> e.Outcome:
        world = self._world
        match effect:
            case e.Checkout():
                return await checkout.checkout(world, effect)
            case e.Unlock():
                return await checkout.release(world, effect)
            case e.Deregister():
                return await deletion.deregister(world, effect)
            case e.Lock():
                return await moving.secure(world, effect)
            case e.Move():
                return await moving.relocate(world, effect)
            case e.FreeBranch():
                return await moving.free_branch(world, effect)
            case e.Rejoin():
                return await moving.rejoin(world, effect)
            case e.DropBranch():
                return await moving.drop_branch(world, effect)
            case e.Capture():
                return await snapshot.capture(world, effect)
            case e.Apply():
                return await snapshot.apply(world, effect)
            case e.Explain():
                return await deletion.explain(world, effect)
            case e.Destroy():
                return await deletion.destroy(world, effect)
            case _:
                assert_never(effect)


def _legible(outcome: e.Outcome) -> e.Outcome:
    """Returns the outcome as the log can keep it: git's words and file names may be any bytes."""
    words = {name: getattr(outcome, name) for name in outcome.__struct_fields__}
    foreign = {name: text for name, text in words.items() if isinstance(text, str) and not text.isascii()}
    return replace(
        outcome, **{name: text.encode("utf-8", "replace").decode() for name, text in foreign.items()}
    )
