"""The order of commands: one of a lane at a time, a few at once, and so many waiting."""

from collections import deque
from typing import Generic, Protocol, TypeVar


class Ordered(Protocol):
    """What is queued."""

    lane: str | None


J = TypeVar("J", bound=Ordered)


class Queue(Generic[J]):
    """First in, first out within a lane; a job without a lane waits for a place only. Not thread-safe."""

    def __init__(self, running: int, waiting: int) -> None:
        self.running = 0
        self.most_waiting = waiting
        self._most_running = running
        self._ready: deque[J] = deque()
        self._behind: dict[str, deque[J]] = {}  # by lane that has a job ready or running: those after it
        self._held = 0

    @property
    def waiting(self) -> int:
        """Returns how many have not started."""
        return len(self._ready) + self._held

    def put(self, job: J) -> bool:
        """Queues a job; False when it could not start at once and as many wait as may."""
        free = max(0, self._most_running - self.running)
        behind = None if job.lane is None else self._behind.get(job.lane)
        if behind is None and len(self._ready) < free:  # it is taken at the next turn, so it does not wait
            self._make_ready(job)
        elif self._held + max(0, len(self._ready) - free) >= self.most_waiting:
            return False
        elif behind is None:
            self._make_ready(job)
        else:
            behind.append(job)
            self._held += 1
        return True

    def limit(self, running: int, waiting: int) -> None:
        """Changes both limits; what is queued or runs already is not given up."""
        self._most_running, self.most_waiting = running, waiting

    def take(self) -> J | None:
        """Returns the next job that may start, which then counts as running until `release`."""
        if not self._ready or self.running >= self._most_running:
            return None
        self.running += 1
        return self._ready.popleft()

    def release(self, lane: str | None) -> None:
        """Ends a job that was taken; the next one of its lane lines up behind the other lanes'."""
        self.running -= 1
        if lane is None:
            return
        if behind := self._behind[lane]:
            self._held -= 1
            self._ready.append(behind.popleft())
        else:
            del self._behind[lane]

    def clear(self) -> list[J]:
        """Takes out and returns all that have not started."""
        dropped = [*self._ready, *(job for behind in self._behind.values() for job in behind)]
        for job in self._ready:
            if job.lane is not None:
                del self._behind[job.lane]
        for behind in self._behind.values():
            behind.clear()
        self._ready.clear()
        self._held = 0
        return dropped

    def _make_ready(self, job: J) -> None:
        self._ready.append(job)
        if job.lane is not None:
            self._behind[job.lane] = deque()
