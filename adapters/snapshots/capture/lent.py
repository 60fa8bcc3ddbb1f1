"""What a repository has only on loan from another, by alternates, and a snapshot needs: it becomes its own.

The lender knows nothing of a snapshot: its next `git gc` deletes what no ref of its own reaches. And git does
not write what it can borrow, so a file may be in a snapshot without one byte of it being in this repository.
What HEAD itself borrows stays borrowed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from adapters.files.durable import read_file, write_new
from adapters.files.errors import FilesError
from adapters.git.door import Location
from adapters.git.errors import GitFailed
from adapters.git.parse import ascii_lines
from adapters.snapshots.objects import Moving

if TYPE_CHECKING:
    from adapters.git.door import Git
    from adapters.snapshots.objects import Plan, Written

# All of it, also what is the repository's own today: its `git gc` drops what the lender has by then as well.
PACK = (
    *(b"-c", b"core.compression=1", b"-c", b"pack.compression=1", b"-c", b"pack.packSizeLimit=0"),
    *(b"pack-objects", b"--quiet", b"--window=0", b"--delta-base-offset"),
)
PROMISED = b"--missing=allow-promisor"  # which HEAD has, and nobody
LIST = (b"rev-list", b"--objects", b"--no-object-names", b"--no-walk=unsorted", PROMISED, b"--stdin")


def borrows(common: bytes) -> bool:
    """Tells whether a repository may have objects on loan. Raises OSError."""
    path = os.path.join(common, b"objects/info/alternates")
    if not os.path.lexists(path):
        return False
    try:
        text = read_file(path)
    except FilesError:  # git reads what we would not
        return True
    return any(line and not line.startswith(b"#") for line in text.split(b"\n"))


async def make_own(git: Git, common: bytes, plan: Plan, written: Written) -> None:
    """Puts all that the snapshot's commits reach, and HEAD does not, into a pack of the repository's own.

    Does nothing where nothing is borrowed. Raises Moving, GitError, OSError.
    """
    if not await trio.to_thread.run_sync(borrows, common):
        return
    head = [f"^{plan.head}"] if plan.head else []
    try:
        ran = await _pack(git, common, (b"--revs", PROMISED), [written.commit, *head])
    except GitFailed:  # what is kept alive may have lost its history
        tips = [each for each in (written.commit, written.index, written.keep) if each]
        listed = await git.run(*LIST, repository=Location(common), stdin=_lines([*tips, *plan.commits]))
        ran = await _pack(git, common, (), ascii_lines("rev-list", listed.out))
    await trio.to_thread.run_sync(_hold, common, ascii_lines("pack-objects", ran), plan.ref)


async def _pack(git: Git, common: bytes, options: tuple[bytes, ...], names: list[str]) -> bytes:
    base = os.path.join(common, b"objects/pack/pack")
    ran = await git.run(*PACK, *options, base, repository=Location(common), stdin=_lines(names), write=True)
    return ran.out


def _lines(names: list[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode("ascii")


def _hold(common: bytes, names: list[str], ref: str) -> None:
    """Marks the pack as one that is kept: `git gc` leaves what is borrowed out of the pack that it makes."""
    base = os.path.join(common, b"objects/pack", f"pack-{''.join(names)}".encode())
    with suppress(FileExistsError):  # an attempt before this one has made the very same pack
        write_new(base + b".keep", f"{ref}\n".encode(), 0o444)
    if not (os.path.isfile(base + b".pack") and os.path.isfile(base + b".idx")):
        raise Moving("a pack was taken away while it was made")
