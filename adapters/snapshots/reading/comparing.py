"""What a snapshot changes, as git shows it, and what git does not have of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapters.git.door import Location
from domain.paths import is_inside, pack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapters.snapshots.manifest import Held
    from adapters.snapshots.reading.reading import Opened

# Of two trees, so that no configuration for people counts. A textconv and an external diff are programs.
DIFF = (b"diff-tree", b"-r", b"-p", b"-M", b"--no-color", b"--no-ext-diff", b"--no-textconv")


async def diff(opened: Opened, paths: Sequence[bytes], *, staged: bool) -> bytes:
    """Returns how the worktree, or the index, differs from the commit: at these paths and below, or anywhere.

    Raises GitError.
    """
    to = opened.index if staged else opened.manifest.commit
    trees = (opened.before.encode(), to.encode())
    ran = await opened.git.run(
        *(b"--literal-pathspecs", *DIFF, b"--end-of-options", *trees, b"--", *filter(None, paths)),
        repository=Location(opened.common),
    )
    return ran.out


def apart(opened: Opened, paths: Sequence[bytes]) -> list[Held]:
    """Returns what git does not have, or has only a note of: at these paths and below, or anywhere."""
    below = [pack(each) for each in paths if each]
    return [
        each
        for each in opened.manifest.entries
        if each.apart is not None and (not below or any(is_inside(each.path, path) for path in below))
    ]
