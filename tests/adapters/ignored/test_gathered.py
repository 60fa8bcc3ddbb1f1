"""Ignored paths are told by the directories that hold nothing else, and never with anything else."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from adapters.ignored.classes import Rules
from adapters.ignored.evidence import classify
from adapters.ignored.patterns import Patterns
from tests.adapters.ignored.test_evidence import TAG, VENV, kinds, put, pyc, told

if TYPE_CHECKING:
    from pathlib import Path

CACHE = {
    ".cache/CACHEDIR.TAG": TAG,
    ".cache/.gitignore": "*\n",
    ".cache/README.md": "r",
    ".cache/v/nodes": "[]",
    ".cache/empty/": "",
}
LISTED = (".cache/.gitignore", ".cache/CACHEDIR.TAG", ".cache/README.md", ".cache/v/")


def test_a_cache_that_ignores_itself_is_told_as_one(tmp_path: Path) -> None:
    put(tmp_path, CACHE)
    (each,) = told(tmp_path, *LISTED)
    assert (each.path, each.kind, each.why) == (".cache", "rebuildable", "CACHEDIR.TAG")


def test_git_lists_such_a_cache_by_its_parts(tmp_path: Path) -> None:
    put(tmp_path, CACHE | VENV | {".venv/.gitignore": "*\n"})
    environment = os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    status = ("git", "status", "--porcelain", "-z", "--ignored=matching", "-uall")
    for command in (("git", "init", "-q"), status):
        ran = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    shown = ran.stdout.split(b"\0")
    paths = [each[3:] for each in shown if each.startswith(b"!! ")]
    assert len(paths) > 6
    found = classify(os.fsencode(tmp_path), paths, Rules())
    assert {each.path: each.kind for each in found} == {".cache": "rebuildable", ".venv": "rebuildable"}


@pytest.mark.parametrize("other", [".cache/mine.txt", ".cache/empty/mine", ".cache/own/.git/HEAD"])
def test_a_cache_with_something_else_in_it_is_told_by_its_parts(tmp_path: Path, other: str) -> None:
    put(tmp_path, CACHE | {other: ""})
    assert {each.path for each in told(tmp_path, *LISTED)} == {each.rstrip("/") for each in LISTED}


def test_a_cache_of_which_git_tracks_something_is_told_by_its_parts(tmp_path: Path) -> None:
    put(tmp_path, CACHE)
    paths = [each.encode() for each in LISTED]
    found = classify(os.fsencode(tmp_path), paths, Rules(), changed=[b".cache/v/deleted"])
    assert len(found) == len(LISTED)


def test_an_environment_that_ignores_itself_says_what_is_strange_in_it(tmp_path: Path) -> None:
    put(tmp_path, VENV | {".venv/main.py": ""})
    (each,) = told(tmp_path, ".venv/bin/", ".venv/lib/", ".venv/main.py", ".venv/pyvenv.cfg")
    assert (each.path, each.kind) == (".venv", "unknown")
    assert each.why.endswith(".venv/main.py")


def many(root: Path, count: int = 3) -> list[str]:
    names = [f"p/__pycache__/m{n}.cpython-311.pyc" for n in range(count)]
    put(root, {f"p/m{n}.py": "" for n in range(count)})
    pyc(root, *names)
    return names


def test_bytecode_that_is_listed_file_by_file_is_told_by_its_directory(tmp_path: Path) -> None:
    (each,) = told(tmp_path, *many(tmp_path))
    assert (each.path, each.kind, each.entries) == ("p/__pycache__", "rebuildable", 4)
    assert each.why == "bytecode of a present source"


def test_what_is_made_again_is_told_by_the_topmost_directory_that_has_nothing_else(tmp_path: Path) -> None:
    put(
        tmp_path,
        {"gen/a/1.o": "", "gen/a/2.o": "", "gen/b/3.o": "", "src/4.o": "", "src/5.o": "", "src/x": ""},
    )
    paths = ("gen/a/1.o", "gen/a/2.o", "gen/b/3.o", "src/4.o", "src/5.o")
    rules = Rules(rebuildable=Patterns(["*.o"]))
    assert [each.path for each in told(tmp_path, *paths, rules=rules)] == ["gen", "src/4.o", "src/5.o"]


@pytest.mark.parametrize("more", ["notes.txt", "orphan.cpython-311.pyc"])
def test_a_directory_with_anything_else_is_not_told_as_one(tmp_path: Path, more: str) -> None:
    names = many(tmp_path)
    put(tmp_path, {f"p/__pycache__/{more}": ""})
    assert set(kinds(tmp_path, *names)) == set(names)
    found = kinds(tmp_path, *names, f"p/__pycache__/{more}")
    assert found == dict.fromkeys(names, "rebuildable") | {f"p/__pycache__/{more}": "unknown"}


def test_what_a_request_names_is_told_singly(tmp_path: Path) -> None:
    names = many(tmp_path)
    rules = Rules(wanted=Patterns(["m1.*"]))
    assert [each.path for each in told(tmp_path, *names, rules=rules)] == names


def test_the_root_is_never_told(tmp_path: Path) -> None:
    put(tmp_path, {"CACHEDIR.TAG": TAG, "a.o": "", "b.o": ""})
    found = kinds(tmp_path, "CACHEDIR.TAG", "a.o", "b.o", rules=Rules(rebuildable=Patterns(["*"])))
    assert set(found) == {"CACHEDIR.TAG", "a.o", "b.o"}
