"""What a partial clone has left at its remote is never fetched: the remote may be a program, or anybody's."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from adapters.git.door import Location
from adapters.git.errors import GitFailed
from domain.errors import Refusal
from tests.sagas.hostile import Trap
from tests.sagas.scenarios import place_of
from tests.sagas.trees import walk, write

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow

REMOTES = {
    "ext": {"url": "ext::{program}"},
    "a helper": {"url": "evil::somewhere"},
    "a helper by name": {"url": "somewhere", "vcs": "evil"},
    "ssh": {"url": "ssh://nowhere.invalid/x"},
    "a proxy": {"url": "git://nowhere.invalid/x"},
    "upload-pack": {"url": "{home}/root", "uploadpack": "{program}"},
}


def promise(trap: Trap, remote: str) -> None:
    """Makes the repository a partial clone of a remote that is a program."""
    program = trap.program_of("fetched")
    settings = {
        name: value.format(program=program, home=trap.home) for name, value in REMOTES[remote].items()
    }
    settings = {f"remote.evil.{name}": value for name, value in settings.items()}
    settings |= {"remote.evil.promisor": "true", "remote.evil.fetch": "+refs/heads/*:refs/remotes/evil/*"}
    settings |= {"core.repositoryFormatVersion": "1", "extensions.partialClone": "evil"}
    settings |= {"protocol.allow": "always", "core.sshCommand": program, "core.gitProxy": program}
    trap.configure(trap.home / "root/.git/config", settings)


def lose(trap: Trap, path: str) -> str:
    """Takes the blob of a path out of the repository, and returns its id."""
    oid = trap.git(trap.root, "rev-parse", f"HEAD:{path}").decode().strip()
    os.unlink(os.path.join(trap.root, b".git/objects", oid[:2].encode(), oid[2:].encode()))
    return oid


@pytest.fixture
def trap(home: Path) -> Trap:
    return Trap(home)


@pytest.mark.parametrize("remote", REMOTES)
async def test_a_promised_object_that_is_missing_is_not_fetched(trap: Trap, remote: str) -> None:
    async with trap.open() as opened:
        await opened.create()
        place = place_of(opened)
        write(os.path.join(place, b"file"), b"changed\n")
        promise(trap, remote)
        lose(trap, "sub/inner")
        lose(trap, "file")
        before = walk(place, (b".git",))
        for act in (opened.snapshot, opened.remove, opened.reap):
            with suppress(Refusal):
                await act()
        assert trap.marks() == set()
        if opened.state() != "active":
            await opened.restore()
        assert walk(place, (b".git",)) == before
        assert trap.marks() == set()


@pytest.mark.parametrize("remote", [each for each in REMOTES if each != "ssh"])
async def test_only_a_caller_who_says_so_has_it_fetched(trap: Trap, remote: str) -> None:
    promise(trap, remote)
    common, oid = Location(trap.common), lose(trap, "file").encode()
    async with trap.open() as opened:
        git = opened.yard.git
        for write_ in (False, True):
            with pytest.raises(GitFailed):
                await git.run(b"cat-file", b"-p", oid, repository=common, write=write_)
        assert trap.marks() == set()
        with pytest.raises(GitFailed):
            await git.run(b"cat-file", b"-p", oid, repository=common, fetch=True)
        assert trap.marks() != set()
