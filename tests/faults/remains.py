"""What is left about: everything in git's directories, ours and the state's that no lane accounts for."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from adapters.store.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.soak.house import House

# What git, or whoever writes a file beside another, leaves when it is killed.
UNFINISHED = re.compile(
    r"(?<!laneyard)\.lock$|(^|/)(tmp_|\.tmp-|\.laneyard-|retired-|fast_import_crash_)|-named$"
)


def remains(house: House) -> list[str]:
    """Returns what nobody accounts for while nothing runs, each as a path or a ref with a word before it."""
    snapshots = known_snapshots(house)
    found = [*_of_state(house, snapshots)]
    for root in house.roots:
        found += _refs(house, root, snapshots)
        found += [f"unfinished {path}" for path in _unfinished(root / ".git")]
        found += [f"unfinished {path}" for path in _unfinished(root / ".laneyard")]
        found += _strangers(house, root)
    return sorted(found)


def known_snapshots(house: House) -> set[str]:
    """Returns the ids of the snapshots that the log tells of and has not called failed."""
    with Reader(house.store) as reader:
        return {
            str(getattr(event.fact, "snapshot").id)  # noqa: B009
            for event in reader.events()
            if event.type.startswith("lane.snapshotted@")
        }


def _of_state(house: House, snapshots: set[str]) -> Iterator[str]:
    state = house.state
    if (state / "snapshots").is_dir():
        for each in sorted((state / "snapshots").iterdir()):
            if each.name not in snapshots:
                yield f"snapshot {each}"
    if (state / "blobs").is_dir():
        for each in sorted((state / "blobs").iterdir()):
            if each.stat().st_nlink < 2:
                yield f"blob {each}"
    if (state / "beginnings").is_dir():
        yield from (f"unfinished {each}" for each in sorted((state / "beginnings").iterdir()))
    yield from (f"unfinished {path}" for path in _unfinished(state))


def _unfinished(place: Path) -> Iterator[str]:
    for folder, _, names in os.walk(place):
        for name in names:
            path = os.path.join(folder, name)
            if UNFINISHED.search(path):
                yield path


def _refs(house: House, root: Path, snapshots: set[str]) -> Iterator[str]:
    for ref in house.git(root, "for-each-ref", "--format=%(refname)", "refs/laneyard").split():
        if not snapshots & set(ref.split("/")):
            yield f"ref {ref}"


def _strangers(house: House, root: Path) -> Iterator[str]:
    rows = house.lanes_of(str(root / ".git"))
    ours = {str(row["path"]) for row in rows if row["state"] in ("active", "quarantined")}
    for home in ("worktrees", "quarantine"):
        place = root / ".laneyard" / home
        for each in sorted(place.iterdir()) if place.is_dir() else ():
            if str(each) not in ours:
                yield f"directory {each}"
    for each in sorted((root / ".git/worktrees").iterdir()) if (root / ".git/worktrees").is_dir() else ():
        points = each / "gitdir"
        if not points.is_file() or str(Path(points.read_text().strip()).parent) not in ours:
            yield f"registration {each}"


def unreachable(house: House, root: Path, commits: set[str]) -> set[str]:
    """Returns the commits that neither a ref nor a lane's HEAD reaches."""
    heads = [
        line.partition(" ")[2]
        for line in house.git(root, "worktree", "list", "--porcelain").splitlines()
        if line.startswith("HEAD ")
    ]
    return commits - set(house.git(root, "rev-list", "--all", *heads).split())
