"""Repositories: from a path that a person gives to the repository around it, without a process."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal
from uuid import NAMESPACE_URL, uuid5

import msgspec

from adapters.git.errors import RegistrationUnreadable
from adapters.git.repository import find_repository
from domain.envelope import REPOSITORY_STREAM
from domain.errors import NotARepository
from domain.paths import pack

if TYPE_CHECKING:
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
    """Returns the repository around a directory, without a process. Raises NotARepository."""
    if not os.path.isdir(path):  # a mistyped name must not mean the repository around where it would be
        raise NotARepository(f"{os.fsdecode(path)} (no such directory)")
    try:
        found = find_repository(path)
    except (RegistrationUnreadable, OSError) as error:
        raise NotARepository(f"{os.fsdecode(path)} ({error})") from error
    if found is None:
        raise NotARepository(os.fsdecode(path))
    return found
