from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING
from uuid import UUID

import apsw
import pytest

from adapters.store.append import append
from adapters.store.connection import APPLICATION_ID, connect, initialise
from adapters.store.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreMissing,
    StoreReadOnly,
    StoreTooNew,
    translate,
)
from adapters.store.pool import Store

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


def test_a_store_knows_itself(path: Path) -> None:
    with closing(connect(str(path))) as connection:
        facts = {str(k): str(v) for k, v in connection.execute("SELECT k, v FROM store").fetchall()}
        assert connection.pragma("application_id") == APPLICATION_ID
        assert connection.pragma("user_version") == int(facts["schema"])
    assert UUID(facts["store_id"]).version == 4


def test_a_store_keeps_its_identity_when_opened_again(path: Path) -> None:
    seen = set()
    for _ in range(2):
        with closing(connect(str(path))) as connection:
            seen.add(connection.execute("SELECT v FROM store WHERE k = 'store_id'").get)
    assert len(seen) == 1


def test_the_file_is_its_owners_alone(path: Path) -> None:
    mask = os.umask(0)
    try:
        with closing(connect(str(path))) as connection:
            initialise(connection)
            modes = {entry.name: entry.stat().st_mode & 0o777 for entry in path.parent.iterdir()}
    finally:
        os.umask(mask)
    assert modes == {"journal.db": 0o600, "journal.db-wal": 0o600, "journal.db-shm": 0o600}


def test_a_path_is_bytes(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/\xff %41?mode=ro#"
    with closing(connect(odd)):
        assert os.path.exists(odd)


def test_initialising_twice_is_initialising_once(path: Path) -> None:
    with closing(connect(str(path))) as connection:
        initialise(connection)
        append(connection, [("lane", 1, "t", b"")])
        initialise(connection)
        with connection:
            initialise(connection)
        assert connection.execute("SELECT count(*) FROM event").get == 1


def test_a_newer_store_is_refused_by_both_kinds_of_connection(path: Path) -> None:
    with closing(connect(str(path))) as connection:
        connection.execute("UPDATE store SET v = '7' WHERE k = 'min_reader'")
    for read_only in (False, True):
        with pytest.raises(StoreTooNew) as refusal:
            connect(str(path), read_only=read_only)
        assert (refusal.value.found, refusal.value.known) == (7, 1)


def test_a_newer_schema_that_we_may_read_is_opened(path: Path) -> None:
    with closing(connect(str(path))) as connection:
        connection.execute("UPDATE store SET v = '7' WHERE k = 'schema'")
    connect(str(path)).close()


@pytest.mark.parametrize(
    "damage",
    ["DROP TABLE store", "DELETE FROM store", "UPDATE store SET v = 'x'", "PRAGMA application_id = 7"],
)
def test_what_does_not_say_that_it_is_a_store_is_refused(path: Path, damage: str) -> None:
    with closing(connect(str(path))) as connection:
        connection.execute(damage)
    with pytest.raises(StoreCorrupt) as refusal:
        connect(str(path))
    assert refusal.value.why


def test_somebody_elses_database_is_refused_and_left_alone(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as theirs:
        theirs.execute("CREATE TABLE t(x)")
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt):
        connect(str(path))
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"no database at all " * 300)
    with pytest.raises(StoreCorrupt):
        connect(str(path))
    assert path.read_bytes() == b"no database at all " * 300


def test_a_malformed_page_is_corruption(path: Path) -> None:
    with closing(connect(str(path))) as connection:
        initialise(connection)
        append(connection, [("lane", version, "t", bytes(3000)) for version in range(1, 20)])
    image = bytearray(path.read_bytes())
    image[4096:] = b"\x55" * (len(image) - 4096)
    path.write_bytes(image)
    with pytest.raises(StoreCorrupt):
        connect(str(path))


def test_reading_makes_no_store(path: Path) -> None:
    with pytest.raises(StoreMissing):
        connect(str(path), read_only=True)
    assert not path.exists()
    path.touch()
    with pytest.raises(StoreMissing):
        connect(str(path), read_only=True)
    with pytest.raises(StoreError):
        connect(str(path / "below"))


def test_a_reader_cannot_write(path: Path) -> None:
    with closing(connect(str(path))) as connection:
        initialise(connection)
    with closing(connect(str(path), read_only=True)) as reader:
        assert reader.pragma("query_only") == 1
        with pytest.raises(StoreReadOnly), translate():
            reader.execute("INSERT INTO tracking VALUES ('ledger', 1)")


def test_a_lock_held_past_the_timeout_is_busy(path: Path) -> None:
    with closing(connect(str(path))) as holder, closing(Store(str(path), lock_timeout=0.05)) as store:
        with store.writing():
            pass
        with holder, pytest.raises(StoreBusy), store.writing():
            pass
        with store.writing():
            pass


def test_a_store_that_is_being_written_is_still_made_to_log_ahead(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(connect(str(path))) as connection:
        assert connection.execute("PRAGMA journal_mode = delete").get == "delete"
    with closing(apsw.Connection(str(path))) as writer:
        writer.execute("BEGIN IMMEDIATE")
        waits = []

        def leave(cursor: apsw.Cursor, statement: str, bindings: object) -> bool:
            if statement.startswith("BEGIN IMMEDIATE") and writer.in_transaction:
                waits.append(statement)
                writer.execute("COMMIT")
            return True

        def watch(connection: apsw.Connection) -> None:
            connection.exec_trace = leave

        monkeypatch.setattr(apsw, "connection_hooks", [watch])
        with closing(connect(str(path))) as connection:
            assert connection.pragma("journal_mode") == "wal"
        assert len(waits) == 1


def test_a_full_disk_writes_nothing_and_is_not_for_ever(path: Path) -> None:
    with closing(Store(str(path))) as store:
        with store.writing() as connection:
            initialise(connection)
            append(connection, [("lane", 1, "t", b"")])
            connection.pragma("max_page_count", connection.pragma("page_count") + 2)
        with pytest.raises(StoreFull), store.writing() as connection:
            append(connection, [("lane", version, "t", bytes(3000)) for version in range(2, 20)])
        with store.writing() as connection:
            connection.pragma("max_page_count", 1000)
            assert append(connection, [("lane", 2, "t", bytes(9000))])[0] == [2]


def test_strings_in_double_quotes_are_no_strings(path: Path) -> None:
    with closing(connect(str(path))) as connection, pytest.raises(apsw.SQLError):
        connection.execute('SELECT "journal"')


def test_a_closed_store_says_so(path: Path) -> None:
    store = Store(str(path))
    with store.writing():
        pass
    store.close()
    with pytest.raises(StoreError, match="closed"), store.reading():
        pass
    with pytest.raises(StoreError, match="closed"), store.writing():
        pass
    assert [entry.name for entry in path.parent.iterdir()] == ["journal.db"]


READ = """
import sys
from adapters.store.connection import (connect)
from adapters.store.errors import (StoreError)
try:
    print(connect(sys.argv[1], read_only=sys.argv[2] == "ro").execute("SELECT count(*) FROM store").get)
except StoreError as error:
    print(type(error).__name__)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() == 0 and not shutil.which("setpriv"),
    reason="root may write everywhere, and setpriv is missing",
)
def test_a_directory_that_cannot_be_written_is_read_if_it_can_be(path: Path) -> None:
    writer = connect(str(path))
    initialise(writer)
    path.parent.chmod(0o500)
    try:
        assert powerless(path, "ro") == "3"  # the write-ahead log is there while somebody writes
        path.parent.chmod(0o700)
        writer.close()
        path.parent.chmod(0o500)
        assert powerless(path, "ro") in ("3", "StoreReadOnly")
        path.chmod(0o400)
        assert powerless(path, "rw") == "StoreReadOnly"
    finally:
        path.parent.chmod(0o700)


def powerless(path: Path, access: str) -> str:
    """Opens the store in a process that permissions bind, as they do not bind root."""
    root = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"] if os.geteuid() == 0 else []
    command = [*root, sys.executable, "-c", READ, str(path), access]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
