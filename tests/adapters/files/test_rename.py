import errno
import os
import tempfile
from pathlib import Path

import pytest

from adapters.files.rename import move


def paths(*names: Path) -> tuple[bytes, ...]:
    return tuple(os.fsencode(name) for name in names)


def test_a_tree_is_moved_whole_and_stays_the_same_object(root: Path, tmp_path: Path) -> None:
    (root / "file").write_text("content")
    inode = root.stat().st_ino
    move(*paths(root, tmp_path / "moved"))
    assert not root.exists()
    assert (tmp_path / "moved").stat().st_ino == inode
    assert (tmp_path / "moved/file").read_text() == "content"


def test_an_existing_empty_directory_is_not_replaced(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    with pytest.raises(FileExistsError) as caught:
        move(*paths(root, target))
    assert (caught.value.filename, caught.value.filename2) == paths(root, target)
    assert root.exists()
    assert list(target.iterdir()) == []


def test_an_existing_file_or_dangling_link_is_not_replaced(tmp_path: Path) -> None:
    for name in ("source", "file"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("nowhere")
    for name in ("file", "link"):
        with pytest.raises(FileExistsError):
            move(*paths(tmp_path / "source", tmp_path / name))
    assert (tmp_path / "file").read_text() == "file"


def test_a_missing_source_or_target_directory_names_both_paths(root: Path, tmp_path: Path) -> None:
    for source, target in ((tmp_path / "no", tmp_path / "x"), (root, tmp_path / "no/x")):
        with pytest.raises(FileNotFoundError) as caught:
            move(*paths(source, target))
        assert (caught.value.filename, caught.value.filename2) == paths(source, target)


def test_a_link_is_moved_as_itself(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    move(*paths(tmp_path / "link", tmp_path / "moved"))
    assert (tmp_path / "moved").is_symlink()
    assert root.is_dir()


def test_a_parent_that_is_a_link_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        move(*paths(tmp_path / "file", tmp_path / "link/file"))
    assert list(root.iterdir()) == []


def test_another_file_system_is_refused_with_its_errno(root: Path) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == root.stat().st_dev:
        pytest.skip("needs a second file system at /dev/shm")
    with (
        tempfile.TemporaryDirectory(dir=memory) as other,
        pytest.raises(OSError, match="cross-device") as caught,
    ):
        move(*paths(root, Path(other) / "target"))
    assert caught.value.errno == errno.EXDEV
    assert root.is_dir()


@pytest.mark.usefixtures("unprivileged")
def test_a_read_only_directory_of_ours_goes_to_another_parent_and_stays_read_only() -> None:
    for name in ("lane", "other"):
        os.mkdir(name)
    for mode in (0o555, 0o000):
        os.chmod("lane", mode)
        move(b"lane", b"other/lane")
        assert os.stat("other/lane").st_mode & 0o7777 == mode
        move(b"other/lane", b"lane")
    os.chmod("lane", 0o700)


@pytest.mark.usefixtures("unprivileged")
def test_a_closed_parent_is_an_error_and_changes_no_mode() -> None:
    for name in ("closed/lane", "other"):
        os.makedirs(name)
    os.chmod("closed/lane", 0o555)
    os.chmod("closed", 0o555)
    with pytest.raises(PermissionError):
        move(b"closed/lane", b"other/lane")
    assert os.stat("closed/lane").st_mode & 0o7777 == 0o555
    assert os.stat("closed").st_mode & 0o7777 == 0o555
    os.chmod("closed", 0o700)


def test_a_path_without_a_name_is_refused(root: Path) -> None:
    for path in (b"/", b"..", os.fsencode(root) + b"/.."):
        with pytest.raises(ValueError, match="no name"):
            move(path, os.fsencode(root / "x"))
