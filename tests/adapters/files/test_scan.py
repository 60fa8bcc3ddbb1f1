import hashlib
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.files.demolish import demolish
from adapters.files.descriptors import open_directory, owned
from adapters.files.errors import MountInside, Unstable
from adapters.files.identity import identify
from adapters.files.mounts import mount_points
from adapters.files.scan import Entry, digest, scan

Mount = Callable[[Path, Path], None]
CALM = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
ODD_NAMES = [b"-rf", b"new\nline", b"not\xffutf8", b"n" * 255, b" ", b"\\040", b"*", b"~"]
EMPTY_SHA256 = "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"


def seen(root: Path, algorithm: str | None = "sha1") -> list[Entry]:
    return list(scan(os.fsencode(root), algorithm))


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_entries_come_by_name_and_a_directory_before_its_content(root: Path) -> None:
    for name in ("b/z", "b/a", "a", "B"):
        (root / name).mkdir(parents=True)
    assert [entry.path for entry in seen(root)] == [b"B", b"a", b"b", b"b/a", b"b/z"]


def test_an_entry_tells_what_stat_tells(root: Path) -> None:
    file = root / "file"
    file.write_bytes(b"hello\n")
    file.chmod(0o640)
    os.link(file, root / "second")
    status = file.stat()
    assert seen(root)[0] == Entry(
        path=b"file",
        kind="file",
        mode=0o640,
        size=6,
        device=status.st_dev,
        inode=status.st_ino,
        mtime_ns=status.st_mtime_ns,
        ctime_ns=status.st_ctime_ns,
        links=2,
        oid="ce013625030ba8dba906f756967f9e9ca394464a",
    )


def test_without_an_algorithm_nothing_is_read(root: Path) -> None:
    (root / "file").write_bytes(b"hello\n")
    assert [entry.oid for entry in seen(root, None)] == [None]


def test_a_blob_id_is_gits_own_for_files_of_every_size_and_for_links(root: Path) -> None:
    for size in (0, 1, 1 << 20, (1 << 20) + 1, 3 << 20):
        (root / f"{size:08}").write_bytes(os.urandom(size))
    command = ["git", "hash-object", "--no-filters", *map(str, sorted(root.iterdir()))]
    done = subprocess.run(command, capture_output=True, env=CALM, text=True, check=True)
    (root / "link").symlink_to("hello\n")
    assert [entry.oid for entry in seen(root)] == [
        *done.stdout.split(),
        "ce013625030ba8dba906f756967f9e9ca394464a",
    ]


def test_sha256_repositories_have_their_own_ids(root: Path) -> None:
    (root / "empty").touch()
    assert [entry.oid for entry in seen(root, "sha256")] == [EMPTY_SHA256]


def test_every_kind_is_named_and_none_is_waited_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    Path("directory").mkdir()
    Path("file").touch()
    os.mkfifo("fifo")
    Path("link").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    kinds = {entry.path: entry.kind for entry in seen(root)}
    assert kinds == {name: name.decode() for name in (b"directory", b"file", b"fifo", b"link", b"socket")}


def test_odd_names_come_back_byte_for_byte(root: Path) -> None:
    for name in ODD_NAMES:
        os.close(os.open(os.path.join(os.fsencode(root), name), os.O_CREAT))
    assert [entry.path for entry in seen(root)] == sorted(ODD_NAMES)


def test_a_link_to_a_directory_is_not_entered(root: Path, tmp_path: Path) -> None:
    (tmp_path / "sentinel").mkdir()
    (tmp_path / "sentinel/file").touch()
    (root / "link").symlink_to(tmp_path / "sentinel")
    assert [(entry.path, entry.kind) for entry in seen(root)] == [(b"link", "link")]


def test_a_root_that_is_a_link_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    with pytest.raises(NotADirectoryError):
        seen(tmp_path / "link")


def test_a_directory_that_is_not_wanted_is_yielded_but_not_entered(root: Path) -> None:
    for name in ("in/file", "out/file"):
        (root / name).mkdir(parents=True)
    found = scan(os.fsencode(root), None, inside=lambda entry: entry.path != b"out")
    assert [entry.path for entry in found] == [b"in", b"in/file", b"out"]


@pytest.mark.usefixtures("unprivileged")
def test_an_unreadable_entry_is_an_error_that_names_it() -> None:
    os.makedirs("root/closed")
    Path("root/file").touch()
    for name in ("closed", "file"):
        os.chmod(f"root/{name}", 0)
        with pytest.raises(PermissionError) as caught:
            list(scan(b"root", "sha1"))
        assert caught.value.filename == b"root/" + name.encode()
        os.chmod(f"root/{name}", 0o700)


def test_a_scan_given_up_half_way_leaves_no_descriptor_open(root: Path) -> None:
    (root / "a/b/c").mkdir(parents=True)
    before = open_descriptors()
    walk = scan(os.fsencode(root), None)
    assert [next(walk).path for _ in range(3)][-1] == b"a/b/c"
    assert open_descriptors() > before
    walk.close()  # type: ignore[attr-defined]
    assert open_descriptors() == before


@pytest.mark.slow
@pytest.mark.usefixtures("few_descriptors")
def test_a_tree_2000_deep_is_scanned_and_demolished(root: Path, deep_tree: Callable[[int], None]) -> None:
    deep_tree(2000)
    entries = seen(root)
    assert len(entries) == 2001
    assert entries[-1].path == b"d/" * 2000 + b"bottom"
    done = demolish(os.fsencode(root), identify(os.fsencode(root)), "sha1", entries.__contains__)
    assert (done.entries, done.refused_count, done.failed_count) == (2002, 0, 0)
    assert not root.exists()


def test_a_directory_moved_away_under_the_walk_is_noticed_on_the_way_up(
    root: Path, tmp_path: Path, deep_tree: Callable[[int], None]
) -> None:
    deep_tree(100)
    walk = scan(os.fsencode(root), None)
    while not next(walk).path.endswith(b"bottom"):
        continue
    (root / "d/d/d").rename(tmp_path / "elsewhere")
    with pytest.raises(Unstable):
        list(walk)


def unstable_path(root: Path) -> bytes | None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            seen(root)
        except Unstable as error:
            return error.path
    return None


@contextmanager
def rewriting(file: Path) -> Iterator[None]:
    stop = threading.Event()

    def rewrite() -> None:
        with file.open("r+b", buffering=0) as stream:
            while not stop.is_set():
                os.pwrite(stream.fileno(), os.urandom(64), 0)

    thread = threading.Thread(target=rewrite)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_file_that_changes_while_it_is_read_is_unstable_until_it_rests(root: Path) -> None:
    file = root / "busy"
    file.write_bytes(bytes(8 << 20))
    with rewriting(file):
        assert unstable_path(root) == os.fsencode(file)
    body = file.read_bytes()
    assert seen(root)[0].oid == hashlib.sha1(b"blob %d\0" % len(body) + body).hexdigest()


def test_a_bind_mount_anywhere_below_is_refused_before_anything_is_yielded(
    root: Path, tmp_path: Path, bind_mount: Mount
) -> None:
    (tmp_path / "sentinel").mkdir()
    for name in ("a", "deep/odd \\ name\n"):
        (root / name).mkdir(parents=True)
    bind_mount(tmp_path / "sentinel", root / "deep/odd \\ name\n")
    with pytest.raises(MountInside) as caught:
        next(scan(os.fsencode(root), None))
    assert caught.value.path == os.fsencode(root / "deep/odd \\ name\n")


def test_a_file_mounted_over_a_file_is_refused(root: Path, tmp_path: Path, bind_mount: Mount) -> None:
    for file in (tmp_path / "sentinel", root / "file"):
        file.touch()
    bind_mount(tmp_path / "sentinel", root / "file")
    with pytest.raises(MountInside):
        seen(root)


def test_a_mount_that_appears_during_the_walk_is_not_entered(
    root: Path, tmp_path: Path, bind_mount: Mount
) -> None:
    (tmp_path / "sentinel").mkdir()
    (root / "inner").mkdir()
    walk = scan(os.fsencode(root), None)
    assert next(walk).path == b"inner"
    bind_mount(tmp_path / "sentinel", root / "inner")
    with pytest.raises(MountInside) as caught:
        next(walk)
    assert caught.value.path == os.fsencode(root / "inner")


def test_a_mount_beside_the_root_does_not_matter(root: Path, tmp_path: Path, bind_mount: Mount) -> None:
    (tmp_path / "root-2").mkdir()
    bind_mount(root, tmp_path / "root-2")
    assert seen(root) == []


def test_a_directory_is_never_opened_through_a_link(root: Path) -> None:
    (root / "link").symlink_to(".")
    with owned(os.open(root, os.O_RDONLY)) as parent, pytest.raises(NotADirectoryError):
        open_directory(parent, b"link", b"link")


def test_mount_points_are_unescaped() -> None:
    table = (
        b"36 35 98:0 / /a\\040b\\134c\\012 rw - ext4 /dev/sda rw\n"
        b"37 35 98:0 /x /plain rw shared:1 - ext4 x rw\n"
    )
    assert mount_points(table) == [b"/a b\\c\n", b"/plain"]


def test_the_digest_follows_content_mode_and_path_and_not_time_or_place(root: Path, tmp_path: Path) -> None:
    (root / "file").write_bytes(b"one")
    (root / "directory").mkdir()
    before = digest(seen(root))
    shutil.copytree(root, tmp_path / "copy")
    os.utime(tmp_path / "copy/file", ns=(0, 0))
    assert digest(seen(tmp_path / "copy")) == before
    digests = {before}
    (root / "file").write_bytes(b"two")
    digests.add(digest(seen(root)))
    (root / "file").chmod(0o600)
    digests.add(digest(seen(root)))
    (root / "file").rename(root / "renamed")
    digests.add(digest(seen(root)))
    assert len(digests) == 4


def test_the_digest_cannot_be_fooled_by_a_path_that_looks_like_an_entry(root: Path) -> None:
    (root / "a").touch()
    (root / "b").touch()
    first, second = seen(root)
    forged = f"a{len(second.path)} file {second.mode:o} 0 {second.oid} b".encode()
    (root / "a").unlink()
    (root / "b").unlink()
    (root / os.fsdecode(forged)).touch()
    assert digest(seen(root)) != digest([first, second])


@pytest.mark.slow
@pytest.mark.usefixtures("ten_thousand_files")
def test_ten_thousand_files_are_all_seen(root: Path) -> None:
    entries = seen(root)
    assert sum(entry.kind == "file" for entry in entries) == 10_000
    assert len({entry.path for entry in entries}) == 10_100
