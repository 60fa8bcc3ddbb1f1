import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapters.files.errors import LockHeld, NotRegular
from adapters.files.oslock import OsLock

CHECKOUT = Path(__file__).parents[3]
HOLD = """
import os, sys
from adapters.files.oslock import OsLock
with OsLock(os.fsencode(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""
COUNT = """
import os, sys
from adapters.files.oslock import OsLock
lock, counter = sys.argv[1:]
for _ in range(200):
    with OsLock(os.fsencode(lock)).acquire(30):
        with open(counter) as file:
            seen = int(file.read())
        with open(counter, "w") as file:
            file.write(str(seen + 1))
"""


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path / "lock")


@contextmanager
def held_by_a_process(path: bytes) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-c", HOLD, os.fsdecode(path)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()


def test_two_objects_in_one_process_exclude_each_other(path: bytes) -> None:
    with OsLock(path):
        with pytest.raises(LockHeld) as caught:
            OsLock(path).acquire(0)
        assert caught.value.holder.startswith(f"{os.getpid()} ")
    with OsLock(path).acquire(0):
        assert os.stat(path).st_mode & 0o7777 == 0o600


def test_shared_holders_coexist_and_keep_an_exclusive_one_out(path: bytes) -> None:
    with OsLock(path, shared=True), OsLock(path, shared=True).acquire(0):
        assert_held(path)
    OsLock(path).acquire(0).release()


def test_a_wait_ends_at_its_deadline_and_burns_no_cpu(path: bytes) -> None:
    with OsLock(path):
        wall, cpu = time.monotonic(), time.thread_time()
        with pytest.raises(LockHeld):
            OsLock(path).acquire(0.15)
        assert time.monotonic() - wall >= 0.15
        assert time.thread_time() - cpu < 0.05


def test_releasing_twice_is_harmless_and_acquiring_twice_a_mistake(path: bytes) -> None:
    lock = OsLock(path).acquire(0)
    with pytest.raises(RuntimeError, match="already held"):
        lock.acquire(0)
    lock.release()
    lock.release()


def test_a_released_lock_names_no_holder(path: bytes) -> None:
    OsLock(path).acquire(0).release()
    assert Path(os.fsdecode(path)).read_bytes() == b""


@pytest.mark.slow
def test_another_process_is_named_and_its_death_frees_the_lock(path: bytes) -> None:
    with held_by_a_process(path) as process:
        with pytest.raises(LockHeld) as caught:
            OsLock(path).acquire(0.01)
        pid, started, program = caught.value.holder.split(" ", 2)
        assert (int(pid), started.isdigit(), bool(program)) == (process.pid, True, True)
        process.kill()
        OsLock(path).acquire(10).release()


@pytest.mark.slow
def test_two_processes_never_hold_it_together(path: bytes, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    command = [sys.executable, "-c", COUNT, os.fsdecode(path), str(counter)]
    running = [subprocess.Popen(command, cwd=CHECKOUT) for _ in range(2)]
    assert [process.wait(60) for process in running] == [0, 0]
    assert counter.read_text() == "400"


def test_a_lock_on_a_file_that_was_replaced_while_waiting_counts_for_nothing(path: bytes) -> None:
    holder, waiter = OsLock(path).acquire(0), OsLock(path)
    old = os.stat(path).st_ino
    thread = threading.Thread(target=waiter.acquire, daemon=True)
    thread.start()
    wait_for_a_blocked_flock(old)
    os.rename(path, path + b".old")
    holder.release()
    thread.join(10)
    assert_held(path)
    waiter.release()


def assert_held(path: bytes) -> None:
    with pytest.raises(LockHeld):
        OsLock(path).acquire(0)


def wait_for_a_blocked_flock(inode: int) -> None:
    deadline = time.monotonic() + 10
    waiting = re.compile(rf"-> .*:{inode} ")
    while not waiting.search(Path("/proc/locks").read_text()):
        assert time.monotonic() < deadline, "nobody waits for the lock"


def test_a_link_or_a_fifo_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("elsewhere")
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(OSError, match="symbolic links"):
        OsLock(os.fsencode(tmp_path / "link")).acquire(0)
    with pytest.raises(NotRegular):
        OsLock(os.fsencode(tmp_path / "fifo")).acquire(0)
    assert not (tmp_path / "elsewhere").exists()
