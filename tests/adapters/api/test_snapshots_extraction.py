"""Paths of a snapshot are written elsewhere: exactly, and never over or through anything."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.reading.extraction import AlreadyThere, Extraction, outermost
from adapters.snapshots.reading.reading import Part

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

TIME = 1_234_567_890_123_456_789


def part(path: bytes, kind: str = "file", mode: int = 0o644, time: int | None = TIME) -> Part:
    return Part(path, kind, mode, 1, None if kind == "directory" else "0" * 40, None, time, committed=False)


def write(
    directory: Path,
    tops: Sequence[bytes],
    parts: Sequence[Part],
    content: bytes = b"content",
    meanwhile: Callable[[], object] = lambda: None,
) -> None:
    """Writes the parts, each with the same content; something happens before they get their names."""
    with Extraction(bytes(directory), tops) as extraction:
        for each in parts:
            extraction.begin(each)
            if each.kind != "directory":
                extraction.write(content[:3])
                extraction.write(content[3:])
            extraction.end()
        meanwhile()
        extraction.finish()


def test_modes_and_times_are_as_they_were(tmp_path: Path) -> None:
    parts = [
        part(b"d", "directory", 0o500, TIME - 1),
        part(b"d/f", mode=0o4751),
        part(b"d/sub", "directory", 0o555, TIME - 2),
        part(b"d/sub/l", "link", 0o777),
        part(b"e", mode=0o400),
    ]
    write(tmp_path / "out", [b"d", b"e"], parts)
    seen = {each: os.lstat(tmp_path / "out" / os.fsdecode(each.path)) for each in parts}
    for each, status in seen.items():
        assert status.st_mtime_ns == each.mtime_ns
        if each.kind != "link":
            assert stat.S_IMODE(status.st_mode) == each.mode
    assert (tmp_path / "out/d/sub/l").readlink().name == "content"
    assert sorted(os.listdir(tmp_path / "out")) == ["d", "e"]
    os.chmod(tmp_path / "out/d", 0o700)
    os.chmod(tmp_path / "out/d/sub", 0o700)


def test_names_of_any_bytes_and_deep_trees_are_written(tmp_path: Path) -> None:
    names = [b"x" * 200 + b"\xff\n"] * 30
    paths = [b"/".join(names[: depth + 1]) for depth in range(30)]
    parts = [part(path, "directory", 0o755) for path in paths] + [part(paths[-1] + b"/leaf")]
    assert len(parts[-1].path) > 4096
    write(tmp_path, [paths[0]], parts)
    depth, here = 0, os.open(tmp_path, os.O_RDONLY)
    for name in names:
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here, depth = below, depth + 1
    assert os.listdir(here) == ["leaf"]
    assert os.fstat(here).st_mtime_ns == TIME
    os.close(here)


def test_what_leads_to_a_path_is_made(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    write(tmp_path, [b"a/b/c"], [part(b"a/b/c")])
    assert (tmp_path / "a/b/c").read_bytes() == b"content"


@pytest.mark.parametrize("kind", ["file", "directory", "link", "dangling"])
def test_nothing_is_overwritten(tmp_path: Path, kind: str) -> None:
    (tmp_path / "other").mkdir()
    taken = tmp_path / "taken"
    make: dict[str, Callable[[], None]] = {
        "file": taken.touch,
        "directory": taken.mkdir,
        "link": lambda: taken.symlink_to("other"),
        "dangling": lambda: taken.symlink_to("nowhere"),
    }
    make[kind]()
    with pytest.raises(AlreadyThere) as refused:
        write(tmp_path, [b"free", b"taken"], [part(b"free"), part(b"taken")])
    assert refused.value.details == {"path": str(tmp_path), "paths": ("taken",)}
    assert refused.value.code == "path_in_use"
    assert sorted(os.listdir(tmp_path)) == ["other", "taken"]


def test_no_link_is_followed_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    out = tmp_path / "out"
    out.mkdir()
    (out / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AlreadyThere):
        write(out, [b"a/b"], [part(b"a/b")])
    assert os.listdir(tmp_path / "elsewhere") == []


def test_whoever_is_faster_keeps_what_he_has(tmp_path: Path) -> None:
    with pytest.raises(AlreadyThere):
        write(tmp_path, [b"f"], [part(b"f")], meanwhile=lambda: (tmp_path / "f").write_text("his"))
    assert (tmp_path / "f").read_text() == "his"
    assert os.listdir(tmp_path) == ["f"]


def test_a_link_that_appears_on_the_way_is_not_followed(tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    with pytest.raises(OSError, match="a/f"):
        write(out, [b"a/f"], [part(b"a/f")], meanwhile=lambda: (out / "a").symlink_to(elsewhere))
    assert os.listdir(elsewhere) == []
    assert os.listdir(out) == ["a"]


@pytest.mark.parametrize("path", [b"a/..", b"a/../../b", b"b", b"a/x/y", b"a//b"])
def test_an_entry_that_has_no_place_is_refused(tmp_path: Path, path: bytes) -> None:
    with pytest.raises(SnapshotDamaged):
        write(tmp_path / "out", [b"a"], [part(b"a", "directory", 0o755), part(path)])
    assert os.listdir(tmp_path) == []


def interrupted() -> None:
    raise KeyboardInterrupt


def test_what_is_given_up_leaves_nothing_and_touches_nothing_behind_a_link(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir(mode=0o750)
    (other / "kept").touch()
    parts = [
        part(b"d", "directory", 0o755),
        part(b"d/l", "link"),
        part(b"d/locked", "directory", 0o500),
        part(b"d/locked/f"),
        part(b"d/z"),
    ]
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "out", [b"d"], parts, bytes(other), meanwhile=interrupted)
    assert not (tmp_path / "out").exists()
    assert stat.S_IMODE(other.stat().st_mode) == 0o750
    assert os.listdir(other) == ["kept"]


def test_a_directory_that_was_made_goes_where_nothing_came_to_be(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "made/out", [b"f"], [part(b"f")], meanwhile=interrupted)
    assert os.listdir(tmp_path) == []

    def his() -> None:
        (tmp_path / "made/his").touch()
        interrupted()

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "made/out", [b"f"], [part(b"f")], meanwhile=his)
    assert os.listdir(tmp_path / "made") == ["his"]
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        write(tmp_path / "file/below", [b"f"], [part(b"f")])
    assert sorted(os.listdir(tmp_path)) == ["file", "made"]


def test_paths_inside_others_are_not_asked_for_twice() -> None:
    assert outermost([b"b/c", b"a", b"b", b"a-b", b"a/b", b"a"]) == [b"a", b"a-b", b"b"]
    assert outermost([b"a", b""]) == [b""]
