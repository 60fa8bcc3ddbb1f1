import os
from pathlib import Path

import pytest

from adapters.files.identity import identify, identify_descriptor


def test_an_identity_names_the_device_and_inode_that_stat_names(tmp_path: Path) -> None:
    seen, status = identify(os.fsencode(tmp_path)), tmp_path.stat()
    assert (seen.device, seen.inode) == (status.st_dev, status.st_ino)


def test_a_move_keeps_the_identity(root: Path, tmp_path: Path) -> None:
    before = identify(os.fsencode(root))
    root.rename(tmp_path / "elsewhere")
    assert identify(os.fsencode(tmp_path / "elsewhere")) == before


def test_a_directory_made_again_at_the_same_path_is_another(root: Path) -> None:
    before = identify(os.fsencode(root))
    if before.born_ns is None:
        pytest.skip("this file system keeps no birth time, and reuses inodes")
    root.rmdir()
    root.mkdir()
    assert identify(os.fsencode(root)) != before


def test_a_link_is_identified_and_not_what_it_leads_to(root: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(root)
    assert identify(os.fsencode(link)).inode == link.lstat().st_ino != root.stat().st_ino


def test_an_open_directory_has_the_identity_of_its_path(root: Path) -> None:
    descriptor = os.open(root, os.O_PATH)
    try:
        assert identify_descriptor(descriptor) == identify(os.fsencode(root))
    finally:
        os.close(descriptor)


def test_a_missing_path_is_named_in_the_error(tmp_path: Path) -> None:
    missing = os.fsencode(tmp_path / "missing")
    with pytest.raises(FileNotFoundError) as caught:
        identify(missing)
    assert caught.value.filename == missing
