"""Explaining a tree and, once that is in the log, deleting it: nothing else deletes a user's tree."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import trio
from msgspec.structs import replace

from adapters.files.demolish import demolish
from adapters.files.errors import IdentityChanged, MountInside, words
from adapters.files.identity import identify
from adapters.performer import checkout, proof
from adapters.performer.world import EXPECTED, not_done
from adapters.snapshots.explain import explain as explaining
from adapters.snapshots.explain.explain import NOTHING, RegistrationChanged
from adapters.snapshots.files import SnapshotDamaged
from domain.effects import (
    Deregister,
    Destroy,
    Destroyed,
    Explain,
    Explained,
    NotDone,
    Outcome,
    Resisted,
    Unexplained,
)
from domain.evidence import CONSENT_LIMIT
from domain.paths import display, pack, unpack

if TYPE_CHECKING:
    from adapters.files.demolish import Demolition
    from adapters.files.scan import Entry
    from adapters.performer.world import World
    from adapters.snapshots.explain.explain import Explanation

NAMED = 100  # paths that a fact names
LASTING = ("EACCES", "EPERM", "EROFS", "EIO")  # what does not pass by itself
FRESH = 60.0  # seconds for which what was read of a tree and its snapshot is not read again
MOST = 4  # explanations that are kept at once: one of 100,000 files takes some 100 MB


async def explain(world: World, effect: Explain) -> Outcome:
    """Explains every entry; what is not the lane's directory, or cannot be read back, explains nothing."""
    root = unpack(effect.place.path)
    try:
        if os.path.lexists(root) and not effect.place.identity.same(identify(root)):
            reason = f"another directory is at {display(effect.place.path)}"
            return Unexplained(cause="identity_changed", reason=reason)
        partial = effect.basis.partial
        if not os.path.lexists(root) and explaining.agrees_to_all(effect.basis):
            return Explained(digest=NOTHING, entries=0, bytes=0)
        if not (partial or os.path.lexists(root)):
            return _missing(effect)
        explanation, verdict = await explaining.examine(world.git, *_where(world, effect), effect.basis)
    except SnapshotDamaged as error:
        return Unexplained(cause="snapshot_damaged", reason=str(error))
    except RegistrationChanged as error:
        return _changed(error, str(error))
    except MountInside as error:
        return _mounted(root, error)
    except EXPECTED as error:
        return _unreadable(root, error) or not_done("explain", error)
    if verdict.count:
        return Unexplained(
            cause="unexplained_entries",
            reason=f"{verdict.count} of {verdict.entries} entries are in no snapshot, commit or consent",
            paths=verdict.unexplained,
            count=verdict.count,
        )
    if not effect.basis.partial:
        _keep(world, effect, verdict.digest, explanation)
    return Explained(digest=verdict.digest, entries=verdict.entries, bytes=verdict.bytes)


def _changed(error: RegistrationChanged, reason: str) -> Unexplained:
    named, count = error.paths[:CONSENT_LIMIT], len(error.paths)
    return Unexplained(cause="registration_changed", reason=reason, paths=named, count=count)


def _mounted(root: bytes, error: MountInside) -> Unexplained:
    """Names no path that can be agreed to: what lies under the mount has been seen by nobody."""
    named = os.path.relpath(os.path.realpath(error.path), os.path.realpath(root))
    return Unexplained(cause="mount_inside", reason=f"{error.summary}: {display(pack(named))}")


def _unreadable(root: bytes, error: Exception) -> Unexplained | None:
    """Returns which directory or file of the tree may not be read: it can be agreed to with all in it."""
    path = error.filename if isinstance(error, PermissionError) else None
    if not isinstance(path, bytes) or not path.startswith(root + b"/"):
        return None
    named = pack(path.removeprefix(root + b"/"))
    return Unexplained(cause="unreadable", reason=words(error), paths=(named,), count=1)


def _missing(effect: Explain | Destroy) -> Unexplained:
    reason = f"{display(effect.place.path)} is not there; if it was moved, move it back"
    return Unexplained(cause="tree_missing", reason=reason)


async def destroy(world: World, effect: Destroy) -> Outcome:
    """Deletes entry by entry what is still explained at the moment of its deletion; never anything else.

    A tree that is not there is found deleted only where a proof says so, or nothing was there to explain.
    """
    root = unpack(effect.place.path)
    try:
        if os.path.lexists(root):
            return await _delete(world, effect)
        # A crash after the last unlink brings us back here; so does somebody who has moved the tree away.
        if not (effect.digest == NOTHING or await trio.to_thread.run_sync(proof.is_given, effect)):
            return _missing(effect)
        await _require_quiet(world, effect)
    except RegistrationChanged as error:
        return await trio.to_thread.run_sync(_worked_in, root, str(error))
    except MountInside as error:
        return _mounted(root, error)
    except (SnapshotDamaged, IdentityChanged) as error:
        return Unexplained(cause="changed_while_reaping", reason=str(error))
    except EXPECTED as error:
        return not_done("destroy", error)
    return Destroyed()


async def deregister(world: World, effect: Deregister) -> Outcome:
    """Takes the registration of a tree away, if nobody has used git in it since the tree was found deleted.

    The proof of the deletion says what was compared, also after a restart. What is agreed to since counts.
    """
    try:
        deleted = await trio.to_thread.run_sync(proof.of, effect.place)
        if deleted is not None:
            basis = replace(deleted.basis, consent=effect.consent)
            await _require_quiet(world, replace(deleted, basis=basis))
    except RegistrationChanged as error:
        reason = f"the tree is deleted, but git was used in it: {error}"
        return _changed(error, reason)
    except SnapshotDamaged as error:
        return NotDone(step="deregister", code="snapshot_damaged", reason=str(error))
    except EXPECTED as error:
        return not_done("deregister", error)
    return await checkout.deregister(world, effect)


def _worked_in(root: bytes, why: str) -> Unexplained:
    if os.path.lexists(root):
        return Unexplained(cause="changed_while_reaping", reason=why)
    return Unexplained(cause="tree_missing", reason=f"the tree is deleted, but git was used in it: {why}")


async def _delete(world: World, effect: Destroy) -> Outcome:
    """Deletes all but the tree's pointer, looks whether somebody was at work, and then deletes the rest."""
    run = trio.to_thread.run_sync
    await run(proof.take_back, effect)
    explanation = await _explanation(world, effect)
    left = await run(_demolish, effect, explanation, b".git")
    await _require_quiet(world, effect, explanation)
    if not (left.refused_count or left.failed_count):
        left = await run(_finish, effect, explanation)
        await _require_quiet(world, effect, explanation)
    return _told(left)


async def _explanation(world: World, effect: Destroy) -> Explanation:
    """Returns the explanation that is in the log, as this process has just made it, or else made anew."""
    kept, basis = _take(world, effect), effect.basis
    git, common, admin = world.git, unpack(effect.repository), unpack(effect.place.admin)
    if kept is not None and basis.snapshot is not None:
        directory = world.snapshot_dir(basis.snapshot.id)
        await explaining.require_same_snapshot(git, directory, common, basis.snapshot)
        await explaining.require_same_registration(git, directory, common, admin, basis, kept)
        return kept
    # The explanation is in the log, so a deletion that was killed may have opened directories here before.
    explanation = await _prepare(world, replace(effect, basis=replace(basis, worn=True)))
    if basis.partial:
        place = unpack(effect.place.path), admin
        await explaining.explain(git, common, place, explanation, partial=True)
    return explanation


def _finish(effect: Destroy, explanation: Explanation) -> Demolition:
    """Deletes the pointer and the root; what has come meanwhile keeps both, and nothing is proved then."""
    proof.give(effect)
    left = _demolish(effect, explanation)
    if os.path.lexists(unpack(effect.place.path)):
        proof.take_back(effect)
        if not effect.basis.partial:
            proof.keep_pointer(effect)
    return left


async def _require_quiet(world: World, effect: Destroy, explanation: Explanation | None = None) -> None:
    """Looks once more whether somebody used git in the tree while it went: that is still there.

    Every way to `Destroyed` leads through here: the registration that is deleted next was asked for.
    """
    basis, admin = effect.basis, unpack(effect.place.admin)
    if explaining.agrees_to_all(basis):
        return
    if basis.partial or basis.snapshot is None:
        await _prepare(world, effect)
    elif os.path.isdir(admin):
        directory, common = world.snapshot_dir(basis.snapshot.id), unpack(effect.repository)
        await explaining.require_same_registration(world.git, directory, common, admin, basis, explanation)


def _demolish(effect: Destroy, explanation: Explanation, spared: bytes | None = None) -> Demolition:
    """Deletes what is explained; where nothing was there to explain, nothing that has come since is."""
    explains = explanation.explains if effect.digest != NOTHING else _explains_nothing
    root, identity = unpack(effect.place.path), effect.place.identity
    looks = explanation.looks if effect.digest != NOTHING else {}
    return demolish(root, identity, explanation.algorithm, explains, spared, looks)


def _explains_nothing(entry: Entry) -> bool:
    return False


def _told(left: Demolition) -> Outcome:
    if left.refused_count:
        return Unexplained(
            cause="changed_while_reaping",
            reason=f"{left.refused_count} entries appeared or changed after the explanation, and were kept",
            paths=tuple(pack(path) for path in left.refused[:NAMED]),
            count=left.refused_count,
        )
    if left.failed_count:
        where, why = left.failed[0]
        reason = f"{left.failed_count} entries could not be deleted, for instance {os.fsdecode(where)}: {why}"
        return Resisted(
            reason=reason,
            left=tuple(pack(path) for path, _ in left.failed[:NAMED]),
            transient=any(not why.startswith(LASTING) for _, why in left.failed),
        )
    return Destroyed()


async def _prepare(world: World, effect: Explain | Destroy) -> Explanation:
    return await explaining.prepare(world.git, *_where(world, effect), effect.basis)


def _where(world: World, effect: Explain | Destroy) -> tuple[bytes | None, bytes, tuple[bytes, bytes]]:
    """Returns the directory of the snapshot, the repository's, and those of the tree and its registration."""
    snapshot = effect.basis.snapshot
    directory = world.snapshot_dir(snapshot.id) if snapshot else None
    place = unpack(effect.place.path), unpack(effect.place.admin)
    return directory, unpack(effect.repository), place


class _Kept(NamedTuple):
    """An explanation that waits for the deletion that follows it; `at` is when it was made."""

    explain: Explain
    digest: str
    explanation: Explanation
    at: float


def _keep(world: World, effect: Explain, digest: str, explanation: Explanation) -> None:
    waiting = _WAITING.setdefault(world, {})
    waiting.pop(effect.place.path, None)
    while len(waiting) >= MOST:
        del waiting[next(iter(waiting))]
    waiting[effect.place.path] = _Kept(effect, digest, explanation, trio.current_time())


def _take(world: World, effect: Destroy) -> Explanation | None:
    """Returns the explanation that was made for this very deletion, once, and not for long."""
    kept = _WAITING.get(world, {}).pop(effect.place.path, None)
    if kept is None or trio.current_time() - kept.at > FRESH:
        return None
    explained = Explain(repository=effect.repository, place=effect.place, basis=effect.basis)
    return kept.explanation if (kept.explain, kept.digest) == (explained, effect.digest) else None


# Of each world; what is not here is made again.
_WAITING: WeakKeyDictionary[World, dict[str, _Kept]] = WeakKeyDictionary()
