"""Which effect is performed by what."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, assert_never

import trio
from msgspec.structs import replace

from adapters.files.durable import sync_file_systems
from adapters.performer import checkout, deletion, moving, snapshot
from domain import effects as e
from domain.paths import unpack

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
        outcome = await self._perform(effect)
        full = isinstance(outcome, e.NotDone) and outcome.code == "disk_full"
        if full and isinstance(effect, e.Move | e.Rejoin | e.Unlock):  # what brings a lane back
            with self._world.reserve(effect.repository).lent():
                outcome = await self._perform(effect)
        return _legible(outcome)

    async def settle(self, effect: e.Effect) -> None:
        """Makes durable what a process that has died may have done of it, since a look takes it for done.

        Raises OSError.
        """
        assert isinstance(effect, AnyEffect)
        places = [self._world.state_dir, unpack(effect.repository)]
        if not isinstance(effect, e.Checkout | e.Lock | e.Unlock | e.FreeBranch | e.Rejoin | e.DropBranch):
            tree = unpack(effect.place.path)
            places += [tree, os.path.dirname(tree)]
        await trio.to_thread.run_sync(sync_file_systems, *places)

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
