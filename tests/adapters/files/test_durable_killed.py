"""A writer that is killed leaves the old file or the new one; the next write takes away what was begun."""

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adapters.files.durable import TEMPORARY, replace, write_locked, write_new
from tests.faults.points import Point, install
from tests.faults.running import KILLED, Kill, killing, record, recorded
from tests.sagas.crashes import in_a_process

WRITERS = {"new": write_new, "replace": replace, "locked": write_locked}


def write(how: str, path: Path, hear: Callable[..., None]) -> int:
    def work() -> None:
        install(hear)
        WRITERS[how](os.fsencode(path), b"new\n")

    return in_a_process(work)


@pytest.mark.slow
@pytest.mark.parametrize("how", WRITERS)
def test_wherever_a_writer_is_killed_the_next_one_leaves_nothing_else(tmp_path: Path, how: str) -> None:
    old = None if how == "new" else b"old\n"
    place, file = tmp_path / "place", tmp_path / "place/file"

    def begin() -> None:
        place.mkdir()
        if old is not None:
            file.write_bytes(old)

    begin()
    assert write(how, file, record(tmp_path)) == 0
    points = recorded(tmp_path)
    assert len(points) >= 10
    for point in points:
        file.unlink()
        place.rmdir()
        begin()
        assert write(how, file, killing(Kill(point))) == KILLED
        begun = {name for name in os.listdir(place) if name != "file"}
        found = file.read_bytes() if file.exists() else None
        assert found in (old, b"new\n")
        assert {(place / name).read_bytes() for name in begun} <= {b"new\n"}
        assert len(begun) <= 1
        if found == old:
            WRITERS[how](os.fsencode(file), b"new\n")
            assert file.read_bytes() == b"new\n"
            assert os.listdir(place) == ["file"]
        else:
            assert begun == set()


@pytest.mark.parametrize("how", WRITERS)
def test_where_no_file_can_be_without_a_name_it_is_written_all_the_same(tmp_path: Path, how: str) -> None:
    refused: list[Point] = []
    told, tell = os.pipe()

    def hear(point: Point) -> None:
        if point.what == "open" and not refused:
            refused.append(point)
            os.write(tell, b"refused")
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    assert write(how, tmp_path / "file", hear) == 0
    os.close(tell)
    with os.fdopen(told, "rb") as heard:
        assert heard.read() == b"refused"
    assert (tmp_path / "file").read_bytes() == b"new\n"
    assert os.listdir(tmp_path) == ["file"]


def test_what_somebody_else_has_put_there_is_not_taken_away(tmp_path: Path) -> None:
    replace(os.fsencode(tmp_path / "file"), b"one")
    (tmp_path / os.fsdecode(TEMPORARY + b"theirs")).touch()
    replace(os.fsencode(tmp_path / "file"), b"two")
    assert sorted(os.listdir(tmp_path)) == [".laneyard-theirs", "file"]


@pytest.mark.slow
def test_writers_at_the_same_time_leave_one_of_their_files_whole(tmp_path: Path) -> None:
    file = os.fsencode(tmp_path / "file")
    contents = [bytes([letter]) * 10_000 for letter in b"abcdefgh"]
    with ThreadPoolExecutor(len(contents)) as pool:
        for _ in range(20):
            list(pool.map(lambda data: replace(file, data), contents))
            assert (tmp_path / "file").read_bytes() in contents
            assert os.listdir(tmp_path) == ["file"]
