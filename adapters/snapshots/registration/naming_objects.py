"""The objects that a registration names: what must be kept alive, for git deletes what no ref reaches.

Candidates only: any word of hexadecimal digits may be the short name of a commit in a list of things to do.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from adapters.snapshots.registration.index_meaning import meaning_of, objects_of
from adapters.snapshots.registration.registered import inside, is_index_file, kept, size_of
from domain.evidence import Obstacle
from domain.paths import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.snapshots.files import Files
    from adapters.snapshots.manifest import Registered
    from adapters.snapshots.registration.index_meaning import Meaning

TOKEN = re.compile(rb"(?<![0-9A-Za-z_])[0-9a-f]{7,64}(?![0-9A-Za-z_])")
SHORT = re.compile(rb"(?<![0-9A-Za-z_])[0-9a-f]{4,64}(?![0-9A-Za-z_])")  # core.abbrev may be 4
TO_DO = re.compile(rb"(.*/)?(git-rebase-todo(\.backup)?|done)|sequencer/todo")
LONGEST = 1 << 28  # bytes of a file that is looked through
ACROSS = 65  # bytes that may belong to a name: what was read up to here, and what comes next


def object_names(files: Files, registered: tuple[Registered, ...]) -> frozenset[bytes]:
    """Returns every token that may name an object which only the registration knows, as hexadecimal digits.

    Of submodules nothing: their objects are among what was kept. Raises SnapshotDamaged, IndexUnreadable,
    OSError.
    """
    found = objects_of(kept(files, registered, "index"), shared_of(files, registered))
    for each in registered:
        if _is_looked_through(files, each):
            found.update(_tokens(files, each.sha256, SHORT if TO_DO.fullmatch(unpack(each.name)) else TOKEN))
    return frozenset(token for token in found if token.strip(b"0"))


def private_tags(
    files: Files, registered: tuple[Registered, ...], oids: tuple[str, ...]
) -> tuple[Obstacle, ...]:
    """Returns that tags are in the way, each with the first file that names it, so that it can be found.

    Raises SnapshotDamaged, OSError.
    """
    return tuple(Obstacle("private-tag", inside(_where(files, registered, oid))) for oid in oids)


def _where(files: Files, registered: tuple[Registered, ...], oid: str) -> str:
    looked = (each for each in registered if _is_looked_through(files, each))
    names = (each.name for each in looked if oid.encode() in _tokens(files, each.sha256, TOKEN))
    name = next(names, None)
    return oid if name is None else f"{name}: {oid}"


def _is_looked_through(files: Files, each: Registered) -> bool:
    """Tells whether a file may name objects of this repository, in the form of text."""
    name = unpack(each.name)
    if not each.sha256 or name.startswith(b"modules/") or is_index_file(each):
        return False
    return size_of(files, each.sha256) <= LONGEST


def _tokens(files: Files, sha256: str, form: re.Pattern[bytes]) -> set[bytes]:
    """Returns what may be a name, also in a file with other bytes than text; some may be parts of names."""
    found: set[bytes] = set()
    rest = b""
    for piece in files.pieces(sha256):
        data = rest + piece
        found.update(form.findall(data))
        rest = data[-ACROSS:]
    return found


def shared_of(
    files: Files, registered: tuple[Registered, ...], beside: bytes = b"index"
) -> Callable[[bytes], bytes]:
    """Returns a reader of the kept shared indexes that lie beside an index."""
    directory = os.path.dirname(beside)
    return lambda name: kept(files, registered, pack(os.path.join(directory, name)))


def staged(files: Files, registered: tuple[Registered, ...]) -> Meaning:
    """Returns what the kept index says, whole also where it was split.

    Raises SnapshotDamaged, IndexUnreadable.
    """
    return meaning_of(kept(files, registered, "index"), shared_of(files, registered))
