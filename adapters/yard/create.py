"""Creating a lane: the base becomes a commit and the names are chosen before anything is written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec

from adapters.git.door import Location
from adapters.git.heads import head_users, read_head
from adapters.git.parse import parse_batch_check
from adapters.repositories import MANAGED
from adapters.store.journal import ClaimTaken
from adapters.yard.yard import Done, ended, find_lane
from domain import lane as lanes
from domain.commands import CreateLane
from domain.errors import (
    BranchExists,
    BranchInUse,
    NotWritable,
    PathInUse,
    UnbornHead,
    UnknownBase,
    UnsafePath,
)
from domain.naming import branch_ref, numbered, short_branch, slugify
from domain.paths import pack
from domain.states import Failed, NeedsReview

if TYPE_CHECKING:
    from adapters.engine import Request
    from adapters.repositories import Repository
    from adapters.store.reader import Record
    from adapters.yard.yard import Yard

SUFFIXES = 10_000  # names that are tried before the path counts as in use


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
    slug = slugify(wish.name)
    explicit = branch_ref(wish.branch) if wish.branch is not None else None
    rows = yard.reader.lanes()
    parent = find_lane(rows, repository.key, wish.parent) if wish.parent is not None else None
    _require_room(repository)
    taken: set[str] = set()
    while True:
        number, chosen = _free(rows, repository, slug, taken)
        ref = explicit or branch_ref(chosen)
        base, existing = await _resolve(yard, repository, wish, parent, ref)
        if existing is not None:
            if explicit is None and number > 1:
                taken.add(chosen)
                continue
            _refuse_branch(repository, ref, existing)
        command = _command(repository, wish, chosen, ref, base, parent)
        lanes.decide(lanes.INITIAL, command)  # what it refuses, it refuses before the repository is noted
        await yard.register(repository, request)
        try:
            committed = await yard.engine.handle(command.lane, command, request)
        except ClaimTaken as error:
            if explicit is not None and error.kind == "branch":
                raise BranchInUse(short_branch(ref) or ref, f"lane {error.holder}") from error
            taken.add(chosen)
            continue
        match committed.lane:
            case Failed(code=code, reason=reason) | NeedsReview(cause=code, reason=reason):
                return ended(committed, (code, reason))
            case _:
                return ended(committed)


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


def _free(rows: list[Record], repository: Repository, slug: str, taken: set[str]) -> tuple[int, str]:
    """Returns the first slug that no lane has and where nothing is on disk."""
    held = {
        row["slug"]
        for row in rows
        if row["repository"] == repository.key and row["state"] not in ("reaped", "failed")
    }
    for number in range(1, SUFFIXES):
        chosen = numbered(slug, number)
        if chosen not in held and chosen not in taken and not os.path.lexists(repository.managed(chosen)):
            return number, chosen
    raise PathInUse(os.fsdecode(repository.managed(slug)))


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


def _refuse_branch(repository: Repository, ref: str, at: str) -> None:
    users = head_users(repository.common, ref.encode())
    branch = short_branch(ref) or ref
    if users:
        raise BranchInUse(branch, f"the worktree of {os.fsdecode(users[0])}")
    raise BranchExists(branch, at[:12])


async def _resolve(
    yard: Yard, repository: Repository, wish: Wish, parent: Record | None, ref: str
) -> tuple[Base, str | None]:
    """Returns the base as a commit, and where the branch is if it exists: one process for both."""
    wanted = wish.base or (str(parent["branch"] or parent["head"]) if parent else None)
    if wanted is not None and (not wanted.strip() or any(c in wanted for c in "\n\0") or _lone(wanted)):
        raise UnknownBase(wanted)
    symbol = wanted or _head_branch(repository)
    names = [f"refs/heads/{symbol}", f"refs/remotes/{symbol}", f"refs/tags/{symbol}", symbol]
    lines = [*names, f"{symbol}^{{commit}}", ref]
    ran = await yard.git.run(
        b"cat-file",
        b"--batch-check",
        repository=Location(repository.common),
        stdin="".join(line + "\n" for line in lines).encode(),
    )
    found = parse_batch_check(ran.out)
    commit, branch = found[-2], found[-1]
    if commit is None and wanted is None:
        raise UnbornHead(os.fsdecode(repository.root))
    if commit is None:
        raise UnknownBase(str(wanted))
    full = next((name for name, each in zip(names, found[:3], strict=False) if each is not None), symbol)
    return Base(full, commit[0]), branch[0] if branch else None


def _lone(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _head_branch(repository: Repository) -> str:
    """Returns the branch that the main checkout is on, by its full name, or HEAD where it is on none."""
    head = read_head(repository.common) or b"HEAD"
    return head.removeprefix(b"ref:").strip().decode("utf-8") if head.startswith(b"ref:") else "HEAD"
