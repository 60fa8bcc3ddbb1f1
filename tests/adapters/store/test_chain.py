from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from adapters.store.append import append, read_head
from adapters.store.chain import GENESIS, Head, link, walk
from adapters.store.connection import connect, initialise

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import apsw

UNLOCK = "DROP TRIGGER event_no_update; DROP TRIGGER event_no_delete;"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[apsw.Connection]:
    path = str(tmp_path / "journal.db")
    with closing(connect(path)) as connection:
        initialise(connection)
        with connection:
            append(connection, [("lane", version, "t", b"%d" % version) for version in range(1, 6)])
        connection.execute(UNLOCK)
        yield connection


def problems(log: apsw.Connection, *heads: Head) -> list[int]:
    return [problem.position for problem in walk(log, heads)]


def test_a_log_as_it_was_written_has_no_problems(log: apsw.Connection) -> None:
    assert problems(log, read_head(log), Head(0, GENESIS)) == []


@pytest.mark.parametrize(
    "edit",
    [
        "state = x'ff'",
        "type = 'u'",
        "stream = 'lanf'",
        "version = 9",
        "hash = zeroblob(32)",
        "state = CAST('3t' AS BLOB), type = ''",
    ],
)
def test_an_edited_event_is_found(log: apsw.Connection, edit: str) -> None:
    log.execute(f"UPDATE event SET {edit} WHERE position = 3")
    assert problems(log)[0] == 3


@pytest.mark.parametrize("position", [1, 2, 3, 4, 5])
def test_a_deleted_event_is_found(log: apsw.Connection, position: int) -> None:
    log.execute("DELETE FROM event WHERE position = ?", (position,))
    assert problems(log)[0] == position


def test_an_emptied_log_is_found(log: apsw.Connection) -> None:
    log.execute("DELETE FROM event")
    assert [problem.why for problem in walk(log)] == ["no events from 1 to 5"]


def test_events_written_after_a_deletion_do_not_hide_it(log: apsw.Connection) -> None:
    log.execute("DELETE FROM event WHERE position > 3")
    append(log, [("lane", 9, "t", b"")])
    assert problems(log) == [4]


def test_reordered_events_are_found(log: apsw.Connection) -> None:
    log.execute("UPDATE event SET position = -2 WHERE position = 2")
    log.execute("UPDATE event SET position = 2 WHERE position = 3")
    log.execute("UPDATE event SET position = 3 WHERE position = -2")
    assert problems(log) == [2, 3, 4]


def test_a_tail_cut_off_without_a_trace_contradicts_an_exported_head(log: apsw.Connection) -> None:
    exported = read_head(log)
    log.execute("DELETE FROM event WHERE position = 5; UPDATE sqlite_sequence SET seq = 4")
    assert problems(log) == []
    assert problems(log, exported) == [5]


def test_a_chain_computed_anew_contradicts_an_exported_head(log: apsw.Connection) -> None:
    exported = read_head(log)
    log.execute("DELETE FROM event; DELETE FROM sqlite_sequence")
    append(log, [("lane", version, "t", b"forged") for version in range(1, 6)])
    assert problems(log) == []
    assert problems(log, exported) == [5]


def test_no_two_events_share_a_framing() -> None:
    assert link(GENESIS, 1, "ab", 1, "c", b"d") != link(GENESIS, 1, "a", 1, "bc", b"d")
    assert link(GENESIS, 1, "a", 1, "bc", b"d") != link(GENESIS, 1, "a", 1, "b", b"cd")
    assert link(GENESIS, 12, "a", 1, "b", b"") != link(GENESIS, 1, "a", 12, "b", b"")


def test_a_walk_goes_on_past_its_page(log: apsw.Connection) -> None:
    with log:
        append(log, [("long", version, "t", b"") for version in range(1, 2501)])
    assert problems(log) == []
    log.execute("UPDATE event SET state = x'ff' WHERE position = 2100")
    assert problems(log) == [2100]
