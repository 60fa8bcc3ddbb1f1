"""A generated repository of realistic size, and the plain git that everything is compared with."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 20_240_501
SMALLEST, LARGEST = 200, 20_000  # bytes of a file; their logarithms are evenly spread, as in source trees
TEXT = 1 << 20  # bytes of which every file shows a piece
WORDS = (
    "return",
    "self",
    "value",
    "import",
    "lane",
    "for",
    "in",
    "if",
    "not",
    "None",
    "=",
    "(",
    ")",
    ":",
    "\n    ",
)
PER_DIRECTORY = 36
RACY = 1.1  # seconds after which git, which compares whole ones, can trust the times of a checkout


@dataclass(frozen=True)
class Scene:
    """A directory with a repository in it, and a home that is nobody's."""

    home: Path

    @property
    def root(self) -> Path:
        return self.home / "repository"

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Ada",
            "GIT_AUTHOR_EMAIL": "ada@example.org",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.org",
        }

    def git(self, place: Path, *arguments: str | Path, **extra: str) -> str:
        ran = subprocess.run(
            ["git", *arguments],
            cwd=place,
            env=self.environment | extra,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
        )
        return os.fsdecode(ran.stdout).strip()

    def git_dir(self, worktree: Path) -> Path:
        return Path((worktree / ".git").read_text().removeprefix("gitdir: ").strip())


def build(home: Path, files: int) -> Scene:
    """Makes the repository: so many files, committed once and packed."""
    scene = Scene(home)
    scene.root.mkdir(parents=True)
    scene.git(scene.root, "init", "-q", "-b", "main")
    scene.git(scene.root, "config", "gc.auto", "0")  # a housekeeping in the background would be timed, too
    for path, data in generated(files):
        (scene.root / path).parent.mkdir(parents=True, exist_ok=True)
        (scene.root / path).write_bytes(data)
    scene.git(scene.root, "add", "-A")
    scene.git(scene.root, "commit", "-q", "-m", "everything")
    scene.git(scene.root, "gc", "-q")
    return scene


def generated(files: int) -> Iterator[tuple[str, bytes]]:
    """Yields paths three levels deep with text of their own, the same in every run."""
    chance = random.Random(SEED)
    text = " ".join(chance.choices(WORDS, k=TEXT // 4)).encode()[:TEXT]
    for number in range(files):
        directory = number // PER_DIRECTORY
        path = (
            f"src/package_{directory // 24}/part_{directory % 24 // 4}/group_{directory}/module_{number}.py"
        )
        size = int(SMALLEST * (LARGEST / SMALLEST) ** chance.random())
        start = chance.randrange(len(text) - LARGEST)
        yield path, f"# module {number}\n".encode() + text[start : start + size]


def settle(scene: Scene, *worktrees: Path) -> None:
    """Has git trust the files' times, as a user's next `git status` does from the next second on."""
    for worktree in worktrees:
        checked_out = (scene.git_dir(worktree) / "index").stat().st_mtime
        time.sleep(max(0.0, checked_out + RACY - time.time()))
        scene.git(worktree, "status", "--porcelain")


def dirty(worktree: Path, salt: str, changed: int = 5, new: int = 5) -> None:
    """Changes files and adds others, with content that nobody has seen: git keeps what it has seen before."""
    files = sorted((worktree / "src").rglob("module_*.py"))
    for path in files[:changed]:
        path.write_bytes(path.read_bytes() + f"# changed {salt}\n".encode())
    for number in range(new):
        place = files[number % len(files)].parent
        (place / f"new_{number}.py").write_bytes(f"# new {number} {salt}\n".encode() * 100)


def captured_by_git(scene: Scene, worktree: Path, *options: str) -> None:
    """Writes the worktree as a tree, over a copy of its index: the least that a snapshot has to do."""
    index = scene.git_dir(worktree) / "copied-index"
    shutil.copy2(index.with_name("index"), index)
    scene.git(worktree, *options, "add", "-A", GIT_INDEX_FILE=str(index))
    scene.git(worktree, *options, "write-tree", GIT_INDEX_FILE=str(index))
    index.unlink()


def write_large(path: Path, megabytes: int) -> None:
    """Writes so many megabytes that no program can make smaller."""
    chance = random.Random(SEED)
    with path.open("wb") as file:
        for _ in range(megabytes):
            file.write(chance.randbytes(10**6))
