"""One writer: many commands to a transaction, and none of them suffers from another."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from threading import Event
from typing import TYPE_CHECKING

import pytest
from eventsourcing.persistence import IntegrityError
from msgspec.structs import replace

from adapters.store import tables
from adapters.store.append import append
from adapters.store.codec import StoreNewer
from adapters.store.connection import connect, transaction
from adapters.store.errors import StoreCorrupt, StoreError, StoreFull, StoreReadOnly, StoreTooNew
from adapters.store.journal import ClaimTaken, Committed, Entry, Journal
from adapters.store.reader import Reader
from adapters.store.verify import verify
from domain.envelope import stream_of
from domain.errors import CommandReused, WrongState
from domain.events import Fact, SnapshotFailed
from domain.states import Active, Nowhere, Opening, Reaped
from projections import claims
from tests.adapters.store.lives import ACTOR, entry, interleaved, life, noon, planned
from tests.adapters.volumes import fill, make_read_only, volume

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

    from adapters.store.journal import Promise
    from domain.states import Lane

PATIENCE = 20.0  # seconds; only a failing test waits as long
ROOT = Path(__file__).parents[3]


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return bytes(tmp_path / "journal.db")


@pytest.fixture
def journal(path: bytes) -> Iterator[Journal]:
    with closing(Journal(path, noon)) as journal:
        yield journal


@contextmanager
def busy(journal: Journal) -> Iterator[None]:
    """Keeps the writer in a transaction for as long as the block lasts, so that what is submitted waits."""
    begun, go = Event(), Event()

    def decide(_: Lane) -> tuple[Fact, ...]:
        begun.set()
        assert go.wait(PATIENCE)
        return ()

    blocker = journal.submit(Entry(stream="lane-blocker", decide=decide, actor=ACTOR, cause="-"))
    assert begun.wait(PATIENCE)
    yield
    go.set()
    blocker.result(PATIENCE)


def together(journal: Journal, *requests: Entry) -> list[Promise]:
    """Submits requests so that they are decided in one transaction."""
    with busy(journal):
        promises = [journal.submit(request) for request in requests]
    for promise in promises:
        promise.exception(PATIENCE)
    return promises


def add(journal: Journal, *requests: Entry) -> list[Committed]:
    return [journal.submit(request).result(PATIENCE) for request in requests]


def refusing(lane: str) -> Entry:
    def decide(state: Lane) -> tuple[Fact, ...]:
        raise WrongState("tried", type(state).__name__)

    return Entry(stream=stream_of(lane), decide=decide, actor=ACTOR, cause="-")


def positions(path: bytes) -> list[int]:
    with Reader(path) as reader:
        return [event.position for event in reader.events()]


def problems(path: bytes) -> list[object]:
    with closing(connect(path, read_only=True)) as connection:
        return list(verify(connection))


def content(path: bytes) -> dict[str, list[tuple[object, ...]]]:
    """Returns every row of every table."""
    with closing(connect(path, read_only=True)) as connection:
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        return {str(name): list(connection.execute(f'SELECT * FROM "{name}"')) for (name,) in names}


# Many commands to a transaction -----------------------------------------------------------------------------


def test_commands_that_wait_are_committed_together(journal: Journal, path: bytes) -> None:
    commits: list[str] = []

    def hook() -> bool:
        commits.append("commit")
        return False

    journal.maintain(lambda connection: connection.set_commit_hook(hook)).result(PATIENCE)
    commits.clear()
    answers = [
        promise.result()
        for promise in together(journal, *(entry(f"{n}", planned(f"{n}")) for n in range(100)))
    ]
    assert [answer.first for answer in answers] == list(range(1, 101))
    assert len(commits) == 2  # the one that kept the writer busy, and all the others
    assert positions(path) == list(range(1, 101))


def test_a_command_is_decided_on_what_those_before_it_in_the_transaction_led_to(journal: Journal) -> None:
    seen: list[Lane] = []

    def decide(lane: Lane) -> tuple[Fact, ...]:
        seen.append(lane)
        return life("a")[1:3]

    second = Entry(stream=stream_of("a"), decide=decide, actor=ACTOR, cause="-")
    _, answer = (promise.result() for promise in together(journal, entry("a", planned("a")), second))
    assert isinstance(seen[0], Opening)
    assert isinstance(answer.lane, Active)
    assert (answer.version, answer.first, answer.last) == (3, 2, 3)


def test_a_refused_decision_takes_nothing_of_the_others_along(journal: Journal, path: bytes) -> None:
    first, refused, last = together(
        journal, entry("a", planned("a")), refusing("b"), entry("c", *life("c"), claiming=True)
    )
    assert isinstance(refused.exception(), WrongState)
    assert (first.result().last, last.result().first) == (1, 2)
    assert positions(path) == list(range(1, 18))
    assert problems(path) == []


def test_a_decision_with_a_bug_fails_its_own_command_only(journal: Journal, path: bytes) -> None:
    def decide(_: Lane) -> tuple[Fact, ...]:
        raise ZeroDivisionError

    buggy = Entry(stream=stream_of("b"), decide=decide, actor=ACTOR, cause="-")
    first, failed, last = together(journal, entry("a", planned("a")), buggy, entry("c", planned("c")))
    assert isinstance(failed.exception(), ZeroDivisionError)
    assert (first.result().first, last.result().first) == (1, 2)
    assert add(journal, entry("d", planned("d")))[0].first == 3


def test_a_row_that_cannot_be_written_fails_its_own_command_only(journal: Journal, path: bytes) -> None:
    facts = list(life("b")[:10])
    facts[5] = replace(facts[5], edition=2**63)  # JSON holds it, SQLite does not
    first, failed, last = together(
        journal, entry("a", planned("a")), entry("b", *facts), entry("c", planned("c"))
    )
    assert isinstance(failed.exception(), OverflowError)
    assert (first.result().first, last.result().first) == (1, 2)
    assert problems(path) == []


def test_a_queued_request_is_never_taken_back(journal: Journal) -> None:
    with busy(journal):
        promise = journal.submit(entry("a", planned("a")))
        assert not promise.cancel()
    assert promise.result(PATIENCE).first == 1


# Commands with an id ----------------------------------------------------------------------------------------


def test_a_command_is_answered_with_what_it_led_to_the_first_time(journal: Journal, path: bytes) -> None:
    request = entry("a", planned("a"), command="one", digest=b"d")
    first, again = (promise.result() for promise in together(journal, request, request))
    assert again == replace(first, replayed=True)
    later = add(journal, entry("a", *life("a")[1:3]), request)[1]
    assert (later.first, later.last, later.facts) == (1, 1, (planned("a"),))
    assert (later.version, later.replayed) == (3, True)
    assert isinstance(later.lane, Active)
    assert positions(path) == [1, 2, 3]


def test_the_first_answer_is_known_after_a_restart(path: bytes) -> None:
    request = entry("a", *life("a")[:3], command="one", digest=b"d")
    nothing = entry("a", command="none", digest=b"d")
    with closing(Journal(path, noon)) as journal:
        first, empty = add(journal, request, nothing)
    with closing(Journal(path, noon)) as journal:
        assert add(journal, request, nothing) == [
            replace(first, replayed=True),
            replace(empty, replayed=True),
        ]


def test_an_id_that_is_used_for_something_else_is_refused(journal: Journal, path: bytes) -> None:
    request = entry("a", planned("a"), command="one", digest=b"d")
    other = replace(request, digest=b"e")
    _, refused = together(journal, request, other)
    with pytest.raises(CommandReused, match="'one'"):
        refused.result()
    with pytest.raises(CommandReused):
        add(journal, other)
    assert positions(path) == [1]


def test_a_refused_command_leaves_its_id_free(journal: Journal) -> None:
    with pytest.raises(WrongState):
        add(journal, replace(refusing("a"), command_id="one", digest=b"d"))
    assert not add(journal, entry("a", planned("a"), command="one", digest=b"d"))[0].replayed


# Claims -----------------------------------------------------------------------------------------------------


def test_what_a_lane_holds_is_refused_to_another(journal: Journal, path: bytes) -> None:
    _, taken = together(
        journal,
        entry("a", planned("a", "fix"), claiming=True),
        entry("b", planned("b", "fix"), claiming=True, command="b"),
    )
    with pytest.raises(ClaimTaken, match="the branch refs/heads/fix is in use") as refusal:
        taken.result()
    assert (refusal.value.kind, refusal.value.value) == ("branch", "refs/heads/fix")
    assert refusal.value.holder == stream_of("a")
    assert positions(path) == [1]
    assert len(content(path)["lane"]) == 1
    assert content(path)["command"] == []


def test_a_path_alone_is_enough_to_collide(journal: Journal) -> None:
    add(journal, entry("a", planned("a")))
    other = replace(planned("b"), path=planned("a").path)
    with pytest.raises(ClaimTaken) as refusal:
        add(journal, entry("b", other, claiming=True))
    assert (refusal.value.kind, refusal.value.value) == ("path", planned("a").path)


def test_a_command_that_fails_at_its_second_fact_leaves_nothing_of_the_first(
    journal: Journal, path: bytes
) -> None:
    add(journal, entry("a", *life("a")[:3]))
    facts = list(life("b")[:6])
    facts[5] = replace(facts[5], resting=planned("a").path)
    with pytest.raises(ClaimTaken):
        add(journal, entry("b", *facts, claiming=True))
    before = content(path)
    assert [row for row in before["claim"] if row[-1] == stream_of("b")] == []
    assert add(journal, entry("b", planned("b"), claiming=True))[0].first == 4


def test_a_reaped_lane_lets_go_of_its_claims(journal: Journal) -> None:
    answer = add(journal, entry("a", *life("a")))[0]
    assert isinstance(answer.lane, Reaped)
    assert add(journal, entry("b", planned("b", "fix-a"), claiming=True))[0].version == 1


def test_an_outcome_is_written_down_whatever_it_claims(journal: Journal, path: bytes) -> None:
    add(journal, entry("a", planned("a", "fix")), entry("b", planned("b", "fix")))
    holders = {row[-1] for row in content(path)["claim"]}
    assert holders == {stream_of("a")}
    assert len(content(path)["lane"]) == 2
    assert problems(path) == []


# Durable, or not there --------------------------------------------------------------------------------------


def test_what_is_remembered_is_never_ahead_of_what_is_durable(journal: Journal, path: bytes) -> None:
    add(journal, entry("a", planned("a")))
    journal.maintain(lambda connection: connection.set_commit_hook(lambda: True)).exception(PATIENCE)
    failed = together_refused(journal, entry("a", *life("a")[1:3]), entry("b", planned("b"), claiming=True))
    assert [type(error) for error in failed] == [IntegrityError, IntegrityError]
    assert positions(path) == [1]
    with closing(connect(path)):  # the hook is the writing connection's own
        journal.maintain(lambda connection: connection.set_commit_hook(None)).result(PATIENCE)
    seen: list[Lane] = []

    def look(lane: Lane) -> tuple[Fact, ...]:
        seen.append(lane)
        return ()

    add(journal, Entry(stream=stream_of("a"), decide=look, actor=ACTOR, cause="-"))
    assert isinstance(seen[0], Opening)
    assert seen[0].place is None
    assert add(journal, entry("c", planned("c", "fix-b"), claiming=True))[0].first == 2
    assert problems(path) == []


def together_refused(journal: Journal, *requests: Entry) -> list[BaseException | None]:
    promises = [journal.submit(request) for request in requests]
    return [promise.exception(PATIENCE) for promise in promises]


def test_what_another_process_has_appended_is_seen(journal: Journal, path: bytes) -> None:
    add(journal, entry("a", planned("a")))
    with closing(connect(path)) as other, transaction(other):
        rows = other.execute("SELECT stream, type, state FROM event").fetchall()
        append(other, [("lane-x", 1, str(tag), bytes(state)) for _, tag, state in rows])  # type: ignore[arg-type]
    answer = add(journal, entry("x", *life("x")[1:2]))[0]
    assert (answer.first, answer.version) == (3, 2)
    assert isinstance(answer.lane, Opening)


def test_closing_finishes_what_waits(path: bytes) -> None:
    journal = Journal(path, noon)
    promises = [journal.submit(request) for request in interleaved(40, 20)]
    journal.close()
    assert [promise.result(0).first for promise in promises] == list(range(1, 641))
    assert problems(path) == []


def test_a_closed_journal_refuses_and_can_be_closed_again(path: bytes) -> None:
    journal = Journal(path, noon)
    journal.close()
    journal.close()
    with pytest.raises(StoreError, match="closed"):
        journal.submit(entry("a", planned("a")))
    with pytest.raises(StoreError, match="closed"):
        journal.maintain(lambda _: None)


def test_failed_maintenance_changes_nothing_and_harms_nobody(journal: Journal, path: bytes) -> None:
    def work(connection: apsw.Connection) -> None:
        connection.execute("DELETE FROM lane")
        raise ZeroDivisionError

    add(journal, entry("a", planned("a")))
    assert isinstance(journal.maintain(work).exception(PATIENCE), ZeroDivisionError)
    add(journal, entry("b", planned("b")))
    assert problems(path) == []


def test_rows_that_maintenance_has_changed_are_read_again(journal: Journal, path: bytes) -> None:
    add(journal, entry("a", planned("a")))
    journal.maintain(lambda connection: tables.swap(connection, claims.TABLE, [])).result(PATIENCE)
    assert add(journal, entry("b", planned("b", "fix-a"), claiming=True))[0].first == 2


WRITER = """
import sys
from collections import deque
from adapters.store.journal import Journal
from tests.adapters.store.lives import interleaved, noon

journal = Journal(sys.argv[1].encode(), noon)
waiting = deque()
for request in interleaved(1000, 8, sys.argv[2]):
    waiting.append(journal.submit(request))
    if len(waiting) > 16:
        answer = waiting.popleft().result()
        print(answer.stream, answer.version, answer.last, flush=True)
"""


@pytest.mark.slow
def test_a_writer_that_is_killed_has_written_all_that_it_acknowledged(path: bytes) -> None:
    chance = Random(20)
    told: list[tuple[str, int, int]] = []
    for run in range(20):
        told += _killed_after(path, f"run{run}", chance.randrange(1, 150))
        assert problems(path) == []
    with Reader(path) as reader:
        found = {(event.stream, event.version, event.position) for event in reader.events()}
        assert {row["id"] for row in reader.lanes()} == {
            stream.removeprefix("lane-") for stream, _, _ in found
        }
    assert set(told) <= found


def _killed_after(path: bytes, run: str, count: int) -> Iterator[tuple[str, int, int]]:
    """Yields what a writing process acknowledged, until `count` and whatever came before it died of it."""
    argv = [sys.executable, "-c", WRITER, path.decode(), run]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for n, line in enumerate(child.stdout, 1):
            if n == count:
                child.kill()
            if line.endswith("\n"):
                stream, version, last = line.split()
                yield stream, int(version), int(last)


# A disk that does not do as it is told ----------------------------------------------------------------------


def test_a_full_disk_is_told_to_everyone_and_writing_goes_on_when_there_is_space(tmp_path: Path) -> None:
    with volume(tmp_path / "small") as small:
        path = bytes(small / "journal.db")
        with closing(Journal(path, noon)) as journal:
            add(journal, entry("a", *life("a")[:3]))
            ballast = fill(small)
            large = SnapshotFailed(snapshot="s", code="c", reason="x" * 100_000)
            failed = together_or_full(journal, *(entry(f"{n}", planned(f"{n}"), large) for n in range(20)))
            assert [type(error) for error in failed] == [StoreFull] * 20
            assert positions(path) == [1, 2, 3]
            assert problems(path) == []
            ballast.unlink()
            again = add(journal, entry("0", planned("0"), claiming=True))[0]
            assert (again.first, again.version) == (4, 1)
        assert problems(path) == []


def together_or_full(journal: Journal, *requests: Entry) -> list[BaseException | None]:
    with busy(journal):
        promises = [journal.submit(request) for request in requests]
    return [promise.exception(PATIENCE) for promise in promises]


def test_a_read_only_file_system_is_named(tmp_path: Path) -> None:
    with volume(tmp_path / "small") as small:
        path = bytes(small / "journal.db")
        with closing(Journal(path, noon)) as journal:
            add(journal, entry("a", planned("a")))
        make_read_only(small)
        with pytest.raises(StoreReadOnly):
            Journal(path, noon)
        with pytest.raises(StoreReadOnly):
            Journal(bytes(small / "new.db"), noon)


def test_a_file_that_is_no_store_is_left_alone(path: bytes) -> None:
    file = Path(path.decode())
    file.write_bytes(b"not a database" * 100)
    with pytest.raises(StoreCorrupt):
        Journal(path, noon)
    assert file.read_bytes() == b"not a database" * 100


def test_an_event_of_a_kind_that_is_newer_is_refused_and_nothing_changed(path: bytes) -> None:
    with closing(Journal(path, noon)) as journal:
        add(journal, entry("a", planned("a")))
    with closing(connect(path)) as newer, transaction(newer):
        append(newer, [("lane-a", 2, "lane.created@2", b"{}")])
    before = Path(path.decode()).read_bytes(), content(path)
    with pytest.raises(StoreNewer, match=r"event 2 .*'lane.created@2'.*update Laneyard"):
        Journal(path, noon)
    assert (Path(path.decode()).read_bytes(), content(path)) == before


def test_a_newer_store_is_refused_and_nothing_changed(path: bytes) -> None:
    with closing(Journal(path, noon)) as journal:
        add(journal, entry("a", planned("a")))
    with closing(connect(path)) as newer:
        newer.execute("UPDATE store SET v = '2' WHERE k = 'min_reader'")
    before = Path(path.decode()).read_bytes()
    with pytest.raises(StoreTooNew):
        Journal(path, noon)
    assert Path(path.decode()).read_bytes() == before


def test_a_damaged_stream_fails_its_own_lane_only(path: bytes) -> None:
    with closing(Journal(path, noon)) as journal:
        add(journal, entry("a", planned("a")))
    with closing(connect(path)) as hostile:
        hostile.execute("DROP TRIGGER event_no_update; UPDATE event SET state = '{}' WHERE 0")
        hostile.execute("UPDATE event SET state = x'7b7d' WHERE position = 1")
    with closing(Journal(path, noon)) as journal:
        damaged, sound = together(journal, entry("a", *life("a")[1:2]), entry("b", planned("b")))
        assert "event 1 cannot be read" in str(damaged.exception())
        assert sound.result().first == 2


def test_a_lane_without_events_is_nowhere(journal: Journal) -> None:
    answer = add(journal, entry("a"))[0]
    assert answer.lane == Nowhere()
    assert (answer.version, answer.first, answer.last, answer.facts) == (0, 1, 0, ())


# Somebody who listens ---------------------------------------------------------------------------------------


def test_a_listener_is_told_of_each_transaction_when_it_is_durable_and_before_the_answer(path: bytes) -> None:
    seen: list[list[int]] = []

    def listen() -> None:
        seen.append(positions(path))  # another connection sees only what is committed
        assert not any(promise.done() for promise in waiting)

    waiting: list[Promise] = []
    with closing(Journal(path, noon, listen)) as journal:
        with busy(journal):
            waiting += [journal.submit(entry(f"{n}", planned(f"{n}"))) for n in range(3)]
        assert [promise.result(PATIENCE).last for promise in waiting] == [1, 2, 3]
        waiting.clear()
        add(journal, entry("a", planned("a")))
    assert seen == [[1, 2, 3], [1, 2, 3, 4]]


def test_a_listener_is_not_told_of_what_appends_nothing(path: bytes) -> None:
    told: list[str] = []
    request = entry("a", planned("a"), command="one", digest=b"d")
    with closing(Journal(path, noon, lambda: told.append("told"))) as journal:
        add(journal, request)
        add(journal, request, entry("b"))
        with pytest.raises(WrongState):
            add(journal, refusing("a"))
        journal.maintain(lambda _: None).result(PATIENCE)
    assert told == ["told"]


def test_a_listener_is_told_of_what_is_written_beside_a_failure(path: bytes) -> None:
    told: list[str] = []
    broken = list(life("b")[:10])
    broken[5] = replace(broken[5], edition=2**63)  # JSON holds it, SQLite does not
    with closing(Journal(path, noon, lambda: told.append("told"))) as journal:
        together(journal, entry("a", planned("a")), entry("b", *broken), refusing("c"))
    assert told == ["told"]
    assert positions(path) == [1]


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
def test_a_listener_with_a_bug_harms_nobody(
    path: bytes, caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    def listen() -> None:
        raise error

    with closing(Journal(path, noon, listen)) as journal:
        first, second = add(journal, entry("a", planned("a")), entry("b", planned("b")))
    assert (first.last, second.last) == (1, 2)
    assert [record.getMessage() for record in caplog.records] == ["a listener of the journal failed"] * 2
    assert problems(path) == []
