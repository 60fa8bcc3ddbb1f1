"""What a snapshot keeps beside git is there once, whole, or it is damaged."""

from __future__ import annotations

import hashlib
import os
import signal
from typing import TYPE_CHECKING

import pytest

from adapters.files.descriptors import owned
from adapters.snapshots.files import Files, Shortened, SnapshotDamaged, clear_beginnings
from tests.sagas.crashes import in_a_process

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def state(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path)


def files(state: bytes, snapshot: bytes = b"one") -> Files:
    return Files(os.path.join(state, b"snapshots", snapshot))


def pool(state: bytes, digest: str) -> bytes:
    return os.path.join(state, b"blobs", digest.encode())


def damage(path: bytes) -> None:
    with open(path, "r+b") as file:
        file.write(b"else")


def test_what_is_kept_is_given_back(state: bytes) -> None:
    digest = files(state).keep(b"kept")
    files(state).sync()
    assert digest == hashlib.sha256(b"kept").hexdigest()
    assert files(state).read(digest) == b"kept"
    assert files(state).check(digest) == 4


def test_two_snapshots_keep_one_file_and_each_is_whole_alone(state: bytes) -> None:
    digest = files(state).keep(b"kept")
    assert files(state, b"two").keep(b"kept") == digest
    assert os.stat(pool(state, digest)).st_nlink == 3
    os.unlink(pool(state, digest))
    assert files(state, b"two").read(digest) == b"kept"


def test_damage_and_loss_are_told(state: bytes) -> None:
    digest = files(state).keep(b"kept")
    damage(pool(state, digest))
    with pytest.raises(SnapshotDamaged, match="is damaged"):
        files(state).read(digest)
    with pytest.raises(SnapshotDamaged, match="cannot be read"):
        files(state).read("0" * 64)
    with pytest.raises(SnapshotDamaged, match="longer than 3 bytes"):
        files(state).read(digest, 3)


def test_a_damaged_file_of_the_pool_is_not_shared_but_replaced(state: bytes) -> None:
    digest = files(state).keep(b"kept")
    damage(pool(state, digest))
    assert files(state, b"two").keep(b"kept") == digest
    assert files(state, b"two").read(digest) == b"kept"
    assert files(state, b"three").keep(b"kept") == digest
    assert files(state, b"three").read(digest) == b"kept"


@pytest.mark.parametrize("kind", ["directory", "full directory", "link", "pipe"])
def test_what_is_no_file_in_its_place_gives_way(state: bytes, kind: str, tmp_path: Path) -> None:
    place = pool(state, hashlib.sha256(b"kept").hexdigest())
    os.makedirs(os.path.dirname(place))
    if kind == "link":
        (tmp_path / "other").write_bytes(b"kept")
        os.symlink(tmp_path / "other", place)
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        os.makedirs(os.path.join(place, b"inner") if kind == "full directory" else place)
    digest = files(state).keep(b"kept")
    assert files(state).read(digest) == b"kept"
    assert files(state, b"two").link(digest)
    assert files(state, b"two").read(digest) == b"kept"


def test_an_open_file_is_copied_and_hashed_as_the_caller_wants(state: bytes, tmp_path: Path) -> None:
    data = os.urandom(3 << 20)
    source = tmp_path / "source"
    source.write_bytes(data)
    also = hashlib.sha1(usedforsecurity=False)
    with owned(os.open(source, os.O_RDONLY)) as descriptor:
        digest = files(state).keep_from(descriptor, len(data), also)
        assert files(state, b"two").keep_from(descriptor, len(data)) == digest
    assert also.digest() == hashlib.sha1(data, usedforsecurity=False).digest()
    assert files(state).read(digest) == data
    assert os.listdir(os.path.join(state, b"blobs")) == [digest.encode()]


def test_a_file_that_became_shorter_is_told_and_leaves_nothing(state: bytes, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"short")
    with owned(os.open(source, os.O_RDONLY)) as descriptor, pytest.raises(Shortened):
        files(state).keep_from(descriptor, 6)
    assert os.listdir(os.path.join(state, b"blobs")) == []


def test_what_a_killed_process_had_begun_goes_with_the_next_start(state: bytes, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"big" * 1000)
    kept = files(state).keep(b"kept")

    def killed() -> None:
        with owned(os.open(source, os.O_RDONLY)) as descriptor:
            files(state).keep_from(descriptor, 3000, _Killer())  # type: ignore[arg-type]

    assert in_a_process(killed) == -signal.SIGKILL
    assert len(os.listdir(os.path.join(state, b"beginnings"))) == 1
    assert os.listdir(os.path.join(state, b"blobs")) == [kept.encode()]
    clear_beginnings(state)
    assert os.listdir(os.path.join(state, b"beginnings")) == []
    assert files(state).read(kept) == b"kept"


class _Killer:
    """A hash that ends the process that feeds it."""

    def update(self, data: bytes) -> None:
        os.kill(os.getpid(), signal.SIGKILL)
