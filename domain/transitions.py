"""Which command or fact leads from which state to which: derived from the chapters, for pages and drawings.

The examples are one short life, told by facts; where a state behaves differently by what it came from, there
is an example of each.
"""

from domain import commands, events
from domain.errors import Refusal
from domain.events import Fact
from domain.evidence import Consent, Identity, Place, Seen, Snapshot
from domain.lane import decide, evolve, fold
from domain.states import Lane, name

Row = tuple[str, str, str]


def table() -> tuple[Row, ...]:
    """Returns (state, command or tag of a fact, next state), sorted; what is refused is left out."""
    lanes = [fold(facts) for facts in EXAMPLES]
    asked = {row for lane in lanes for row in _asked(lane)}
    told = {row for lane in lanes for row in _told(lane)}
    return tuple(sorted(asked | told))


def _asked(lane: Lane) -> set[Row]:
    rows = set()
    for command in COMMANDS:
        try:
            facts = decide(lane, command)
        except Refusal:
            continue
        rows.add((name(lane), type(command).__name__, name(fold(facts, lane))))
    return rows


def _told(lane: Lane) -> set[Row]:
    after = ((fact, evolve(lane, fact)) for fact in ENDINGS)
    return {(name(lane), fact.TAG, name(next_lane)) for fact, next_lane in after if next_lane != lane}


_ID, _ROOT = "0", "/r/.git"
_SLUG, _HOME, _REST, _BRANCH, _HEAD = "fix", "/r/fix", "/r/fix-1", "refs/heads/fix", "0" * 40
_IDENTITY = Identity(1, 1)
_PLACE = Place(_HOME, f"{_ROOT}/worktrees/fix", _IDENTITY)
_CONSENT = Consent((".env",), "not needed")
_SEEN = Seen(
    at="",
    identity=_IDENTITY,
    head=_HEAD,
    branch=_BRANCH,
    locked=None,
    changed=(),
    untracked=(),
    ignored=(),
    obstacles=(),
)
_SNAPSHOT = Snapshot(
    id="s",
    ref="refs/laneyard/s",
    commit=_HEAD,
    tree=_HEAD,
    head=_HEAD,
    branch=_BRANCH,
    fingerprint="",
    content="",
    manifest="",
    entries=1,
    bytes=1,
)

COMMANDS: tuple[commands.AnyCommand, ...] = (
    commands.CreateLane(
        lane=_ID,
        repository=_ROOT,
        name=_SLUG,
        slug=_SLUG,
        path=_HOME,
        branch=_BRANCH,
        base_ref="main",
        base_commit=_HEAD,
    ),
    commands.AdoptLane(
        lane=_ID,
        repository=_ROOT,
        name=_SLUG,
        slug=_SLUG,
        kind="external",
        place=_PLACE,
        branch=_BRANCH,
        head=_HEAD,
    ),
    commands.SnapshotLane(snapshot="s", seen=_SEEN),
    commands.RemoveLane(resting=_REST, seen=_SEEN),
    commands.RestoreLane(slug=_SLUG, path=_HOME),
    commands.ReapLane(),
    commands.ReapLane(snapshot="s"),
    commands.DiscardLane(consent=_CONSENT),
)

_PLANNED = decide(fold(()), COMMANDS[0])
_MADE = events.LaneCheckedOut(place=_PLACE, head=_HEAD)
_CREATED = events.LaneCreated(path=_HOME, branch=_BRANCH, head=_HEAD)
_BROKEN = events.CreationFailed(step="unlock", code="io", reason="", left=_PLACE, branch_made=True)
_UNDONE = events.CreationUndone(code="io", reason="")
_CAPTURE = events.SnapshotPlanned(snapshot="s", tolerant=False)
_TAKEN = events.LaneSnapshotted(snapshot=_SNAPSHOT)
_NOT_TAKEN = events.SnapshotFailed(snapshot="s", code="io", reason="")
_STAYED = events.RemovalAbandoned(edition=1, code="io", reason="")
_RESTING = events.LaneQuarantined(edition=1, path=_REST)
_NOT_BACK = events.RestoreAbandoned(code="io", reason="")
_BACK = events.LaneRestored(edition=1, source="quarantine", path=_HOME, branch=_BRANCH, head=_HEAD)
_REAPED = events.LaneReaped(edition=1, snapshot_id="s", entries=1, bytes=1, digest="")
_UNKNOWN = events.TreeUnexplained(cause="changed", reason="", paths=(), count=1)
_STUCK = events.TreeResisted(path=_HOME, step="destroy", attempt=1, reason="", left=(), final=True)

ENDINGS: tuple[Fact, ...] = (
    *(_CREATED, _UNDONE, _TAKEN, _NOT_TAKEN, _STAYED, _RESTING, _BACK, _NOT_BACK, _REAPED, _UNKNOWN),
    *decide(fold(()), COMMANDS[1]),
)


def _and(facts: tuple[Fact, ...], command: commands.AnyCommand, *more: Fact) -> tuple[Fact, ...]:
    """Returns the facts with those that the command causes, and more."""
    return (*facts, *decide(fold(facts), command), *more)


_CREATE, _ADOPT, _SNAPSHOT_IT, _REMOVE, _RESTORE, _REAP, _REAP_AGAIN, _DISCARD = COMMANDS
_ACTIVE = (*_PLANNED, _MADE, _CREATED, _CAPTURE, _TAKEN)
_LEAVING = _and(_ACTIVE, commands.RemoveLane(resting=_REST, seen=_SEEN, snapshot=None))
_QUARANTINED = (*_LEAVING, _RESTING, _CAPTURE, _TAKEN)
_REAPING = _and(_QUARANTINED, _REAP)
_REVIEW = (*_REAPING, _UNKNOWN)
_GONE = (*_REAPING, _REAPED)
_REBUILDING = _and(_GONE, _RESTORE, events.WorktreeRebuilt(place=_PLACE))
_REBUILD_FAILED = (
    *_REBUILDING,
    events.RestoreStepFailed(step="apply", attempt=1, code="io", reason="", final=True),
)
_REBUILD_REVIEW = (*_REBUILD_FAILED, _UNKNOWN)
_UNDOING = (*_PLANNED, _MADE, _BROKEN)
_UNDOING_REVIEW = (*_UNDOING, _UNKNOWN)
_RETURNED = events.WorktreeReturned(place=_PLACE)

EXAMPLES: tuple[tuple[Fact, ...], ...] = (
    (),
    (*_PLANNED, _MADE),
    _UNDOING,
    (*_UNDOING, _STUCK),
    (*_UNDOING, _UNDONE),
    _ACTIVE,
    (*_ACTIVE, _CAPTURE),
    _LEAVING,
    _QUARANTINED,
    (*_QUARANTINED, _CAPTURE),
    _and(_QUARANTINED, _RESTORE, _RETURNED),
    _REAPING,
    (*_REAPING, _STUCK),
    _REVIEW,
    (*_REVIEW, _CAPTURE),
    _and(_REVIEW, _RESTORE, _RETURNED),
    _GONE,
    _REBUILDING,
    _REBUILD_FAILED,
    (*_REBUILD_FAILED, _STUCK),
    _REBUILD_REVIEW,
    _and(_REBUILD_REVIEW, _DISCARD),
    _UNDOING_REVIEW,
    _and(_UNDOING_REVIEW, _DISCARD),
)
