"""What was promised, held against the log, and the log against git and the disk."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.soak.house import House
    from tests.soak.load import Promise

ONCE = ("lane.created", "lane.quarantined", "lane.restored", "lane.reaped", "creation.planned")
STATES = {  # what a command that has succeeded leaves, at the position that its answer names
    "create": ("active",),
    "snapshot": ("active", "quarantined"),
    "remove": ("quarantined",),
    "remove and reap": ("reaped",),
    "restore": ("active",),
    "reap": ("reaped",),
}


def complaints(house: House, promises: list[Promise]) -> list[str]:
    """Returns everything that is not as it was promised."""
    found = [*_broken(house, promises), *_doubled(house)]
    verified = house.program("verify")
    if verified.returncode:
        found.append(f"verify: {verified.returncode}: {verified.stdout[:2000]} {verified.stderr[:2000]}")
    for root in house.roots:
        found += _git(house, root)
    return found


def _broken(house: House, promises: list[Promise]) -> Iterator[str]:
    """Yields the promises that the log does not keep."""
    positions = {(each.position, each.cause) for each in house.events()}
    for each in promises:
        if (each.document["position"], each.key) not in positions:
            yield f"{each.verb} {each.key} was answered, and is not in the log at {each.document['position']}"
        if each.document["state"] not in STATES[each.verb]:
            told = f"{each.document['state']}: {each.document.get('outcome')}"
            yield f"{each.verb} {each.key} was answered with {told}"


def _doubled(house: House) -> Iterator[str]:
    """Yields the causes that have led to something twice."""
    events = house.events()
    if [each.position for each in events] != list(range(1, len(events) + 1)):
        yield "the positions of the log have gaps"
    sweeps = {each.cause for each in events if each.stream.startswith("sweep-")}
    seen = Counter(
        (each.cause, each.stream if each.cause in sweeps else "", each.type.partition("@")[0])
        for each in events
    )
    for (cause, _, kind), count in seen.items():
        if kind in ONCE and count > 1:
            yield f"{cause} has led to {kind} {count} times"


def _git(house: House, root: Path) -> Iterator[str]:
    """Yields what git knows and the log does not, or the other way round."""
    fsck = house.git(root, "fsck", "--no-progress", "--no-dangling")
    if fsck.strip():
        yield f"fsck of {root.name}: {fsck}"
    key = str(root / ".git")
    rows = [row for row in house.lanes_of(key) if row["kind"] != "primary"]
    branches = set(house.git(root, "for-each-ref", "--format=%(refname)", "refs/heads").split())
    stray = branches - {"refs/heads/main"} - {str(row["branch"]) for row in rows}
    if stray:
        yield f"stray branches in {root.name}: {sorted(stray)}"
    listed = house.git(root, "worktree", "list", "--porcelain").split("\n")
    trees = {line.removeprefix("worktree ") for line in listed if line.startswith("worktree ")} - {str(root)}
    ours = {str(row["path"]) for row in rows if row["state"] in ("active", "quarantined")}
    if trees != ours:
        yield f"worktrees of {root.name}: strange {sorted(trees - ours)}, not there {sorted(ours - trees)}"
    owed = [row["slug"] for row in rows if row["owed"] is not None]
    if owed:
        yield f"still owed in {root.name}: {owed}"
