"""What a snapshot changes, as git shows it, and what git does not have of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from adapters.git.door import Location
from domain.paths import is_inside, pack

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from adapters.snapshots.manifest import Held
    from adapters.snapshots.reading.reading import Opened

# Of two trees, so that no configuration for people counts. A textconv and an external diff are programs.
DIFF = (
    *(b"diff-tree", b"-r", b"-p", b"-M", b"--no-color", b"--no-ext-diff", b"--no-textconv"),
    b"--submodule=short",
)


async def diff(opened: Opened, paths: Sequence[bytes], *, staged: bool) -> AsyncGenerator[bytes]:
    """Yields how the worktree, or the index, differs from the commit: at these paths and below, or anywhere.

    Of what is unmerged in the index that is told first, and no difference. Raises NotInSnapshot, GitError.
    """
    named = [each for each in paths if each]
    to = opened.index if staged else opened.manifest.commit
    await opened.require(named, opened.manifest.head, to)
    unmerged = await opened.unmerged() if staged else {}
    there = [path for path in sorted(unmerged) if _is_below(path, named)]
    if there:
        yield b"".join(b"* Unmerged path %b\n" % quoted(path) for path in there)
    specs = [b":(top,literal)" + each for each in named] + [
        b":(top,exclude,literal)" + each for each in there
    ]
    trees = (opened.before.encode(), to.encode())
    arguments = (*DIFF, b"--end-of-options", *trees, b"--", *specs)
    async with opened.git.converse(*arguments, repository=Location(opened.common)) as conversation:
        async for piece in conversation.rest():
            yield piece


def quoted(path: bytes) -> bytes:
    """Returns a path as git writes it for people, in quotes where it has odd bytes."""
    if not ODD.search(path):
        return path
    return b'"' + ODD.sub(lambda found: ESCAPES.get(found[0], b"\\%03o" % found[0][0]), path) + b'"'


def _is_below(path: bytes, places: Sequence[bytes]) -> bool:
    return not places or any(path == each or path.startswith(each + b"/") for each in places)


def apart(opened: Opened, paths: Sequence[bytes]) -> list[Held]:
    """Returns what git does not have, or has only a note of: at these paths and below, or anywhere."""
    below = [pack(each) for each in paths if each]
    return [
        each
        for each in opened.manifest.entries
        if each.apart is not None and (not below or any(is_inside(each.path, path) for path in below))
    ]


ODD = re.compile(rb'[\x00-\x1f"\\\x7f-\xff]')  # as core.quotePath has it, unless it is told otherwise
ESCAPES = {
    **{
        bytes((code,)): b"\\" + letter
        for code, letter in zip(range(7, 14), (b"a", b"b", b"t", b"n", b"v", b"f", b"r"), strict=True)
    },
    **{b'"': b'\\"', b"\\": b"\\\\"},
}
