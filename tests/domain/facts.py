"""One lane in literal values: where it is, what was seen of it, and every fact once.

The tests that judge a value spell it out; these are for what must be there before.
"""

from msgspec.structs import replace

from domain.events import (
    BranchDropped,
    BranchFreed,
    BranchRejoined,
    CreationFailed,
    CreationPlanned,
    CreationUndone,
    Fact,
    IgnoredLetGo,
    LaneAdopted,
    LaneCheckedOut,
    LaneCreated,
    LaneQuarantined,
    LaneReaped,
    LaneRestored,
    LaneSnapshotted,
    ReapingPlanned,
    RemovalAbandoned,
    RemovalPlanned,
    RemovalStepFailed,
    RepositoryRegistered,
    RestoreAbandoned,
    RestorePlanned,
    RestoreStepFailed,
    SnapshotApplied,
    SnapshotFailed,
    SnapshotPlanned,
    StepFailed,
    SweepFinished,
    SweepPlanned,
    SweptLane,
    TreeDeregistered,
    TreeDestroyed,
    TreeExplained,
    TreeResisted,
    TreeRetried,
    TreeUnexplained,
    WorktreeLocked,
    WorktreeMoved,
    WorktreeRebuilt,
    WorktreeReturned,
)
from domain.evidence import Consent, Identity, Ignored, Obstacle, Place, Seen, Snapshot, Summary

LANE = "7d9f2c1e-5a40-4c7b-9d53-0f5f4f1f6a01"
COMMON = "/srv/shop/.git"
HOME = "/srv/shop/.laneyard/worktrees/fix-login"
RESTING = "/srv/shop/.laneyard/quarantine/fix-login-1"
ADMIN = "/srv/shop/.git/worktrees/fix-login"
BRANCH = "refs/heads/fix-login"
BASE = "a" * 40
HEAD = "b" * 40
OPENING_LOCK = "laneyard: opening 7d9f2c1e-5a40-4c7b-9d53-0f5f4f1f6a01"
EDITION_LOCK = "laneyard: edition 1 of 7d9f2c1e-5a40-4c7b-9d53-0f5f4f1f6a01"
RETURNING_LOCK = "laneyard: returning 7d9f2c1e-5a40-4c7b-9d53-0f5f4f1f6a01"

PLACE = Place(HOME, ADMIN, Identity(64, 1001, 5))
RESTING_PLACE = Place(RESTING, ADMIN, Identity(64, 1001, 5))
REBUILT_PLACE = Place(HOME, ADMIN, Identity(64, 2002, 9))

SNAPSHOT = Snapshot(
    id="s-1",
    ref="refs/laneyard/snapshots/s-1",
    commit="c" * 40,
    tree="d" * 40,
    head=HEAD,
    branch=BRANCH,
    fingerprint="f-1",
    content="content-1",
    manifest="manifest-1",
    entries=3,
    bytes=120,
)
LATER = Snapshot(
    id="s-2",
    ref="refs/laneyard/snapshots/s-2",
    commit="e" * 40,
    tree="f" * 40,
    head=HEAD,
    branch=BRANCH,
    fingerprint="f-2",
    content="content-2",
    manifest="manifest-2",
    entries=4,
    bytes=130,
)
CLEAN = Seen(
    at="2026-03-01T09:00:00Z",
    identity=Identity(64, 1001, 5),
    head=HEAD,
    branch=BRANCH,
    locked=None,
    changed=(),
    untracked=(),
    ignored=(),
    obstacles=(),
    fingerprint="f-1",
)

SECRET = Ignored(".env", "precious", "named .env", 12, 1)
DATA = Ignored("data", "unknown", "nothing says what it is", 4096, 3)
MODULES = Ignored("node_modules", "rebuildable", "node_modules beside yarn.lock", 1048576, 512)

# One instance of every fact ------------------------------------------------------------------------------

registered = RepositoryRegistered(common=COMMON, root="/srv/shop", object_format="sha1")
adopted = LaneAdopted(
    lane=LANE,
    repository=COMMON,
    name="fix login",
    slug="fix-login",
    kind="external",
    place=PLACE,
    branch=BRANCH,
    head=HEAD,
)
creation_planned = CreationPlanned(
    journal_format=1,
    lane=LANE,
    repository=COMMON,
    name="Fix login",
    slug="fix-login",
    path=HOME,
    branch=BRANCH,
    base_ref="refs/heads/main",
    base_commit=BASE,
    parent=None,
    owner="manual",
)
checked_out = LaneCheckedOut(place=PLACE, head=BASE)
created = LaneCreated(path=HOME, branch=BRANCH, head=BASE)
creation_failed = CreationFailed(
    step="checkout", code="git_failed", reason="no space left", left=PLACE, branch_made=True
)
creation_undone = CreationUndone(code="git_failed", reason="no space left")
step_failed = StepFailed(step="checkout", attempt=1, code="locked", reason="another process keeps the lock")
snapshot_planned = SnapshotPlanned(snapshot="s-1", tolerant=False, omit=())
snapshotted = LaneSnapshotted(snapshot=SNAPSHOT)
snapshot_failed = SnapshotFailed(snapshot="s-1", code="io_failed", reason="no space left")
removal_planned = RemovalPlanned(
    journal_format=4,
    edition=1,
    mode="safe",
    place=PLACE,
    resting=RESTING,
    head=HEAD,
    branch=BRANCH,
    snapshot_id="s-1",
    snapshot_ref="refs/laneyard/snapshots/s-1",
    snapshot_commit="c" * 40,
    snapshot_tree="d" * 40,
    provisioned_ignored=(),
    consent=None,
    evidence=Summary(at="2026-03-01T09:00:00Z", changed=0, untracked=0, ignored=0),
    delete_branch=False,
)
forced_planned = RemovalPlanned(
    journal_format=4,
    edition=1,
    mode="force",
    place=PLACE,
    resting=RESTING,
    head=HEAD,
    branch=BRANCH,
    snapshot_id="s-1",
    snapshot_ref="refs/laneyard/snapshots/s-1",
    snapshot_commit="c" * 40,
    snapshot_tree="d" * 40,
    provisioned_ignored=(),
    consent=Consent((".env", "cache.sock"), "remove --force"),
    evidence=Summary(
        at="2026-03-01T09:00:00Z",
        changed=1,
        untracked=0,
        ignored=1,
        obstacles=(Obstacle("socket", "cache.sock"),),
    ),
    delete_branch=True,
)
rebuildable_planned = replace(
    removal_planned,
    snapshot_id=None,
    snapshot_ref=None,
    snapshot_commit=None,
    snapshot_tree=None,
    consent=Consent(("node_modules",), "rebuildable"),
    evidence=Summary(at="2026-03-01T09:00:00Z", changed=0, untracked=0, ignored=1),
)
let_go = IgnoredLetGo(ignored=(MODULES,))
locked = WorktreeLocked()
moved = WorktreeMoved(path=RESTING)
freed = BranchFreed()
dropped = BranchDropped(branch=BRANCH, at=HEAD)
removal_step_failed = RemovalStepFailed(
    step="move", attempt=1, code="path_in_use", reason="something is there", final=True
)
removal_abandoned = RemovalAbandoned(edition=1, code="path_in_use", reason="something is there")
quarantined = LaneQuarantined(edition=1, path=RESTING)
restore_planned = RestorePlanned(
    journal_format=1,
    edition=1,
    source="quarantine",
    slug="fix-login",
    path=HOME,
    branch=BRANCH,
    head=HEAD,
    snapshot_id=None,
)
rebuild_planned = RestorePlanned(
    journal_format=1,
    edition=1,
    source="snapshot",
    slug="fix-login",
    path=HOME,
    branch=BRANCH,
    head=HEAD,
    snapshot_id="s-1",
)
returned = WorktreeReturned(place=PLACE)
rebuilt = WorktreeRebuilt(place=REBUILT_PLACE)
applied = SnapshotApplied(content="content-1")
rejoined = BranchRejoined(branch=BRANCH)
restore_step_failed = RestoreStepFailed(
    step="apply", attempt=1, code="io_failed", reason="no space left", final=True
)
restore_abandoned = RestoreAbandoned(code="io_failed", reason="no space left")
restored = LaneRestored(edition=1, source="quarantine", path=HOME, branch=BRANCH, head=HEAD)
rebuilt_whole = LaneRestored(edition=1, source="snapshot", path=HOME, branch=BRANCH, head=HEAD)
explained = TreeExplained(digest="digest-1", entries=3, bytes=120)
unexplained = TreeUnexplained(
    cause="changed", reason="1 entry is nowhere else", paths=("notes.txt",), count=1
)
destroyed = TreeDestroyed(entries=3, bytes=120)
deregistered = TreeDeregistered()
resisted = TreeResisted(path=RESTING, step="destroy", attempt=1, reason="busy", left=("mnt",), final=False)
retried = TreeRetried()
reaping_planned = ReapingPlanned(journal_format=1, edition=1, snapshot_id="s-1", consent=None)
reaped = LaneReaped(edition=1, snapshot_id="s-1", entries=3, bytes=120, digest="digest-1")
sweep_planned = SweepPlanned(repository=COMMON, lanes=(LANE,))
sweep_finished = SweepFinished(results=(SweptLane(lane=LANE, state="reaped"),))

EXAMPLES: tuple[Fact, ...] = (
    registered,
    adopted,
    creation_planned,
    checked_out,
    created,
    creation_failed,
    creation_undone,
    step_failed,
    snapshot_planned,
    snapshotted,
    snapshot_failed,
    removal_planned,
    forced_planned,
    rebuildable_planned,
    let_go,
    locked,
    moved,
    freed,
    dropped,
    removal_step_failed,
    removal_abandoned,
    quarantined,
    restore_planned,
    rebuild_planned,
    returned,
    rebuilt,
    applied,
    rejoined,
    restore_step_failed,
    restore_abandoned,
    restored,
    rebuilt_whole,
    explained,
    unexplained,
    destroyed,
    deregistered,
    resisted,
    retried,
    reaping_planned,
    reaped,
    sweep_planned,
    sweep_finished,
)
