"""The library's own cases, for both types of stream ids; what they do not catch is tested for durability."""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from eventsourcing.persistence import InfrastructureFactory, IntegrityError, Tracking
from eventsourcing.tests import persistence, projection
from eventsourcing.utils import Environment

from adapters.store.errors import StoreError
from adapters.store.factory import Factory
from adapters.store.recorder import (
    ApswAggregateRecorder,
    ApswApplicationRecorder,
    ApswProcessRecorder,
    ApswTrackingRecorder,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import apsw

MODULE = "adapters.store.factory"

# The library's cases insert tens of thousands of events, or wait for timeouts to pass.
pytestmark = pytest.mark.slow


class OnDisk:
    """Gives each case a factory over a database of its own."""

    ID_TYPE = "uuid"

    @pytest.fixture(autouse=True)
    def _factory(self, tmp_path: Path) -> Iterator[None]:
        keys = {
            "PERSISTENCE_MODULE": MODULE,
            "APSW_DBNAME": str(tmp_path / "journal.db"),
            "ORIGINATOR_ID_TYPE": self.ID_TYPE,
        }
        self.made = Factory(Environment(env=keys))
        yield
        self.made.close()


class TextIds(persistence.RecorderTestCase, ABC):
    ID_TYPE = "text"

    def new_originator_id(self) -> str:
        return f"lane-{uuid4()}"


class TestAggregateRecorder(OnDisk, persistence.AggregateRecorderTestCase):
    def create_recorder(self) -> ApswAggregateRecorder:
        recorder = self.made.aggregate_recorder("snapshots")
        assert isinstance(recorder, ApswAggregateRecorder)
        return recorder


class TestAggregateRecorderWithTextIds(TextIds, TestAggregateRecorder):
    pass


class TestApplicationRecorder(OnDisk, persistence.ApplicationRecorderTestCase[ApswApplicationRecorder]):
    def create_recorder(self) -> ApswApplicationRecorder:
        recorder = self.made.application_recorder()
        assert isinstance(recorder, ApswApplicationRecorder)
        return recorder

    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestApplicationRecorderWithTextIds(TextIds, TestApplicationRecorder):
    pass


class TestTrackingRecorder(OnDisk, persistence.TrackingRecorderTestCase):
    def create_recorder(self) -> ApswTrackingRecorder:
        return self.made.tracking_recorder()


class TestProcessRecorder(OnDisk, persistence.ProcessRecorderTestCase):
    def create_recorder(self) -> ApswProcessRecorder:
        recorder = self.made.process_recorder()
        assert isinstance(recorder, ApswProcessRecorder)
        return recorder


class TestProcessRecorderWithTextIds(TextIds, TestProcessRecorder):
    pass


class TestProcessRecorderKeepsALog(TestApplicationRecorder):
    def create_recorder(self) -> ApswApplicationRecorder:
        recorder = self.made.process_recorder()
        assert isinstance(recorder, ApswProcessRecorder)
        return recorder


class TestProcessRecorderTracks(OnDisk, persistence.TrackingRecorderTestCase):
    def create_recorder(self) -> ApswTrackingRecorder:
        recorder = self.made.process_recorder()
        assert isinstance(recorder, ApswProcessRecorder)
        return recorder


class TestNonInterleavingNotificationIDs(OnDisk, persistence.NonInterleavingNotificationIDsBaseCase):
    insert_num = 1000

    def create_recorder(self) -> ApswApplicationRecorder:
        recorder = self.made.application_recorder()
        assert isinstance(recorder, ApswApplicationRecorder)
        return recorder


class TestNonInterleavingNotificationIDsWithTextIds(TextIds, TestNonInterleavingNotificationIDs):
    pass


class TrackingRecorderSubclass(ApswTrackingRecorder):
    pass


class TestInfrastructureFactory(persistence.InfrastructureFactoryTestCase[Factory]):
    @pytest.fixture(autouse=True)
    def _environment(self, tmp_path: Path) -> None:
        self.path = tmp_path / "journal.db"

    def setUp(self) -> None:
        self.env = Environment("TestCase", {"PERSISTENCE_MODULE": MODULE, "APSW_DBNAME": str(self.path)})
        super().setUp()

    def expected_factory_class(self) -> type[Factory]:
        return Factory

    def expected_aggregate_recorder_class(self) -> type[ApswAggregateRecorder]:
        return ApswAggregateRecorder

    def expected_application_recorder_class(self) -> type[ApswApplicationRecorder]:
        return ApswApplicationRecorder

    def expected_tracking_recorder_class(self) -> type[ApswTrackingRecorder]:
        return ApswTrackingRecorder

    def tracking_recorder_subclass(self) -> type[ApswTrackingRecorder]:
        return TrackingRecorderSubclass

    def expected_process_recorder_class(self) -> type[ApswProcessRecorder]:
        return ApswProcessRecorder

    def test_a_database_name_is_needed(self) -> None:
        with pytest.raises(OSError, match="TESTCASE_APSW_DBNAME or APSW_DBNAME"):
            InfrastructureFactory.construct(Environment("TestCase", {"PERSISTENCE_MODULE": MODULE}))

    def test_a_lock_timeout_is_a_number_of_seconds(self) -> None:
        self.env["APSW_LOCK_TIMEOUT"] = "1.5"
        with Factory(self.env) as factory:
            assert factory.store.lock_timeout == 1.5
        self.env["APSW_LOCK_TIMEOUT"] = "soon"
        with pytest.raises(OSError, match="APSW_LOCK_TIMEOUT is 'soon'"):
            Factory(self.env)

    def test_ids_are_uuid_or_text(self) -> None:
        self.env["ORIGINATOR_ID_TYPE"] = "integer"
        with pytest.raises(OSError, match="neither uuid nor text"):
            Factory(self.env)

    def test_no_store_is_made_unless_asked(self) -> None:
        self.env["CREATE_TABLE"] = "no"
        recorder = self.factory.application_recorder()
        with pytest.raises(StoreError):
            recorder.max_notification_id()
        assert not self.path.exists()


class EventCounters(ApswTrackingRecorder, projection.EventCountersView):
    """The smallest of views: a counter for each kind of event, committed with the position."""

    def _create_table(self, connection: apsw.Connection) -> None:
        super()._create_table(connection)
        connection.execute(
            "CREATE TABLE IF NOT EXISTS counter(kind TEXT PRIMARY KEY, count INTEGER NOT NULL) STRICT"
        )

    def get_created_event_counter(self) -> int:
        return self._count("created")

    def get_subsequent_event_counter(self) -> int:
        return self._count("subsequent")

    def incr_created_event_counter(self, tracking: Tracking) -> None:
        self._increment("created", tracking)

    def incr_subsequent_event_counter(self, tracking: Tracking) -> None:
        self._increment("subsequent", tracking)

    def _count(self, kind: str) -> int:
        with self.store.reading() as connection:
            return int(connection.execute("SELECT count FROM counter WHERE kind = ?", (kind,)).get or 0)

    def _increment(self, kind: str, tracking: Tracking) -> None:
        with self.store.writing() as connection:
            connection.execute(
                "INSERT INTO counter VALUES (?, 1) ON CONFLICT(kind) DO UPDATE SET count = count + 1", (kind,)
            )
            self._insert_tracking(connection, tracking)


class TestEventCountersView(OnDisk, projection.EventCountersViewTestCase):
    def construct_event_counters_view(self) -> projection.EventCountersView:
        view = self.made.tracking_recorder(EventCounters)
        assert isinstance(view, EventCounters)
        return view

    def test_a_refused_position_rolls_the_view_back(self) -> None:
        view = self.construct_event_counters_view()
        view.incr_created_event_counter(Tracking("upstream", 1))
        with pytest.raises(IntegrityError):
            view.incr_created_event_counter(Tracking("upstream", 1))
        assert view.get_created_event_counter() == 1


class TestAggregateEventCountersProjection(projection.AggregateEventCountersProjectionTestCase):
    view_class = EventCounters

    @pytest.fixture(autouse=True)
    def _environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(type(self), "env", _application_and_view(tmp_path, "eventcounters"))


class TestEventSourcedProjection(projection.EventSourcedProjectionTestCase):
    @pytest.fixture(autouse=True)
    def _environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(type(self), "env", _application_and_view(tmp_path, "counters"))


def _application_and_view(directory: Path, view: str) -> dict[str, str]:
    return {
        "PERSISTENCE_MODULE": MODULE,
        "APPLICATION_APSW_DBNAME": str(directory / "journal.db"),
        f"{view.upper()}_APSW_DBNAME": str(directory / "view.db"),
    }
