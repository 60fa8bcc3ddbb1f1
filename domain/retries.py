"""How often a step that did not take is tried again, and after which pause: one policy for every chapter.

What may pass by itself gets `ATTEMPTS` goes with growing pauses between them: 0.1, 0.4 and 1.6 seconds, which
is 2.1 in all. What will not pass is not tried again. Each go that failed is a fact, so a restart counts on.
"""

from domain.states import Lane, Leaving, Opening, Reaping, Returning, Snapshotting, Undoing

ATTEMPTS = 4  # the first go and those that follow it
FIRST = 0.1  # seconds
GROWTH = 4


def is_final(attempt: int, *, transient: bool) -> bool:
    """Tells whether a step that has failed so often, counted from one, is not tried again."""
    return not transient or attempt >= ATTEMPTS


def pause(lane: Lane) -> float:
    """Returns the seconds to wait before what the lane is owed is tried again, 0 where nothing has failed."""
    failed = failures(lane)
    return FIRST * GROWTH ** (failed - 1) if 0 < failed < ATTEMPTS else 0.0


def failures(lane: Lane) -> int:
    """Returns how often the step that the lane is owed has failed."""
    match lane:
        case Reaping(demolition=doomed) | Undoing(demolition=doomed) | Returning(demolition=doomed) if doomed:
            return 0 if doomed.gave_up else doomed.attempt
        case Opening() | Undoing() | Snapshotting() | Leaving() | Returning():
            return lane.attempt
        case _:
            return 0
