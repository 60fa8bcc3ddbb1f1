from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.git.errors import RegistrationUnreadable
from adapters.git.repository import Found, find_repository

if TYPE_CHECKING:
    from pathlib import Path

    from tests.adapters.git.conftest import Workshop


def found(common: Path, git_dir: Path, top_level: Path | None, linked: bool) -> Found:
    top = None if top_level is None else os.fsencode(top_level)
    return Found(os.fsencode(common), os.fsencode(git_dir), top, linked)


def find(path: Path) -> Found | None:
    return find_repository(os.fsencode(path))


def test_a_repository_is_found_from_anywhere_inside_it(workshop: Workshop) -> None:
    root = workshop.repository()
    (root / "a/b").mkdir(parents=True)
    main = found(root / ".git", root / ".git", root, False)
    assert find(root) == find(root / "a/b") == find(root / "file") == find(root / "a/none/yet") == main


def test_a_linked_worktree_is_found_in_all_its_spellings(workshop: Workshop) -> None:
    root = workshop.repository()
    lane = workshop.lane(root)
    (workshop.home / "link").symlink_to(lane)
    linked = found(root / ".git", root / ".git/worktrees/lane", lane, True)
    assert find(lane) == find(workshop.home / "link") == linked
    (lane / ".git").write_text("gitdir: ../root/.git/worktrees/lane\n")
    assert find(lane) == linked


def test_a_git_directory_has_no_top_level(workshop: Workshop) -> None:
    bare = workshop.home / "bare.git"
    workshop.git(workshop.home, "init", "-q", "--bare", str(bare))
    assert find(bare) == find(bare / "refs/heads") == found(bare, bare, None, False)


def test_a_submodule_is_a_repository_of_its_own(workshop: Workshop) -> None:
    root = workshop.repository()
    workshop.repository("library")
    workshop.git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../library", "sub")
    git_dir = root / ".git/modules/sub"
    assert find(root / "sub") == found(git_dir, git_dir, root / "sub", False)


def test_a_git_directory_may_be_a_link(workshop: Workshop) -> None:
    root = workshop.repository()
    (root / ".git").rename(workshop.home / "store")
    (root / ".git").symlink_to(workshop.home / "store")
    lane = workshop.lane(root)
    store = workshop.home / "store"
    assert find(root) == found(store, store, root, False)
    assert find(lane) == found(store, store / "worktrees/lane", lane, True)


def test_what_only_looks_like_a_repository_is_passed_over(workshop: Workshop) -> None:
    root = workshop.repository()
    (root / "hollow/.git").mkdir(parents=True)
    assert find(root / "hollow") == find(root)


@pytest.mark.parametrize("text", ["gitdir: /nowhere\n", "gitdir: \n", "nonsense", ""])
def test_a_broken_pointer_never_answers_for_the_repository_around(workshop: Workshop, text: str) -> None:
    lane = workshop.repository() / "lane"
    lane.mkdir()
    (lane / ".git").write_text(text)
    with pytest.raises(RegistrationUnreadable):
        find(lane)


def test_nothing_is_found_where_there_is_nothing(workshop: Workshop) -> None:
    assert find(workshop.home) is None
    assert find(workshop.home / "none") is None
