"""Filters are taken away by name: whichever git would find is found, and where there is none, at no cost."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from adapters.git.door import Git, Location
from adapters.git.programs import neutral
from tests.sagas.hostile import ODD, Trap
from tests.sagas.trees import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture
def trap(home: Path) -> Trap:
    made = Trap(home)
    write(os.path.join(made.root, b".gitattributes"), b"file filter=evil\n")
    made.git(made.root, "add", ".")
    made.git(made.root, "commit", "-q", "-m", "attributes")
    return made


@pytest.fixture
def door(trap: Trap) -> Git:
    return Git(os.fsencode(trap.program), trap.caught)


async def look(trap: Trap, door: Git) -> int:
    """Has git compare the file, and returns how many processes that took."""
    write(os.path.join(trap.root, b"file"), b"ONE\n")
    before = door.started
    ran = await door.run(b"status", b"-z", b"--porcelain", repository=Location(trap.common, trap.root))
    assert ran.out == b" M file\0"
    return door.started - before


def evil(trap: Trap) -> dict[str, str]:
    return {"filter.evil.clean": trap.command("cleaned"), "filter.evil.required": "true"}


def by_link(trap: Trap) -> None:
    trap.configure(trap.home / "dotfiles/gitconfig", evil(trap))
    (trap.home / ".gitconfig").symlink_to(trap.home / "dotfiles/gitconfig")


def by_dangling_link_beside(trap: Trap) -> None:
    (trap.home / ".gitconfig").symlink_to(trap.home / "nowhere")
    trap.configure(trap.home / "root/.git/config", evil(trap))


def by_include(trap: Trap) -> None:
    trap.configure(trap.home / "far/away", evil(trap))
    trap.configure(trap.home / "near", {"include.path": "far/away"})
    trap.configure(trap.home / ".gitconfig", {"include.path": "~/near"})


def by_branch(trap: Trap) -> None:
    trap.configure(trap.home / "included", evil(trap))
    trap.configure(trap.home / "git/config", {"includeIf.onbranch:main.path": str(trap.home / "included")})


def spelled(section: str) -> Callable[[Trap], None]:
    def configure(trap: Trap) -> None:
        said = f'{section}\tclean = "{trap.program_of("cleaned")}"\n'
        with (trap.home / "root/.git/config").open("a") as file:
            file.write(said)

    return configure


WAYS = {
    "a link": by_link,
    "beside a dangling link": by_dangling_link_beside,
    "an include": by_include,
    "a branch": by_branch,
    "capitals": spelled('[FiLTeR "evil"]'),
    "after another section": spelled('[user][filter "evil"] required\n'),
    "the old way": spelled("[filter.evil]"),
    "a return": spelled('[filter "evil"]\r\n'),
}


@pytest.mark.parametrize("way", WAYS)
async def test_a_filter_is_found_however_it_is_configured(trap: Trap, door: Git, way: str) -> None:
    WAYS[way](trap)
    await look(trap, door)
    assert trap.marks() == set()
    trap.user(trap.root, "status")
    assert trap.marks() == {"cleaned"}


async def test_a_name_that_is_hard_to_pass_on_is_passed_on(trap: Trap, door: Git) -> None:
    trap.configure(trap.home / "root/.git/config", {f"filter.{ODD}.clean": trap.command("cleaned")})
    (trap.home / "root/.git/info/attributes").write_text(f"file filter={ODD}\n")
    await look(trap, door)
    assert trap.marks() == set()
    trap.user(trap.root, "status")
    assert trap.marks() == {"cleaned"}


async def test_names_are_asked_for_once_until_the_configuration_changes(trap: Trap, door: Git) -> None:
    assert [await look(trap, door) for _ in range(2)] == [1, 1]
    trap.configure(trap.home / ".gitconfig", evil(trap))
    assert [await look(trap, door) for _ in range(3)] == [2, 1, 1]
    trap.configure(trap.home / "root/.git/config", {"filter.other.clean": "false"})
    assert [await look(trap, door) for _ in range(2)] == [2, 1]
    assert trap.marks() == set()


async def test_what_includes_others_is_asked_for_every_time(trap: Trap, door: Git) -> None:
    trap.configure(trap.home / ".gitconfig", {"include.path": str(trap.home / "later")})
    assert [await look(trap, door) for _ in range(2)] == [2, 2]
    trap.configure(trap.home / "later", evil(trap))
    await look(trap, door)
    assert trap.marks() == set()


async def test_what_looks_at_no_file_costs_one_process(trap: Trap, door: Git) -> None:
    trap.configure(trap.home / ".gitconfig", evil(trap))
    await door.run(b"rev-parse", b"HEAD", repository=Location(trap.common))
    assert door.started == 1


def test_hooks_are_disabled_by_name_and_filters_only_where_asked() -> None:
    settings = (
        b"hook.lint.command",
        b"hook.lint.event",
        b"hook.jobs",
        b"filter.a.b.clean",
        b"filter.a.b.required",
    )
    assert set(told(neutral(settings, filters=False))) == {"hook.lint.enabled"}
    assert told(neutral(settings, filters=True)) == {
        "hook.lint.enabled": "false",
        "filter.a.b.clean": "",
        "filter.a.b.smudge": "",
        "filter.a.b.process": "",
        "filter.a.b.required": "false",
    }


def told(environment: dict[str, str]) -> dict[str, str]:
    count = int(environment["GIT_CONFIG_COUNT"])
    assert len(environment) == 1 + 2 * count
    pairs = range(count)
    return {environment[f"GIT_CONFIG_KEY_{each}"]: environment[f"GIT_CONFIG_VALUE_{each}"] for each in pairs}
