"""What is set aside is nobody's until it is lent, and is set aside again as far as there is room."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters.files.reserve import NAME, Reserve
from tests.adapters.volumes import fill, volume

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 1 << 20


def kept(place: Path) -> int:
    return os.stat(os.fsencode(place) + b"/" + NAME).st_blocks * 512


def test_room_is_set_aside_once_and_lent_for_a_while(tmp_path: Path) -> None:
    reserve = Reserve(os.fsencode(tmp_path), SIZE)
    reserve.keep()
    before = os.stat(os.fsencode(tmp_path) + b"/" + NAME)
    reserve.keep()
    assert os.stat(os.fsencode(tmp_path) + b"/" + NAME).st_mtime_ns == before.st_mtime_ns
    assert kept(tmp_path) >= SIZE
    with reserve.lent():
        assert kept(tmp_path) == 0
    assert kept(tmp_path) >= SIZE


def test_where_nothing_can_be_set_aside_nothing_is(tmp_path: Path) -> None:
    reserve = Reserve(os.fsencode(tmp_path / "none"), SIZE)
    reserve.keep()
    with reserve.lent():
        assert not (tmp_path / "none").exists()


def test_what_was_not_used_of_a_full_disk_is_set_aside_again(tmp_path: Path) -> None:
    with volume(tmp_path / "disk") as place:
        reserve = Reserve(os.fsencode(place), SIZE)
        reserve.keep()
        ballast = fill(place)
        with reserve.lent():
            (place / "vital").write_bytes(bytes(SIZE // 4))
        assert SIZE // 2 < kept(place) < SIZE
        ballast.unlink()
        reserve.keep()
        assert kept(place) >= SIZE
