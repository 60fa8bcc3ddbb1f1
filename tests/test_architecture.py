"""The rules of the house, read from the source: who imports whom, and where the world may be touched."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("domain", "projections", "adapters")
PURE = ("domain", "projections")

ALLOWED = {  # what a pure package may import; anything else needs an entry, and a reason, here
    "domain": {"msgspec", "eventsourcing", "domain"},
    "projections": {"msgspec", "eventsourcing", "domain", "projections"},
}
PURE_STDLIB = {
    *("__future__", "abc", "base64", "binascii", "bisect", "collections", "copy", "dataclasses", "datetime"),
    *("decimal", "difflib", "enum", "fnmatch", "fractions", "functools", "hashlib", "heapq", "itertools"),
    *("json", "math", "operator", "re", "string", "struct", "textwrap", "types", "typing", "unicodedata"),
    *("urllib.parse", "uuid", "zlib"),
}
IMPURE_IN_PURE = {  # the clock, chance and the disk, by way of names that are otherwise allowed
    *("datetime.datetime.now", "datetime.datetime.utcnow", "datetime.datetime.today", "datetime.date.today"),
    *("uuid.uuid1", "uuid.uuid4", "open", "input", "eval", "exec", "__import__"),
}
FORMS = ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")
SPAWNING = {
    *("subprocess", "multiprocessing", "pty", "concurrent.futures.ProcessPoolExecutor"),
    *("trio.run_process", "trio.Process", "trio.lowlevel.open_process"),
    *("asyncio.create_subprocess_exec", "asyncio.create_subprocess_shell"),
    *("os.fork", "os.forkpty", "os.system", "os.popen", "os.posix_spawn", "os.posix_spawnp"),
    *(f"os.{verb}{form}" for verb in ("exec", "spawn") for form in FORMS),
}
ONLY_IN = [  # (names, the places that may use them); a place that ends in a slash is a folder
    ({"os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv"}, ("adapters/config/",)),
    (SPAWNING, ("adapters/git/door.py",)),
    ({"psutil"}, ("adapters/processes.py",)),
    ({"apsw"}, ("adapters/store/",)),
    ({"watchfiles"}, ("adapters/watcher.py",)),
    ({"adapters.wiring"}, ("adapters/cli/", "adapters/service/")),
    ({"print"}, ("adapters/cli/",)),
    ({"tests", "scripts", "eventsourcing.tests", "unittest"}, ()),
]
LINES = {"domain": 300, "projections": 300, "adapters": 300}
CATALOGUES = {"domain/events.py": 460, "domain/errors.py": 420}  # looked things up in, not read through
FUNCTION_LINES = 50
DEV_TOOLS = re.compile(r"\b(pytest|mypy|ruff(?!: noqa)|xdist|hypothesis|pycryptodome)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Module:
    path: str  # relative to the checkout, with slashes
    text: str
    nodes: tuple[ast.AST, ...]

    @property
    def package(self) -> str:
        return self.path.split("/")[0]


def modules(root: Path, *folders: str) -> Iterator[Module]:
    for folder in folders:
        for file in sorted((root / folder).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            yield Module(file.relative_to(root).as_posix(), text, tuple(ast.walk(ast.parse(text))))


def imports(module: Module) -> Iterator[tuple[int, str, str]]:
    """Every imported thing: its line, the local name it binds, and its full dotted name."""
    for node in module.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.asname or alias.name.split(".")[0], alias.name
        elif isinstance(node, ast.ImportFrom):
            base = module.path.split("/")[: -node.level] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, alias.asname or alias.name, f"{source}.{alias.name}"


def uses(module: Module) -> Iterator[tuple[int, str]]:
    """Every dotted name that the module imports or reads, with import aliases undone."""
    bound = {}
    for line, local, full in imports(module):
        bound[local] = full if not full.startswith(f"{local}.") else local
        yield line, full
    for node in module.nodes:
        name = dotted(node)
        if name is not None:
            first, _, rest = name.partition(".")
            yield node.lineno, ".".join(filter(None, (bound.get(first, first), rest)))  # type: ignore[attr-defined]


def dotted(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return owner and f"{owner}.{node.attr}"
    return None


def within(name: str, names: set[str]) -> bool:
    return not names.isdisjoint(accumulate(name.split("."), "{}.{}".format))


def impure_imports(module: Module) -> Iterator[str]:
    if module.package in PURE:
        allowed = ALLOWED[module.package] | PURE_STDLIB
        for line, _, name in imports(module):
            if not within(name, allowed):
                yield f"{module.path}:{line}: {module.package} may not import {name}"


def impure_calls(module: Module) -> Iterator[str]:
    if module.package in PURE:
        for line, name in uses(module):
            if name in IMPURE_IN_PURE:
                yield f"{module.path}:{line}: {name} is not pure"


def misplaced_names(module: Module) -> Iterator[str]:
    for line, name in uses(module):
        for names, places in ONLY_IN:
            if within(name, names) and not any(allows(place, module.path) for place in places):
                yield f"{module.path}:{line}: {name} belongs in {' or '.join(places) or 'no module of ours'}"


def allows(place: str, path: str) -> bool:
    return path.startswith(place) if place.endswith("/") else path == place


def undeclared_dependencies(module: Module) -> Iterator[str]:
    known = declared()
    for line, _, name in imports(module):
        if name.split(".")[0] not in known:
            yield f"{module.path}:{line}: {name} is no dependency in pyproject.toml"


@cache
def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project.get("optional-dependencies", {})
    wanted = [
        *project["dependencies"],
        *(line for extra in extras if extra != "dev" for line in extras[extra]),
    ]
    return (
        {re.split(r"[^\w-]", line)[0].replace("-", "_") for line in wanted}
        | set(OURS)
        | sys.stdlib_module_names
    )


def awaiting(module: Module) -> Iterator[str]:
    asynchronous = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    if module.package in PURE:
        for node in module.nodes:
            if isinstance(node, asynchronous) or (isinstance(node, ast.comprehension) and node.is_async):
                yield f"{module.path}:{getattr(node, 'lineno', 0)}: nothing awaits outside adapters"


def swallowed_exceptions(module: Module) -> Iterator[str]:
    for node in module.nodes:
        if isinstance(node, ast.ExceptHandler):
            if node.type is None:
                yield f"{module.path}:{node.lineno}: a bare except catches what nobody thought of"
            if all(ast.unparse(statement) in {"pass", "..."} for statement in node.body):
                yield f"{module.path}:{node.lineno}: an exception is swallowed"


def too_long(module: Module) -> Iterator[str]:
    most = CATALOGUES.get(str(module.path), LINES[module.package])
    if (lines := module.text.count("\n")) > most:
        yield f"{module.path}:1: {lines} lines, at most {most}"
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{module.path}:{node.lineno}: {node.name} has {lines} lines, at most {FUNCTION_LINES}"


def dev_tools(module: Module) -> Iterator[str]:
    for number, line in enumerate(module.text.splitlines(), 1):
        if found := DEV_TOOLS.search(line):
            yield f"{module.path}:{number}: the program knows nothing of {found[0]}"


RULES = (
    impure_imports,
    impure_calls,
    misplaced_names,
    undeclared_dependencies,
    awaiting,
    swallowed_exceptions,
    too_long,
    dev_tools,
)


def violations(root: Path, *packages: str) -> list[str]:
    return sorted({found for module in modules(root, *packages) for rule in RULES for found in rule(module)})


@pytest.mark.parametrize("package", OURS)
def test_the_program_keeps_the_rules_of_the_house(package: str) -> None:
    assert violations(ROOT, package) == []


def test_the_tests_swallow_no_exception_and_use_no_mock() -> None:
    tests = list(modules(ROOT, "tests"))
    mocks = [
        f"{m.path}:{line}" for m in tests for line, _, name in imports(m) if within(name, {"unittest.mock"})
    ]
    assert [found for module in tests for found in swallowed_exceptions(module)] == []
    assert mocks == []


LONG_FUNCTION = "def f() -> None:\n" + "    f()\n" * 50


@pytest.mark.parametrize(
    ("path", "source", "complaint"),
    [
        ("domain/a.py", "import os", "domain may not import os"),
        ("domain/a.py", "from pathlib import PurePath", "domain may not import pathlib.PurePath"),
        ("domain/a.py", "import urllib.request", "domain may not import urllib.request"),
        ("domain/a.py", "from projections import lanes", "domain may not import projections.lanes"),
        ("domain/a/b.py", "from ...adapters import engine", "domain may not import adapters.engine"),
        ("domain/a.py", "def f():\n    import random", "a.py:2: domain may not import random"),
        ("projections/a.py", "from adapters import engine", "projections may not import adapters.engine"),
        ("projections/a.py", "import sqlite3", "projections may not import sqlite3"),
        ("domain/a.py", "from datetime import datetime as dt\ndt.now()", "a.py:2: datetime.datetime.now"),
        ("projections/a.py", "import datetime\ndatetime.date.today()", "datetime.date.today is not pure"),
        ("domain/a.py", "from uuid import uuid4", "uuid.uuid4 is not pure"),
        ("domain/a.py", "open('x')", "open is not pure"),
        ("domain/a.py", "async def f(): ...", "nothing awaits"),
        ("projections/a.py", "[x async for x in y]", "nothing awaits"),
        ("adapters/a.py", "import os\nos.environ['HOME']", "a.py:2: os.environ belongs in adapters/config"),
        ("adapters/a.py", "from os import getenv as g", "os.getenv belongs in adapters/config/"),
        ("adapters/a.py", "import subprocess", "subprocess belongs in adapters/git"),
        ("adapters/a.py", "import trio as t\nt.run_process", "trio.run_process belongs in adapters/git"),
        ("adapters/a.py", "import os.path\nos.execv", "os.execv belongs in adapters/git"),
        ("adapters/a.py", "from trio.lowlevel import open_process", "open_process belongs in adapters/git"),
        ("adapters/git/a.py", "import psutil", "psutil belongs in adapters/processes.py"),
        ("adapters/a.py", "import apsw.ext", "apsw.ext belongs in adapters/store/"),
        ("adapters/a.py", "from watchfiles import awatch", "awatch belongs in adapters/watcher"),
        ("adapters/a.py", "from adapters import wiring", "adapters.wiring belongs in adapters/cli/"),
        ("adapters/http/a.py", "from .. import wiring", "adapters.wiring belongs in adapters/cli/"),
        ("adapters/a.py", "print('x')", "print belongs in adapters/cli/"),
        ("adapters/a.py", "import tests.worlds", "tests.worlds belongs in no module of ours"),
        ("adapters/a.py", "import outcome", "outcome is no dependency"),
        ("adapters/a.py", "try: f()\nexcept: raise", "a bare except"),
        ("adapters/a.py", "try: f()\nexcept OSError: pass", "an exception is swallowed"),
        ("adapters/a.py", "try: f()\nexcept OSError: ...", "an exception is swallowed"),
        ("adapters/a.py", "x = 1\n" * 301, "301 lines, at most 300"),
        ("domain/a.py", "x = 1\n" * 301, "301 lines, at most 300"),
        ("adapters/a.py", LONG_FUNCTION, "f has 51 lines, at most 50"),
        ("adapters/a.py", "# for mypy's sake", "knows nothing of mypy"),
    ],
)
def test_a_planted_violation_is_caught(tmp_path: Path, path: str, source: str, complaint: str) -> None:
    plant(tmp_path, path, source)
    assert any(complaint in found for found in violations(tmp_path, *OURS))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("domain/a.py", "from collections.abc import Iterator\nfrom urllib.parse import quote"),
        ("domain/a/b.py", "from . import c\nfrom ..events import Fact"),
        ("projections/a.py", "from domain.events import Fact"),
        ("domain/a.py", "from datetime import UTC, datetime\ndatetime.fromtimestamp(0, UTC)"),
        ("domain/a.py", "def f(command):\n    return command.now, command.open"),
        ("adapters/config/place.py", "import os\nos.environ.get('HOME')"),
        ("adapters/git/door.py", "import subprocess\nfrom trio import run_process\nrun_process"),
        ("adapters/processes.py", "import psutil"),
        ("adapters/store/a.py", "import apsw\nimport apsw.bestpractice"),
        ("adapters/watcher.py", "from watchfiles import awatch\nasync def f(): await awatch()"),
        ("adapters/cli/a.py", "from adapters.wiring import wire\nprint(wire)"),
        ("adapters/a.py", "import os\nos.path.join('a', 'b')\ntry: f()\nexcept OSError: g()"),
        ("adapters/a.py", LONG_FUNCTION.removesuffix("    f()\n")),
    ],
)
def test_what_is_allowed_is_not_complained_about(tmp_path: Path, path: str, source: str) -> None:
    plant(tmp_path, path, source)
    assert violations(tmp_path, *OURS) == []


def plant(root: Path, path: str, source: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True)
    file.write_text(source)
