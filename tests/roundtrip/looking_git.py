"""What plain git says of a lane: status, index, refs, logs, and every object that the registration names."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from tests.roundtrip.within import within

if TYPE_CHECKING:
    from tests.roundtrip.scene import Scene

STATUS = ("status", "--porcelain=v2", "-z", "--ignored", "--branch")
OBJECT = re.compile(rb"(?<![0-9a-f])(?:[0-9a-f]{40}|[0-9a-f]{64})(?![0-9a-f])")
SMALL = 1 << 20
OURS = b"refs/laneyard/"


def git_says(scene: Scene, admin: bytes, paths: list[bytes]) -> dict[str, dict[bytes, object]]:
    """Returns the aspects that git tells of."""
    place = scene.place
    index = _index(scene, place)
    return {
        "status": _status(scene, place),
        "index": {**index, b"file": _index_file(admin)},
        "refs": _refs(scene, place) | _shared(scene),
        "objects": _objects(scene, admin, index[b"stages"]),
        "nested": _nested(scene, place, paths),
    }


def _status(scene: Scene, place: bytes) -> dict[bytes, object]:
    ran = scene.run(place, *STATUS)
    records = [record for record in ran.stdout.split(b"\0") if not _is_lost(scene, record)]
    return {b"exit": ran.returncode, **dict.fromkeys(records, b"")}


def _is_lost(scene: Scene, record: bytes) -> bool:
    return record.startswith(b"! ") and within(record[2:].rstrip(b"/"), scene.lost)


def _index(scene: Scene, place: bytes) -> dict[bytes, bytes]:
    stages = scene.run(place, "ls-files", "--stage", "-v", "-z")
    undo = scene.run(place, "ls-files", "--resolve-undo", "-z")
    return {b"stages": stages.stdout, b"resolve-undo": undo.stdout}


def _index_file(admin: bytes) -> object:
    """Returns the version of the index file, and whether it is split or sparse; none where there is none."""
    try:
        with open(os.path.join(admin, b"index"), "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    forms = tuple(name for name in (b"link", b"sdir") if name in data)
    # Git refreshes a split index after a restore, and takes version 2 or 3 as it needs.
    version = b"2 or 3" if b"link" in forms and data[7] in (2, 3) else data[:8]
    return version, forms


def _refs(scene: Scene, place: bytes) -> dict[bytes, object]:
    shown = "--format=%(refname)%00%(objectname)%00%(symref)"
    lines = scene.run(place, "for-each-ref", shown).stdout.splitlines()
    refs = dict(line.split(b"\0", 1) for line in lines if not line.startswith(OURS))
    head = scene.run(place, "rev-parse", "--symbolic-full-name", "HEAD").stdout
    return {**refs, b"HEAD": head + scene.run(place, "rev-parse", "-q", "--verify", "HEAD").stdout}


def _shared(scene: Scene) -> dict[bytes, object]:
    """Returns what the lane shares with the whole repository: logs of refs, configuration."""
    common, found = scene.world.common, dict[bytes, object]()
    for name in (b"config", b"info/exclude", b"info/attributes", b"shallow"):
        found[name] = _read(os.path.join(common, name))
    top = os.path.join(common, b"logs/refs")
    for directory, _, files in os.walk(top):
        for name in files:
            path = os.path.join(directory, name)
            if b"/refs/laneyard/" not in path:
                found[os.path.relpath(path, common)] = _read(path)
    return found


def _read(path: bytes) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # a name that is not there, or no file: that is a look at it too
        return b""


def _objects(scene: Scene, admin: bytes, stages: bytes) -> dict[bytes, object]:
    """Returns every object that the index and the registration's small files reach; nothing is fetched."""
    named = set(OBJECT.findall(stages))
    for directory, _, files in os.walk(admin):
        for path in (os.path.join(directory, name) for name in files):
            if b"/modules/" not in path and os.path.isfile(path) and os.path.getsize(path) < SMALL:
                named |= set(OBJECT.findall(_read(path)))
    shown = "--batch-check=%(objectname)"
    everything = scene.run(scene.world.root, "cat-file", shown, "--batch-all-objects").stdout.split()
    there = sorted(named & set(everything))
    walked = ("rev-list", "--objects", "--no-object-names", "--missing=print", "--stdin")
    reached = scene.run(scene.world.root, *walked, stdin=b"\n".join(there)).stdout.split()
    return dict.fromkeys((*there, *reached))


def _nested(scene: Scene, place: bytes, paths: list[bytes]) -> dict[bytes, object]:
    """Returns what git says in every repository and submodule inside."""
    found: dict[bytes, object] = {}
    for path in paths:
        inner, name = os.path.split(path)
        where = os.path.join(place, inner)
        if name == b".git" and inner and len(where) < 4000:
            found[inner + b": status"] = sorted(map(repr, _status(scene, where).items()))
            found[inner + b": index"] = scene.run(where, "ls-files", "--stage", "-v", "-z").stdout
            refs = scene.run(where, "for-each-ref").stdout.splitlines()
            found[inner + b": refs"] = [line for line in refs if b"\t" + OURS not in line]
            found[inner + b": stashes"] = scene.run(where, "stash", "list").stdout
            found[inner + b": whole"] = scene.run(where, "fsck", "--connectivity-only").returncode
    return found
