"""How the library finds our recorders: PERSISTENCE_MODULE=adapters.store.factory."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    InfrastructureFactory,
    ProcessRecorder,
)
from eventsourcing.utils import resolve_topic, strtobool

from adapters.store.connection import LOCK_TIMEOUT
from adapters.store.pool import Store
from adapters.store.recorder import (
    ApswAggregateRecorder,
    ApswApplicationRecorder,
    ApswProcessRecorder,
    ApswRecorder,
    ApswTrackingRecorder,
)

if TYPE_CHECKING:
    from eventsourcing.utils import Environment, EnvType

R = TypeVar("R", bound=ApswRecorder)


class Factory(InfrastructureFactory[ApswTrackingRecorder]):
    """Makes recorders from the keys APSW_DBNAME, APSW_LOCK_TIMEOUT, CREATE_TABLE and ORIGINATOR_ID_TYPE."""

    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        name = self.env.get("APSW_DBNAME")
        if not name:
            raise OSError(f"no database name under {' or '.join(self.env.create_keys('APSW_DBNAME'))}")
        self.id_type = self._id_type()
        self.store = Store(name, lock_timeout=self._lock_timeout())

    def aggregate_recorder(self, purpose: str = "events") -> AggregateRecorder:
        """Makes a recorder of streams without positions."""
        return self._ready(ApswAggregateRecorder(self.store, self.id_type, purpose))

    def application_recorder(self) -> ApplicationRecorder:
        """Makes the recorder of the log."""
        chosen = self._class(self.APPLICATION_RECORDER_TOPIC, ApswApplicationRecorder)
        return self._ready(chosen(self.store, self.id_type))

    def tracking_recorder(
        self, tracking_recorder_class: type[ApswTrackingRecorder] | None = None
    ) -> ApswTrackingRecorder:
        """Makes a tracking recorder of the given class, the configured one, or ours."""
        chosen = tracking_recorder_class or self._class(self.TRACKING_RECORDER_TOPIC, ApswTrackingRecorder)
        return self._ready(chosen(self.store, self.id_type))

    def process_recorder(self) -> ProcessRecorder:
        """Makes a recorder that keeps events and tracking in one transaction."""
        chosen = self._class(self.PROCESS_RECORDER_TOPIC, ApswProcessRecorder)
        return self._ready(chosen(self.store, self.id_type))

    def close(self) -> None:
        """Closes every connection."""
        self.store.close()

    def _class(self, key: str, ours: type[R]) -> type[R]:
        topic = self.env.get(key)
        chosen = resolve_topic(topic) if topic else ours
        if not issubclass(chosen, ours):
            raise TypeError(f"{key}: {topic} is no {ours.__name__}")
        return chosen

    def _ready(self, recorder: R) -> R:
        if strtobool(self.env.get("CREATE_TABLE") or "yes"):
            recorder.create_table()
        return recorder

    def _id_type(self) -> type[UUID] | type[str]:
        name = self.env.get("ORIGINATOR_ID_TYPE") or "uuid"
        try:
            return _ID_TYPES[name.lower()]
        except KeyError:
            raise OSError(f"ORIGINATOR_ID_TYPE is {name!r}, neither uuid nor text") from None

    def _lock_timeout(self) -> float:
        seconds = (self.env.get("APSW_LOCK_TIMEOUT") or "").strip()
        try:
            return float(seconds or LOCK_TIMEOUT)
        except ValueError:
            raise OSError(f"APSW_LOCK_TIMEOUT is {seconds!r}, no number of seconds") from None


_ID_TYPES: dict[str, type[UUID] | type[str]] = {"uuid": UUID, "text": str}
