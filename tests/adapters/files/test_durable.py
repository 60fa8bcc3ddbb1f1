import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.files.durable import (
    make_directories,
    read_file,
    remove_file,
    replace,
    write_locked,
    write_new,
)
from adapters.files.errors import LockFileHeld, NotRegular, TooLarge

CALM = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


@contextmanager
def disk_full_after(size: int) -> Iterator[None]:
    """Makes the kernel refuse to let files grow further, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_a_new_file_is_private_and_whole(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_new(os.fsencode(file), b"data")
    assert (file.read_bytes(), mode(file)) == (b"data", 0o600)


def test_a_new_file_never_replaces(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    for name in (file, tmp_path / "link"):
        with pytest.raises(FileExistsError) as caught:
            write_new(os.fsencode(name), b"new")
        assert caught.value.filename == os.fsencode(name)
    assert file.read_bytes() == b"old"


def test_a_full_disk_leaves_nothing_new_and_everything_old(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    with disk_full_after(10):
        for write in (replace, write_locked):
            with pytest.raises(OSError, match="too large"):
                write(os.fsencode(file), b"x" * 100)
        with pytest.raises(OSError, match="too large"):
            write_new(os.fsencode(tmp_path / "new"), b"x" * 100)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    assert file.read_bytes() == b"old"


def test_replace_swaps_the_content_even_under_the_longest_name(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 255)
    for data in (b"one", b"two"):
        replace(os.fsencode(file), data)
    assert file.read_bytes() == b"two"
    assert len(list(tmp_path.iterdir())) == 1


def test_replace_puts_a_file_in_place_of_a_link_and_not_behind_it(tmp_path: Path) -> None:
    (tmp_path / "sentinel").write_bytes(b"sentinel")
    (tmp_path / "link").symlink_to("sentinel")
    replace(os.fsencode(tmp_path / "link"), b"new")
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "sentinel").read_bytes() == b"sentinel"


def test_replace_refuses_a_directory_and_leaves_no_temporary_file(root: Path) -> None:
    (root / "directory").mkdir()
    with pytest.raises(IsADirectoryError):
        replace(os.fsencode(root / "directory"), b"data")
    assert [entry.name for entry in root.iterdir()] == ["directory"]


def test_a_foreign_lock_file_is_respected(tmp_path: Path) -> None:
    file, lock = tmp_path / "config", tmp_path / "config.lock"
    file.write_bytes(b"old")
    lock.write_bytes(b"theirs")
    with pytest.raises(LockFileHeld) as caught:
        write_locked(os.fsencode(file), b"new")
    assert caught.value.path == os.fsencode(file)
    assert (file.read_bytes(), lock.read_bytes()) == (b"old", b"theirs")


def test_a_locked_write_keeps_the_mode_and_takes_the_lock_away(tmp_path: Path) -> None:
    file = tmp_path / "exclude"
    file.write_bytes(b"old")
    file.chmod(0o664)
    write_locked(os.fsencode(file), b"new")
    assert (file.read_bytes(), mode(file)) == (b"new", 0o664)
    assert [entry.name for entry in tmp_path.iterdir()] == ["exclude"]


def test_a_locked_write_refuses_a_link_and_takes_the_lock_away(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("sentinel")
    with pytest.raises(NotRegular):
        write_locked(os.fsencode(tmp_path / "link"), b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["link"]


def test_git_respects_the_same_lock_file(tmp_path: Path) -> None:
    config = tmp_path / "config"
    write_locked(os.fsencode(config), b"[a]\n\tb = 1\n")
    command = ["git", "config", "--file", str(config), "a.b", "2"]
    (tmp_path / "config.lock").touch()
    assert subprocess.run(command, capture_output=True, env=CALM, check=False).returncode != 0
    (tmp_path / "config.lock").unlink()
    assert subprocess.run(command, capture_output=True, env=CALM, check=False).returncode == 0


def test_removing_tells_whether_the_file_was_there(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert remove_file(os.fsencode(tmp_path / "file")) is True
    assert remove_file(os.fsencode(tmp_path / "file")) is False
    assert remove_file(os.fsencode(tmp_path / "no/file")) is False


def test_removing_a_link_leaves_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "sentinel").touch()
    (tmp_path / "link").symlink_to("sentinel")
    assert remove_file(os.fsencode(tmp_path / "link")) is True
    assert (tmp_path / "sentinel").exists()


def test_missing_directories_are_made_private_and_existing_ones_left_alone(root: Path) -> None:
    root.chmod(0o755)
    for _ in range(2):
        make_directories(os.fsencode(root / "a/b") + b"/")
    assert [mode(path) for path in (root, root / "a", root / "a/b")] == [0o755, 0o700, 0o700]


def test_directories_can_be_made_below_a_relative_path(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    make_directories(b"a/b")
    assert (root / "a/b").is_dir()
    with pytest.raises(FileNotFoundError):
        make_directories(b"")


def test_no_directory_is_made_through_a_link_or_a_file(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "file").touch()
    for name in ("link", "dangling", "file"):
        with pytest.raises(NotADirectoryError) as caught:
            make_directories(os.fsencode(tmp_path / name / "x/y"))
        assert caught.value.filename == os.fsencode(tmp_path / name)
    assert list(root.iterdir()) == []
    assert not (tmp_path / "nowhere").exists()


def test_a_link_above_an_existing_directory_is_the_users_own_business(root: Path, tmp_path: Path) -> None:
    (root / "real").mkdir()
    (tmp_path / "link").symlink_to(root)
    make_directories(os.fsencode(tmp_path / "link/real/new"))
    assert (root / "real/new").is_dir()


def test_reading_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_file(os.fsencode(file), limit=5) == b"12345"
    with pytest.raises(TooLarge):
        read_file(os.fsencode(file), limit=4)


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "directory", "fifo"):
        with pytest.raises(NotRegular):
            read_file(os.fsencode(tmp_path / name))
    with pytest.raises(FileNotFoundError) as caught:
        read_file(os.fsencode(tmp_path / "missing"))
    assert caught.value.filename == os.fsencode(tmp_path / "missing")
