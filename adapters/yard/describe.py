"""What git's configuration says of a repository that is not known yet."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from adapters.git.door import Location
from adapters.git.errors import GitOutputUnreadable
from adapters.git.parse import terminated
from adapters.repositories import Repository

if TYPE_CHECKING:
    from adapters.git.door import Git
    from adapters.git.repository import Found


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
    records = (record.partition(b"\n") for record in terminated("config", ran.out, b"\0"))
    settings = {name.lower(): value for name, _, value in records}
    if b"core.repositoryformatversion" not in settings:  # every repository says that much
        raise GitOutputUnreadable("config", ran.out)
    return settings
