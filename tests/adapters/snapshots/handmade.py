"""A snapshot of format 2 that is made without the capture: by plain git and a walk of its own.

Everything that is not as the commit has it is in the manifest. What is named `apart` goes beside git.
"""

from __future__ import annotations

import base64
import os
import stat
import struct
import subprocess
from typing import TYPE_CHECKING

from msgspec.structs import replace

from adapters.files.scan import digest, scan
from adapters.git.parse import parse_ls_tree
from adapters.snapshots.beneath import Beneath
from adapters.snapshots.capture.survey import current_umask
from adapters.snapshots.files import Files
from adapters.snapshots.manifest import Expected, Held, Manifest, save, stand_in
from adapters.snapshots.registration import registration
from domain.evidence import Snapshot
from domain.paths import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Container

    from adapters.files.scan import Entry
    from adapters.git.parse import TreeEntry
    from tests.adapters.snapshots.lanes import Lane

REF = "refs/laneyard/snapshots/one"


def snapshot(
    lane: Lane,
    *,
    apart: Container[bytes] = (),
    stood_in: Container[bytes] = (),
    stale: tuple[bytes, ...] = (),
    unborn: str | None = None,
) -> Snapshot:
    """Makes the snapshot `one` of the lane; git has a line instead of what is apart and `stood_in`."""
    return _Maker(lane, apart, stood_in, stale, unborn).make()


class _Maker:
    def __init__(
        self,
        lane: Lane,
        apart: Container[bytes],
        stood_in: Container[bytes],
        stale: tuple[bytes, ...],
        unborn: str | None,
    ) -> None:
        self.lane = lane
        self.apart = apart
        self.stood_in = stood_in
        self.stale = stale
        self.unborn = unborn
        self.files = Files(lane.directory())
        self.firsts: dict[int, bytes] = {}

    def make(self) -> Snapshot:
        """Returns the snapshot."""
        lane = self.lane
        head = "" if self.unborn else lane.head()
        tree = parse_ls_tree(lane.git("ls-tree", "-r", "-z", head)) if head else {}
        algorithm = lane.git("rev-parse", "--show-object-format").decode().strip()
        entries = [each for each in scan(lane.path, algorithm) if each.path != b".git"]
        held = tuple(self._held(each) for each in entries)
        present = {each.path for each in entries}
        absent = tuple(Held(pack(path), "absent", 0, 0, None) for path in tree if path not in present)
        commit, top = self._commit(entries, head)
        mask = current_umask()
        manifest = Manifest(
            format=2,
            id="one",
            lane="lane",
            repository=lane.repository,
            head=head,
            branch=self.unborn or "refs/heads/work",
            commit=commit,
            tree=top,
            file_mode=0o666 & ~mask,
            directory_mode=0o777 & ~mask,
            entries=tuple(each for each in (*held, *absent) if not self._is_plain(each, tree, mask)),
            registration=registration.keep(self.files, lane.admin),
            omitted=(),
            content=digest(entries),
            root_mode=stat.S_IMODE(os.lstat(lane.path).st_mode),
            stale=tuple(pack(path) for path in self.stale),
        )
        paths = (b"", *Expected(manifest, tree).wanted())
        times = [self._time(path) for path in paths]
        manifest = replace(manifest, times=self.files.keep(struct.pack(f"<{len(times)}q", *times)))
        return self._told(manifest, save(lane.directory(), manifest))

    def _is_plain(self, held: Held, tree: dict[bytes, TreeEntry], mask: int) -> bool:
        """Tells whether a checkout makes the entry as it is."""
        known = tree.get(unpack(held.path))
        if known is None or held.kind != "file" or held.apart or held.xattrs or held.twin:
            return False
        mode = 0o777 if known.mode == 0o100755 else 0o666
        return (known.oid, mode & ~mask) == (held.oid, held.mode)

    def _held(self, entry: Entry) -> Held:
        path = entry.path
        xattrs = tuple((pack(name), base64.b64encode(value).decode()) for name, value in entry.xattrs)
        apart, twin = None, None
        if path in self.apart:
            apart = self.files.keep(self._content(entry))
        if entry.kind == "file" and entry.links > 1:
            first = self.firsts.setdefault(entry.inode, path)
            twin = pack(first) if first != path else None
        return Held(pack(path), entry.kind, entry.mode, entry.size, entry.oid, apart, xattrs, twin)

    def _content(self, entry: Entry) -> bytes:
        with Beneath(self.lane.path) as beneath, beneath.parent(entry.path) as (parent, name):
            if entry.kind == "link":
                return os.readlink(name, dir_fd=parent)
            with open(os.open(name, os.O_RDONLY, dir_fd=parent), "rb") as file:
                return file.read()

    def _time(self, path: bytes) -> int:
        with Beneath(self.lane.path) as beneath, beneath.parent(path) as (parent, name):
            return os.stat(name or b".", dir_fd=parent, follow_symlinks=False).st_mtime_ns

    def _commit(self, entries: list[Entry], head: str) -> tuple[str, str]:
        """Writes the commit of the worktree through an index of its own."""
        lane = self.lane
        index = os.path.join(lane.admin, b".laneyard-handmade")
        lines = []
        for entry in entries:
            if entry.kind == "directory" or (entry.path in self.apart and entry.path not in self.stood_in):
                continue
            data = self._content(entry)
            if entry.path in self.stood_in:
                data = stand_in(self.files.keep(data), entry.size)
            oid = given(lane, data, "hash-object", "-w", "--stdin", "--no-filters").strip()
            mode = b"120000" if entry.kind == "link" else b"100755" if entry.mode & 0o100 else b"100644"
            lines.append(b"%b %b\t%b\0" % (mode, oid, entry.path))
        environment = {"GIT_INDEX_FILE": os.fsdecode(index)}
        given(lane, b"".join(lines), "update-index", "-z", "--index-info", **environment)
        tree = given(lane, b"", "write-tree", **environment).decode().strip()
        os.unlink(index)
        parents = ("-p", head) if head else ()
        commit = given(lane, b"", "commit-tree", "-m", "the worktree", *parents, tree).decode().strip()
        lane.git("update-ref", REF, commit)
        return commit, tree

    def _told(self, manifest: Manifest, digest_: str) -> Snapshot:
        return Snapshot(
            id="one",
            ref=REF,
            commit=manifest.commit,
            tree=manifest.tree,
            head=manifest.head,
            branch=manifest.branch,
            fingerprint="",
            content=manifest.content,
            manifest=digest_,
            entries=len(manifest.entries),
            bytes=0,
        )


def given(lane: Lane, stdin: bytes, *arguments: str, **environment: str) -> bytes:
    """Runs git in the lane with an input, and perhaps another environment."""
    ran = subprocess.run(
        ["git", *arguments],
        cwd=lane.path,
        env=lane.world.environment | environment,
        input=stdin,
        capture_output=True,
        check=True,
    )
    return ran.stdout
