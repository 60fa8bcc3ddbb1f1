"""What of a file is known without reading it: from the index, or from an earlier look.

An index knows the object of a file as long as the file's status is what it recorded, both times are older
than the index itself by more than a tick of the clock, and nothing can have made the file differ from its
object: attributes, filters, conversions of line ends. Its flags (assume-unchanged, skip-worktree) mean
nothing here.
"""

from __future__ import annotations

import os
import re
from struct import Struct, error
from typing import TYPE_CHECKING

from adapters.git.door import Location
from adapters.git.parse import TreeEntry
from adapters.git.stats import oid_of
from adapters.snapshots.capture.looks import TICK, Looks

if TYPE_CHECKING:
    from adapters.files.scan import Known, Told
    from adapters.git.door import Git
    from adapters.git.stats import IndexStats

BILLION = 1_000_000_000
LOW = 0xFFFFFFFF  # an index keeps the lower half of what is longer
ATTRIBUTES = b".gitattributes"
AUTOCRLF = (b"config", b"--null", b"--get", b"core.autocrlf")
ASK_ATTRIBUTES = (b"check-attr", b"-z", b"--stdin", b"--all")  # starts no filter
TOLD = re.compile(rb"([^\0]+)\0([^\0]+)\0([^\0]*)\0")
CONVERTING = frozenset((b"text", b"eol", b"crlf", b"ident", b"filter", b"working-tree-encoding"))


class Trust:
    """What is known of the files of one tree, and what became of that in one walk.

    After the walk: `trusted` has the paths that the index knew, `remembered` those of an earlier look, and
    `stale` those of which the index did not record the status that they had. `apart` has the SHA-256 of what
    was put apart at an earlier look.
    """

    def __init__(self, index: IndexStats | None, index_mtime_ns: int, looks: Looks, *, raw: bool) -> None:
        self.index = None if index is None or b"link" in index.sections else index
        self.looks = looks
        self.raw = raw and self.index is not None and b"sdir" not in self.index.sections
        self.trusted: list[bytes] = []
        self.remembered: list[bytes] = []
        self.stale: list[bytes] = []
        self.apart: dict[bytes, str] = {}
        self._before = index_mtime_ns - TICK
        self._tree: dict[bytes, TreeEntry] = {}
        self._never = self.index.intents if self.index is not None else frozenset()

    def forget(self) -> None:
        """Lets go of what the index said and what was read earlier, which of a large lane is much."""
        self.index, self.looks = None, {}

    def distrust(self, paths: frozenset[bytes]) -> bool:
        """Knows nothing of these from the index any more, and tells whether it has said anything of one."""
        self._never |= paths
        return not paths.isdisjoint(self.trusted)

    def known(self, big: int) -> Known:
        """Returns what answers for each file; what is not known and has so many bytes is left unread."""
        index, looks, apart = self.index, self.looks, self.apart
        recorded = index.entries.get if index is not None else _nothing
        trusts, before, never, committed = self.raw, self._before, self._never, self._tree
        trusted, stale, remembered = self.trusted.append, self.stale.append, self.remembered.append
        for made in (self.trusted, self.remembered, self.stale, apart):
            made.clear()

        def known(path: bytes, status: os.stat_result) -> Told:
            fixed = recorded(path)
            if fixed is not None:
                if is_recorded(fixed, status):
                    old = trusts and status.st_ctime_ns < before and status.st_mtime_ns < before
                    if old and path not in never:
                        trusted(path)
                        return committed[path].oid if committed else oid_of(fixed)
                else:
                    stale(path)
            look = looks.get(path)
            if look is not None and look.is_of(status):
                remembered(path)
                if look.apart is not None:
                    apart[path] = look.apart
                return look.oid, look.xattrs
            return (None, None) if status.st_size >= big and status.st_mode & 0o170000 == 0o100000 else None

        return known

    def says(self, tree: str) -> bool:
        """Tells whether git has written into the index that it is exactly that tree."""
        return self.index is not None and cached_tree(self.index) == tree

    def tree(self, head_tree: str) -> dict[bytes, TreeEntry] | None:
        """Returns every path of the commit's tree, if the index says that it is exactly that tree."""
        index = self.index
        if index is None or b"sdir" in index.sections or not self.says(head_tree):
            return None
        number = int.from_bytes
        self._tree = {
            path: TreeEntry(number(fixed[24:28], "big"), fixed[40:-2].hex())
            for path, fixed in index.entries.items()
        }
        return self._tree


def _nothing(_: bytes) -> None:
    return None


def is_recorded(fixed: bytes, status: os.stat_result) -> bool:
    """Tells whether an entry of an index, of which this is the fixed part, recorded just this status."""
    mode, inode, device, _, user, group, size, _, written, changed = status
    try:
        packed = STATUS(
            changed,
            status.st_ctime_ns % BILLION,
            written,
            status.st_mtime_ns % BILLION,
            device & LOW,
            inode & LOW,
            MODES.get(mode) or _recorded(mode),
            user,
            group,
            size & LOW,
        )
    except error:  # a time before 1970, or after 2106
        return False
    # The device is no part of it: a disk may be another one after each start of the system.
    return fixed.startswith(packed) or (fixed[:16] == packed[:16] and fixed[20:40] == packed[20:])


def _recorded(mode: int) -> int:
    """Returns the mode that an index has for a file of this one."""
    return REGULAR[mode & 0o100] if mode & 0o170000 == 0o100000 else mode & 0o170000


REGULAR = {0: 0o100644, 0o100: 0o100755}
STATUS = Struct(">10I").pack
MODES = {mode: _recorded(mode) for mode in (0o100644, 0o100664, 0o100755, 0o100775, 0o120777)}


def cached_tree(index: IndexStats) -> str | None:
    """Returns the tree that is all of the index, where git has written down that it knows it."""
    name, _, rest = index.sections.get(b"TREE", b"").partition(b"\0")
    counts, newline, body = rest.partition(b"\n")
    count, _, _ = counts.partition(b" ")
    if name or not newline or index.intents or index.unmerged or count != b"%d" % len(index.entries):
        return None
    width = index.layout.size - 42
    return body[:width].hex() or None


def may_name_attributes(index: IndexStats | None, common: bytes) -> bool:
    """Tells whether the repository has attributes of its own for sure, which are then worth waiting for."""
    own = os.path.join(common, b"info/attributes")
    return os.path.lexists(own) or (index is not None and any(p.endswith(ATTRIBUTES) for p in index.entries))


async def keeps_line_ends(git: Git, admin: bytes) -> bool:
    """Tells whether no setting converts line ends of files without attributes. Raises GitError."""
    ran = await git.run(*AUTOCRLF, repository=Location(admin), allow=(0, 1))
    return ran.code == 1 or ran.out.removesuffix(b"\0").lower() in (b"false", b"no", b"off", b"0")


async def converted(git: Git, admin: bytes, root: bytes, index: IndexStats | None) -> frozenset[bytes]:
    """Returns the paths of the index whose attributes, wherever they are written, allow a conversion.

    Raises GitError.
    """
    if index is None or not index.entries:
        return frozenset()
    asked = b"\0".join(index.entries) + b"\0"
    ran = await git.run(*ASK_ATTRIBUTES, repository=Location(admin, root), stdin=asked)
    told = (found.groups() for found in TOLD.finditer(ran.out))  # of a large lane it may be long
    return frozenset(path for path, name, value in told if name in CONVERTING and value != b"unset")
