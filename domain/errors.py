"""Refusals: answers, not accidents. Each has a stable code, its evidence, and what would change the answer.

A refusal is raised by a decision before anything has happened, and never journaled.
"""

from dataclasses import dataclass, fields
from typing import ClassVar


@dataclass(eq=False)
class Refusal(Exception):
    """Nothing was changed, and this is why. `status` is a hint for HTTP."""

    code: ClassVar[str] = "refused"
    text: ClassVar[str] = "refused"
    remedy: ClassVar[str] = ""
    status: ClassVar[int] = 409
    quoted: ClassVar[tuple[str, ...]] = ()  # fields whose items are names of any kind

    @property
    def details(self) -> dict[str, object]:
        """Returns the evidence, by field."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __str__(self) -> str:
        """Returns the reason and the remedy in one sentence or two."""
        return " ".join(self._said(part) for part in (self.text, self.remedy) if part)

    @property
    def cause(self) -> str:
        """Returns the reason alone, as part of a sentence."""
        return self._said(self.text).removesuffix(".")

    def _said(self, part: str) -> str:
        details = self.details.items()
        return part.format(**{name: _shown(value, quoted=name in self.quoted) for name, value in details})


def _shown(value: object, *, quoted: bool = False) -> object:
    if isinstance(value, tuple):
        items = tuple(dict.fromkeys(map(repr if quoted else _word, value)))  # one for many is said once
        some = ", ".join(items[:5]) or "none"
        return f"{some} and {len(items) - 5} more" if len(items) > 5 else some
    return value


def _word(value: object) -> str:
    return "{path} ({class}: {why}, {bytes} bytes)".format(**value) if isinstance(value, dict) else str(value)


@dataclass(eq=False)
class InvalidName(Refusal):
    """The lane's name cannot be used."""

    name: str
    why: str
    code = "invalid_name"
    text = "{name!r} cannot be the name of a lane: {why}."
    remedy = "Give a name of 1 to 100 printable characters."
    status = 422


@dataclass(eq=False)
class InvalidBranchName(Refusal):
    """Git would not take the branch's name."""

    branch: str
    code = "invalid_branch_name"
    text = "{branch!r} is not a branch name that git takes."
    remedy = "See git-check-ref-format(1), or pass another name with --branch."
    status = 422


@dataclass(eq=False)
class InvalidOwner(Refusal):
    """The owner is neither `manual` nor `session:ID`."""

    owner: str
    code = "invalid_owner"
    text = "{owner!r} is not an owner."
    remedy = "Use 'manual' or 'session:ID'."
    status = 422


@dataclass(eq=False)
class NotARepository(Refusal):
    """No git repository is there."""

    path: str
    code = "not_a_repository"
    text = "{path} is not inside a git repository."
    remedy = "Pass the repository's directory with -C."
    status = 404


@dataclass(eq=False)
class UnbornHead(Refusal):
    """The repository has no commit to start from."""

    path: str
    code = "unborn_head"
    text = "{path} has no commit yet, so there is nothing to start a lane from."
    remedy = "Make a first commit, or name a base with --base."


@dataclass(eq=False)
class UnknownBase(Refusal):
    """The base names no commit."""

    base: str
    code = "unknown_base"
    text = "{base!r} names no commit in this repository."
    remedy = "Pass a branch, a tag or a commit that 'git rev-parse' knows."
    status = 422


@dataclass(eq=False)
class BranchExists(Refusal):
    """The new lane's branch is there already."""

    branch: str
    at: str
    code = "branch_exists"
    text = "the branch {branch} exists already, at {at}."
    remedy = "Choose another name, or another branch with --branch."


@dataclass(eq=False)
class BranchInUse(Refusal):
    """Another worktree has the branch checked out."""

    branch: str
    holder: str
    code = "branch_in_use"
    text = "the branch {branch} is in use by {holder}."
    remedy = "Choose another branch with --branch."


@dataclass(eq=False)
class PathInUse(Refusal):
    """Something is where the lane, or what is extracted of a snapshot, should be."""

    path: str
    code = "path_in_use"
    text = "{path} is in use."
    remedy = "Move what is there out of the way, or choose another name."


@dataclass(eq=False)
class UnsafePath(Refusal):
    """The managed root would lie outside the repository."""

    path: str
    why: str
    code = "unsafe_path"
    text = "{path} cannot be used: {why}."
    remedy = "Laneyard never follows a symbolic link to where it creates or deletes; move it out of the way."


@dataclass(eq=False)
class NotWritable(Refusal):
    """The lane could not be made there, or nothing be extracted to there."""

    path: str
    why: str
    code = "read_only"
    text = "nothing can be written to {path}: {why}."
    remedy = "Make it writable, or use another repository."


@dataclass(eq=False)
class StateInside(Refusal):
    """The log itself lies in the lane."""

    path: str
    state_dir: str
    code = "state_inside"
    text = "{path} holds the state directory {state_dir}."
    remedy = "Move the state directory out of the lane, and name it with --state-dir."


@dataclass(eq=False)
class NotTheLanesBranch(Refusal):
    """HEAD is on another branch than the lane's own, which is not the lane's to delete."""

    branch: str
    own: str
    code = "not_the_lanes_branch"
    text = "the lane is on the branch {branch}, and its own is {own}."
    remedy = "Switch back to it first, or remove the lane without --delete-branch."


@dataclass(eq=False)
class NoSuchLane(Refusal):
    """No lane has that name."""

    lane: str
    code = "no_such_lane"
    text = "no lane is called {lane!r} here."
    remedy = "'laneyard list --all' shows every lane."
    status = 404


@dataclass(eq=False)
class AmbiguousLane(Refusal):
    """More than one lane answers to that name."""

    lane: str
    candidates: tuple[str, ...]
    code = "ambiguous_lane"
    text = "{lane!r} could be any of {candidates}."
    remedy = "Give more of the id."


@dataclass(eq=False)
class EditProtected(Refusal):
    """The main checkout is never removed."""

    path: str
    code = "edit_protected"
    text = "{path} is the repository's main checkout; it is never removed."


@dataclass(eq=False)
class WrongState(Refusal):
    """The command does not apply to a lane in this state."""

    command: str
    state: str
    code = "wrong_state"
    text = "a lane that is {state} cannot be {command}."
    remedy = "'laneyard show LANE' says what can be done."


@dataclass(eq=False)
class EvidenceUnavailable(Refusal):
    """Something that must be known could not be observed."""

    what: tuple[str, ...]
    why: tuple[str, ...]
    code = "evidence_unavailable"
    text = "{what} could not be observed ({why}), and unknown is never clean."
    remedy = "Mend the cause and try again; --force does not override it."


@dataclass(eq=False)
class IdentityChanged(Refusal):
    """Another directory stands where the lane was."""

    path: str
    code = "identity_changed"
    text = "{path} is not the directory that this lane was recorded with."
    remedy = "Put the lane's own directory back, or look at what replaced it."


@dataclass(eq=False)
class ForeignLock(Refusal):
    """Somebody else has locked the worktree."""

    reason: str
    code = "foreign_lock"
    text = "the worktree is locked by somebody else ({reason!r})."
    remedy = "Whoever locked it can 'git worktree unlock' it; --force does not override a lock."


@dataclass(eq=False)
class CannotHold(Refusal):
    """The lane holds things that a snapshot cannot keep."""

    obstacles: tuple[str, ...]
    code = "cannot_hold"
    text = "a snapshot cannot hold {obstacles}."
    remedy = "Deal with them first, or --force to record a consent to lose them when the lane is reaped."


@dataclass(eq=False)
class UnknownIgnored(Refusal):
    """Ignored files would not survive; of `count` the first are named, each with class, why and bytes."""

    paths: tuple[str, ...]
    ignored: tuple[dict[str, object], ...]
    count: int
    code = "unknown_ignored"
    text = "of what git ignores would be in no snapshot, {count} in all: {ignored}."
    remedy = "Keep them with --include-ignored, or --force to record a consent to lose them with the reaping."


@dataclass(eq=False)
class NotSnapshotted(Refusal):
    """There is work that no verified snapshot holds."""

    changed: int
    untracked: int
    code = "not_snapshotted"
    text = "{changed} changed and {untracked} untracked files are in no verified snapshot."
    remedy = "Take one with 'laneyard snapshot LANE'."


@dataclass(eq=False)
class ChangedSinceSnapshot(Refusal):
    """Somebody writes while we look."""

    snapshot: str
    code = "changed_since_snapshot"
    text = "the lane has changed since snapshot {snapshot} was taken."
    remedy = "Something is still writing there; stop it and try again."


@dataclass(eq=False)
class NoSuchEdition(Refusal):
    """That removal is not known."""

    edition: int
    known: tuple[int, ...]
    code = "no_such_edition"
    text = "there is no edition {edition} of this lane to restore (known: {known})."
    status = 404


@dataclass(eq=False)
class NoSuchSnapshot(Refusal):
    """That snapshot is not known."""

    snapshot: str
    code = "no_such_snapshot"
    text = "this lane has no snapshot {snapshot!r}."
    remedy = "'laneyard show LANE' lists them."
    status = 404


@dataclass(eq=False)
class SnapshotUnusable(Refusal):
    """The snapshot is not what the log says that it was."""

    snapshot: str
    why: str
    code = "snapshot_damaged"
    text = "snapshot {snapshot} cannot be read back: {why}."
    remedy = "'laneyard show LANE' lists the others; restore one with --snapshot."


@dataclass(eq=False)
class NoSuchPosition(Refusal):
    """The log does not go so far."""

    position: int
    last: int
    code = "no_such_position"
    text = "there is no position {position}; the log ends at {last}."
    status = 404


@dataclass(eq=False)
class TooManyToName(Refusal):
    """A consent must name what may be lost, and this is too much to name."""

    count: int
    limit: int
    code = "too_many_to_name"
    text = "a consent would have to name {count} paths; the limit is {limit}."
    remedy = "Remove some of them yourself first."


@dataclass(eq=False)
class CommandReused(Refusal):
    """A command's id has been used for something else."""

    command_id: str
    code = "command_reused"
    text = "the command id {command_id!r} was used for another request."
    remedy = "Use a fresh id for a new request."
    status = 422


@dataclass(eq=False)
class VersionMismatch(Refusal):
    """The lane is not as it was when the request was made."""

    expected: int
    version: int
    code = "version_mismatch"
    text = "version {expected} was expected, and the lane is at version {version}."
    remedy = "Look at the lane again, and ask with the version that it has now."
    status = 412


@dataclass(eq=False)
class AmbiguousSnapshot(Refusal):
    """More than one snapshot answers to that name."""

    snapshot: str
    candidates: tuple[str, ...]
    code = "ambiguous_snapshot"
    text = "{snapshot!r} could be any of {candidates}."
    remedy = "Give more of the id."


@dataclass(eq=False)
class NotInSnapshot(Refusal):
    """The snapshot has no content at that path."""

    snapshot: str
    path: str
    why: str
    code = "not_in_snapshot"
    text = "snapshot {snapshot} has no content at {path!r}: {why}."
    remedy = "'laneyard snapshot show SNAPSHOT --paths' lists what it holds."
    status = 404
