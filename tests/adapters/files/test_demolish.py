import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from adapters.files.demolish import Demolition, demolish
from adapters.files.errors import IdentityChanged, MountInside
from adapters.files.identity import identify
from adapters.files.scan import Entry, scan

Mount = Callable[[Path, Path], None]


def destroy(root: Path, allowed: Callable[[Entry], bool] = lambda entry: True) -> Demolition:
    path = os.fsencode(root)
    return demolish(path, identify(path), "sha1", allowed)


def explained(root: Path) -> Callable[[Entry], bool]:
    """Allows exactly what is there now."""
    return set(scan(os.fsencode(root), "sha1")).__contains__


def names_below(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*"))


@pytest.fixture
def sentinel(tmp_path: Path) -> Path:
    sentinel = tmp_path / "sentinel"
    sentinel.mkdir()
    (sentinel / "keep").write_text("keep")
    return sentinel


def test_a_tree_that_is_explained_goes_with_its_root(root: Path) -> None:
    (root / "a/b").mkdir(parents=True)
    (root / "a/file").write_bytes(b"12345")
    done = destroy(root, explained(root))
    assert done == Demolition(4, 5, (), 0, (), 0)
    assert not root.exists()


def test_what_is_spared_stays_with_the_root_and_all_else_goes(root: Path) -> None:
    (root / "a").mkdir()
    for name in (".git", "a/.git", "file"):
        (root / name).touch()
    path = os.fsencode(root)
    done = demolish(path, identify(path), "sha1", lambda entry: True, b".git")
    assert (done.entries, done.refused_count, done.failed_count) == (3, 0, 0)
    assert names_below(root) == [".git"]
    assert destroy(root).entries == 2
    assert not root.exists()


@pytest.mark.parametrize("levels", [63, 66, 200])
def test_a_tree_deeper_than_its_open_directories_goes_durably_up_to_what_is_spared(
    root: Path, levels: int
) -> None:
    (root / "/".join(["d"] * levels)).mkdir(parents=True)
    (root / ".git").touch()
    path = os.fsencode(root)
    done = demolish(path, identify(path), "sha1", lambda entry: True, b".git")
    assert (done.entries, done.refused_count, done.failed_count) == (levels, 0, 0)
    assert names_below(root) == [".git"]


def test_every_kind_and_every_name_goes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    os.mkfifo("fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    for name in (b"-rf", b"new\nline", b"not\xffutf8", b"n" * 255):
        os.mkdir(name)
        os.close(os.open(name + b"/" + name, os.O_CREAT))
    assert destroy(root).failed == ()
    assert not root.exists()


def test_a_link_is_unlinked_and_never_followed(root: Path, sentinel: Path) -> None:
    (root / "link").symlink_to(sentinel)
    (root / "file-link").symlink_to(sentinel / "keep")
    assert destroy(root).entries == 3
    assert names_below(sentinel) == ["keep"]


def test_a_directory_swapped_for_a_link_after_the_scan_is_refused(root: Path, sentinel: Path) -> None:
    (root / "inner").mkdir()
    (root / "inner/keep").write_text("keep")
    allowed = explained(root)
    (root / "inner").rename(root.parent / "moved")
    (root / "inner").symlink_to(sentinel)
    assert destroy(root, allowed).refused == (b"inner",)
    assert (root / "inner").is_symlink()
    assert names_below(sentinel) == ["keep"]


def test_a_directory_swapped_for_a_link_during_the_deletion_leads_nowhere(root: Path, sentinel: Path) -> None:
    (root / "first").touch()
    (root / "inner").mkdir()
    (root / "inner/keep").touch()

    def swap(entry: Entry) -> bool:
        if entry.path == b"first":
            (root / "inner").rename(root.parent / "moved")
            (root / "inner").symlink_to(sentinel)
        return True

    destroy(root, swap)
    assert names_below(sentinel) == ["keep"]
    assert names_below(root.parent / "moved") == ["keep"]


def test_what_is_refused_stays_with_every_directory_above_it_and_the_rest_goes(root: Path) -> None:
    (root / "a/b").mkdir(parents=True)
    (root / "empty").mkdir()
    for name in ("a/keep", "a/b/go", "go"):
        (root / name).touch()
    done = destroy(root, lambda entry: entry.path != b"a/keep")
    assert names_below(root) == ["a", "a/keep"]
    assert (done.entries, done.refused, done.failed) == (4, (b"a/keep",), ())


def test_a_directory_that_is_refused_stays_empty(root: Path) -> None:
    (root / "a").mkdir()
    (root / "a/file").touch()
    assert destroy(root, lambda entry: entry.kind == "file").refused == (b"a",)
    assert names_below(root) == ["a"]


def test_a_file_changed_since_it_was_explained_stays(root: Path) -> None:
    (root / "file").write_bytes(b"old")
    allowed = explained(root)
    (root / "file").write_bytes(b"new")
    assert destroy(root, allowed).refused == (b"file",)
    assert (root / "file").read_bytes() == b"new"


def test_a_file_changed_while_it_is_being_judged_stays(root: Path) -> None:
    (root / "file").write_bytes(b"old")

    def judge(entry: Entry) -> bool:
        (root / "file").write_bytes(b"new")
        return True

    assert destroy(root, judge).refused == (b"file",)
    assert (root / "file").read_bytes() == b"new"


def test_a_file_that_appears_during_the_deletion_keeps_its_directory(root: Path) -> None:
    (root / "a").mkdir()
    (root / "a/file").touch()

    def judge(entry: Entry) -> bool:
        (root / "a/late").write_text("late")
        return True

    done = destroy(root, judge)
    assert [(path, why.split(":")[0]) for path, why in done.failed] == [(b"a", "ENOTEMPTY")]
    assert names_below(root) == ["a", "a/late"]


def test_a_file_that_somebody_else_removed_is_no_failure(root: Path) -> None:
    for name in ("a", "b"):
        (root / name).touch()

    def judge(entry: Entry) -> bool:
        (root / "b").unlink(missing_ok=True)
        return True

    assert destroy(root, judge) == Demolition(2, 0, (), 0, (), 0)


def test_another_directory_at_the_same_path_is_not_touched(root: Path) -> None:
    identity = identify(os.fsencode(root))
    root.rename(root.parent / "old")
    root.mkdir()
    (root / "keep").touch()
    with pytest.raises(IdentityChanged):
        demolish(os.fsencode(root), identity, "sha1", lambda entry: True)
    assert names_below(root) == ["keep"]


def test_a_root_that_is_a_link_is_not_touched(root: Path, sentinel: Path) -> None:
    identity = identify(os.fsencode(sentinel))
    (root / "link").symlink_to(sentinel)
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        demolish(os.fsencode(root / "link"), identity, "sha1", lambda entry: True)
    assert names_below(sentinel) == ["keep"]


def test_a_bind_mount_inside_keeps_everything(root: Path, sentinel: Path, bind_mount: Mount) -> None:
    (root / "a").touch()
    (root / "z").mkdir()
    bind_mount(sentinel, root / "z")
    with pytest.raises(MountInside):
        destroy(root)
    assert names_below(root) == ["a", "z", "z/keep"]
    assert names_below(sentinel) == ["keep"]


def test_a_bind_mount_on_the_root_itself_keeps_everything(
    root: Path, sentinel: Path, bind_mount: Mount
) -> None:
    bind_mount(sentinel, root)
    with pytest.raises(MountInside):
        destroy(root)
    assert names_below(sentinel) == ["keep"]


def test_a_mount_that_appears_during_the_deletion_is_left_alone(
    root: Path, sentinel: Path, bind_mount: Mount
) -> None:
    for name in ("a", "z"):
        (root / name).mkdir()
    mounted: list[Path] = []

    def mount_once(entry: Entry) -> bool:
        if not mounted:
            mounted.append(root / "z")
            bind_mount(sentinel, root / "z")
        return True

    done = destroy(root, mount_once)
    assert [path for path, _ in done.failed] == [b"z"]
    assert names_below(sentinel) == ["keep"]


@pytest.mark.usefixtures("unprivileged")
def test_read_only_and_closed_directories_of_ours_are_opened_and_go() -> None:
    for name, mode in (("cache", 0o555), ("closed", 0o000)):
        os.makedirs(f"lane/{name}/inner")
        Path(f"lane/{name}/file").touch()
        os.chmod(f"lane/{name}", mode)
    os.chmod("lane", 0o555)
    assert destroy(Path("lane")).failed == ()
    assert not os.path.lexists("lane")


@pytest.mark.usefixtures("unprivileged")
def test_a_directory_that_stays_gets_its_mode_back() -> None:
    os.makedirs("lane/cache")
    Path("lane/cache/keep").touch()
    for name in ("lane/cache", "lane"):
        os.chmod(name, 0o555)
    assert destroy(Path("lane"), lambda entry: False).refused == (b"cache/keep",)
    assert [os.stat(name).st_mode & 0o777 for name in ("lane/cache", "lane")] == [0o555, 0o555]
    for name in ("lane", "lane/cache"):
        os.chmod(name, 0o755)


def test_an_entry_that_cannot_be_removed_is_reported_and_the_rest_goes(
    root: Path, request: pytest.FixtureRequest
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to make a directory of somebody else's")
    (root / "theirs").mkdir()
    for name in ("theirs/file", "ours"):
        (root / name).touch()
    os.chown(root, 65534, 65534)
    request.getfixturevalue("unprivileged")
    done = destroy(Path("root"))
    assert done.failed == ((b"theirs/file", "EACCES: Permission denied"),)
    assert names_below(Path("root")) == ["theirs", "theirs/file"]


def test_only_the_first_thousand_refusals_are_named_and_all_are_counted(root: Path) -> None:
    for number in range(1_005):
        (root / f"{number:04}").touch()
    done = destroy(root, lambda entry: False)
    assert (len(done.refused), done.refused_count) == (1_000, 1_005)
    assert len(names_below(root)) == 1_005


@pytest.mark.slow
@pytest.mark.usefixtures("ten_thousand_files")
def test_ten_thousand_files_go(root: Path) -> None:
    assert destroy(root, explained(root)).entries == 10_101
    assert not root.exists()
