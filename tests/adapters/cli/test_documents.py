"""The pages say what the program does: their commands are run, and their lists are compared with the code."""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import pytest

from adapters.api import documents
from adapters.cli.parser import build_parser
from adapters.client.wire import ClientError
from adapters.config import Configuration, RepositoryConfiguration
from adapters.glances import Glance
from tests.adapters.cli.conftest import PROGRAM, ROOT, Desk

if TYPE_CHECKING:
    from collections.abc import Iterator

CLI = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
VOLATILE = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "COMMIT"),
    (re.compile(r"\b[0-9a-f]{8}\b"), "SHORT"),
    (re.compile(r"\d+ bytes"), "SIZE"),  # with the tree goes its .git file, which has a path in it
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "TIME"),
)


def commands() -> dict[str, argparse.ArgumentParser]:
    """Returns the parser of every command."""
    actions = build_parser()._actions
    return next(each.choices for each in actions if isinstance(each, argparse._SubParsersAction))


def sections() -> dict[str, str]:
    """Returns the page's section of every command, with its heading."""
    parts = re.split(r"^### ", CLI, flags=re.MULTILINE)[1:]
    return {re.split(r"[` ]", part)[1]: part for part in parts}


def options(parser: argparse.ArgumentParser) -> set[str]:
    """Returns the options that are the command's own."""
    return {name for each in parser._actions for name in each.option_strings} - {"-h", "--help", *EVERYWHERE}


EVERYWHERE = ("-C", "--state-dir", "--json")


def test_the_page_has_every_command_and_no_other() -> None:
    assert set(sections()) == set(commands())


@pytest.mark.parametrize("name", commands())
def test_the_page_has_every_option_of_a_command_and_no_other(name: str) -> None:
    heading, _, rest = sections()[name].partition("\n")
    wanted = options(commands()[name])
    assert set(re.findall(r"--[a-z-]+", heading)) == wanted
    explained = {
        name for line in re.findall(r"^\* `(--[^`]*)`: ", rest, re.MULTILINE) for name in [line.split()[0]]
    }
    assert explained == wanted
    takers = [each for each in commands()[name]._actions if each.option_strings and each.metavar]
    for each in takers:
        if each.option_strings[0] in wanted:
            assert f"{each.option_strings[0]} {each.metavar}" in heading
    places = [str(each.metavar) for each in commands()[name]._actions if not each.option_strings]
    assert re.findall(r"[A-Z]{2,}", heading.partition("--")[0]) == places


def lane_fields() -> list[str]:
    """Returns what a lane has as the log knows it, which is before what was observed."""
    return [
        each for each in documents.Lane.__struct_fields__ if each != "present" and not each.endswith("_now")
    ]


def test_the_page_has_the_fields_of_a_lane_in_their_order() -> None:
    text = CLI.partition("A **lane** has these fields")[2].partition("What was observed")[0]
    fields = [
        each for each in re.findall(r"`([a-z_]+)`", text) if each not in ("primary", "managed", "external")
    ]
    assert fields == [each for each in lane_fields() if each != "path_encoded"]


def test_the_page_has_the_observations_of_the_list() -> None:
    found = re.findall(r"`([a-z]+_now|present)`", sections()["list"])
    assert found == list(Glance._fields)


def test_the_page_has_the_observations_of_show() -> None:
    found = re.findall(r"`([a-z]+_now)`", sections()["show"])
    assert found == [each for each in documents.Lane.__struct_fields__ if each.endswith("_now")]


def keys(kind: type[msgspec.Struct]) -> Iterator[tuple[str, object]]:
    """Yields every key that a configuration file may have, with its default."""
    for section in msgspec.structs.fields(kind):
        of = section.type if isinstance(section.type, type) else section.type.__args__[0]
        for key in msgspec.structs.fields(of):
            yield f"{section.name}.{key.name}", key.default


def documented(heading: str) -> dict[str, str]:
    """Returns the keys of a section's first table, with their defaults."""
    page = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    section = page.partition(f"## `{heading}`")[2].partition("\n## ")[0]
    table = section.partition("\n| ")[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| `([a-z_.]+)` \| (.*?) \|", table, re.MULTILINE))


def test_the_page_has_every_configuration_key_with_its_default() -> None:
    found = documented("<state directory>/config.toml")
    assert found == {
        key: f"`{msgspec.json.encode(default).decode()}`" for key, default in keys(Configuration)
    }


def test_the_page_has_every_key_of_a_repository() -> None:
    found = documented("<repository>/.laneyard.toml")
    assert list(found) == [key for key, _ in keys(RepositoryConfiguration)]


def test_the_page_of_errors_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/errors", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_page_has_every_code_of_a_service_that_gives_no_answer() -> None:
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    section = page.partition("## When a service gives no answer")[2].partition("\n## ")[0]
    told = {(each.code, str(each.__doc__), each.remedy) for each in ClientError.__subclasses__()}
    assert set(re.findall(r"^\| `(.*?)` \| (.*?) \| (.*?) \|$", section, re.MULTILINE)) == told


CHAPTERS = ("creation", "removal", "restore", "reaping", "snapshots", "demolition")
SOURCES = (
    *(ROOT / f"domain/{name}.py" for name in CHAPTERS),
    *(ROOT / "adapters/performer").glob("*.py"),
    *(ROOT / f"adapters/yard/{name}.py" for name in ("capturing", "putting_away", "reaping")),
    ROOT / "adapters/api/concluding.py",
)


def told_codes() -> set[str]:
    """Returns every code and cause that the source says of what was done, or not done, to the world."""
    nodes = (node for file in SOURCES for node in ast.walk(ast.parse(file.read_bytes())))
    said = (each.value for node in nodes for each in codes_in(node) if isinstance(each, ast.Constant))
    return {str(each) for each in said if re.fullmatch("[a-z]+(_[a-z]+)*", str(each))}


def codes_in(node: ast.AST) -> list[ast.expr | None]:
    """Returns where a code stands: a field, the first of a pair, a table's value, or what is returned."""
    match node:
        case ast.keyword(arg="code" | "cause", value=code):
            return [code]
        case ast.Tuple(elts=[code, _]):
            return [code]
        case ast.Dict(values=codes):
            return [*codes]
        case ast.Return(value=ast.IfExp(body=code)) | ast.Return(value=code):
            return [code]
        case ast.Call(func=ast.Name(id="SnapshotNotMade"), args=[code, *_]):
            return [code]
        case _:
            return []


def test_the_page_has_every_code_of_what_was_not_done_and_no_other() -> None:
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8").partition("## How far a change has come")[2]
    page = re.sub("<!-- generated: causes -->.*?<!-- end -->", "", page, flags=re.DOTALL)
    cells = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    assert {code for cell in cells for code in re.findall("`([a-z_]+)`", cell)} == told_codes()


def tour() -> list[tuple[str, str]]:
    """Returns the tour's commands and what the page says that they print."""
    block = README.partition("<!-- tour -->\n```console\n")[2].partition("```")[0]
    steps = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(step.partition("\n")[0], step.partition("\n")[2]) for step in steps]


def played(desk: Desk) -> list[tuple[str, str]]:
    """Runs the tour's commands in one shell, and returns them with what they print."""
    programs = desk.open().home / "bin"
    programs.mkdir()
    (programs / "laneyard").write_text(f'#!/bin/sh\nexec \'{PROGRAM[0]}\' -I -c "{PROGRAM[3]}" "$@"\n')
    (programs / "laneyard").chmod(0o755)
    mark = "-- end of step --"
    script = "".join(f"{command}\necho '{mark}'\n" for command, _ in tour())
    ran = subprocess.run(
        ["/bin/sh", "-e"],
        cwd=desk.root,
        env={**desk.environment, "PATH": f"{programs}:{os.environ['PATH']}"},
        input=script,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    printed = ran.stdout.replace(str(desk.root), "/tmp/app").split(f"{mark}\n")
    return [(command, out) for (command, _), out in zip(tour(), printed, strict=False)]


def stable(text: str) -> str:
    """Returns the text with what differs from run to run named by its kind."""
    for pattern, word in VOLATILE:
        text = pattern.sub(word, text)
    return text


@pytest.mark.slow
def test_the_tour_of_the_readme_prints_what_it_says(desk: Desk) -> None:
    assert tour()
    assert [(each, stable(out)) for each, out in played(desk)] == [
        (each, stable(out)) for each, out in tour()
    ]


def test_the_readme_names_pages_that_exist() -> None:
    pages = re.findall(r"\]\(([^)#:]+)\)", README)
    assert pages
    assert [page for page in pages if not (ROOT / page).exists()] == []
