"""How the service serves: its limits, its times, and where it listens apart from its socket."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Seconds = Annotated[float, Meta(ge=0, le=86_400)]
Size = Annotated[int, Meta(ge=1024, le=1 << 30)]


class ServiceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds, bytes and counts; every one of them is a bound that a client can meet."""

    tcp: str = ""
    token_file: str = ""
    connections: Count = 512
    header_bytes: Size = 65_536
    body_bytes: Size = 1 << 20
    head_timeout: Seconds = 15.0
    body_timeout: Seconds = 30.0
    send_timeout: Seconds = 20.0
    idle_timeout: Seconds = 75.0
    look_timeout: Seconds = 5.0
    look_age: Seconds = 1.0
    commands: Count = 256
    running: Count = 4
    waiting: Count = 64
    repositories: Count = 64
    wait: Seconds = 10.0
    longest_wait: Seconds = 60.0
    recovery_wait: Seconds = 30.0
    stop_timeout: Seconds = 20.0
    heartbeat: Seconds = 15.0
    sweep_every: Seconds = 3600.0
    log_level: str = "info"
