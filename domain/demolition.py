"""The deletion of one tree: explain, destroy, deregister. Three chapters end in it, and nothing else deletes.

The explanation's digest is in the log before anything is unlinked. What cannot be explained is never deleted;
what cannot be deleted is a residual, and is tried again when it is asked for.
"""

from msgspec.structs import replace

from domain.effects import (
    Deregister,
    Destroy,
    Destroyed,
    Effect,
    Explain,
    Explained,
    Outcome,
    Resisted,
    Unexplained,
)
from domain.events import Fact, TreeDestroyed, TreeExplained, TreeResisted, TreeRetried, TreeUnexplained
from domain.states import Demolition

PATIENCE = 3  # attempts before what resists is left as a residual


def pending(repository: str, demolition: Demolition, reason: str) -> Effect | None:
    """Returns the next step, or None when the deletion has given up for now."""
    place, basis = demolition.place, demolition.basis
    if demolition.gave_up:
        return None
    if demolition.digest is None:
        return Explain(repository=repository, place=place, basis=basis)
    if not demolition.destroyed:
        return Destroy(repository=repository, place=place, basis=basis, digest=demolition.digest)
    return Deregister(repository=repository, place=place, reason=reason)


def learn(demolition: Demolition, outcome: Outcome) -> tuple[Fact, ...]:
    """Returns the facts of a step; what is unexplained or fails is for the chapter to judge."""
    match outcome:
        case Explained(digest=digest, entries=entries, bytes=size):
            return (TreeExplained(digest=digest, entries=entries, bytes=size),)
        case Destroyed():
            return (TreeDestroyed(entries=demolition.entries, bytes=demolition.bytes),)
        case Resisted(reason=reason, left=left):
            return (resisted(demolition, "destroy", reason, left),)
        case _:
            return ()


def resisted(
    demolition: Demolition, step: str, reason: str, left: tuple[str, ...] = (), *, final: bool = False
) -> TreeResisted:
    """Returns the fact of a step that could not be finished."""
    attempt = demolition.attempt + 1
    return TreeResisted(
        path=demolition.place.path,
        step=step,
        attempt=attempt,
        reason=reason,
        left=left,
        final=final or attempt >= PATIENCE,
    )


def unexplained(outcome: Unexplained) -> TreeUnexplained:
    """Returns the fact of entries that nothing explains."""
    return TreeUnexplained(
        cause=outcome.cause, reason=outcome.reason, paths=outcome.paths, count=outcome.count
    )


def evolve(demolition: Demolition, fact: Fact) -> Demolition:
    """Returns the deletion after the fact."""
    match fact:
        case TreeExplained(digest=digest, entries=entries, bytes=size):
            return replace(demolition, digest=digest, entries=entries, bytes=size, attempt=0)
        case TreeDestroyed():
            return replace(demolition, destroyed=True, attempt=0, left=())
        case TreeResisted(attempt=attempt, final=final, left=left):
            return replace(demolition, attempt=attempt, gave_up=final, left=left)
        case TreeRetried():
            return replace(demolition, attempt=0, gave_up=False)
        case _:
            return demolition
