"""The deletion of one tree: explain, destroy, deregister. Three chapters end in it, and nothing else deletes.

The explanation's digest is in the log before anything is unlinked. What cannot be explained is never deleted;
what cannot be deleted is a residual, and is tried again when it is asked for. What only a person can judge is
for a person.
"""

from msgspec.structs import replace

from domain import retries
from domain.effects import (
    Deregister,
    Destroy,
    Destroyed,
    Effect,
    Explain,
    Explained,
    NotDone,
    Outcome,
    Resisted,
    Unexplained,
)
from domain.events import Fact, TreeDestroyed, TreeExplained, TreeResisted, TreeRetried, TreeUnexplained
from domain.states import Demolition

# What no later try can mend: the snapshot that held it is damaged, or the place is another's by now.
JUDGED = ("snapshot_damaged", "tree_present")


def pending(repository: str, demolition: Demolition, reason: str) -> Effect | None:
    """Returns the next step, or None when the deletion has given up for now."""
    place, basis = demolition.place, demolition.basis
    if demolition.gave_up:
        return None
    if demolition.digest is None:
        return Explain(repository=repository, place=place, basis=basis)
    if not demolition.destroyed:
        return Destroy(repository=repository, place=place, basis=basis, digest=demolition.digest)
    return Deregister(repository=repository, place=place, reason=reason, consent=basis.consent)


def learn(demolition: Demolition, outcome: Outcome) -> tuple[Fact, ...]:
    """Returns the facts of a step; what is unexplained or fails is for the chapter to judge."""
    match outcome:
        case Explained(digest=digest, entries=entries, bytes=size):
            return (TreeExplained(digest=digest, entries=entries, bytes=size),)
        case Destroyed():
            return (TreeDestroyed(entries=demolition.entries, bytes=demolition.bytes),)
        case Resisted(reason=reason, left=left):
            final = retries.is_final(demolition.attempt + 1, transient=outcome.transient)
            return (_resisted(demolition, "destroy", reason, left, final=final),)
        case _:
            return ()


def not_done(demolition: Demolition, outcome: NotDone) -> Fact:
    """Returns that a step is tried again, that it leaves a residual, or that a person has to judge.

    A tree that cannot be explained may be whole still: it waits for a person, who can have it back.
    """
    attempt = demolition.attempt + 1
    final = retries.is_final(attempt, transient=outcome.transient)
    if not final or not (outcome.step == "explain" or outcome.code in JUDGED):
        return _resisted(demolition, outcome.step, outcome.reason, final=final)
    if outcome.transient:
        reason = f"{outcome.step} failed {attempt} times: {outcome.reason}"
        return TreeUnexplained(cause="repeated_failure", reason=reason, paths=(), count=0)
    return TreeUnexplained(cause=outcome.code, reason=outcome.reason, paths=(), count=0)


def _resisted(
    demolition: Demolition, step: str, reason: str, left: tuple[str, ...] = (), *, final: bool
) -> TreeResisted:
    return TreeResisted(
        path=demolition.place.path,
        step=step,
        attempt=demolition.attempt + 1,
        reason=reason,
        left=left,
        final=final,
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
