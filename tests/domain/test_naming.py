"""What a lane, a directory and a branch may be called."""

import re
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.errors import InvalidBranchName, InvalidName
from domain.naming import branch_ref, numbered, short_branch, slugify

TEXT = st.text(max_size=120) | st.text(alphabet="aZ9 -_./ÄßÅİ√\n\t", max_size=12)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Fix login", "fix-login"),
        ("  fix -- LOGIN!  ", "fix-login"),
        ("a/b.c_d", "a-b-c-d"),
        ("v2", "v2"),
        ("Ärger", "rger"),
        ("日本", "lane"),
        ("---", "lane"),
        ("x" * 100, "x" * 100),
    ],
)
def test_a_name_becomes_a_slug(name: str, slug: str) -> None:
    assert slugify(name) == slug


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "it is empty"),
        (" \t ", "it is empty"),
        ("x" * 101, "it is longer than 100 characters"),
        ("a\nb", "it holds characters that cannot be printed"),
        ("a\0b", "it holds characters that cannot be printed"),
        ("a\ud800b", "it holds characters that cannot be printed"),
        ("a\u202eb", "it holds characters that cannot be printed"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_with_a_reason(name: str, why: str) -> None:
    with pytest.raises(InvalidName) as caught:
        slugify(name)
    assert caught.value.why == why


@given(TEXT)
def test_a_name_is_refused_or_gives_a_slug_of_lower_case_letters_digits_and_single_dashes(name: str) -> None:
    slug = _slug(name)
    assert slug is None or re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug)


@given(TEXT)
def test_a_slug_is_its_own_slug_and_names_a_branch(name: str) -> None:
    slug = _slug(name)
    assert slug is None or (slugify(slug), branch_ref(slug)) == (slug, f"refs/heads/{slug}")


def _slug(name: str) -> str | None:
    try:
        return slugify(name)
    except InvalidName:
        return None


def test_the_next_attempts_are_numbered_from_two() -> None:
    assert [numbered("fix", attempt) for attempt in (1, 2, 3)] == ["fix", "fix-2", "fix-3"]


@pytest.mark.parametrize("name", ["fix", "team/fix", "a.b", "x@y", "@x", "lock", "a.lockx", "é", "feat/HEAD"])
def test_a_branch_gets_its_full_name_once(name: str) -> None:
    assert branch_ref(name) == f"refs/heads/{name}"
    assert branch_ref(f"refs/heads/{name}") == f"refs/heads/{name}"
    assert short_branch(branch_ref(name)) == name


FLAWED = [
    *("", "@", "HEAD", "-x", "/x", "x/", ".x", "x.", "a/.b", "a..b", "a//b", "x.lock", "x.lock/y", "a@{b"),
    *("a b", "a~b", "a^b", "a:b", "a?b", "a*b", "a[b", "a\\b", "a\x7fb", "a\x00b", "a\nb", "x\n", "x" * 201),
    "a\ud800b",
]


@pytest.mark.parametrize("name", FLAWED)
def test_a_branch_that_git_would_not_take_is_refused(name: str) -> None:
    with pytest.raises(InvalidBranchName) as caught:
        branch_ref(name)
    assert caught.value.branch == name
    with pytest.raises(InvalidBranchName):
        branch_ref(f"refs/heads/{name}")


def test_no_branch_has_no_short_name() -> None:
    assert short_branch(None) is None


PIECES = st.sampled_from(
    [
        *(
            "a",
            "Z",
            "0",
            "-",
            "_",
            ".",
            "+",
            "%",
            "é",
            "\x85",
            "@",
            "{",
            "}",
            "/",
            "..",
            "//",
            ".lock",
            "HEAD",
        ),
        *("@{", "~", "^", ":", "?", "*", "[", "\\", " ", "\t", "\x7f", "\x01", "refs/heads/"),
    ]
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=5).map("".join))
def test_branch_names_are_those_that_git_takes(name: str) -> None:
    short = name.removeprefix("refs/heads/")
    assert _taken_by_us(short) == _taken_by_git(short)


def _taken_by_us(short: str) -> bool:
    try:
        branch_ref(f"refs/heads/{short}")
    except InvalidBranchName:
        return False
    return True


def _taken_by_git(short: str) -> bool:
    """Asks for the full name, and excludes the short ones that `git branch` reads as an option or as HEAD."""
    done = subprocess.run(["git", "check-ref-format", f"refs/heads/{short}"], cwd="/", check=False)
    return done.returncode == 0 and not short.startswith("-") and short not in ("HEAD", "@")


# Git cannot be asked about NUL, leaves lengths to the file system, and reads `@` as HEAD.
BY_GIT = [name for name in FLAWED if name.isascii() and "\0" not in name and len(name) < 200 and name != "@"]


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_GIT)
def test_what_we_refuse_git_refuses_as_a_branch(name: str) -> None:
    done = subprocess.run(
        ["git", "check-ref-format", "--branch", name], cwd="/", capture_output=True, check=False
    )
    assert done.returncode != 0
