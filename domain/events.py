"""Everything that can happen, in the order in which it usually happens.

Facts are in the past tense and hold what their undoing needs. `TAG` is the name on disk: `chapter.fact@n`; it
never changes, and a new shape is a new `@n` with an upcaster (see `domain.upcast`). Order, time, actor and
cause live on the envelope. Paths are packed (see `domain.paths`).

Six facts are milestones, the words an auditor reads: `lane.created`, `lane.adopted`, `lane.snapshotted`,
`lane.quarantined`, `lane.restored`, `lane.reaped`. The others are the steps between them.
"""

from typing import ClassVar, Literal

import msgspec

from domain.evidence import Consent, Ignored, Place, Snapshot, Summary

Kind = Literal["primary", "managed", "external"]
Mode = Literal["safe", "force"]
Source = Literal["quarantine", "snapshot"]

CREATION_FORMAT = 1
REMOVAL_FORMAT = 4
RESTORE_FORMAT = 1
REAPING_FORMAT = 1


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened."""

    TAG: ClassVar[str] = ""


# A repository becomes known -------------------------------------------------------------------------------


class RepositoryRegistered(Fact, frozen=True, kw_only=True):
    """A git common directory is under our care; `common` is its canonical path and its key."""

    TAG: ClassVar[str] = "repository.registered@1"
    common: str
    root: str | None
    object_format: Literal["sha1", "sha256"]


class LaneAdopted(Fact, frozen=True, kw_only=True):
    """A checkout that others made is a lane now. `admin` of a main checkout is the common directory."""

    TAG: ClassVar[str] = "lane.adopted@1"
    lane: str
    repository: str
    name: str
    slug: str
    kind: Kind
    place: Place
    branch: str | None
    head: str | None


# Creation -------------------------------------------------------------------------------------------------


class CreationPlanned(Fact, frozen=True, kw_only=True):
    """The base is a commit, the names are claimed; nothing on disk has been touched."""

    TAG: ClassVar[str] = "creation.planned@1"
    journal_format: int
    lane: str
    repository: str
    name: str
    slug: str
    path: str
    branch: str
    base_ref: str
    base_commit: str
    parent: str | None
    owner: str


class LaneCheckedOut(Fact, frozen=True, kw_only=True):
    """The worktree is there, registered and locked, on its branch."""

    TAG: ClassVar[str] = "creation.checked-out@1"
    place: Place
    head: str


class LaneCreated(Fact, frozen=True, kw_only=True):
    """The lane is ready to be worked in."""

    TAG: ClassVar[str] = "lane.created@1"
    path: str
    branch: str
    head: str


class CreationFailed(Fact, frozen=True, kw_only=True):
    """A step did not take, and what this creation has made is being undone."""

    TAG: ClassVar[str] = "creation.failed@1"
    step: str
    code: str
    reason: str
    left: Place | None
    branch_made: bool


class CreationUndone(Fact, frozen=True, kw_only=True):
    """Nothing of the lane is left."""

    TAG: ClassVar[str] = "creation.undone@1"
    code: str
    reason: str


class StepFailed(Fact, frozen=True, kw_only=True):
    """A step of a creation or of a snapshot did not take and is tried again; `attempt` counts from one."""

    TAG: ClassVar[str] = "step.failed@1"
    step: str
    attempt: int
    code: str
    reason: str


# Snapshot -------------------------------------------------------------------------------------------------


class SnapshotPlanned(Fact, frozen=True, kw_only=True):
    """A capture begins, which changes nothing; `tolerant`: omissions are named, not refused.

    `omit` names paths that need not be held, `apart` ignored ones that are held on request.
    """

    TAG: ClassVar[str] = "snapshot.planned@2"
    snapshot: str
    tolerant: bool
    omit: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


class LaneSnapshotted(Fact, frozen=True, kw_only=True):
    """The snapshot has been read back and verified."""

    TAG: ClassVar[str] = "lane.snapshotted@2"
    snapshot: Snapshot


class SnapshotFailed(Fact, frozen=True, kw_only=True):
    """No snapshot was made, and the lane is as it was."""

    TAG: ClassVar[str] = "snapshot.failed@1"
    snapshot: str
    code: str
    reason: str


# Removal --------------------------------------------------------------------------------------------------


class RemovalPlanned(Fact, frozen=True, kw_only=True):
    """All that undoing needs is written down; nothing on disk has been touched.

    In format 4 the mode, the snapshot (id, ref, commit, tree: all or none) and the provisioned ignored files
    are part of the plan. A plan of format 3 had none of them and is driven as a strict safe removal.
    """

    TAG: ClassVar[str] = "removal.planned@4"
    journal_format: int
    edition: int
    mode: Mode
    place: Place
    resting: str
    head: str
    branch: str | None
    snapshot_id: str | None
    snapshot_ref: str | None
    snapshot_commit: str | None
    snapshot_tree: str | None
    provisioned_ignored: tuple[str, ...]
    consent: Consent | None
    evidence: Summary | None
    delete_branch: bool


class IgnoredLetGo(Fact, frozen=True, kw_only=True):
    """The removal is not held by these: they can be made again, and go without a copy when it is reaped."""

    TAG: ClassVar[str] = "ignored.let-go@1"
    ignored: tuple[Ignored, ...]


class WorktreeLocked(Fact, frozen=True, kw_only=True):
    """Git will not prune the registration behind our back."""

    TAG: ClassVar[str] = "removal.locked@1"


class WorktreeMoved(Fact, frozen=True, kw_only=True):
    """The tree rests at `path`, and its registration says so; moving it back undoes this."""

    TAG: ClassVar[str] = "removal.moved@1"
    path: str


class BranchFreed(Fact, frozen=True, kw_only=True):
    """HEAD is detached, so that the branch can be used elsewhere; or, with `held`, why it could not be."""

    TAG: ClassVar[str] = "removal.branch-freed@1"
    held: str | None = None


class BranchDropped(Fact, frozen=True, kw_only=True):
    """The branch was deleted at `at` by compare-and-swap; or, with `kept`, why it was not."""

    TAG: ClassVar[str] = "removal.branch-dropped@1"
    branch: str
    at: str
    kept: str | None = None


class RemovalStepFailed(Fact, frozen=True, kw_only=True):
    """An effect did not take; `attempt` counts from one, and `final` says that it is not tried again."""

    TAG: ClassVar[str] = "removal.step-failed@1"
    step: str
    attempt: int
    code: str
    reason: str
    final: bool


class RemovalAbandoned(Fact, frozen=True, kw_only=True):
    """The removal ended, and the lane is where it was; `reason` says what could not be as it was."""

    TAG: ClassVar[str] = "removal.abandoned@1"
    edition: int
    code: str
    reason: str


class LaneQuarantined(Fact, frozen=True, kw_only=True):
    """The lane rests whole, can come back by a rename, and its place is free."""

    TAG: ClassVar[str] = "lane.quarantined@1"
    edition: int
    path: str
    warnings: tuple[str, ...] = ()


# Restore --------------------------------------------------------------------------------------------------


class RestorePlanned(Fact, frozen=True, kw_only=True):
    """Where the lane comes back to, and from what; nothing on disk has been touched."""

    TAG: ClassVar[str] = "restore.planned@1"
    journal_format: int
    edition: int
    source: Source
    slug: str
    path: str
    branch: str | None
    head: str
    snapshot_id: str | None


class WorktreeReturned(Fact, frozen=True, kw_only=True):
    """The tree is at its place again, by a rename."""

    TAG: ClassVar[str] = "restore.moved@1"
    place: Place


class WorktreeRebuilt(Fact, frozen=True, kw_only=True):
    """A fresh checkout of the recorded commit is there, registered and locked."""

    TAG: ClassVar[str] = "restore.checked-out@1"
    place: Place


class SnapshotApplied(Fact, frozen=True, kw_only=True):
    """Every entry of the snapshot is in place and was compared with the manifest.

    `differences` names what could not be set as it was.
    """

    TAG: ClassVar[str] = "restore.applied@2"
    content: str
    differences: tuple[str, ...] = ()


class BranchRejoined(Fact, frozen=True, kw_only=True):
    """HEAD is on `branch` again; or it stays detached (`branch` is none), and `why` says so."""

    TAG: ClassVar[str] = "restore.rejoined@1"
    branch: str | None
    why: str | None = None


class RestoreStepFailed(Fact, frozen=True, kw_only=True):
    """An effect did not take; `left` is what a half-made checkout leaves to be undone."""

    TAG: ClassVar[str] = "restore.step-failed@1"
    step: str
    attempt: int
    code: str
    reason: str
    final: bool
    left: Place | None = None


class RestoreAbandoned(Fact, frozen=True, kw_only=True):
    """The restore ended, and the lane is where it was before."""

    TAG: ClassVar[str] = "restore.abandoned@1"
    code: str
    reason: str


class LaneRestored(Fact, frozen=True, kw_only=True):
    """The lane can be worked in again; `differences` names what could not be as it was."""

    TAG: ClassVar[str] = "lane.restored@1"
    edition: int
    source: Source
    path: str
    branch: str | None
    head: str
    differences: tuple[str, ...] = ()


# Deletion of a tree: shared by reaping and by the undoing of a failed creation or restore ------------------


class TreeExplained(Fact, frozen=True, kw_only=True):
    """Every entry of the tree is reproducible, captured or consented to; `digest` is of the explanation."""

    TAG: ClassVar[str] = "tree.explained@1"
    digest: str
    entries: int
    bytes: int


class TreeUnexplained(Fact, frozen=True, kw_only=True):
    """Nothing more is deleted, and a person decides; `cause` is a detail that `domain.review` knows.

    `paths` names the first of `count` entries that nothing explains.
    """

    TAG: ClassVar[str] = "tree.unexplained@1"
    cause: str
    reason: str
    paths: tuple[str, ...]
    count: int


class TreeDestroyed(Fact, frozen=True, kw_only=True):
    """The tree is gone."""

    TAG: ClassVar[str] = "tree.destroyed@1"
    entries: int
    bytes: int


class TreeDeregistered(Fact, frozen=True, kw_only=True):
    """Git no longer lists the worktree that this creation had made."""

    TAG: ClassVar[str] = "tree.deregistered@1"


class TreeResisted(Fact, frozen=True, kw_only=True):
    """The deletion could not be finished: what is left is a residual that a sweep tries again."""

    TAG: ClassVar[str] = "tree.resisted@1"
    path: str
    step: str
    attempt: int
    reason: str
    left: tuple[str, ...]
    final: bool


class TreeRetried(Fact, frozen=True, kw_only=True):
    """A deletion that could not be finished is tried again."""

    TAG: ClassVar[str] = "tree.retried@1"


# Reaping --------------------------------------------------------------------------------------------------


class ReapingPlanned(Fact, frozen=True, kw_only=True):
    """The only irreversible step is allowed to begin; nothing has been touched."""

    TAG: ClassVar[str] = "reaping.planned@1"
    journal_format: int
    edition: int
    snapshot_id: str | None
    consent: Consent | None


class LaneReaped(Fact, frozen=True, kw_only=True):
    """The tree is gone; `snapshot_id` brings the lane back.

    `entries`, `bytes` and `digest` are of the last explanation: of what was left, if it was not the first.
    """

    TAG: ClassVar[str] = "lane.reaped@1"
    edition: int
    snapshot_id: str | None
    entries: int
    bytes: int
    digest: str


# Sweeps ---------------------------------------------------------------------------------------------------


class SweptLane(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep did with one lane; `code` and `reason` say why it ended before its goal."""

    lane: str
    state: str
    code: str | None = None
    reason: str | None = None


class SweepPlanned(Fact, frozen=True, kw_only=True):
    """These lanes were due, in `repository` or, where it is none, in all; each is told in its own stream."""

    TAG: ClassVar[str] = "sweep.planned@1"
    repository: str | None
    lanes: tuple[str, ...]


class SweepFinished(Fact, frozen=True, kw_only=True):
    """Every planned lane has had its turn."""

    TAG: ClassVar[str] = "sweep.finished@1"
    results: tuple[SweptLane, ...]


FACTS: tuple[type[Fact], ...] = (
    *(RepositoryRegistered, LaneAdopted),
    *(CreationPlanned, LaneCheckedOut, LaneCreated, CreationFailed, CreationUndone, StepFailed),
    *(SnapshotPlanned, LaneSnapshotted, SnapshotFailed),
    *(RemovalPlanned, IgnoredLetGo, WorktreeLocked, WorktreeMoved, BranchFreed),
    *(BranchDropped, RemovalStepFailed, RemovalAbandoned, LaneQuarantined),
    *(RestorePlanned, WorktreeReturned, WorktreeRebuilt, SnapshotApplied),
    *(BranchRejoined, RestoreStepFailed, RestoreAbandoned, LaneRestored),
    *(TreeExplained, TreeUnexplained, TreeDestroyed),
    *(TreeDeregistered, TreeResisted, TreeRetried),
    *(ReapingPlanned, LaneReaped, SweepPlanned, SweepFinished),
)

BY_TAG: dict[str, type[Fact]] = {fact.TAG: fact for fact in FACTS}
