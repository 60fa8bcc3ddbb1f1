"""A disk under SQLite that loses its power: what was never synced is dropped, or is there in any part.

Everything that SQLite asks of its files is kept in order, so that the disk can be made as a power cut at any
moment would leave it. Real file systems lose less.
"""

from __future__ import annotations

import os
from collections import defaultdict
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import apsw

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from random import Random


SYSTEM = "unix"  # what SQLite uses by itself


class Asked(NamedTuple):
    """One thing that was asked of a file, or (`said`) the last position that somebody was told is durable."""

    kind: str  # create, write, truncate, sync, delete, said
    name: str = ""
    offset: int = 0
    data: bytes = b""


class Recorder(apsw.VFS):
    """The system's own files, with a record beside them; everybody's default for as long as it is registered.

    SQLite syncs a directory itself where it makes or deletes a journal: of a new one with its first sync.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._gate = Lock()
        self._new: set[str] = set()
        super().__init__("recorder", SYSTEM, makedefault=True)

    def note(self, asked: Asked) -> None:
        """Keeps what was asked."""
        with self._gate:
            self.asked.append(asked)

    def said(self, position: int) -> None:
        """Keeps that somebody has been told of everything up to a position."""
        self.note(Asked("said", offset=position))

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        if path is None:
            return apsw.VFSFile(SYSTEM, name, flags)
        if not os.path.exists(path) or not os.path.getsize(path):
            self.note(Asked("create", os.path.basename(path)))
            self._new.add(path)
        return File(name, flags, path, self)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        self.note(Asked("delete", os.path.basename(filename)))
        if syncdir:
            self.note(Asked("sync", ""))

    def synced(self, path: str) -> None:
        """Keeps that a file was synced, and its directory if it is a journal that was just made."""
        self.note(Asked("sync", os.path.basename(path)))
        if path in self._new and path.endswith(("-wal", "-journal")):
            self._new.discard(path)
            self.note(Asked("sync", ""))


class File(apsw.VFSFile):
    """A file whose every change is recorded before it is made, and every sync once it has returned."""

    def __init__(
        self, name: str | apsw.URIFilename | None, flags: list[int], path: str, recorder: Recorder
    ) -> None:
        self._path = path
        self._recorder = recorder
        super().__init__(SYSTEM, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._recorder.note(Asked("write", os.path.basename(self._path), offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._recorder.note(Asked("truncate", os.path.basename(self._path), newsize))
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self._recorder.synced(self._path)


class Medium:
    """What a disk holds for certain of one directory, and what it was told since and not asked to keep."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self._kept = {name: bytearray(data) for name, data in (files or {}).items()}
        self._seen = {name: name for name in self._kept}  # which content has which name, as programs see it
        self._names = dict(self._seen)  # and as the directory on the disk has it
        self._pending: defaultdict[str, list[Asked]] = defaultdict(list)
        self._made = 0
        self.told = 0

    def take(self, asked: Asked) -> None:
        """Takes the next thing that was asked."""
        match asked.kind:
            case "said":
                self.told = max(self.told, asked.offset)
            case "create":
                if asked.name not in self._seen:
                    self._made += 1
                    self._seen[asked.name] = f"{asked.name} {self._made}"
                    self._kept[self._seen[asked.name]] = bytearray()
            case "delete":
                self._seen.pop(asked.name, None)
            case "sync" if not asked.name:
                self._names = dict(self._seen)
            case "sync":
                content = self._seen[asked.name]
                for change in self._pending.pop(content, []):
                    _apply(self._kept[content], change)
            case _:
                self._pending[self._seen[asked.name]].append(asked)

    def cut(self, chance: Random | None) -> dict[str, bytes]:
        """Returns what is there after a power cut: what was synced and, by `chance`, any part of the rest."""
        names = self._names if chance is None or chance.random() < 0.5 else self._seen
        return {name: self._after(content, chance) for name, content in names.items()}

    def _after(self, content: str, chance: Random | None) -> bytes:
        image = bytearray(self._kept[content])
        if chance is None:
            return bytes(image)
        parts = [part for change in self._pending[content] for part in _torn(change, chance)]
        if chance.random() < 0.5:
            parts = parts[: chance.randrange(len(parts) + 1)]  # in order, up to some moment
        else:
            parts = [part for part in parts if chance.random() < 0.5]
            chance.shuffle(parts)
        for part in parts:
            _apply(image, part)
        return bytes(image)


def cuts(
    asked: Sequence[Asked], files: dict[str, bytes], moments: set[int], chance: Random
) -> Iterator[tuple[int, dict[str, bytes]]]:
    """Yields what was told, and the disk after a power cut, before each of the moments: without the unsynced
    and, twice, with parts of it."""
    medium = Medium(files)
    for moment, each in enumerate([*asked, Asked("said")]):
        if moment in moments:
            for luck in (None, chance, chance):
                yield medium.told, medium.cut(luck)
        medium.take(each)


def put(directory: Path, files: dict[str, bytes]) -> Path:
    """Writes a disk's files into an empty directory, and returns the path of the store."""
    for name, data in files.items():
        (directory / name).write_bytes(data)
    return directory / "journal.db"


def _torn(change: Asked, chance: Random) -> Iterator[Asked]:
    """Yields a write as it is, or as the sectors of it that got through."""
    if change.kind == "truncate" or chance.random() < 0.6:
        yield change
        return
    sector = chance.choice((512, 4096))
    for start in range(0, len(change.data), sector):
        yield change._replace(offset=change.offset + start, data=change.data[start : start + sector])


def _apply(image: bytearray, change: Asked) -> None:
    if change.kind == "truncate":
        del image[change.offset :]
        return
    image.extend(bytes(max(0, change.offset - len(image))))
    image[change.offset : change.offset + len(change.data)] = change.data
