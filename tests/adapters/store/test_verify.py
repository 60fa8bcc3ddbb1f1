"""Whatever is done to the file behind our back is found, and its place is named."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

import apsw
import pytest
from msgspec.structs import replace

from adapters.store import views
from adapters.store.append import append
from adapters.store.chain import GENESIS, Head, link
from adapters.store.codec import encode
from adapters.store.connection import connect, transaction
from adapters.store.journal import Journal
from adapters.store.reader import Reader
from adapters.store.verify import Finding, verify
from domain.envelope import REPOSITORY_STREAM
from domain.events import RepositoryRegistered, RestorePlanned, SnapshotFailed, WorktreeRebuilt
from projections import history, lanes
from projections.catalogue import IMMEDIATE, TABLES
from tests.adapters.store.lives import ACTOR, BASE, NOON, REPOSITORY, entry, interleaved, life, noon, place

if TYPE_CHECKING:
    from projections.table import Table

MARKED, LAST = 138, 141  # positions
MARK = SnapshotFailed(snapshot="s", code="c", reason="the mark 1 of this event")


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    """A store with a row at least in every table; an event near the end holds a mark to find it by."""
    path = bytes(tmp_path / "journal.db")
    registered = RepositoryRegistered(common=REPOSITORY, root="/srv/yard", object_format="sha1")
    with closing(Journal(path, noon)) as journal:
        journal.submit(replace(entry("", registered), stream=f"{REPOSITORY_STREAM}1")).result()
        for n in range(1, 17):
            journal.submit(entry(f"{n}", *life(f"{n}")[:n])).result()
        assert journal.submit(entry("marked", MARK)).result().last == MARKED
        assert journal.submit(entry("last", *life("last")[:3])).result().last == LAST
    return path


def found(path: bytes, *heads: Head) -> list[Finding]:
    with closing(connect(path, read_only=True)) as connection:
        return list(verify(connection, heads))


def tampered(path: bytes, *statements: str) -> list[Finding]:
    """Returns what is found after statements that the triggers would have refused."""
    with closing(apsw.Connection(path.decode())) as hostile:
        triggers = hostile.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            hostile.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            hostile.execute(statement)
        for _, sql in triggers:
            hostile.execute(str(sql))
    return found(path)


def places(findings: list[Finding], check: str) -> list[int]:
    return [finding.position for finding in findings if finding.check == check]


def test_a_sound_store_has_nothing_to_report(path: bytes) -> None:
    assert found(path) == []


def test_an_empty_store_has_nothing_to_report(tmp_path: Path) -> None:
    path = bytes(tmp_path / "empty.db")
    Journal(path, noon).close()
    assert found(path) == []


def test_one_changed_byte_of_an_event_is_found(path: bytes) -> None:
    findings = tampered(
        path,
        "UPDATE event SET state = CAST(replace(state, 'mark 1', 'mark 2') AS BLOB) WHERE position = 138",
    )
    assert places(findings, "chain") == [MARKED]
    assert [finding.message for finding in findings if finding.check == "tables"] == [
        "history (138,) is not what the log says",
        "history (138,) is missing",
    ]


def test_one_changed_byte_of_the_file_is_found(path: bytes) -> None:
    file = Path(path.decode())
    image = file.read_bytes()
    assert image.count(b'"reason":"the mark 1') == 1
    file.write_bytes(image.replace(b'"reason":"the mark 1', b'"reason":"the mark 2'))
    assert places(found(path), "chain") == [MARKED]


def test_every_bit_of_a_state_is_under_the_chain(path: bytes) -> None:
    file = Path(path.decode())
    image = file.read_bytes()
    start = image.index(b'"reason":"the mark 1')
    for offset, bit in ((0, 1), (3, 2), (11, 4), (19, 32)):
        flipped = bytearray(image)
        flipped[start + offset] ^= bit
        file.write_bytes(flipped)
        assert MARKED in places(found(path), "chain")


def test_a_deleted_event_is_found(path: bytes) -> None:
    findings = tampered(path, "DELETE FROM event WHERE position = 50")
    assert places(findings, "chain") == [50, 51]
    assert len(places(findings, "versions")) == 1


def test_a_swapped_pair_is_found(path: bytes) -> None:
    findings = tampered(
        path,
        "UPDATE event SET position = -1 WHERE position = 50",
        "UPDATE event SET position = 50 WHERE position = 51",
        "UPDATE event SET position = 51 WHERE position = -1",
    )
    assert places(findings, "chain") == [50, 51, 52]
    assert places(findings, "versions")[:2] == [50, 51]


def test_an_inserted_event_is_found(path: bytes) -> None:
    row = "SELECT 142, 'lane-marked', 2, type, state, hash FROM event WHERE position = 138"
    findings = tampered(path, f"INSERT INTO event {row}")
    assert places(findings, "chain") == [142]
    assert {finding.message for finding in findings if finding.check == "tables"} >= {
        "lane is at position 141, behind the log's end"
    }


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_an_edited_row_of_any_table_is_found(path: bytes, table: Table) -> None:
    column, kind = table.columns[-1]
    keys = ", ".join(table.names[: table.keys])
    value = "'spoiled'" if kind == "TEXT" else "-1"
    chosen = f"({keys}) = (SELECT {keys} FROM {table.name} LIMIT 1)"
    findings = tampered(path, f"UPDATE {table.name} SET {column} = {value} WHERE {chosen}")
    assert [(finding.check, finding.position) for finding in findings] == [("tables", 0)] * 2
    assert findings[0].message.startswith(f"{table.name} (")
    assert [finding.message.partition(") ")[2] for finding in findings] == [
        "is not what the log says",
        "is missing",
    ]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_rows_that_are_gone_are_found(path: bytes, table: Table) -> None:
    findings = tampered(path, f"DELETE FROM {table.name}")
    assert findings
    assert all(finding.message.startswith(f"{table.name} (") for finding in findings)
    assert all(finding.message.endswith("is missing") for finding in findings)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_missing_table_is_found(path: bytes, table: Table) -> None:
    findings = tampered(path, f"DROP TABLE {table.name}")
    message = f"the table {table.name} is missing; 'laneyard rebuild' makes it anew"
    assert findings == [Finding("tables", 0, message)]


def test_a_gap_in_the_versions_is_found(tmp_path: Path) -> None:
    path = bytes(tmp_path / "journal.db")
    with closing(Journal(path, noon)) as journal:
        journal.submit(entry("a", *life("a")[:2])).result()
        with closing(connect(path)) as other, transaction(other):
            state = bytes(other.execute("SELECT state FROM event WHERE position = 2").get)
            append(other, [("lane-a", 4, "creation.checked-out@1", state)])
    findings = found(path)
    assert places(findings, "chain") == []
    assert places(findings, "versions") == [3]
    assert findings[0].message == "lane-a has version 4 where 3 belongs"


@pytest.mark.parametrize(
    "state", [b"{}", b"not json", b"\xff", b'{"time":"","actor":1,"cause":"","fact":{}}']
)
def test_an_event_that_cannot_be_decoded_is_found(path: bytes, state: bytes) -> None:
    findings = tampered(path, f"UPDATE event SET state = x'{state.hex()}' WHERE position = 3")
    assert places(findings, "decode") == [3]
    assert places(findings, "chain") == [3]
    assert places(findings, "tables") == []  # a log with a hole says nothing of the tables


def test_an_event_of_an_unknown_kind_is_found(path: bytes) -> None:
    findings = tampered(path, "UPDATE event SET type = 'lane.painted@1' WHERE position = 3")
    assert places(findings, "decode") == [3]


def test_facts_that_do_not_fit_what_they_happened_to_are_found(path: bytes) -> None:
    planned = RestorePlanned(
        journal_format=1,
        edition=1,
        source="snapshot",
        slug="fix-16",
        path=place("16").path,
        branch=None,
        head=BASE,
        snapshot_id="never taken",
    )
    facts = (planned, WorktreeRebuilt(place=place("16")))
    rows = [("lane-16", n, f.TAG, encode(f, NOON, ACTOR, "-")) for n, f in enumerate(facts, 17)]
    with closing(connect(path)) as connection, transaction(connection):
        append(connection, rows)
    findings = found(path)
    assert places(findings, "fold") == [LAST + 2]
    assert places(findings, "chain") == places(findings, "decode") == []


def test_a_tail_cut_off_is_found_by_an_exported_head(path: bytes) -> None:
    with Reader(path) as reader:
        head = reader.head()
    cut = "UPDATE sqlite_sequence SET seq = 140 WHERE name = 'event'"
    tampered(path, "DELETE FROM event WHERE position = 141", cut)
    with closing(connect(path)) as connection, transaction(connection):
        views.rebuild(connection)
    assert found(path) == []
    assert found(path, head) == [Finding("chain", LAST, "an exported head says otherwise")]


def test_a_tail_cut_off_is_found_by_the_tables(path: bytes) -> None:
    findings = tampered(
        path,
        "DELETE FROM event WHERE position = 141",
        "UPDATE sqlite_sequence SET seq = 140 WHERE name = 'event'",
    )
    assert {finding.message for finding in findings} == {
        f"{table.name} is at position 141, beyond the log's end" for table in TABLES
    }


def test_a_chain_computed_anew_is_found_by_an_exported_head(path: bytes) -> None:
    with Reader(path) as reader:
        head = reader.head()
    with closing(apsw.Connection(path.decode())) as hostile:
        hostile.execute("DROP TRIGGER event_no_update")
        hostile.execute(
            "UPDATE event SET state = CAST(replace(state, 'mark 1', 'mark 2') AS BLOB) WHERE position = 138"
        )
        _forge(hostile)
    assert places(found(path), "chain") == []
    assert places(found(path, head), "chain") == [LAST]


def _forge(connection: apsw.Connection) -> None:
    previous = GENESIS
    rows = connection.execute(
        "SELECT position, stream, version, type, state FROM event ORDER BY 1"
    ).fetchall()
    for position, *rest in rows:
        previous = link(previous, position, *rest)  # type: ignore[arg-type]
        connection.execute("UPDATE event SET hash = ? WHERE position = ?", (previous, position))


def test_a_projection_that_follows_behind_is_held_against_where_it_is(path: bytes) -> None:
    with closing(Journal(path, noon)) as journal:
        journal.submit(entry("more", *life("more"))).result()
        assert found(path) == []
        with closing(connect(path)) as other:
            assert views.position(other, history.TABLE.name) == LAST
            other.execute("UPDATE history SET sentence = 'nothing happened' WHERE position = 7")
        assert {finding.message.partition(" ")[0] for finding in found(path)} == {"history"}


def test_a_table_that_is_never_behind_is_found_behind(path: bytes) -> None:
    findings = tampered(path, f"UPDATE tracking SET position = 140 WHERE name = '{views.IMMEDIATELY}'")
    assert {
        "lane is at position 140, behind the log's end",
        "claim is at position 140, behind the log's end",
    } <= {finding.message for finding in findings}


@pytest.mark.slow
def test_a_store_that_is_being_written_is_verified_as_of_one_moment(path: bytes) -> None:
    stop = Event()

    def write() -> None:
        with closing(Journal(path, noon)) as journal:
            for request in interleaved(1000, 4, "busy"):
                journal.submit(request).result()
                if stop.is_set():
                    return

    writer = Thread(target=write)
    writer.start()
    try:
        assert [found(path) for _ in range(5)] == [[]] * 5
    finally:
        stop.set()
        writer.join()


def test_verifying_leaves_no_transaction_open(path: bytes) -> None:
    with closing(connect(path, read_only=True)) as connection:
        findings = verify(connection)
        assert next(findings, None) is None
        assert not connection.in_transaction
    with closing(connect(path)) as connection:
        connection.execute(f"DROP TABLE {lanes.TABLE.name}; DROP TABLE {IMMEDIATE[1].TABLE.name}")
        findings = verify(connection)
        assert next(findings).check == "tables"
        findings.close()  # type: ignore[attr-defined]
        assert not connection.in_transaction
