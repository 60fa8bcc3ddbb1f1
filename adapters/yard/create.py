"""Creating a lane: the base becomes a commit and the names are chosen before anything is written."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from adapters.git.door import Location
from adapters.git.errors import RegistrationUnreadable
from adapters.git.heads import head_users, read_head
from adapters.git.parse import parse_batch_check
from adapters.git.registration import read_registration
from adapters.lookup import GONE, find_lane, require_understood
from adapters.repositories import MANAGED
from adapters.store.journal import ClaimTaken
from adapters.yard.yard import Concluded, Done, ended
from domain import lane as lanes
from domain.commands import CreateLane
from domain.envelope import lane_of
from domain.errors import (
    BranchExists,
    BranchInUse,
    NotWritable,
    PathInUse,
    Refusal,
    UnbornHead,
    UnknownBase,
    UnsafePath,
)
from domain.naming import branch_ref, numbered, short_branch, slugify
from domain.paths import pack
from domain.states import Failed, NeedsReview, Undoing

if TYPE_CHECKING:
    from adapters.engine import Request
    from adapters.repositories import Repository
    from adapters.store.reader import Record
    from adapters.yard.yard import Yard


@dataclass(eq=False)
class BranchConflicts(Refusal):
    """Git keeps branches as paths: `a` and `a/b` cannot both exist."""

    branch: str
    other: str
    code = "branch_conflict"
    text = "the branch {branch} cannot exist beside {other}: git keeps branches as paths."
    remedy = "Choose another name, or another branch with --branch."


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A lane as it is asked for."""

    name: str
    base: str | None = None
    parent: str | None = None
    branch: str | None = None
    owner: str = "manual"


class Base(msgspec.Struct, frozen=True):
    """Where a lane starts."""

    ref: str
    commit: str


async def create(yard: Yard, repository: Repository, wish: Wish, request: Request) -> Done:
    """Makes a lane, or leaves nothing of it. Raises a Refusal."""
    if (earlier := yard.answered(request)) is not None:
        return _created(earlier)
    slug = slugify(wish.name)
    explicit = branch_ref(wish.branch) if wish.branch is not None else None
    rows = yard.reader.lanes()
    parent = find_lane(rows, repository.key, wish.parent, None) if wish.parent is not None else None
    if parent is not None:
        require_understood(parent)
    _require_room(repository)
    taken: set[str] = set()
    while True:
        number, chosen = _free(_here(rows, repository), repository, slug, taken)
        ref = explicit or branch_ref(chosen)
        base, obstacle = await _resolve(yard, repository, wish, parent, ref)
        if obstacle is not None:
            if explicit is None and number > 1:
                taken.add(chosen)
                continue
            raise obstacle
        command = _command(repository, wish, chosen, ref, base, parent)
        lanes.decide(lanes.INITIAL, command)  # what it refuses, it refuses before the repository is noted
        await yard.register(repository, request)
        try:
            await yard.engine.handle(command.lane, command, msgspec.structs.replace(request, expected=None))
        except ClaimTaken as error:
            if explicit is not None and error.kind == "branch":
                raise BranchInUse(short_branch(ref) or ref, _lane(yard, error.holder)) from error
            taken.add(chosen)
            continue
        return _created(yard.concluded(request, command.lane))


def _created(concluded: Concluded) -> Done:
    match concluded.lane:
        case Failed() | Undoing() | NeedsReview() as lane:
            code = lane.detail if isinstance(lane, NeedsReview) else lane.code
            return ended(concluded, (code, lane.reason))
        case _:
            return ended(concluded)


def _command(
    repository: Repository, wish: Wish, slug: str, ref: str, base: Base, parent: Record | None
) -> CreateLane:
    return CreateLane(
        lane=str(uuid4()),
        repository=repository.key,
        name=wish.name,
        slug=slug,
        path=pack(repository.managed(slug)),
        branch=ref,
        base_ref=base.ref,
        base_commit=base.commit,
        parent=str(parent["id"]) if parent else None,
        owner=wish.owner,
    )


def _here(rows: list[Record], repository: Repository) -> list[Record]:
    """Returns the repository's lanes that hold their names."""
    return [row for row in rows if row["repository"] == repository.key and row["state"] not in GONE]


def _free(living: list[Record], repository: Repository, slug: str, taken: set[str]) -> tuple[int, str]:
    """Returns the first slug that no lane has and where nothing is on disk, and its number.

    Raises PathInUse where the name is free but something that is no lane's is in its place.
    """
    names, paths = {row["slug"] for row in living}, {row["path"] for row in living}
    number = 0
    while True:
        number += 1
        chosen = numbered(slug, number)
        path = repository.managed(chosen)
        there = os.path.lexists(path)
        if chosen not in names and chosen not in taken and not there:
            return number, chosen
        if number == 1 and there and chosen not in names and pack(path) not in paths:
            raise PathInUse(os.fsdecode(path))


def _require_room(repository: Repository) -> None:
    """Refuses before anything is planned where the managed root could not be made as it must be."""
    place = repository.root
    for part in MANAGED.split(b"/"):
        inner = os.path.join(place, part)
        if os.path.islink(inner):
            raise UnsafePath(os.fsdecode(inner), "it is a symbolic link")
        if os.path.lexists(inner) and not os.path.isdir(inner):
            raise UnsafePath(os.fsdecode(inner), "it is not a directory")
        if not os.path.isdir(inner):
            break
        place = inner
    for directory in (place, repository.common):
        if os.statvfs(directory).f_flag & os.ST_RDONLY:
            raise NotWritable(os.fsdecode(directory), "the file system is read-only")
        if not os.access(directory, os.W_OK | os.X_OK):
            raise NotWritable(os.fsdecode(directory), "the permissions do not allow it")


async def _resolve(
    yard: Yard, repository: Repository, wish: Wish, parent: Record | None, ref: str
) -> tuple[Base, Refusal | None]:
    """Returns the base as a commit, and why the branch cannot be made: one process for both."""
    wanted = wish.base
    if wanted is None and parent is not None:
        wanted = str(parent["branch"] or parent["head"])
    if wanted is not None and (not wanted.strip() or any(c in wanted for c in "\n\0") or _lone(wanted)):
        raise UnknownBase(wanted)
    symbol = wanted or _head_branch(repository)
    names, above = _spellings(symbol), _above(ref)
    found = await _look_up(yard, repository, [symbol, f"{symbol}^{{commit}}", ref, *names, *above])
    (meant, commit, branch), known = found[:3], found[3 : 3 + len(names)]
    if commit is None and wanted is None:
        raise UnbornHead(os.fsdecode(repository.root))
    if commit is None:
        raise UnknownBase(str(wanted))
    full = next((name for name, each in zip(names, known, strict=True) if each == meant), symbol)
    later = found[3 + len(names) :]
    in_the_way = [name for name, each in zip(above, later, strict=True) if each is not None]
    return Base(full, commit), await _obstacle(yard, repository, ref, branch, in_the_way)


def _spellings(symbol: str) -> list[str]:
    """Returns the full names that git tries for one that people give, in its order (gitrevisions(7))."""
    if symbol.startswith("refs/"):
        return [symbol]
    prefixes = ("refs/", "refs/tags/", "refs/heads/", "refs/remotes/")
    return [*(prefix + symbol for prefix in prefixes), f"refs/remotes/{symbol}/HEAD"]


async def _look_up(yard: Yard, repository: Repository, names: list[str]) -> list[str | None]:
    """Returns the object that each name means, or None."""
    ran = await yard.git.run(
        b"cat-file",
        b"--batch-check",
        repository=Location(repository.common),
        stdin="".join(name + "\n" for name in names).encode(),
    )
    return [each[0] if each else None for each in parse_batch_check(ran.out, len(names))]


def _above(ref: str) -> list[str]:
    """Returns the branches that would have to be directories: `refs/heads/a` for `refs/heads/a/b`."""
    parts = ref.split("/")
    return ["/".join(parts[:end]) for end in range(3, len(parts))]


async def _obstacle(
    yard: Yard, repository: Repository, ref: str, at: str | None, above: list[str]
) -> Refusal | None:
    """Returns why git would not make the branch, or None."""
    branch = short_branch(ref) or ref
    if at is not None:
        users = head_users(repository.common, ref.encode())
        if users:
            return BranchInUse(branch, _holder(yard, repository, users[0]))
        return BranchExists(branch, at[:12])
    other = above[0] if above else await _first_below(yard, repository, ref)
    return None if other is None else BranchConflicts(branch, short_branch(other) or other)


def _holder(yard: Yard, repository: Repository, git_dir: bytes) -> str:
    """Returns whose worktree a git directory belongs to: a lane of ours, or where it is."""
    if git_dir == repository.common:
        return f"the main checkout {os.fsdecode(repository.root)}"
    try:
        path = os.path.dirname(read_registration(git_dir).points_to)
    except RegistrationUnreadable:
        return f"the worktree that is registered at {os.fsdecode(git_dir)}"
    lane = next((row for row in _here(yard.reader.lanes(), repository) if row["path"] == pack(path)), None)
    where = f"the worktree {os.fsdecode(path)}"
    return where if lane is None else f"lane {lane['slug']}, {where}"


def _lane(yard: Yard, stream: str) -> str:
    """Returns what people call the lane that holds a claim."""
    row = next((row for row in yard.reader.lanes() if row["id"] == lane_of(stream)), None)
    return f"lane {row['slug']}" if row else f"lane {lane_of(stream)}"


async def _first_below(yard: Yard, repository: Repository, ref: str) -> str | None:
    """Returns a branch for which this one would have to be a directory; mostly costs no process."""
    common = repository.common
    if not _may_be_below(common, ref.encode()):
        return None
    arguments = (b"for-each-ref", b"--count=1", b"--format=%(refname)", ref.encode() + b"/")
    ran = await yard.git.run(*arguments, repository=Location(common))
    return ran.out.decode("utf-8", "replace").strip() or None


def _may_be_below(common: bytes, ref: bytes) -> bool:
    """Tells whether a branch may lie below this name: a loose one, a packed one, or one in a reftable."""
    if any(os.path.isdir(os.path.join(common, each)) for each in (ref, b"reftable")):
        return True
    try:
        with open(os.path.join(common, b"packed-refs"), "rb") as lines:
            return any(b" " + ref + b"/" in line for line in lines)
    except FileNotFoundError:
        return False


def _lone(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _head_branch(repository: Repository) -> str:
    """Returns the branch that the main checkout is on, by its full name, or HEAD where it is on none."""
    head = read_head(repository.common) or b"HEAD"
    return head.removeprefix(b"ref:").strip().decode("utf-8") if head.startswith(b"ref:") else "HEAD"
