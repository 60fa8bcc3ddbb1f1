"""What we may do to the world (bare verbs), and what an effect may report (outcomes).

An effect is a value with all that its performer needs; an outcome is what a second look has seen.
"""

import msgspec

from domain.evidence import Consent, Place, Snapshot
from domain.states import Basis


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the world owes us."""


class Checkout(Effect, frozen=True, kw_only=True):
    """Make a worktree at `path`, locked with `reason`: on a new branch, or detached when `branch` is none."""

    repository: str
    path: str
    branch: str | None
    commit: str
    reason: str


class Lock(Effect, frozen=True, kw_only=True):
    """Lock the registration, so that nobody's prune takes it; `idle`: only where no git is at work."""

    repository: str
    admin: str
    reason: str
    idle: bool = False


class Unlock(Effect, frozen=True, kw_only=True):
    """Unlock the registration, if the lock is ours."""

    repository: str
    admin: str
    reason: str


class Move(Effect, frozen=True, kw_only=True):
    """Rename the tree without replacing anything, and point its registration at the new place.

    A `strict` one leaves a tree where it is that holds anything but its commit, or that cannot be looked at.
    A `leaving` one points the registration first: who is killed in between has left where the tree goes.
    """

    repository: str
    place: Place
    target: str
    strict: bool = False
    leaving: bool = False


class FreeBranch(Effect, frozen=True, kw_only=True):
    """Detach HEAD at the commit that it is on, so that the branch can be used elsewhere."""

    repository: str
    admin: str
    head: str
    branch: str | None


class Rejoin(Effect, frozen=True, kw_only=True):
    """Put HEAD back on the branch, only if that is where we left it and nobody uses it."""

    repository: str
    admin: str
    branch: str | None
    head: str


class DropBranch(Effect, frozen=True, kw_only=True):
    """Delete a branch by compare-and-swap, only where no checkout uses it."""

    repository: str
    branch: str
    at: str


class Capture(Effect, frozen=True, kw_only=True):
    """Make a verified snapshot of the tree.

    `omit` names packed paths that need not be held, `apart` those that are held, but not in git. A `thorough`
    one reads every byte, whatever an index or an earlier look says of it.
    """

    repository: str
    lane: str
    snapshot: str
    place: Place
    head: str | None
    branch: str | None
    tolerant: bool
    omit: tuple[str, ...]
    apart: tuple[str, ...] = ()
    thorough: bool = False


class Apply(Effect, frozen=True, kw_only=True):
    """Turn a fresh checkout into what the snapshot holds, and compare it with the manifest."""

    repository: str
    place: Place
    snapshot: Snapshot


class Explain(Effect, frozen=True, kw_only=True):
    """Walk the tree and explain every entry. Deletes nothing."""

    repository: str
    place: Place
    basis: Basis


class Destroy(Effect, frozen=True, kw_only=True):
    """Delete an explained tree, entry by entry. The only effect that deletes a user's tree."""

    repository: str
    place: Place
    basis: Basis
    digest: str


class Deregister(Effect, frozen=True, kw_only=True):
    """Take the registration of a deleted tree out of git; `consent` is what may be lost with it."""

    repository: str
    place: Place
    reason: str
    consent: Consent | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What an effect has led to."""


class CheckedOut(Outcome, frozen=True, kw_only=True):
    """The worktree is there."""

    place: Place
    head: str


class Locked(Outcome, frozen=True, kw_only=True):
    """The registration is locked with our reason."""


class Unlocked(Outcome, frozen=True, kw_only=True):
    """The registration has no lock of ours."""


class Moved(Outcome, frozen=True, kw_only=True):
    """The tree is at its target, and the registration says so."""

    place: Place


class Freed(Outcome, frozen=True, kw_only=True):
    """HEAD is detached; or `held` says why it is not."""

    held: str | None = None


class Joined(Outcome, frozen=True, kw_only=True):
    """HEAD is on the branch; or it is detached, and `why` says so."""

    branch: str | None
    why: str | None = None


class Dropped(Outcome, frozen=True, kw_only=True):
    """The branch is gone; or `kept` says why it is not."""

    kept: str | None = None


class Captured(Outcome, frozen=True, kw_only=True):
    """The snapshot is durable and was read back."""

    snapshot: Snapshot


class Applied(Outcome, frozen=True, kw_only=True):
    """The tree is what the manifest says; `differences` names what could not be set as it was."""

    content: str
    differences: tuple[str, ...] = ()


class Explained(Outcome, frozen=True, kw_only=True):
    """Everything in the tree is explained."""

    digest: str
    entries: int
    bytes: int


class Unexplained(Outcome, frozen=True, kw_only=True):
    """Something in the tree is not; `cause` is stable."""

    cause: str
    reason: str
    paths: tuple[str, ...] = ()
    count: int = 0


class Destroyed(Outcome, frozen=True, kw_only=True):
    """The tree is gone."""


class Resisted(Outcome, frozen=True, kw_only=True):
    """Part of the tree could not be deleted. `transient` says that trying again may help."""

    reason: str
    left: tuple[str, ...]
    transient: bool = True


class Deregistered(Outcome, frozen=True, kw_only=True):
    """Git no longer lists the worktree."""


class NotDone(Outcome, frozen=True, kw_only=True):
    """An effect did not take. `transient` says that trying again may help.

    `left` and `branch_made` are what a checkout has left behind that is certainly ours.
    """

    step: str
    code: str
    reason: str
    transient: bool = False
    left: Place | None = None
    branch_made: bool = False
