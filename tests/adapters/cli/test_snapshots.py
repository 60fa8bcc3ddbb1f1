"""`laneyard snapshot` and the words that may follow it: both ways, with and without a service."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from adapters.cli.parser import Misused, build_parser
from tests.adapters.cli.conftest import PROGRAM, ROOT, Desk, Ran
from tests.adapters.cli.test_both_ways import Pair, both

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.cli.parser import Parser

__all__ = ["both"]
BINARY = bytes(range(256)) * 5000  # more than is answered in one piece


def work(desk: Desk, slug: str = "fix") -> None:
    """Leaves changes in a lane."""
    tree = desk.tree(slug)
    (tree / "file").write_text("two\n")
    (tree / "new" / "inner").mkdir(parents=True)
    (tree / "new" / "inner" / "leaf").write_text("leaf\n")
    (tree / "new" / "tool").write_text("#!/bin/sh\n")
    (tree / "new" / "tool").chmod(0o755)
    (tree / "new" / "link").symlink_to("tool")
    (tree / "staged").write_text("staged\n")
    desk.git("add", "staged", cwd=tree)
    (tree / "staged").write_text("later\n")


@pytest.fixture
def captured(desk: Desk, laneyard: Callable[..., Ran]) -> str:
    """A lane with work in it that was captured; returns the snapshot's id."""
    assert laneyard("create", "fix").code == 0
    work(desk)
    assert laneyard("snapshot", "fix").code == 0
    found = laneyard("snapshot", "list", "--json").json
    return str(found[-1]["id"])


def test_the_list_has_every_snapshot(laneyard: Callable[..., Ran], captured: str) -> None:
    first, second = laneyard("snapshot", "list").out.splitlines()
    assert first.split() == ["SNAPSHOT", "LANE", "EDITION", "TAKEN", "ENTRIES", "BYTES"]
    assert second.split()[:3] == [captured, "fix", "-"]
    assert laneyard("snapshot", "list", "fix").out.splitlines() == [first, second]
    assert laneyard("snapshot", "list", "--all").out.splitlines() == [first, second]


def test_show_tells_what_is_held(laneyard: Callable[..., Ran], captured: str) -> None:
    text = laneyard("snapshot", "show", captured[:8]).out
    assert text.startswith(f"snapshot {captured} of fix\n")
    assert "  changed: 2 paths, 10 bytes\n    file\n    staged\n" in text
    assert "--verify reads all of it back" in text
    shown = laneyard("snapshot", "show", "fix", "--verify", "--paths", "--json").json
    assert (shown["id"], shown["verified"], shown["why"]) == (captured, True, "asked")
    assert {each["name"] for each in shown["parts"]} == {"changed", "untracked", "staged", "registration"}


def test_diff_is_what_git_shows(desk: Desk, laneyard: Callable[..., Ran], captured: str) -> None:
    ref = f"refs/laneyard/snapshots/{captured}"
    assert laneyard("snapshot", "diff", captured).out == desk.git("diff", f"{ref}^1", ref)
    staged = desk.git("diff", f"{ref}^1", f"{ref}^2")
    assert laneyard("snapshot", "diff", captured, "--staged").out == staged
    only = laneyard("snapshot", "diff", captured, "new/inner", "file").out
    assert re.findall(r"^diff --git a/(\S+)", only, re.MULTILINE) == ["file", "new/inner/leaf"]
    refused = laneyard("snapshot", "diff", captured, "nowhere", "--json")
    assert (refused.code, refused.out, refused.error["code"]) == (1, "", "not_in_snapshot")


@pytest.mark.slow
def test_cat_prints_bytes_as_they_are(desk: Desk, laneyard: Callable[..., Ran]) -> None:
    assert laneyard("create", "fix").code == 0
    (desk.tree("fix") / "binary").write_bytes(BINARY)
    assert laneyard("snapshot", "fix").code == 0
    ran = subprocess.run(
        [*PROGRAM, "snapshot", "cat", "fix", "binary"],
        cwd=desk.root, env=desk.environment, capture_output=True, check=True,
    )  # fmt: skip
    assert (ran.stdout, ran.stderr) == (BINARY, b"")


def test_cat_gives_the_worktree_the_index_and_the_commit(laneyard: Callable[..., Ran], captured: str) -> None:
    assert laneyard("snapshot", "cat", captured, "staged").out == "later\n"
    assert laneyard("snapshot", "cat", captured, "staged", "--staged").out == "staged\n"
    assert laneyard("snapshot", "cat", captured, "new/link").out == "tool"
    refused = laneyard("snapshot", "cat", captured, "new", "--json")
    assert (refused.code, refused.out, refused.error["code"]) == (1, "", "not_in_snapshot")


def test_extract_writes_elsewhere_and_never_over_anything(
    desk: Desk, laneyard: Callable[..., Ran], captured: str
) -> None:
    out = desk.home / "out"
    told = laneyard("snapshot", "extract", captured, "new", "file", "--to", out, "--json").json
    assert (told["to"], told["paths"], told["entries"]) == (str(out), ["file", "new"], 6)
    assert (out / "file").read_text() == "two\n"
    assert (out / "new/inner/leaf").read_text() == "leaf\n"
    assert os.access(out / "new/tool", os.X_OK)
    assert (out / "new/link").readlink().name == "tool"
    refused = laneyard("snapshot", "extract", captured, "staged", "file", "--to", out, "--json")
    assert (refused.code, refused.error["code"], refused.error["details"]["paths"]) == (
        *(1, "path_in_use"),
        ["file"],
    )
    assert sorted(os.listdir(out)) == ["file", "new"]
    assert laneyard("snapshot", "extract", captured, ".", "--to", desk.home / "all").code == 0
    assert sorted(os.listdir(desk.home / "all")) == ["file", "new", "staged"]


def test_extract_into_a_directory_that_cannot_be_is_refused(
    desk: Desk, laneyard: Callable[..., Ran], captured: str
) -> None:
    refused = laneyard("snapshot", "extract", captured, "file", "--to", desk.root / "file" / "x", "--json")
    assert (refused.code, refused.error["code"]) == (1, "read_only")
    assert "--to" in refused.error["message"]


def test_what_is_printed_cannot_move_the_cursor(
    desk: Desk, laneyard: Callable[..., Ran], captured: str
) -> None:
    odd = desk.home / "odd\x1b[31m\nlaneyard: a lie"
    for code in (0, 1):
        ran = laneyard("snapshot", "extract", captured, "file", "--to", odd)
        assert ran.code == code
        assert "\x1b" not in ran.out + ran.err
        assert (ran.out + ran.err).count("\n") == 1


def test_what_is_there_already_is_named_in_quotes(
    desk: Desk, laneyard: Callable[..., Ran], captured: str
) -> None:
    (desk.home / "file").touch()
    (desk.home / "new").touch()
    refused = laneyard("snapshot", "extract", captured, "file", "new", "--to", desk.home)
    assert f"In '{desk.home}' there is already 'file', 'new', and nothing is" in refused.err


@pytest.mark.engine_only("it is the program's own output")
@pytest.mark.slow
def test_content_for_nobody_is_no_success(desk: Desk, captured: str) -> None:
    for word in (["cat", captured, "file"], ["diff", captured]):
        line = shlex.join([*PROGRAM, "snapshot", *word])
        ran = subprocess.run(
            ["sh", "-c", f"{line} >&-"], cwd=desk.root, env=desk.environment, capture_output=True, check=False
        )
        assert ran.returncode == 4
        assert b"tandard output is closed" in ran.stderr


@pytest.mark.engine_only("the disk is filled under this process")
@pytest.mark.slow
def test_a_full_disk_is_told_and_nothing_is_left(
    desk: Desk, laneyard: Callable[..., Ran], captured: str
) -> None:
    out = desk.home / "small"
    out.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", out], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("a file system of its own cannot be mounted here")
    try:
        (desk.tree("fix") / "large").write_bytes(BINARY)
        assert laneyard("snapshot", "fix").code == 0
        refused = laneyard("snapshot", "extract", "fix", "large", "--to", out / "made", "--json")
        assert (refused.code, refused.error["code"]) == (1, "disk_full")
        assert os.listdir(out) == []
    finally:
        subprocess.run(["umount", out], check=True)


@pytest.mark.slow
def test_the_git_file_of_a_submodule_is_left_out_and_named(desk: Desk, laneyard: Callable[..., Ran]) -> None:
    lib = desk.home / "lib"
    desk.git("clone", "-q", desk.root, lib)
    assert laneyard("create", "fix").code == 0
    tree = desk.tree("fix")
    desk.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "sub", cwd=tree)
    desk.git("init", "-q", "own", cwd=tree)
    (tree / "sub/more").write_text("more\n")
    assert laneyard("snapshot", "fix").code == 0
    told = laneyard("snapshot", "extract", "fix", ".", "--to", desk.home / "all", "--json").json
    assert told["left_out"] == ["sub/.git"]
    assert sorted(os.listdir(desk.home / "all/sub")) == ["file", "more"]
    assert (desk.home / "all/own/.git/HEAD").is_file()
    ran = laneyard("snapshot", "extract", "fix", "sub", "--to", desk.home / "one")
    assert ran.out.endswith("comes back with a restore only; left out, 1: sub/.git\n")
    told = laneyard("snapshot", "extract", "fix", "sub/.git", "--to", desk.home / "file", "--json").json
    assert (told["left_out"], told["paths"]) == ([], ["sub/.git"])
    assert "+Subproject commit" in laneyard("snapshot", "diff", "fix", "sub").out
    parts = {
        each["name"]: each["paths"] for each in laneyard("snapshot", "show", "fix", "--json").json["parts"]
    }
    assert parts["changed"] == [".gitmodules", "sub"]


def test_extracted_paths_from_a_snapshot_of_a_reaped_lane(
    desk: Desk, laneyard: Callable[..., Ran], captured: str
) -> None:
    assert laneyard("remove", "fix", "--reap").code == 0
    assert laneyard("snapshot", "extract", "fix@1", "new/inner", "--to", desk.home / "out").code == 0
    assert (desk.home / "out/new/inner/leaf").read_text() == "leaf\n"
    assert laneyard("snapshot", "show", "fix@1", "--json").json["why"] == "removal"
    assert laneyard("snapshot", "show", captured, "--json").json["edition"] is None


@pytest.mark.slow
def test_what_is_damaged_is_refused_before_anything_is_printed(
    desk: Desk, laneyard: Callable[..., Ran], captured: str
) -> None:
    (desk.state / "snapshots" / captured / "manifest.json").write_text("{}")
    for command in (["show"], ["cat"], ["diff"], ["extract"]):
        rest = [] if command == ["show"] else ["file"]
        rest += ["--to", str(desk.home / "out")] if command == ["extract"] else []
        refused = laneyard("snapshot", *command, captured, *rest, "--json")
        assert (refused.code, refused.out, refused.error["code"]) == (1, "", "snapshot_damaged")
    assert not (desk.home / "out").exists()


def test_a_lane_that_is_called_like_a_word_is_still_captured(
    desk: Desk, laneyard: Callable[..., Ran]
) -> None:
    assert laneyard("create", "list").code == 0
    (desk.tree("list") / "new").write_text("x")
    assert laneyard("snapshot", "list").out.startswith("no snapshot is kept")
    assert laneyard("snapshot", "--", "list").out.startswith("snapshot ")
    assert laneyard("snapshot", "list", "list", "--json").json[0]["slug"] == "list"


WORDS = """
snapshot list
snapshot list nobody
snapshot show nobody
snapshot show nobody@1
snapshot diff 0000
snapshot cat nobody file
snapshot extract nobody file --to HOME/out
create fix
snapshot list
snapshot show fix
snapshot fix
snapshot list
snapshot list fix --all
snapshot show fix
snapshot show fix --paths --verify
snapshot show fix@1
snapshot diff fix
snapshot diff fix --staged
snapshot diff fix new nowhere
snapshot diff fix ..
snapshot cat fix file
snapshot cat fix staged --staged
snapshot cat fix new
snapshot cat fix nowhere
snapshot cat fix ../file
snapshot cat fix /file
snapshot extract fix . --to HOME/all
snapshot extract fix . --to HOME/all
snapshot extract fix new/inner/leaf file --to HOME/some
snapshot extract fix nowhere --to HOME/none
snapshot extract fix new new/tool --to HOME/app/file
snapshot -C HOME list
snapshot --json list
snapshot list -C HOME/nowhere
snapshot
snapshot show
snapshot extract fix file
snapshot list --verify
snapshot show fix --staged
""".strip().splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_every_word_says_the_same_both_ways(both: Pair, form: tuple[str, ...]) -> None:
    for line in WORDS:
        both(*form, *line.split())
        if line == "create fix":
            both.each(work)
    both("snapshot", "show", "")
    both("snapshot", "cat", "fix", "")
    both("snapshot", "cat", "fix", "x" * 5000)


@pytest.mark.slow
@pytest.mark.service_only
def test_a_service_that_ends_between_two_questions_is_done_without(
    desk: Desk, laneyard: Callable[..., Ran], captured: str
) -> None:
    desk.leave()
    assert laneyard("snapshot", "cat", captured, "file").out == "two\n"


def snapshot_parser() -> Parser:
    parser = build_parser()
    return next(each.choices for each in parser._actions if each.dest == "command")["snapshot"]  # type: ignore


@pytest.mark.parametrize(
    ("line", "word", "lane"),
    [
        ("snapshot fix", None, "fix"),
        ("snapshot --json fix", None, "fix"),
        ("snapshot -- show", None, "show"),
        ("snapshot -C list fix", None, "fix"),
        ("snapshot list", "list", None),
        ("snapshot list list", "list", "list"),
        ("snapshot --all list fix", "list", "fix"),
        ("snapshot -C /x --json list fix", "list", "fix"),
        ("snapshot --state-dir=/x list -- fix", "list", "fix"),
    ],
)
def test_the_first_argument_is_a_word_or_a_lane(line: str, word: str | None, lane: str | None) -> None:
    arguments = build_parser().parse_args(line.split())
    assert (arguments.word, arguments.lane) == (word, lane)


@pytest.mark.parametrize(
    "line",
    [
        ["diff", "fix", ""],
        ["cat", "fix", ""],
        ["extract", "fix", "", "--to=x"],
        ["extract", "fix", ".", "--to="],
    ],
)
def test_an_empty_path_is_a_wrong_use(laneyard: Callable[..., Ran], line: list[str]) -> None:
    ran = laneyard("snapshot", *line)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith("a path is not empty; . is all of it [usage]\n")


def test_a_misused_word_says_how_it_is_used() -> None:
    with pytest.raises(Misused) as misused:
        build_parser().parse_args(["snapshot", "extract", "fix", "file"])
    assert misused.value.usage.startswith("usage: laneyard snapshot extract")


def test_the_page_has_every_word_with_its_options() -> None:
    page = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
    section = page.partition("### `snapshot LANE")[2].partition("\n### ")[0]
    for word, parser in snapshot_parser().words.items():
        (heading,) = re.findall(rf"^#### `(snapshot {word}\b[^`]*)`$", section, re.MULTILINE)
        known = {name for each in parser._actions for name in each.option_strings}
        own = known - {"-h", "--help", "-C", "--state-dir", "--json"}
        assert set(re.findall(r"--[a-z-]+", heading)) == own
        part = section.partition(heading)[2].partition("\n#### ")[0]
        assert all(f"`{name}" in part for name in own), word


def test_help_names_every_word_and_how_to_capture_a_lane_called_so() -> None:
    text = snapshot_parser().format_help()
    assert re.findall(r"^  (\w+) +(?:SNAPSHOT|\[LANE\])", text, re.MULTILINE) == list(snapshot_parser().words)
    assert "laneyard snapshot -- list" in text


@pytest.mark.slow
def test_an_interrupt_in_the_middle_leaves_nothing_of_what_was_begun(
    desk: Desk, laneyard: Callable[..., Ran]
) -> None:
    assert laneyard("create", "fix").code == 0
    for number in range(2000):
        (desk.tree("fix") / f"new-{number}").write_text(f"{number}\n")
    assert laneyard("snapshot", "fix").code == 0
    out = desk.home / "out"
    started = desk.start("snapshot", "extract", "fix", ".", "--to", out)
    while not (out.is_dir() and any(any(each.iterdir()) for each in out.iterdir())):
        assert started.poll() is None
    started.send_signal(signal.SIGINT)
    said, complained = started.communicate(timeout=30)
    assert (started.returncode, said, complained) == (130, "", "")
    assert not out.exists()
