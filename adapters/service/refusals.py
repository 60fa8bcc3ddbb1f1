"""What the service answers when it cannot take a request now: nothing was changed, and later may do."""

from dataclasses import dataclass
from typing import ClassVar

from domain.errors import Refusal


@dataclass(eq=False)
class Unavailable(Refusal):
    """The same request may be taken later: `retry_after` is how many seconds a client should wait."""

    status = 503
    retry_after: ClassVar[int] = 1


@dataclass(eq=False)
class RepositorySilent(Unavailable):
    """The repository did not answer in time."""

    repository: str
    seconds: float
    code = "repository_silent"
    text = "{repository} has not answered for {seconds:g} seconds."
    remedy = "Look at its file system and at what git does there, then try again."
    retry_after = 5


@dataclass(eq=False)
class RepositoryBusy(Unavailable):
    """As much waits for the repository as may wait."""

    repository: str
    most: int
    code = "repository_busy"
    text = "{repository} is busy: {most} requests wait for it, and more may not."
    remedy = "Try again when some of them have ended."
    retry_after = 2


@dataclass(eq=False)
class Overloaded(Unavailable):
    """The service does as much at once as it may."""

    what: str
    most: int
    code = "overloaded"
    text = "the service is overloaded: it takes {most} {what} at once."
    remedy = "Try again when some of them have ended."
    retry_after = 5


@dataclass(eq=False)
class Stopping(Unavailable):
    """No new work is taken."""

    code = "stopping"
    text = "the service is stopping or being set up anew, and takes no new work."
    remedy = "Try again when it is back."
    retry_after = 2
