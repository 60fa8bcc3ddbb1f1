"""The objects that a registration names: what must be kept alive, for git deletes what no ref reaches.

Candidates only: any word of hexadecimal digits may be the short name of a commit in a list of things to do.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from adapters.snapshots.files import LIMIT
from adapters.snapshots.registration.index_meaning import meaning_of, objects_of
from adapters.snapshots.registration.registered import SMALL, kept, size_of
from domain.paths import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.snapshots.files import Files
    from adapters.snapshots.manifest import Registered
    from adapters.snapshots.registration.index_meaning import Meaning

TOKEN = re.compile(rb"(?<![0-9A-Za-z_])[0-9a-f]{7,64}(?![0-9A-Za-z_])")
SHORT = re.compile(rb"(?<![0-9A-Za-z_])[0-9a-f]{4,64}(?![0-9A-Za-z_])")  # core.abbrev may be 4
TO_DO = re.compile(rb"(.*/)?(git-rebase-todo(\.backup)?|done)|sequencer/todo")
PROSE = re.compile(rb"(.*/)?(COMMIT_EDITMSG|[A-Z_]*_MSG)")


def object_names(files: Files, registered: tuple[Registered, ...]) -> frozenset[bytes]:
    """Returns every token that may name an object which only the registration knows, as hexadecimal digits.

    Of submodules nothing: their objects are among what was kept. Raises SnapshotDamaged, IndexUnreadable,
    OSError.
    """
    found = objects_of(kept(files, registered, "index"), shared_of(files, registered))
    for each in registered:
        name = unpack(each.name)
        if each.sha256 and not _is_elsewhere(name) and (text := _text(files, each, name)) is not None:
            found.update((SHORT if TO_DO.fullmatch(name) else TOKEN).findall(text))
    return frozenset(token for token in found if token.strip(b"0"))


def _is_elsewhere(name: bytes) -> bool:
    """Tells whether a file says nothing of this repository, or says it in another form than text."""
    return name.startswith((b"modules/", b"sharedindex.")) or name == b"index" or bool(PROSE.fullmatch(name))


def _text(files: Files, each: Registered, name: bytes) -> bytes | None:
    """Returns what a text file says. A log may be of any length, and names commits that nothing else does."""
    if not name.startswith(b"logs/") and size_of(files, each.sha256) >= SMALL:
        return None
    data = files.read(each.sha256, LIMIT)
    return None if b"\0" in data else data


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
