"""What the library's cases do not catch: durability, other processes, and wake-ups."""

from __future__ import annotations

import multiprocessing
from contextlib import closing
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING

import apsw
import pytest
from eventsourcing.persistence import IntegrityError, Notification, StoredEvent, Tracking

import adapters.store.pool
from adapters.store.append import append, read_head
from adapters.store.chain import walk
from adapters.store.connection import connect, initialise, transaction
from adapters.store.pool import Store
from adapters.store.recorder import ApswApplicationRecorder, ApswTrackingRecorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

SPAWN = multiprocessing.get_context("spawn")
PATIENCE = 20.0  # seconds; only a failing test waits as long


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "journal.db")


@pytest.fixture
def store(path: str) -> Iterator[Store]:
    with closing(Store(path)) as store:
        yield store


@pytest.fixture
def recorder(store: Store) -> ApswApplicationRecorder:
    recorder = ApswApplicationRecorder(store, str)
    recorder.create_table()
    return recorder


def test_the_connection_that_writes_syncs_every_commit(store: Store) -> None:
    with store.writing() as connection:
        assert connection.pragma("synchronous") == 2
        assert connection.pragma("journal_mode") == "wal"
        assert connection.pragma("recursive_triggers") == 1
        assert connection.pragma("foreign_keys") == 1
        assert connection.pragma("trusted_schema") == 0
        assert connection.txn_state() == apsw.SQLITE_TXN_WRITE


def test_a_failed_block_leaves_nothing_behind(store: Store, recorder: ApswApplicationRecorder) -> None:
    with pytest.raises(IntegrityError), store.writing() as connection:
        append(connection, [("a", 1, "t", b""), ("b", 1, "t", b""), ("a", 1, "t", b"")])
    assert recorder.max_notification_id() is None
    assert recorder.insert_events([event("a", 1)]) == [1]


def test_a_savepoint_rolled_back_burns_no_position(recorder: ApswApplicationRecorder) -> None:
    with recorder.store.writing() as connection:
        _, head = append(connection, [("a", 1, "t", b"")])
        with pytest.raises(IntegrityError), connection:  # nested: a savepoint
            append(connection, [("b", 1, "t", b""), ("a", 1, "t", b"")], head)
        positions, head = append(connection, [("c", 1, "t", b""), ("c", 2, "t", b"")], head)
    assert positions == [2, 3]
    with recorder.store.reading() as connection:
        assert read_head(connection) == head
        assert list(walk(connection)) == []


def test_append_only_also_against_insert_or_replace(recorder: ApswApplicationRecorder) -> None:
    recorder.insert_events([event("a", 1), event("a", 2)])
    for statement in (
        "UPDATE event SET state = x'00' WHERE position = 1",
        "DELETE FROM event WHERE position = 2",
        "DELETE FROM event",
        "INSERT OR REPLACE INTO event VALUES (1, 'a', 1, 't', x'00', zeroblob(32))",
        "INSERT OR REPLACE INTO event VALUES (9, 'a', 2, 't', x'00', zeroblob(32))",
        "REPLACE INTO event(stream, version, type, state, hash) VALUES ('a', 2, 't', x'00', zeroblob(32))",
    ):
        with pytest.raises(IntegrityError, match="append-only"), recorder.store.writing() as connection:
            connection.execute(statement)
    assert [n.state for n in recorder.select_notifications(None, 10)] == [b"1", b"2"]


@pytest.mark.parametrize("taken", ["1, 'z', 1", "9, 'a', 2"])
def test_append_only_also_against_a_connection_that_is_not_ours(
    recorder: ApswApplicationRecorder, taken: str
) -> None:
    recorder.insert_events([event("a", 1), event("a", 2)])
    with closing(apsw.Connection(str(recorder.store.path))) as plain:
        assert plain.pragma("recursive_triggers") == 0
        with pytest.raises(apsw.ConstraintError, match="append-only"):
            plain.execute(f"INSERT OR REPLACE INTO event VALUES ({taken}, 't', x'00', zeroblob(32))")
    assert [n.state for n in recorder.select_notifications(None, 10)] == [b"1", b"2"]


@pytest.mark.parametrize("condition", ["1", "position = 3"])
def test_a_position_is_never_used_again(recorder: ApswApplicationRecorder, condition: str) -> None:
    recorder.insert_events([event("a", version) for version in (1, 2, 3)])
    with closing(apsw.Connection(str(recorder.store.path))) as hostile:
        hostile.execute(f"DROP TRIGGER event_no_delete; DELETE FROM event WHERE {condition}")
    assert recorder.insert_events([event("b", 1)]) == [4]


def test_a_read_in_progress_keeps_nobody_from_writing(recorder: ApswApplicationRecorder) -> None:
    recorder.insert_events([event("a", 1)])
    with recorder.store.reading() as one, recorder.store.reading() as other:
        assert one is not other
        assert recorder.insert_events([event("a", 2)]) == [2]


@pytest.fixture
def no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves only wake-ups: what one of them misses stays missed for as long as anybody waits."""
    monkeypatch.setattr(adapters.store.pool, "BEAT", PATIENCE)


@pytest.mark.usefixtures("no_polling")
def test_a_subscription_misses_nothing_committed_after_its_read(store: Store) -> None:
    class Raced(ApswApplicationRecorder):
        """Commits an event right after the first look at the log, where a lost wake-up would lose it."""

        raced = False

        def select_notifications(self, *args: object, **kwargs: object) -> Sequence[Notification]:
            page = super().select_notifications(*args, **kwargs)  # type: ignore[arg-type]
            if not self.raced:
                self.raced = True
                self.insert_events([event("a", 1)])
            return page

    raced = Raced(store, str)
    raced.create_table()
    with raced.subscribe() as subscription:
        assert elapsed(lambda: next(subscription)) < PATIENCE / 2
    assert raced.raced


@pytest.mark.usefixtures("no_polling")
def test_a_mark_taken_before_a_commit_ends_the_wait_at_once(recorder: ApswApplicationRecorder) -> None:
    changes = recorder.store.changes
    seen = changes.seen()
    recorder.insert_events([event("a", 1)])
    assert elapsed(lambda: changes.wait(seen, PATIENCE)) < PATIENCE / 2


def test_a_mark_taken_before_another_connection_commits_ends_the_wait(path: str, store: Store) -> None:
    with closing(connect(path)) as other:
        initialise(other)
        seen = store.changes.seen()
        with transaction(other):
            append(other, [("a", 1, "t", b"")])
    assert elapsed(lambda: store.changes.wait(seen, PATIENCE)) < 1


@pytest.mark.usefixtures("no_polling")
def test_stop_ends_a_waiting_subscription(recorder: ApswApplicationRecorder) -> None:
    subscription = recorder.subscribe()
    waiting = Thread(target=list, args=(subscription,), daemon=True)
    waiting.start()
    started = monotonic()
    subscription.stop()
    waiting.join(PATIENCE)
    assert not waiting.is_alive()
    assert monotonic() - started < 1


def test_a_rare_topic_does_not_read_the_log_again(recorder: ApswApplicationRecorder) -> None:
    recorder.insert_events([event("a", version) for version in range(1, 1200)])
    recorder.insert_events([event("b", 1, "rare")])
    with recorder.subscribe(topics=["rare"]) as subscription:
        assert next(subscription).id == 1200
        recorder.insert_events([event("a", 1200), event("b", 2, "rare")])
        assert next(subscription).id == 1202


@pytest.mark.usefixtures("no_polling")
def test_a_wait_ends_with_the_commit_it_waits_for(store: Store) -> None:
    recorder = ApswTrackingRecorder(store)
    recorder.create_table()
    waiting = Thread(target=recorder.wait, args=("ledger", 7, PATIENCE), daemon=True)
    waiting.start()
    recorder.insert_tracking(Tracking("ledger", 7))
    assert elapsed(lambda: waiting.join(PATIENCE)) < 1


# Other processes


@pytest.mark.slow
def test_processes_that_read_then_write_never_meet_a_lock(
    path: str, recorder: ApswApplicationRecorder
) -> None:
    run(*[SPAWN.Process(target=read_then_write, args=(path, 200)) for _ in range(2)])
    assert [e.originator_version for e in recorder.select_events("shared")] == list(range(1, 401))


@pytest.mark.slow
def test_many_processes_may_start_at_once_on_nothing(tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{attempt}.db") for attempt in range(12)]
    barrier = SPAWN.Barrier(8)
    run(*[SPAWN.Process(target=start_all, args=(paths, barrier, number)) for number in range(8)])
    for path in paths:
        with closing(connect(path, read_only=True)) as connection:
            assert connection.execute("SELECT count(*), max(position) FROM event").get == (8, 8)
            assert list(walk(connection)) == []


@pytest.mark.slow
def test_a_tailer_sees_every_position_in_order(path: str, recorder: ApswApplicationRecorder) -> None:
    writers = [SPAWN.Process(target=write, args=(path, f"s{number}", 100)) for number in range(4)]
    with recorder.subscribe() as subscription:
        for writer in writers:
            writer.start()
        assert [next(subscription).id for _ in range(400)] == list(range(1, 401))
    for writer in writers:
        writer.join()


@pytest.mark.slow
def test_a_subscription_made_while_a_writer_is_busy_loses_nothing(
    path: str, recorder: ApswApplicationRecorder
) -> None:
    writer = SPAWN.Process(target=write, args=(path, "busy", 300))
    writer.start()
    with recorder.subscribe() as first:
        after = next(first).id
    for _ in range(20):
        with recorder.subscribe(gt=after) as subscription:
            assert next(subscription).id == after + 1
            after += 1
    with recorder.subscribe(gt=after) as rest:
        assert [next(rest).id for _ in range(300 - after)] == list(range(after + 1, 301))
    writer.join()


@pytest.mark.slow
def test_a_wait_is_woken_from_another_process(path: str, store: Store) -> None:
    recorder = ApswTrackingRecorder(store)
    recorder.create_table()
    tracker = SPAWN.Process(target=track, args=(path,))
    tracker.start()
    recorder.wait("ledger", 1, PATIENCE)
    tracker.join()


def read_then_write(path: str, times: int) -> None:
    with closing(Store(path)) as store:
        for _ in range(times):
            with store.writing() as connection:
                last = connection.execute("SELECT max(version) FROM event WHERE stream = 'shared'").get or 0
                append(connection, [("shared", last + 1, "t", b"")])


def start_all(paths: list[str], barrier: Barrier, number: int) -> None:
    for path in paths:
        barrier.wait()
        with closing(connect(path)) as connection:
            initialise(connection)
            with transaction(connection):
                append(connection, [(f"s{number}", 1, "t", b"")])


def write(path: str, stream: str, times: int) -> None:
    with closing(Store(path)) as store:
        recorder = ApswApplicationRecorder(store, str)
        for version in range(1, times + 1):
            recorder.insert_events([event(stream, version)])


def track(path: str) -> None:
    with closing(Store(path)) as store:
        ApswTrackingRecorder(store).insert_tracking(Tracking("ledger", 1))


def run(*processes: multiprocessing.process.BaseProcess) -> None:
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(processes)


def event(stream: str, version: int, topic: str = "t") -> StoredEvent:
    return StoredEvent(stream, version, topic, str(version).encode())


def elapsed(act: Callable[[], object]) -> float:
    started = monotonic()
    act()
    return monotonic() - started
