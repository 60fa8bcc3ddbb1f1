"""The last look at a restored tree: it is what was captured, or it is said what could not be had here."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters.files.attributes import NONE
from adapters.files.errors import legible, words
from adapters.files.scan import KINDS, Entry, digest
from adapters.git.restamp import stamp
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.manifest import unpacked_attributes
from adapters.snapshots.restore.mending import look_again
from adapters.snapshots.restore.setting import by_directory
from adapters.snapshots.restore.writing import in_the_way
from domain.paths import unpack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapters.snapshots.manifest import Held, Manifest
    from adapters.snapshots.restore.mending import Site
    from adapters.snapshots.restore.setting import Times

NAMED = 3  # paths that are named of those that one difference is about


class Look:
    """One look at every entry of a restored tree.

    Afterwards `stamps` has the stat data of each file and link, as an index has it.
    """

    def __init__(self, site: Site, manifest: Manifest, times: Times) -> None:
        self._site = site
        self._manifest = manifest
        self._times = times
        self._wanted = site.wanted
        self._different: dict[str, list[bytes]] = {}
        self.stamps: dict[bytes, bytes] = {}

    def differences(self) -> tuple[str, ...]:
        """Returns in words what is not as it was, and cannot be here.

        Raises SnapshotDamaged where names, kinds or bytes are not as they were, FilesError, OSError.
        """
        for directory, paths in by_directory(self._site.wanted).items():
            try:
                with self._site.beneath.directory(directory) as descriptor:
                    self._compare_all(descriptor, directory, paths)
                    self._require_all(descriptor, directory, paths)
            except FileNotFoundError as error:
                raise SnapshotDamaged(f"something is gone again: {words(error)}") from error
        if digest(self._entries()) != self._manifest.content:
            raise SnapshotDamaged("the restored tree is not the one that was captured")
        self._look_at_root()
        return tuple(_in_words(what, paths) for what, paths in self._different.items())

    def _require_all(self, parent: int, directory: bytes, paths: list[bytes]) -> None:
        """Raises SnapshotDamaged where a directory has more names than these, of which each was seen."""
        found = os.listdir(b"/proc/self/fd/%d" % parent)
        if len(found) == len(paths) + (not directory):
            return
        seen = {path.rpartition(b"/")[2] for path in paths} | (set() if directory else {b".git"})
        raise in_the_way(os.path.join(directory, min(seen.symmetric_difference(found))))

    def _compare_all(self, parent: int, directory: bytes, paths: list[bytes]) -> None:
        # This runs for every entry of every restore: flat, and everything in it a local name. What was not
        # touched since it was read has the bytes that were read.
        wanted, known, times, stamps = self._wanted, self._site.known, self._times, self.stamps
        cut = len(directory) + 1 if directory else 0
        for path in paths:
            status = os.stat(path[cut:], dir_fd=parent, follow_symlinks=False)
            held, was = wanted[path], known[path]
            modified, mode, kind = status.st_mtime_ns, status.st_mode, held.kind
            time = times.get(path, was.mtime_ns)
            if kind != "directory":
                if modified != time or status.st_ino != was.inode or status.st_size != was.size:
                    look_again(self._site, (path,))
                    was = known[path]
                stamps[path] = stamp(status)
            if was.oid != held.oid or KINDS[mode & 0o170000] != kind:
                raise in_the_way(path)
            if mode & 0o7777 != held.mode and kind != "link":
                self._note(MODE, path)
            if modified != time and times:
                self._note(TIME, path)
            if was.xattrs or held.xattrs or held.twin is not None:
                self._compare_odd(path, held, was)

    def _compare_odd(self, path: bytes, held: Held, was: Entry) -> None:
        if self._manifest.format > 1 and was.xattrs != unpacked_attributes(held.xattrs):
            self._note(ATTRIBUTES, path)
        if held.twin is not None and was.inode != self._site.known[unpack(held.twin)].inode:
            self._note(TWIN, path)

    def _entries(self) -> Iterator[Entry]:
        """Yields what is there, with the modes and attributes that were wanted: of others it is told."""
        known = self._site.known
        for path, held in self._wanted.items():
            xattrs = unpacked_attributes(held.xattrs) if held.xattrs else NONE
            yield Entry(path, held.kind, held.mode, known[path].size, 0, 0, 0, 0, 0, held.oid, xattrs)

    def _look_at_root(self) -> None:
        root = os.stat(self._site.beneath.descriptor)
        if self._manifest.root_mode not in (None, root.st_mode & 0o7777):
            self._note(MODE, b".")
        if self._times and self._times[b""] != root.st_mtime_ns:
            self._note(TIME, b".")

    def _note(self, what: str, path: bytes) -> None:
        self._different.setdefault(what, []).append(path)


def _in_words(what: str, paths: list[bytes]) -> str:
    named = ", ".join(repr(legible(path)) for path in paths[:NAMED])
    more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
    return f"{what}: {named}{more}"


MODE, TIME = "not with its permissions", "not with its time of change"
ATTRIBUTES, TWIN = "not with its extended attributes", "no longer the same file as another name of it"
