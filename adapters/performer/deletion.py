"""Explaining a tree and, once that is in the log, deleting it: nothing else deletes a user's tree."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from adapters.files.demolish import demolish
from adapters.files.errors import IdentityChanged, MountInside
from adapters.files.identity import identify
from adapters.performer.world import EXPECTED, not_done
from adapters.snapshots import explain as explaining
from adapters.snapshots.explain import RegistrationChanged
from adapters.snapshots.manifest import SnapshotDamaged
from domain.effects import Destroy, Destroyed, Explain, Explained, Outcome, Resisted, Unexplained
from domain.paths import display, pack, unpack

if TYPE_CHECKING:
    from adapters.files.demolish import Demolition
    from adapters.performer.world import World
    from adapters.snapshots.explain import Explanation
    from domain.evidence import Identity

NAMED = 100  # paths that a fact names


async def explain(world: World, effect: Explain) -> Outcome:
    """Explains every entry; what is not the lane's directory, or cannot be read back, explains nothing."""
    root, common = unpack(effect.place.path), unpack(effect.repository)
    try:
        if os.path.lexists(root) and not effect.place.identity.same(identify(root)):
            reason = f"another directory is at {display(effect.place.path)}"
            return Unexplained(cause="identity_changed", reason=reason)
        partial = effect.basis.partial
        if not os.path.lexists(root) and not (partial or explaining.agrees_to_all(effect.basis)):
            reason = f"{display(effect.place.path)} is not there; if it was moved, move it back"
            return Unexplained(cause="tree_missing", reason=reason)
        explanation = await _prepare(world, effect)
        verdict = await explaining.explain(world.git, common, root, explanation, partial=partial)
    except SnapshotDamaged as error:
        return Unexplained(cause="snapshot_damaged", reason=str(error))
    except RegistrationChanged as error:
        return Unexplained(cause="registration_changed", reason=str(error))
    except MountInside as error:
        return Unexplained(cause="mount_inside", reason=str(error), paths=(pack(error.path),), count=1)
    except EXPECTED as error:
        return not_done("explain", error)
    if verdict.count:
        return Unexplained(
            cause="unexplained_entries",
            reason=f"{verdict.count} of {verdict.entries} entries are in no snapshot, commit or consent",
            paths=verdict.unexplained[:NAMED],
            count=verdict.count,
        )
    return Explained(digest=verdict.digest, entries=verdict.entries, bytes=verdict.bytes)


async def destroy(world: World, effect: Destroy) -> Outcome:
    """Deletes entry by entry what is still explained at the moment of its deletion; never anything else."""
    root = unpack(effect.place.path)
    try:
        if not os.path.lexists(root):  # a crash after the last unlink brings us back here
            await _require_quiet(world, effect)
            return Destroyed()
        explanation = await _prepare(world, effect)
        if effect.basis.partial:
            common = unpack(effect.repository)
            await explaining.explain(world.git, common, root, explanation, partial=True)
        identity = effect.place.identity
        left = await trio.to_thread.run_sync(_demolish, root, identity, explanation)
        await _require_quiet(world, effect)
    except (SnapshotDamaged, RegistrationChanged, IdentityChanged, MountInside) as error:
        return Unexplained(cause="changed_while_reaping", reason=str(error))
    except EXPECTED as error:
        return not_done("destroy", error)
    return _told(left)


async def _require_quiet(world: World, effect: Destroy) -> None:
    """Looks once more whether somebody used git in the tree while it went: that is still there."""
    basis, admin = effect.basis, unpack(effect.place.admin)
    if basis.partial:
        await _prepare(world, effect)
    elif basis.snapshot is not None and os.path.isdir(admin):
        directory, common = world.snapshot_dir(basis.snapshot.id), unpack(effect.repository)
        await explaining.require_same_registration(world.git, directory, common, admin, basis)


def _demolish(root: bytes, identity: Identity, explanation: Explanation) -> Demolition:
    return demolish(root, identity, explanation.algorithm, explanation.explains)


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
        )
    return Destroyed()


async def _prepare(world: World, effect: Explain | Destroy) -> Explanation:
    basis = effect.basis
    directory = world.snapshot_dir(basis.snapshot.id) if basis.snapshot else None
    common, admin = unpack(effect.repository), unpack(effect.place.admin)
    root = unpack(effect.place.path)
    return await explaining.prepare(world.git, directory, common, (root, admin), basis)
