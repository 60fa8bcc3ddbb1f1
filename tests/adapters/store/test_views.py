"""The tables are what the log says: they can be lost, spoiled or outdated, and come back the same."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from adapters.store import tables, views
from adapters.store.connection import connect, transaction
from adapters.store.fold import Fold
from adapters.store.journal import Journal
from adapters.store.log import events
from domain.envelope import REPOSITORY_STREAM
from domain.events import RepositoryRegistered
from projections.catalogue import EVENTUAL, IMMEDIATE, TABLES
from tests.adapters.store.lives import REPOSITORY, entry, life, noon

if TYPE_CHECKING:
    import apsw

    from projections.table import Row, Table

ROOT = Path(__file__).parents[3]
Content = dict[str, list["Row"]]

DAMAGE = {
    "no rows": "DELETE FROM {name}",
    "no table": "DROP TABLE {name}",
    "wrong rows": "UPDATE {name} SET {column} = {value}",
    "another shape": "DROP TABLE {name}; CREATE TABLE {name}(x); INSERT INTO {name} VALUES (1)",
}


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    """A store with a row at least in every table."""
    path = bytes(tmp_path / "journal.db")
    registered = RepositoryRegistered(common=REPOSITORY, root="/srv/yard", object_format="sha1")
    with closing(Journal(path, noon)) as journal:
        requests = [
            replace(entry("", registered), stream=f"{REPOSITORY_STREAM}1"),
            *(entry(f"{n}", *life(f"{n}")[:n]) for n in range(1, 17)),
        ]
        for request in requests:
            journal.submit(request).result()
    return path


def content(connection: apsw.Connection) -> Content:
    return {table.name: tables.read(connection, table) for table in TABLES}


def positions(connection: apsw.Connection) -> list[int]:
    """Returns how far each table has come."""
    return [views.position(connection, table.name) for table in TABLES]


def damage(connection: apsw.Connection, how: str, table: Table) -> None:
    column, kind = table.columns[-1]
    value = "'spoiled'" if kind == "TEXT" else "-1"
    connection.execute(DAMAGE[how].format(name=table.name, column=column, value=value))


def test_every_table_has_rows_to_lose(path: bytes) -> None:
    with closing(connect(path)) as connection:
        assert [name for name, rows in content(connection).items() if not rows] == []


@pytest.mark.parametrize("how", DAMAGE)
def test_a_rebuild_gives_the_same_rows(path: bytes, how: str) -> None:
    with closing(connect(path)) as connection:
        before = content(connection)
        for table in TABLES:
            damage(connection, how, table)
        with transaction(connection):
            views.rebuild(connection)
        assert content(connection) == before
        assert set(positions(connection)) == {137}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_that_is_missing_is_made_anew_at_the_start(path: bytes, table: Table) -> None:
    with closing(connect(path)) as connection:
        before = content(connection)
        connection.execute(f"DROP TABLE {table.name}")
    Journal(path, noon).close()
    with closing(connect(path)) as connection:
        assert content(connection) == before


@pytest.mark.parametrize("name", [views.IMMEDIATELY, *(f"{e.TABLE.name}@{e.VERSION}" for e in EVENTUAL)])
def test_a_projection_of_another_version_is_rebuilt_at_the_start(path: bytes, name: str) -> None:
    kept = {each.TABLE.name: each.TABLE for each in EVENTUAL}
    table = kept.get(name.partition("@")[0], IMMEDIATE[0].TABLE)
    with closing(connect(path)) as connection:
        before = content(connection)
        damage(connection, "another shape", table)
        connection.execute(
            "UPDATE tracking SET name = ? WHERE name = ?", (f"{name.partition('@')[0]}@0", name)
        )
    Journal(path, noon).close()
    with closing(connect(path)) as connection:
        assert content(connection) == before
        assert connection.execute("SELECT count(*) FROM tracking WHERE name GLOB '*@0'").get == 0


def test_an_empty_store_of_another_version_is_rebuilt_too(tmp_path: Path) -> None:
    path = bytes(tmp_path / "empty.db")
    Journal(path, noon).close()
    with closing(connect(path)) as connection:
        damage(connection, "another shape", TABLES[0])
        connection.execute("UPDATE tracking SET name = 'tables@0' WHERE name = ?", (views.IMMEDIATELY,))
    with closing(Journal(path, noon)) as journal:
        assert journal.submit(entry("a", *life("a"))).result().last == 16


def test_tables_that_are_as_they_should_be_are_left_alone(path: bytes) -> None:
    with closing(connect(path)) as connection:
        damage(connection, "wrong rows", TABLES[0])
        spoiled = content(connection)
    Journal(path, noon).close()
    with closing(connect(path)) as connection:
        assert content(connection) == spoiled


def test_the_tracking_of_others_survives_a_rebuild(path: bytes) -> None:
    with closing(connect(path)) as connection:
        connection.execute("INSERT INTO tracking VALUES ('somebody', 7), ('tables', 8)")
        with transaction(connection):
            views.rebuild(connection)
        assert views.tracked(connection, "somebody") == 7
        assert views.tracked(connection, "tables") == 8


@pytest.mark.parametrize("position", [0, 1, 16, 50, 100, 136, 137])
def test_catching_up_from_any_position_equals_a_rebuild(path: bytes, position: int) -> None:
    with closing(connect(path)) as connection:
        before = content(connection)
        earlier = Fold().take_all(events(connection, to=position))
        with transaction(connection):
            for each in EVENTUAL:
                tables.swap(connection, each.TABLE, earlier.table(each.TABLE))
                views.track(connection, f"{each.TABLE.name}@{each.VERSION}", position)
            assert position == 137 or content(connection) != before
            views.catch_up(connection)
        assert content(connection) == before
        assert set(positions(connection)) == {137}


def test_what_follows_the_log_is_at_its_end_when_the_journal_is_closed(path: bytes) -> None:
    with closing(Journal(path, noon)) as journal:
        journal.submit(entry("late", *life("late"))).result()
    with closing(connect(path)) as connection:
        assert set(positions(connection)) == {153}


REBUILD = """
import os, signal, sys
from adapters.store import views
from adapters.store.connection import (connect, transaction)

left = int(sys.argv[2])

def die(*_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return True

connection = connect(sys.argv[1].encode())
connection.exec_trace = die
with transaction(connection):
    views.rebuild(connection)
"""


@pytest.mark.slow
@pytest.mark.parametrize("statements", [4, 20, 60, 150, 190])
def test_a_rebuild_killed_in_the_middle_leaves_the_old_tables(path: bytes, statements: int) -> None:
    with closing(connect(path)) as connection:
        damage(connection, "wrong rows", TABLES[0])
        before = content(connection), positions(connection)
    argv = [sys.executable, "-c", REBUILD, path.decode(), str(statements)]
    assert subprocess.run(argv, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    with closing(connect(path)) as connection:
        assert (content(connection), positions(connection)) == before
        assert connection.execute("SELECT name FROM sqlite_schema WHERE name GLOB '*_fresh'").get is None
