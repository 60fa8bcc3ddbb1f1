"""What a request for a command may say. A key that is not here is refused by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from adapters.ignored.wanted import checked
from domain.errors import Refusal

WORD = 4096  # characters of a name, a revision or an id: more than any that is taken
OWNER = 200  # characters of an owner, who is told with every lane

Path = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=12_288,
        description="a path, with %XX for `%` and for bytes that are not UTF-8",
    ),
]

# Unset, and not false, is left out where a request is encoded: those that were sent before stay the same.
Include = Annotated[
    bool | list[str],
    Meta(
        description="which ignored files the snapshot holds as well: all that are not rebuildable, "
        "or those that patterns as in a .gitignore at the lane's root name"
    ),
]


@dataclass(eq=False)
class InvalidRequest(Refusal):
    """The request cannot be read: a body, a header or a parameter is not as it must be."""

    why: str
    code = "invalid_request"
    text = "the request cannot be read: {why}."
    remedy = "See /openapi.json."
    status = 400


class Body(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a request says."""


class CreateBody(Body, frozen=True, kw_only=True):
    """A lane to be made in the repository around a path; `parent` is a lane's slug or id."""

    repository: Path
    name: Annotated[
        str,
        Meta(max_length=WORD, description="1 to 100 printable characters; the slug is made from it"),
    ]
    base: (
        Annotated[
            str,
            Meta(max_length=WORD, description="what to start from; else what the root has checked out"),
        ]
        | None
    ) = None
    parent: (
        Annotated[
            str, Meta(max_length=WORD, description="the slug or id of the lane that this one comes from")
        ]
        | None
    ) = None
    branch: Annotated[str, Meta(max_length=WORD, description="the branch's name; else the slug")] | None = (
        None
    )
    owner: Annotated[str, Meta(max_length=OWNER, description="`manual` or `session:ID`")] = "manual"


class SnapshotBody(Body, frozen=True, kw_only=True):
    """What a snapshot holds beyond what git does not ignore."""

    include_ignored: Include | UnsetType = UNSET


class RemoveBody(Body, frozen=True, kw_only=True):
    """How a lane is put away."""

    force: Annotated[bool, Meta(description="records a consent to lose what no snapshot can keep")] = False
    reap: Annotated[bool, Meta(description="deletes it afterwards")] = False
    delete_branch: Annotated[bool, Meta(description="deletes its branch, where a snapshot holds it")] = False
    include_ignored: Include | UnsetType = UNSET


class RestoreBody(Body, frozen=True, kw_only=True):
    """What a lane is brought back from: by default its last edition."""

    edition: Annotated[int, Meta(ge=1, le=1 << 31, description="which removal to undo")] | None = None
    snapshot: (
        Annotated[str, Meta(max_length=WORD, description="the id of the snapshot to make the lane from")]
        | None
    ) = None


class ReapBody(Body, frozen=True, kw_only=True):
    """Nothing more needs to be said."""


class ReviewBody(Body, frozen=True, kw_only=True):
    """Nothing more needs to be said: the way out is in the address."""


class SweepBody(Body, frozen=True, kw_only=True):
    """Which repository is swept: one, the one around a path if there is one, or all."""

    repository: Path | None = None
    near: Annotated[Path, Meta(pattern="^/")] | None = None


class RepositoryBody(Body, frozen=True, kw_only=True):
    """A path inside the repository that is to come under our care."""

    path: Path


class RebuildBody(Body, frozen=True, kw_only=True):
    """Nothing more needs to be said."""


def included(said: bool | list[str] | UnsetType) -> bool | tuple[str, ...]:
    """Returns which ignored files are asked for. Raises InvalidPattern."""
    return said is True if isinstance(said, bool | UnsetType) else checked(said)


def misfit(error: Exception) -> InvalidRequest:
    """Returns the refusal of a body that is not as it is described."""
    return InvalidRequest(f"body: {error}")
