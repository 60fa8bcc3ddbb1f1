"""Looking at ignored paths: a walk of ours over each, which never follows a link, and what it has found."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Literal

from adapters.files.errors import FilesError, words
from adapters.files.scan import scan
from adapters.ignored.classes import CACHE, Rules, source_names
from adapters.ignored.found import Found, parts
from domain.evidence import Ignored
from domain.paths import pack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST = 300_000  # entries that one look walks over; what lies beyond is unknown
SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55"  # https://bford.info/cachedir/
LOCKS = (
    *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb"),
)
Class = Literal["rebuildable", "precious", "unknown"]


def classify(root: bytes, paths: Iterable[bytes], rules: Rules, most: int = MOST) -> tuple[Ignored, ...]:
    """Returns what git ignores below the root, classed; what cannot be looked at is unknown and says why.

    A directory is told as a whole, unless something in it is precious or wanted: then that is told by itself,
    and the rest in as few parts as can be. Empty directories are told by nobody: a snapshot has them anyway.
    """
    left, found = most, list[Ignored]()
    for path in paths:
        told = list(_told(root, path.rstrip(b"/"), rules, left))
        found += told
        left = max(left - sum(each.entries for each in told), 0)
    return tuple(found)


def _told(root: bytes, path: bytes, rules: Rules, most: int) -> Iterator[Ignored]:
    place = os.path.join(root, path)
    try:
        status = os.lstat(place)
        if not stat.S_ISDIR(status.st_mode):
            kind, why = _of_file(root, path, rules, regular=stat.S_ISREG(status.st_mode))
            yield _ignored(path, kind, why, status.st_size, 1)
            return
        yield from _of_directory(root, path, rules, most)
    except (OSError, FilesError) as error:
        yield _ignored(path, "unknown", f"it cannot be looked at: {words(error)}", 0, 1)


def _of_file(root: bytes, path: bytes, rules: Rules, *, regular: bool) -> tuple[Class, str]:
    why = rules.precious_by_pattern(path, directory=False) or rules.precious_by_name(path)
    if why is not None:
        return "precious", why
    if regular and _is_bytecode(root, path):
        return "rebuildable", "bytecode of a present source"
    why = rules.made_again(path, directory=False)
    return ("rebuildable", why) if why else ("unknown", rules.why_unknown(path, directory=False))


def _of_directory(root: bytes, path: bytes, rules: Rules, most: int) -> Iterator[Ignored]:
    why = rules.precious_by_pattern(path, directory=True)
    seal = _seal(root, path)
    found = Found(path, rules, sealed=seal is not None)
    complete = _walk(os.path.join(root, path), found, most)
    if not found.content:
        return
    if why is not None:
        yield _ignored(path, "precious", why, found.bytes, found.entries)
        return
    if not complete:
        yield _ignored(path, "unknown", f"more than {most} entries", found.bytes, found.entries)
        return
    kind, why = _class(root, path, found, rules, seal)
    marks = found.marks(_seals(root, path, found))
    if not marks:
        yield _ignored(path, kind, why, found.bytes, found.entries)
        return
    for part, size, number in parts(path, scan(os.path.join(root, path), None), marks):
        precious = marks.get(part)
        yield _ignored(part, "precious" if precious else kind, precious or why, size, number)


def _walk(place: bytes, found: Found, most: int) -> bool:
    """Tells whether the walk came to its end."""
    for entry in scan(place, None):
        found.add(entry)
        if found.entries > most:
            return False
    return True


def _class(root: bytes, path: bytes, found: Found, rules: Rules, seal: str | None) -> tuple[Class, str]:
    """Returns the class of a directory and the evidence for it; somebody's repository is never let go."""
    inner = found.repository()
    if inner is not None:
        return "unknown", f"a repository is in it: {pack(inner)}"
    why = seal or _bytecode(root, path, found) or rules.made_again(path, directory=True)
    return ("rebuildable", why) if why else ("unknown", rules.why_unknown(path, directory=True))


def _seal(root: bytes, path: bytes) -> str | None:
    """Returns what says that a tool has made all that is in the directory, if anything does."""
    place = os.path.join(root, path)
    if _begins_with(os.path.join(place, b"CACHEDIR.TAG"), SIGNATURE):
        return "CACHEDIR.TAG"
    if _is_file(os.path.join(place, b"pyvenv.cfg")):
        return "pyvenv.cfg"
    if os.path.basename(path) == b"node_modules":
        beside = os.path.dirname(place)
        lock = next((name for name in LOCKS if _is_file(os.path.join(beside, name.encode()))), None)
        return None if lock is None else f"node_modules beside {lock}"
    return None


def _seals(root: bytes, path: bytes, found: Found) -> frozenset[bytes]:
    """Returns the directories at and below the path that a tool has made whole."""
    return frozenset(each for each in (path, *found.sealable) if _seal(root, each) is not None)


def _bytecode(root: bytes, path: bytes, found: Found) -> str | None:
    if os.path.basename(path) != CACHE or not found.flat:
        return None
    return "bytecode of present sources" if all(_is_bytecode(root, each) for each in found.files) else None


def _is_bytecode(root: bytes, path: bytes) -> bool:
    directory, name = os.path.split(path)
    if os.path.basename(directory) != CACHE:
        return False
    beside = os.path.join(root, os.path.dirname(directory))
    return any(_is_file(os.path.join(beside, source)) for source in source_names(name))


def _is_file(place: bytes) -> bool:
    try:
        return stat.S_ISREG(os.lstat(place).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _begins_with(place: bytes, signature: bytes) -> bool:
    """Tells whether a regular file, as the standard demands, begins with the signature."""
    if not _is_file(place):
        return False
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(descriptor, len(signature)) == signature
    finally:
        os.close(descriptor)


def _ignored(path: bytes, kind: Class, why: str, size: int, entries: int) -> Ignored:
    return Ignored(pack(path), kind, why, size, entries)
