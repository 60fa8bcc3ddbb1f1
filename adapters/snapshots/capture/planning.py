"""What the commits of a snapshot are to be, from what was seen of tree, index and registration."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters.git.errors import GitFailed
from adapters.snapshots import objects
from adapters.snapshots.capture import gitlinks
from adapters.snapshots.manifest import GITLINK
from adapters.snapshots.objects import Plan
from adapters.snapshots.position import CannotCapture
from domain.paths import unpack

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adapters.git.door import Git
    from adapters.git.parse import TreeEntry
    from adapters.snapshots.capture.beginning import Begun
    from adapters.snapshots.capture.keeping_alive import Alive
    from adapters.snapshots.capture.survey import Survey
    from adapters.snapshots.objects import Written
    from domain.effects import Capture

REFS = "refs/laneyard/snapshots/"


async def make_plan(git: Git, effect: Capture, begun: Begun, seen: Survey, alive: Alive) -> Plan:
    """Returns what the commits are to be. Raises GitError."""
    return Plan(
        ref=REFS + effect.snapshot,
        head=begun.head.oid,
        held=seen.held,
        gone=_gone(seen, begun.tree),
        outside=seen.outside,
        staged=begun.staged,
        commits=alive.commits,
        others=alive.others,
        present=await _present(git, unpack(effect.repository), begun, seen),
        links=await gitlinks.moved(unpack(effect.place.path), begun, seen),
    )


async def write(git: Git, common: bytes, root: bytes, plan: Plan, note: bytes) -> Written:
    """Writes what is planned. Raises CannotCapture where staged content is missing, or as `objects.write`."""
    try:
        return await objects.write(git, common, root, plan, note)
    except GitFailed as error:
        missing = await _missing(git, common, plan)
        if not missing:
            raise
        named = ", ".join(os.fsdecode(path) for path in missing[:5])
        raise CannotCapture(f"staged content is missing in the repository, of {named}") from error


async def _missing(git: Git, common: bytes, plan: Plan) -> list[bytes]:
    """Returns the paths, as they were quoted, whose staged content git has not got."""
    staged = [(line[2].decode("ascii"), line[3]) for line in _staged(plan) if line[1] != b"%o" % GITLINK]
    found = {oid for oid, _, _ in await objects.check(git, common, sorted({oid for oid, _ in staged}))}
    return [path for oid, path in staged if oid not in found]


def existing(plan: Plan) -> list[str]:
    """Returns the objects of a plan that were in git before, each reached in a new way."""
    staged = (line[2].decode("ascii") for line in _staged(plan))
    return [*plan.present, *staged, *plan.commits, *(oid for oid, _ in plan.others)]


def _staged(plan: Plan) -> list[list[bytes]]:
    """Returns mode, object and quoted path of what is staged, each after an `M`."""
    return [line.split(b" ", 3) for line in plan.staged.split(b"\n") if line.startswith(b"M ")]


def oids_at(seen: Survey, paths: Iterable[bytes]) -> set[str]:
    """Returns the contents of what is held at these paths."""
    wanted = set(paths)
    return {each.oid for each in seen.held if each.oid is not None and unpack(each.path) in wanted}


def _gone(seen: Survey, tree: dict[bytes, TreeEntry]) -> list[bytes]:
    """Returns the paths of the commit that are not to be in the snapshot's."""
    found = []
    for each in seen.held:
        path = unpack(each.path)
        known = tree.get(path)
        if known is None:
            continue
        replaced = each.kind == "directory" and known.mode != GITLINK
        if replaced or each.kind == "absent" or path in seen.outside:
            found.append(path)
    return found


async def _present(git: Git, common: bytes, begun: Begun, seen: Survey) -> frozenset[str]:
    """Returns which of the contents that were not read now are in git, with the size that they had."""
    if not seen.held:
        return frozenset()
    unread = {*begun.trust.remembered, *begun.trust.trusted}
    sizes = {
        each.oid: each.size
        for each in seen.held
        if each.oid is not None and each.apart is None and unpack(each.path) in unread
    }
    found = await objects.check(git, common, sorted(sizes))
    return frozenset(oid for oid, kind, size in found if kind == "blob" and size == sizes[oid])
