"""Repositories: from a path that a person gives to the repository's key, root and object format."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal
from uuid import NAMESPACE_URL, uuid5

import msgspec

from adapters.git.door import Location
from adapters.git.errors import RegistrationUnreadable
from adapters.git.repository import find_repository
from domain.envelope import REPOSITORY_STREAM
from domain.errors import NotARepository
from domain.paths import pack

if TYPE_CHECKING:
    from adapters.git.door import Git
    from adapters.git.repository import Found

MANAGED = b".laneyard/worktrees"
QUARANTINE = b".laneyard/quarantine"


class Repository(msgspec.Struct, frozen=True):
    """A repository under our care: its key is the canonical path of its common directory."""

    common: bytes
    root: bytes
    object_format: Literal["sha1", "sha256"]

    @property
    def key(self) -> str:
        """Returns the key, packed."""
        return pack(self.common)

    @property
    def stream(self) -> str:
        """Returns the stream that tells of the repository."""
        return REPOSITORY_STREAM + str(uuid5(NAMESPACE_URL, self.key))

    def managed(self, slug: str) -> bytes:
        """Returns where a lane with this slug is made."""
        return os.path.join(self.root, MANAGED, slug.encode())

    def resting(self, name: str) -> bytes:
        """Returns where a removed lane rests: on the same file system, and as deep as the managed root."""
        return os.path.join(self.root, QUARANTINE, name.encode())


def find(path: bytes) -> Found:
    """Returns the repository around a path, without a process. Raises NotARepository."""
    try:
        found = find_repository(path)
    except (RegistrationUnreadable, OSError) as error:
        raise NotARepository(f"{os.fsdecode(path)} ({error})") from error
    if found is None:
        raise NotARepository(os.fsdecode(path))
    return found


async def describe(git: Git, found: Found) -> Repository:
    """Returns what git's configuration says of a repository that is not known yet."""
    settings = await _configuration(git, found.common_dir)
    worktree = settings.get(b"core.worktree")
    if not found.linked and found.top_level is not None:
        root = found.top_level
    elif worktree is not None:
        root = os.path.realpath(os.path.join(found.common_dir, worktree))
    elif os.path.basename(found.common_dir) == b".git":
        root = os.path.dirname(found.common_dir)
    else:
        root = found.common_dir
    sha256 = settings.get(b"extensions.objectformat") == b"sha256"
    return Repository(found.common_dir, root, "sha256" if sha256 else "sha1")


async def _configuration(git: Git, common: bytes) -> dict[bytes, bytes]:
    arguments = (b"config", b"--local", b"--null", b"--list")
    ran = await git.run(*arguments, repository=Location(common))
    records = (record.partition(b"\n") for record in ran.out.split(b"\0") if record)
    return {name.lower(): value for name, _, value in records}
