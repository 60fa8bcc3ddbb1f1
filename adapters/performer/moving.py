"""Locking a registration, moving a tree, and what becomes of its branch."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from adapters.files.durable import make_directories
from adapters.files.errors import Halfway, IdentityChanged, LockFileHeld
from adapters.files.identity import identify
from adapters.files.rename import move
from adapters.git.heads import attach_head, detach_head, head_users, operation_in_progress, read_head
from adapters.git.refs import create_ref, delete_ref, read_ref
from adapters.git.registration import lock, read_registration, repoint
from adapters.performer.checkout import agree
from adapters.performer.strict import objection
from adapters.performer.world import EXPECTED, not_done
from adapters.snapshots.position import position_of
from domain.effects import (
    DropBranch,
    Dropped,
    FreeBranch,
    Freed,
    Joined,
    Lock,
    Locked,
    Move,
    Moved,
    Outcome,
    Rejoin,
)
from domain.evidence import Place
from domain.naming import short_branch
from domain.paths import pack, unpack

if TYPE_CHECKING:
    from adapters.performer.world import World


async def secure(world: World, effect: Lock) -> Outcome:
    """Locks the registration: a crash after locking brings us back here, and the same reason is fine."""
    try:
        async with world.changing(effect.repository):
            await trio.to_thread.run_sync(_secure, unpack(effect.admin), effect)
    except EXPECTED as error:
        return not_done("lock", error)
    return Locked()


def _secure(admin: bytes, effect: Lock) -> None:
    if effect.idle:
        for name in (b"index", b"HEAD"):
            path = os.path.join(admin, name)
            if os.path.lexists(path + b".lock"):
                raise LockFileHeld(path)
    lock(admin, effect.reason.encode())


async def relocate(world: World, effect: Move) -> Outcome:
    """Renames the tree and points its registration at the new place, or leaves both as they were."""
    place, target = effect.place, unpack(effect.target)
    try:
        async with world.changing(effect.repository):
            await trio.to_thread.run_sync(_begin_anew, place, target)
            if effect.strict and not _is_at(place, target):
                why = await objection(world, place)
                if why is not None:
                    return why
            return await trio.to_thread.run_sync(_relocate, effect)
    except EXPECTED as error:
        return not_done("move", error)


def _begin_anew(place: Place, target: bytes) -> None:
    """Points the registration at the tree again, if a crash came after that and the tree is where it was."""
    source, admin = unpack(place.path), unpack(place.admin)
    if _is_at(place, source) and _names(admin, target):
        repoint(admin, source)


def _relocate(effect: Move) -> Outcome:
    place, target = effect.place, unpack(effect.target)
    source, admin = unpack(place.path), unpack(place.admin)
    # A crash after the rename brings us back here: the very directory is already at its target.
    arrived = _is_at(place, target)
    if not arrived and _names(admin, target):
        return _moved(place, target)
    if not arrived:
        if not place.identity.same(identify(source)):
            raise IdentityChanged(source)
        agree(admin, source)
        make_directories(os.path.dirname(target), 0o755)
    try:
        if effect.leaving:
            _name(admin, target)
        if not arrived:
            move(source, target)
        _name(admin, target)
        return _moved(place, target)
    except EXPECTED:
        _lead_back(place, target)
        raise


def _moved(place: Place, target: bytes) -> Moved:
    """Returns where the tree is, or where it goes if somebody has taken it away meanwhile.

    To lead back from there would leave a lane whose tree, once it is brought back, belongs to nobody; a lane
    at rest comes back from its resting place and from its own.
    """
    try:
        agree(unpack(place.admin), target)
    except EXPECTED:
        if _is_at(place, target):
            raise
    return Moved(place=Place(pack(target), place.admin, place.identity))


def _is_at(place: Place, path: bytes) -> bool:
    return os.path.lexists(path) and place.identity.same(identify(path))


def _names(admin: bytes, tree: bytes) -> bool:
    return read_registration(admin).points_to == os.path.join(tree, b".git")


def _name(admin: bytes, tree: bytes) -> None:
    if not _names(admin, tree):
        repoint(admin, tree)


def _lead_back(place: Place, target: bytes) -> None:
    """Puts the tree, and what git knows of it, back where it was. Raises Halfway where that fails as well.

    A rename or a write that reports an error may have been done all the same.
    """
    source, admin = unpack(place.path), unpack(place.admin)
    try:
        _name(admin, source)
        if _is_at(place, target):
            move(target, source)
    except EXPECTED as error:
        raise Halfway(target, error) from error


async def free_branch(world: World, effect: FreeBranch) -> Outcome:
    """Detaches HEAD at the commit that its branch is at now, so that nothing seems changed.

    A branch without a commit is nowhere yet: there is nothing to free, and nothing to be detached at.
    """
    admin = unpack(effect.admin)
    try:
        async with world.changing(effect.repository) as common:
            head = await trio.to_thread.run_sync(read_head, admin)
            if head is None or not head.startswith(b"ref:"):
                return Freed()
            ref = head.removeprefix(b"ref:").strip()
            at = await read_ref(world.git, common, ref)
            if at is None:
                return Freed()
            await trio.to_thread.run_sync(detach_head, admin, at)
    except EXPECTED as error:
        return not_done("free-branch", error)
    return Freed()


async def rejoin(world: World, effect: Rejoin) -> Outcome:
    """Puts HEAD on the branch again, where that changes nothing; else says why it stays detached.

    The branch must be at the very commit that HEAD is at: either may have moved on; neither is moved.
    """
    if effect.branch is None:
        return Joined(branch=None)
    admin, ref = unpack(effect.admin), effect.branch.encode()
    try:
        async with world.changing(effect.repository) as common:
            head = await trio.to_thread.run_sync(read_head, admin) or b""
            if head.startswith(b"ref:"):
                return _joined_already(effect.branch, head.removeprefix(b"ref:").strip())
            why = await _obstacle(world, common, admin, effect)
            if why is not None:
                return Joined(branch=None, why=why)
            await trio.to_thread.run_sync(attach_head, admin, ref)
    except EXPECTED as error:
        return not_done("rejoin", error)
    return Joined(branch=effect.branch)


def _joined_already(wanted: str, found: bytes) -> Joined:
    """Returns what it means that HEAD is on a branch: ours, or where somebody has put it since."""
    branch = found.decode("utf-8", "replace")
    if branch == wanted:
        return Joined(branch=branch)
    return Joined(
        branch=branch, why=f"HEAD is on {short_branch(branch)} by now, not on {short_branch(wanted)}"
    )


async def _obstacle(world: World, common: bytes, admin: bytes, effect: Rejoin) -> str | None:
    """Returns why HEAD cannot be on the branch; a branch that is gone is made again where it was."""
    assert effect.branch is not None
    ref, named = effect.branch.encode(), short_branch(effect.branch)
    if await trio.to_thread.run_sync(operation_in_progress, admin) == "rebase":
        return "a rebase is in progress, and HEAD is its"
    users = await trio.to_thread.run_sync(head_users, common, ref)
    others = [user for user in users if os.path.realpath(user) != os.path.realpath(admin)]
    if others:
        return f"the branch {named} is in use by {os.fsdecode(others[0])}"
    at = await read_ref(world.git, common, ref)
    if not effect.head:  # the branch had no commit yet
        return None if at is None else f"the branch {named} has commits by now, and is at {at}"
    head = (await position_of(world.git, common, admin)).oid
    if not head:
        return f"{os.fsdecode(admin)} has no HEAD"
    if at is None and not await create_ref(world.git, common, ref, head):
        return f"the branch {named} could not be made again"
    if at not in (None, head):
        return f"the branch {named} is at {at} by now, and HEAD at {head}"
    return None


async def drop_branch(world: World, effect: DropBranch) -> Outcome:
    """Deletes the branch if it is where we left it and no checkout uses it; else says why it is kept."""
    ref, named = effect.branch.encode(), short_branch(effect.branch)
    try:
        async with world.changing(effect.repository) as common:
            at = await read_ref(world.git, common, ref)
            if at is None:
                return Dropped()
            if at != effect.at:
                return Dropped(kept=f"the branch {named} has moved on to {at}")
            users = await trio.to_thread.run_sync(head_users, common, ref)
            if users:
                return Dropped(kept=f"the branch {named} is in use by {os.fsdecode(users[0])}")
            await delete_ref(world.git, common, ref, effect.at)
    except EXPECTED as error:
        return not_done("drop-branch", error)
    return Dropped()
