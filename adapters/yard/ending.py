"""What becomes of a lane that was put away: it is restored, reaped, reviewed or swept."""

from adapters.yard.discarding import discard
from adapters.yard.reaping import reap, resnapshot
from adapters.yard.restoring import restore
from adapters.yard.sweeping import (
    Candidate,
    Sweep,
    Swept,
    candidates,
    finish_sweep,
    plan_sweep,
    planned_before,
    sweep,
    sweep_lane,
    sweep_lanes,
)

__all__ = [
    "Candidate",
    "Sweep",
    "Swept",
    "candidates",
    "discard",
    "finish_sweep",
    "plan_sweep",
    "planned_before",
    "reap",
    "resnapshot",
    "restore",
    "sweep",
    "sweep_lane",
    "sweep_lanes",
]
