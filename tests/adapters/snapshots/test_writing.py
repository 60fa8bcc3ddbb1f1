"""What is in the way of an entry is told, and nothing stays open."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.files.descriptors import DIRECTORY, owned
from adapters.snapshots.files import SnapshotDamaged
from adapters.snapshots.restore.writing import Beginning

if TYPE_CHECKING:
    from pathlib import Path


def test_a_link_in_the_way_of_a_file_is_told_and_leaves_no_descriptor(tmp_path: Path) -> None:
    (tmp_path / "there").symlink_to("elsewhere")
    with owned(os.open(tmp_path, DIRECTORY)) as parent:
        before = os.listdir("/proc/self/fd")
        with pytest.raises(SnapshotDamaged):
            Beginning(parent, b"there", b"there")
        assert os.listdir("/proc/self/fd") == before
