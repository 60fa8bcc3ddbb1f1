"""How long a trio loop has been in its present turn."""

from time import monotonic

from trio.abc import Instrument


class Pulse(Instrument):
    """Sees a loop that something blocks, from any other thread and without asking the loop anything.

    A loop that has nothing to do waits for the system between two turns; one that is blocked does not.
    """

    def __init__(self) -> None:
        self._turn_began: float | None = monotonic()  # the thread itself has yet to come up

    def before_io_wait(self, timeout: float) -> None:
        """Ends a turn."""
        self._turn_began = None

    def after_io_wait(self, timeout: float) -> None:
        """Begins a turn."""
        self._turn_began = monotonic()

    def stop(self) -> None:
        """Ends the last turn."""
        self._turn_began = None

    def held_for(self) -> float:
        """Returns the seconds since the present turn began; 0 while the loop waits."""
        began = self._turn_began
        return 0.0 if began is None else monotonic() - began
