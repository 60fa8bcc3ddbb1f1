"""The states of a lane: one struct per state, each holding exactly what exists in it."""

import msgspec

from domain.events import Kind, RemovalPlanned, RestorePlanned
from domain.evidence import Consent, Ignored, Place, Snapshot


class Edition(msgspec.Struct, frozen=True):
    """One removal of a lane, as it is remembered after the tree has gone."""

    number: int
    snapshot_id: str | None
    branch: str | None
    head: str
    path: str


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What is true of a lane in all of its states."""

    lane: str
    repository: str
    name: str
    slug: str
    kind: Kind
    branch: str | None
    base_ref: str | None
    base_commit: str | None
    parent: str | None
    owner: str
    head: str | None
    snapshots: tuple[Snapshot, ...] = ()
    editions: tuple[Edition, ...] = ()
    remnants: tuple[tuple[int, str], ...] = ()  # edition and id of snapshots of a tree that was not whole

    @property
    def edition(self) -> int:
        """Returns the number of the last removal, 0 before the first."""
        return self.editions[-1].number if self.editions else 0

    def snapshot(self, snapshot_id: str | None) -> Snapshot | None:
        """Returns the snapshot with that id, if the lane has it."""
        return next((each for each in self.snapshots if each.id == snapshot_id), None)

    def left_of(self, edition: int) -> str | None:
        """Returns the last snapshot of what was left of an edition's tree, if one was taken."""
        return next((taken for number, taken in reversed(self.remnants) if number == edition), None)

    def is_remnant(self, snapshot_id: str | None) -> bool:
        """Tells whether a snapshot was taken of a tree that was not whole."""
        return any(taken == snapshot_id for _, taken in self.remnants)


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """What may explain the entries of a tree: a commit, a snapshot, a consent.

    `partial` also admits beginnings of files of the commit: what an interrupted checkout of ours leaves.
    `worn` also admits what a deletion of ours has done to directories: one may have begun here before.
    """

    commit: str
    snapshot: Snapshot | None = None
    consent: Consent | None = None
    partial: bool = False
    worn: bool = False


class Demolition(msgspec.Struct, frozen=True, kw_only=True):
    """How far the deletion of one tree has come."""

    place: Place
    basis: Basis
    digest: str | None = None
    entries: int = 0
    bytes: int = 0
    destroyed: bool = False
    attempt: int = 0
    gave_up: bool = False
    left: tuple[str, ...] = ()

    @property
    def begun(self) -> bool:
        """Tells whether a deletion of this tree may have begun: then it is no longer known to be whole."""
        return self.basis.worn or self.digest is not None


class Nowhere(msgspec.Struct, frozen=True):
    """Before the first fact."""


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """A creation is under way."""

    record: Record
    path: str
    place: Place | None = None
    attempt: int = 0


class Undoing(msgspec.Struct, frozen=True, kw_only=True):
    """A creation has failed and is being undone."""

    record: Record
    code: str
    reason: str
    demolition: Demolition | None
    branch_made: bool
    deregistered: bool = False
    attempt: int = 0


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """A creation was undone; nothing of the lane exists."""

    record: Record
    code: str
    reason: str


class Active(msgspec.Struct, frozen=True, kw_only=True):
    """The lane can be worked in."""

    record: Record
    place: Place


class Leaving(msgspec.Struct, frozen=True, kw_only=True):
    """A removal is under way; `let_go` is what can be made again and did not hold it."""

    record: Record
    plan: RemovalPlanned
    let_go: tuple[Ignored, ...] = ()
    locked: bool = False
    moved: bool = False
    freed: bool = False
    warnings: tuple[str, ...] = ()
    attempt: int = 0
    failure: tuple[str, str] | None = None


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """The lane rests whole in the quarantine; `place` is the resting place, `origin` where it was."""

    record: Record
    place: Place
    origin: str
    consent: Consent | None
    warnings: tuple[str, ...] = ()


class Returning(msgspec.Struct, frozen=True, kw_only=True):
    """A restore is under way; `home` is the state that a failure leads back to."""

    record: Record
    plan: RestorePlanned
    home: "Quarantined | Reaped | NeedsReview"
    place: Place | None = None
    applied: bool = False
    differences: tuple[str, ...] = ()
    rejoined: bool = False
    attempt: int = 0
    failure: tuple[str, str] | None = None
    demolition: Demolition | None = None


class Reaping(msgspec.Struct, frozen=True, kw_only=True):
    """The irreversible step is under way."""

    record: Record
    home: "Quarantined | Reaped | Failed"
    demolition: Demolition


class Reaped(msgspec.Struct, frozen=True, kw_only=True):
    """The tree is gone; a snapshot can bring the lane back."""

    record: Record


class NeedsReview(msgspec.Struct, frozen=True, kw_only=True):
    """A deletion met what it could not explain. Nothing more was deleted, and a person decides.

    `detail` is the stable code of what was met; `domain.review` says which cause that is, and the ways out.
    `home` is the state that the lane returns to when the tree is discarded or put back.
    """

    record: Record
    detail: str
    reason: str
    paths: tuple[str, ...]
    count: int
    demolition: Demolition
    home: "Quarantined | Reaped | Failed"


class Snapshotting(msgspec.Struct, frozen=True, kw_only=True):
    """A capture is under way; the lane is `of` before and after."""

    of: "Active | Quarantined | NeedsReview"
    snapshot: str
    tolerant: bool
    omit: tuple[str, ...]
    apart: tuple[str, ...] = ()
    attempt: int = 0

    @property
    def record(self) -> Record:
        """Returns the lane's record."""
        return self.of.record


class Blocked(msgspec.Struct, frozen=True, kw_only=True):
    """The log goes on in a format that this program does not know: nothing is done about the lane.

    It was `of` before; the names are those that it may have by now.
    """

    record: Record
    of: "Lane"
    reason: str
    slugs: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()


Lane = (
    Nowhere
    | Opening
    | Undoing
    | Failed
    | Active
    | Snapshotting
    | Leaving
    | Quarantined
    | Returning
    | Reaping
    | Reaped
    | NeedsReview
    | Blocked
)

NAMES: dict[type, str] = {
    Nowhere: "none",
    Opening: "opening",
    Undoing: "opening",
    Failed: "failed",
    Active: "active",
    Snapshotting: "snapshotting",
    Leaving: "leaving",
    Quarantined: "quarantined",
    Returning: "returning",
    Reaping: "reaping",
    Reaped: "reaped",
    NeedsReview: "needs-review",
    Blocked: "blocked",
}


def name(lane: Lane) -> str:
    """Returns the state as people and programs read it."""
    return NAMES[type(lane)]
