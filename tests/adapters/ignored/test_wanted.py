"""What a request asks to keep, and how much of what a repository says of itself is believed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from adapters.config import (
    Configuration,
    InvalidConfiguration,
    Quarantine,
    repository_configuration,
    retention,
)
from adapters.config.ignored import IgnoredSettings
from adapters.config.settings import load
from adapters.ignored.wanted import IgnoredTooLarge, InvalidPattern, NoSuchIgnored, Wanted, checked
from domain.evidence import Unknown
from tests.domain.facts import CLEAN, DATA, MODULES, SECRET

if TYPE_CHECKING:
    from pathlib import Path

    from adapters.ignored.wanted import Include

SEEN = replace(CLEAN, ignored=(SECRET, DATA, MODULES))


def asked(root: Path, include: Include, **settings: object) -> Wanted:
    ignored = replace(IgnoredSettings(), **settings)
    return Wanted(Configuration(ignored=ignored), os.fsencode(root), include)


@pytest.mark.parametrize(
    ("include", "kept"),
    [
        (False, ()),
        (True, (".env", "data")),
        ((".env",), (".env",)),
        (("node_modules/",), ("node_modules",)),
        (("data/", "*.env"), (".env", "data")),
        (("*",), (".env", "data", "node_modules")),
    ],
)
def test_a_request_keeps_what_is_not_rebuildable_or_what_it_names(
    tmp_path: Path, include: Include, kept: tuple[str, ...]
) -> None:
    assert asked(tmp_path, include).chosen(SEEN) == kept


@pytest.mark.parametrize("pattern", [".envv", ".env/", "dat", "data/x"])
def test_a_pattern_that_names_nothing_is_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(NoSuchIgnored) as caught:
        asked(tmp_path, (".env", pattern)).chosen(SEEN)
    assert caught.value.details == {"pattern": pattern}


def test_more_than_the_limit_is_refused_with_both_sizes(tmp_path: Path) -> None:
    assert asked(tmp_path, True, capture_limit=4108).chosen(SEEN) == (".env", "data")
    with pytest.raises(IgnoredTooLarge) as caught:
        asked(tmp_path, True, capture_limit=4107).chosen(SEEN)
    assert caught.value.details == {"size": 4108, "limit": 4107, "file": "config.toml"}


@pytest.mark.parametrize(
    ("said", "limit", "file"), [(1 << 40, 5000, "config.toml"), (4108, 4108, ".laneyard.toml")]
)
def test_a_repository_can_lower_the_limit_and_not_raise_it(
    tmp_path: Path, said: int, limit: int, file: str
) -> None:
    (tmp_path / ".laneyard.toml").write_text(f"[ignored]\ncapture_limit = {said}\n")
    big = replace(CLEAN, ignored=(replace(SECRET, bytes=limit + 1),))
    with pytest.raises(IgnoredTooLarge) as caught:
        asked(tmp_path, True, capture_limit=5000).chosen(big)
    assert (caught.value.limit, caught.value.file) == (limit, file)
    assert f"the limit in {file} is {limit}" in str(caught.value)


def test_what_is_unknown_is_left_to_the_decision(tmp_path: Path) -> None:
    assert asked(tmp_path, True).chosen(replace(CLEAN, ignored=Unknown("git timed out"))) == ()


def declare(root: Path) -> None:
    (root / ".laneyard.toml").write_text('[ignored]\nrebuildable = ["out/"]\nprecious = ["*.csv"]\n')


def test_a_repository_may_add_what_is_precious_but_not_what_is_rebuildable(tmp_path: Path) -> None:
    declare(tmp_path)
    rules = asked(tmp_path, False, rebuildable=("build/",)).rules()
    assert rules.made_again(b"build", directory=True) == "pattern build/ of the configuration"
    assert rules.made_again(b"out", directory=True) is None
    assert "ignored.trusted" in rules.why_unknown(b"out", directory=True)
    assert rules.precious_by_pattern(b"a.csv", directory=False) == "pattern *.csv of the configuration"


def test_a_repository_that_the_user_trusts_may_say_what_is_rebuildable(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    root.mkdir()
    (tmp_path / "link").symlink_to(root)
    declare(root)
    rules = asked(root, False, trusted=(str(tmp_path / "link"),)).rules()
    assert rules.made_again(b"out", directory=True) == "pattern out/ of the configuration"
    assert asked(root, False, trusted=(str(tmp_path),)).rules().made_again(b"out", directory=True) is None


def test_the_patterns_of_a_request_are_part_of_the_rules(tmp_path: Path) -> None:
    assert asked(tmp_path, ("raw",)).rules().wanted.match(b"data/raw", directory=True) is not None
    assert not asked(tmp_path, ("raw",)).rules().everything
    rules = asked(tmp_path, True).rules()
    assert (bool(rules.wanted), rules.everything) == (False, True)
    assert not asked(tmp_path, False).rules().everything


@pytest.mark.parametrize(
    "said",
    [
        'rebuildable = ["["]',
        'precious = [""]',
        "capture_limit = -1",
        'trusted = ["here"]',
        'precious = "*"',
        "everything = true",
    ],
)
def test_a_configuration_that_cannot_be_meant_is_refused(tmp_path: Path, said: str) -> None:
    (tmp_path / "config.toml").write_text(f"[ignored]\n{said}\n")
    with pytest.raises(InvalidConfiguration):
        load(str(tmp_path), {})
    (tmp_path / ".laneyard.toml").write_text(f"[ignored]\n{said}\n")
    with pytest.raises(InvalidConfiguration):
        repository_configuration(os.fsencode(tmp_path))


@pytest.mark.parametrize("name", ["config.toml", ".laneyard.toml"])
@pytest.mark.parametrize("kind", ["pipe", "directory", "link to a pipe", "too large"])
def test_a_configuration_that_is_no_small_file_is_refused_and_nobody_waits(
    tmp_path: Path, name: str, kind: str
) -> None:
    path = tmp_path / name
    if kind == "directory":
        path.mkdir()
    elif kind == "too large":
        path.write_text("#" * (1 << 20) + "\n")
    else:
        os.mkfifo(path if kind == "pipe" else tmp_path / "pipe")
        if kind != "pipe":
            path.symlink_to("pipe")
    with pytest.raises(InvalidConfiguration) as caught:
        load(str(tmp_path), {}) if name == "config.toml" else repository_configuration(os.fsencode(tmp_path))
    assert caught.value.path == str(path)
    assert caught.value.why.startswith(("not a regular file", "file is too large"))


def test_a_link_to_a_configuration_is_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("[ignored]\ncapture_limit = 7\n")
    (tmp_path / "config.toml").symlink_to("elsewhere")
    assert load(str(tmp_path), {}).configuration.ignored.capture_limit == 7


@pytest.mark.parametrize(("said", "rest"), [("0s", 3600), ("59m", 3600), ("2h", 7200)])
def test_a_repository_can_only_lengthen_how_long_its_lanes_rest(tmp_path: Path, said: str, rest: int) -> None:
    user = Configuration(quarantine=Quarantine(retention="1h"))
    assert retention(user, repository_configuration(os.fsencode(tmp_path))) == 3600
    (tmp_path / ".laneyard.toml").write_text(f'[quarantine]\nretention = "{said}"\n')
    assert retention(user, repository_configuration(os.fsencode(tmp_path))) == rest


def test_a_repository_cannot_trust_itself(tmp_path: Path) -> None:
    (tmp_path / ".laneyard.toml").write_text(f'[ignored]\ntrusted = ["{tmp_path}"]\n')
    with pytest.raises(InvalidConfiguration, match="trusted"):
        asked(tmp_path, False).rules()


@pytest.mark.parametrize("text", ["[", "a**", "!a", "#", "//", "", "x" * 2000])
def test_a_request_with_what_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(InvalidPattern) as caught:
        checked(["a", text])
    assert caught.value.pattern == text[:100]


def test_a_request_has_so_many_patterns_and_no_more() -> None:
    assert len(checked(["a"] * 1000)) == 1000
    with pytest.raises(InvalidPattern):
        checked(["a"] * 1001)
