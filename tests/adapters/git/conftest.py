"""A real git in a home of its own: nothing here reads the user's configuration or the network."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from adapters.git.door import Git, Location

if TYPE_CHECKING:
    from pathlib import Path


class Workshop:
    """Real repositories in one temporary directory, made with the plain git program."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home),
            "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Ada",
            "GIT_AUTHOR_EMAIL": "ada@example.org",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.org",
        }

    def git(self, place: Path, *arguments: str | bytes, stdin: bytes = b"", check: bool = True) -> bytes:
        ran = subprocess.run(
            ["git", *arguments],
            cwd=place,
            env=self.environment,
            input=stdin,
            capture_output=True,
            check=False,
        )
        assert not check or ran.returncode == 0, ran.stderr
        return ran.stdout

    def repository(self, name: str = "root", *options: str) -> Path:
        place = self.home / name
        place.mkdir()
        self.git(place, "init", "-q", "-b", "main", *options)
        (place / "file").write_text("one\n")
        self.git(place, "add", ".")
        self.git(place, "commit", "-q", "-m", "first")
        return place

    def lane(self, root: Path, name: str = "lane") -> Path:
        self.git(root, "worktree", "add", "-q", "-b", name, str(self.home / name))
        return self.home / name

    def fake(self, script: str, *, output_limit: int = 1 << 20, read_timeout: float = 60.0) -> Git:
        """Writes a program to stand in for git, which finds its place in $HERE, and returns a door to it."""
        program = self.home / "fake-git"
        program.write_text(f"#!/bin/sh\nHERE={self.home}\n{script}\n")
        program.chmod(0o755)
        environment = {"PATH": os.environ["PATH"]}
        return Git(os.fsencode(program), environment, output_limit=output_limit, read_timeout=read_timeout)

    @property
    def location(self) -> Location:
        """Where a program that is not git runs."""
        return Location(os.fsencode(self.home))


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


@pytest.fixture
def door(workshop: Workshop) -> Git:
    return Git(b"git", workshop.environment)
