"""Making a worktree, and taking its registration out again."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from adapters.files.demolish import demolish
from adapters.files.durable import make_directories, read_file, remove_file, replace, sync_file_systems
from adapters.files.errors import Halfway
from adapters.files.identity import identify
from adapters.files.rename import move
from adapters.git.door import Location
from adapters.git.errors import ForeignLock, GitError, GitFailed, RegistrationUnreadable
from adapters.git.refs import read_ref
from adapters.git.registration import pointers_agree, unlock
from adapters.git.repository import canonical, content
from adapters.performer.world import EXPECTED, not_done
from domain.effects import CheckedOut, Checkout, Deregister, Deregistered, NotDone, Outcome, Unlock, Unlocked
from domain.evidence import Identity, Place
from domain.paths import pack, unpack

if TYPE_CHECKING:
    from adapters.performer.world import World

WORKERS = b"checkout.workers=4"  # 0.6 to 0.8 of the time of one worker from 10,000 files on
EXCLUDED = b"/.laneyard/"
NOWHERE = Identity(0, 0)  # of a directory that an interrupted git did not come to make


async def checkout(world: World, effect: Checkout) -> Outcome:
    """Makes the worktree, unless a killed attempt has made it already."""
    path = unpack(effect.path)
    try:
        async with world.changing(effect.repository) as common:
            admin = await trio.to_thread.run_sync(_found, common, path, effect.reason)
            if admin is None:
                await trio.to_thread.run_sync(_prepare, common, path)
                await _add(world, common, effect)
                admin = await trio.to_thread.run_sync(find_ours, common, path, effect.reason)
            # Git syncs no file of a worktree, and no name in a directory.
            await trio.to_thread.run_sync(sync_file_systems, path, common)
            return await _look(world, effect, admin)
    except EXPECTED as error:
        return await _failed(world, effect, error)


async def _add(world: World, common: bytes, effect: Checkout) -> None:
    try:
        await _try_to_add(world, common, effect)
    except GitFailed as error:
        left = error.says("File exists") and await trio.to_thread.run_sync(_unlock_branch, common, effect)
        if not left:
            raise
        await _try_to_add(world, common, effect)


def _unlock_branch(common: bytes, effect: Checkout) -> bool:
    """Takes away the lock that a killed git of ours has left on the new branch; tells whether it was there.

    It has what we want to write. Git has waited for it, and as we have the repository's lock, no git of ours
    holds it; anybody else's that makes this very branch fails, and has lost nothing.
    """
    lock = os.path.join(common, effect.branch.encode() + b".lock") if effect.branch else b""
    return bool(lock) and content(lock) == effect.commit.encode() and remove_file(lock)


async def _try_to_add(world: World, common: bytes, effect: Checkout) -> None:
    options = [b"-c", WORKERS, b"worktree", b"add", b"--quiet", b"--lock"]
    options += [b"--reason", effect.reason.encode()]
    if effect.branch is None:
        options += [b"--detach", b"--no-checkout"]  # what it comes back from has every file's own bytes
    else:
        options += [b"--no-track", b"-b", effect.branch.removeprefix("refs/heads/").encode()]
    path, commit, fetch = unpack(effect.path), effect.commit.encode(), effect.branch is not None
    where, run = Location(common), world.git.run
    try:
        await run(*options, b"--end-of-options", path, commit, repository=where, write=True, fetch=fetch)
    except GitFailed as error:
        if effect.branch is None or not error.says("already exists"):
            raise
        # A killed attempt of ours may have got as far as the branch; one that is elsewhere is somebody's.
        if await read_ref(world.git, common, effect.branch.encode()) != effect.commit:
            raise
        named = effect.branch.removeprefix("refs/heads/").encode()
        options = [each for each in options if each not in (b"-b", b"--no-track", named)]
        await run(*options, b"--end-of-options", path, named, repository=where, write=True, fetch=fetch)


async def _look(world: World, effect: Checkout, admin: bytes | None) -> Outcome:
    """Returns what is really there: the tree is its own top level, at the planned commit, and complete."""
    path = unpack(effect.path)
    if admin is None:
        raise RegistrationUnreadable(path, "git reports success, but has not registered the worktree")
    ran = await world.git.run(
        b"rev-parse", b"--show-toplevel", b"--verify", b"HEAD", repository=Location(None, path)
    )
    # Git writes the index last, when all files are there.
    complete = effect.branch is None or os.path.exists(os.path.join(admin, b"index"))
    if ran.out != path + b"\n" + effect.commit.encode() + b"\n" or not complete:
        reason = f"the new worktree is not what was planned: {ran.out.decode('utf-8', 'replace').strip()!r}"
        return NotDone(
            step="checkout",
            code="wrong_checkout",
            reason=reason,
            left=_place(path, admin),
            branch_made=effect.branch is not None,
        )
    return CheckedOut(place=_place(path, admin), head=effect.commit)


async def _failed(world: World, effect: Checkout, error: Exception) -> Outcome:
    """Returns the failure with what it has left behind that is certainly ours.

    Raises Halfway where that cannot be seen: a killed attempt may have made everything.
    """
    common, path = unpack(effect.repository), unpack(effect.path)
    outcome = not_done("checkout", error)
    left, made = None, False
    try:
        admin = await trio.to_thread.run_sync(find_ours, common, path, effect.reason)
        left = _place(path, admin) if admin else None
        existed = isinstance(error, GitFailed) and error.says("already exists")
        tried = isinstance(error, GitError) or left is not None
        if effect.branch is not None and tried and not existed:
            made = await read_ref(world.git, common, effect.branch.encode()) == effect.commit
    except EXPECTED as blind:
        raise Halfway(path, blind) from error
    code = _code(outcome.code, error)
    return NotDone(step="checkout", code=code, reason=outcome.reason, left=left, branch_made=made)


def _code(code: str, error: Exception) -> str:
    if not isinstance(error, GitFailed):
        return code
    if error.says("a branch named"):
        return "branch_exists"
    return "path_in_use" if error.says("already exists") else code


def _found(common: bytes, path: bytes, reason: str) -> bytes | None:
    """Returns the registration that an earlier attempt has left, locked also if a power cut emptied that."""
    admin = find_ours(common, path, reason)
    if admin is not None and _lock_of(admin) == b"":
        replace(os.path.join(admin, b"locked"), reason.encode() + b"\n", 0o644)
    return admin


def find_ours(common: bytes, path: bytes, reason: str) -> bytes | None:
    """Returns the registration of this path that carries our lock, however far git has come with it.

    Git syncs neither the lock nor the pointer: a power cut may leave either empty, or both.
    """
    parent, stem = os.path.join(common, b"worktrees"), os.path.basename(path)
    try:
        names = sorted(name for name in os.listdir(parent) if name.startswith(stem))
    except FileNotFoundError:
        return None
    for name in names:
        admin = os.path.join(parent, name)
        try:
            if _lock_of(admin) in (reason.encode(), b"") and _is_of(admin, path, reason.encode()):
                return admin
        except RegistrationUnreadable:
            continue  # gone again, or damaged by somebody: not one that carries our lock
    return None


def _lock_of(admin: bytes) -> bytes | None:
    return content(os.path.join(admin, b"locked"))


def _is_of(admin: bytes, path: bytes, reason: bytes) -> bool:
    """Tells whether a registration is of this path: git writes the lock first, then the pointer, then HEAD.

    One that names no path yet is what a killed git of ours has left, if the lock is ours.
    """
    pointer = content(os.path.join(admin, b"gitdir"))
    if not pointer:
        return _lock_of(admin) in (reason, b"")
    return canonical(os.path.join(admin, pointer)) == os.path.join(path, b".git")


def _place(path: bytes, admin: bytes) -> Place:
    return Place(pack(path), pack(admin), identify(path) if _is_tree_of(admin, path) else NOWHERE)


def _is_tree_of(admin: bytes, path: bytes) -> bool:
    """Tells whether this is our worktree, or its beginning, and not what has been put in its place."""
    pointer = os.path.join(path, b".git")
    emptied = os.path.isfile(pointer) and not os.path.getsize(pointer)  # by a power cut: git does not sync it
    if emptied or pointers_agree(admin, path) is None:
        return True
    begun = os.path.isdir(path) and {*os.listdir(path)} <= {b".git"}
    return begun and not os.path.isdir(os.path.join(path, b".git"))


def _prepare(common: bytes, path: bytes) -> None:
    """Makes the managed root, and keeps it out of everybody's `git status`."""
    make_directories(os.path.dirname(path), 0o755)
    exclude = os.path.join(common, b"info", b"exclude")
    make_directories(os.path.dirname(exclude), 0o755)
    text = read_file(exclude) if os.path.exists(exclude) else b""
    if EXCLUDED not in text.split(b"\n"):
        gap = b"" if not text or text.endswith(b"\n") else b"\n"
        replace(exclude, text + gap + EXCLUDED + b"\n", 0o644)


async def release(world: World, effect: Unlock) -> Outcome:
    """Takes our lock off the registration; a registration that is gone has none."""
    admin = unpack(effect.admin)
    try:
        async with world.changing(effect.repository):
            if os.path.isdir(admin):
                await trio.to_thread.run_sync(unlock, admin, effect.reason.encode())
    except EXPECTED as error:
        return not_done("unlock", error)
    return Unlocked()


async def deregister(world: World, effect: Deregister) -> Outcome:
    """Moves the registration of a deleted tree out of git's sight in one rename, then deletes it."""
    try:
        async with world.changing(effect.repository) as common:
            return await trio.to_thread.run_sync(_deregister, common, effect)
    except EXPECTED as error:
        return not_done("deregister", error)


def _deregister(common: bytes, effect: Deregister) -> Outcome:
    admin, path = unpack(effect.place.admin), unpack(effect.place.path)
    retired = os.path.join(common, b"laneyard", b"retired-" + os.path.basename(admin))
    # Git may have given the name of the registration to another worktree by now.
    if _is_of(admin, path, effect.reason.encode()):
        locked = _lock_of(admin)
        if locked not in (None, effect.reason.encode()):
            raise ForeignLock(locked or b"")
        if os.path.lexists(path):
            return NotDone(step="deregister", code="tree_present", reason="the tree is still there")
        move(admin, retired)
    if os.path.isdir(retired):
        left = demolish(retired, identify(retired), "sha1", lambda entry: True)
        if left.failed_count:
            where, why = left.failed[0]
            reason = f"{os.fsdecode(where)}: {why}"
            return NotDone(step="deregister", code="io_failed", reason=reason, transient=True)
    return Deregistered()


def agree(admin: bytes, path: bytes) -> None:
    """Raises RegistrationUnreadable unless the tree and its registration name each other."""
    why = pointers_agree(admin, path)
    if why is not None:
        raise RegistrationUnreadable(path, why)
