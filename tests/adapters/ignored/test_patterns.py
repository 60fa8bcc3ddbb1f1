"""Patterns mean what git means by them."""

import random
import subprocess
from pathlib import Path
from time import monotonic

import pytest

from adapters.ignored.patterns import LONGEST, MOST, Pattern, Patterns

NAMES = ("a", "b", "ab", "a.b", "build", "x.log", "[z]", "a*", "-q", "caf\udce9", "é", "a\nb")
ATOMS = (
    *("a", "b", "*", "?", "ab", "a*", "*b", "**", "build", "*.log", "[ab]", "[!a]", "[a-z]", r"\*"),
    *(r"\[z\]", "*a*", "a?b", "x.*", "é", "[]a]", "[^b]*"),
)


def tree(place: Path, chance: random.Random) -> list[tuple[str, bool]]:
    """Makes files and directories, and returns their paths, and which are directories."""
    for _ in range(80):
        file = place.joinpath(*(chance.choice(NAMES) for _ in range(chance.randint(1, 4))))
        if not any(each.is_file() for each in (file, *file.parents)) and not file.is_dir():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
    found = (each for each in place.rglob("*") if ".git" not in each.relative_to(place).parts)
    return [(str(each.relative_to(place)), each.is_dir()) for each in found]


def ignored(place: Path, pattern: str, paths: list[tuple[str, bool]]) -> set[bytes]:
    """Returns which of the paths git ignores by the pattern."""
    (place / ".git/info/exclude").write_text(f"{pattern}\n", encoding="utf-8")
    asked = b"\0".join(path.encode("utf-8", "surrogateescape") for path, _ in paths)
    command = ("git", "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "-z", "--stdin")
    ran = subprocess.run(command, cwd=place, input=asked + b"\0", capture_output=True, check=False)
    assert ran.returncode in (0, 1), ran.stderr
    return set(ran.stdout.split(b"\0")) - {b""}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_pattern_matches_what_git_ignores_by_it(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    subprocess.run(("git", "init", "-q", tmp_path), check=True)
    paths = tree(tmp_path, chance)
    for _ in range(60):
        parts = "/".join(chance.choice(ATOMS) for _ in range(chance.randint(1, 4)))
        text = chance.choice(("", "/")) + parts + chance.choice(("", "", "/"))
        if text.strip("/") == "" or text.strip("/").split("/").count("**") > 3:
            continue
        pattern, by_git = Pattern(text), ignored(tmp_path, text, paths)
        for path, directory in paths:
            packed = path.encode("utf-8", "surrogateescape")
            assert pattern.matches(packed, directory=directory) == (packed in by_git), (text, path)


@pytest.mark.parametrize(
    "text",
    [
        *("", "/", "//", "# a", "a**", "***", "a/**b", "[", "[a", "a\\", "[[:alpha:]]", "[z-a]", "a\0b"),
        *("a" * (LONGEST + 1), "**/a/**/b/**/c/**", "*a" * 20),
    ],
)
def test_what_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no pattern|more than"):
        Pattern(text)


def test_a_list_has_a_limit() -> None:
    with pytest.raises(ValueError, match="more than"):
        Patterns(["a"] * (MOST + 1))


def test_the_last_pattern_that_matches_counts_and_may_take_back() -> None:
    patterns = Patterns(["*.db", "!test/", "test/keep.db"])
    assert patterns.match(b"a.db", directory=False) is not None
    assert patterns.match(b"test/a.db", directory=False) is None
    taken_back = patterns.last(b"test/a.db", directory=False)
    assert taken_back is not None
    assert taken_back.negated
    assert patterns.match(b"test/keep.db", directory=False) is not None
    assert patterns.last(b"a.txt", directory=False) is None


def test_many_stars_on_a_long_name_take_no_time() -> None:
    pattern, start = Pattern("*a*a*a*a*a*a*a*b"), monotonic()
    assert not pattern.matches(b"a" * 255, directory=False)
    assert monotonic() - start < 0.25
