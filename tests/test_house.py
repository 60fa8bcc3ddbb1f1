"""What a newcomer relies on: the pages, the scripts, the drawings and the price of a start."""

import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "scripts").iterdir())
DECISIONS = sorted((ROOT / "docs/decisions").glob("*.md"))
HEAVY = {"trio", "apsw", "eventsourcing", "rich", "psutil", "watchfiles"}
NOT_OURS = {".git", "build", "__pycache__"}
OF_A_MACHINE = re.compile(rb"(?<![\w.~$}>/])/(?:root|work|home|Users)/\w")


def files() -> Iterator[Path]:
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in NOT_OURS and not ignored(name)]
        yield from (Path(folder, name) for name in names if name != ".git")


def ignored(name: str) -> bool:
    return name.endswith((".egg-info", "_cache")) or name.startswith((".venv", ".hypothesis", ".laneyard"))


def run(*argv: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def test_help_imports_nothing_heavy() -> None:
    start = "import sys; sys.argv = ['laneyard', '--help']; from adapters.cli import main; sys.exit(main())"
    done = run(sys.executable, "-X", "importtime", "-c", start)
    assert done.returncode == 0, done.stderr
    assert {
        line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()
    } & HEAVY == set()


def test_the_generated_drawings_are_fresh() -> None:
    done = run(sys.executable, ROOT / "scripts/diagram", "--check")
    assert done.returncode == 0, done.stderr


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    assert [file for file in files() if OF_A_MACHINE.search(file.read_bytes())] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_script_is_executable_and_short(script: Path) -> None:
    assert os.access(script, os.X_OK)
    assert len(script.read_text(encoding="utf-8").splitlines()) < 60


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_python_script_is_formatted_and_type_checked(script: Path) -> None:
    if "python" in script.read_text(encoding="utf-8").splitlines()[0]:
        assert (ROOT / "pyproject.toml").read_text(encoding="utf-8").count(f'"scripts/{script.name}"') == 2


def test_the_page_for_contributors_has_every_script() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(?:scripts/)?([a-z./-]+)", page, re.MULTILINE)
    assert sorted(rows) == sorted([*(script.name for script in SCRIPTS), ".ci/run"])


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose .venv is ready, with a program that tells what reached it."""
    root = tmp_path / "a checkout"
    shutil.copytree(ROOT / "scripts", root / "scripts")
    (root / "adapters/cli").mkdir(parents=True)
    (root / "adapters/cli/__init__.py").write_text(
        "import sys\ndef main():\n    print(sys.argv)\n    return 7\n"
    )
    for name in ("pyproject.toml", "constraints.txt"):
        (root / name).touch()
    venv.create(root / ".venv", symlinks=True)
    (next(root.glob(".venv/lib/*/site-packages")) / "root.pth").write_text(f"{root}\n")
    (root / ".venv/checkout").symlink_to(root)
    (root / ".venv/ready-runtime").touch()
    return root


def is_fresh(root: Path) -> bool:
    look = 'root=$1 need=runtime; . "$1/scripts/bootstrap"; fresh'
    return run("/bin/sh", "-c", look, "look", root).returncode == 0


def test_laneyard_starts_through_a_symlink_with_arguments_and_exit_code(
    checkout: Path, tmp_path: Path
) -> None:
    link = tmp_path / "ly"
    link.symlink_to("a checkout/scripts/laneyard")
    misled = {**os.environ, "PYTHONHOME": "/nowhere", "PYTHONPATH": "/nowhere"}
    done = subprocess.run([link, "a b", ""], cwd="/", env=misled, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "['laneyard', 'a b', '']\n", "")


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_newer_dependency_file_asks_for_a_new_set_up(checkout: Path, name: str) -> None:
    assert is_fresh(checkout)
    later = (checkout / ".venv/ready-runtime").stat().st_mtime + 10
    os.utime(checkout / name, (later, later))
    assert not is_fresh(checkout)


def test_an_unfinished_set_up_is_not_taken_for_a_whole_one(checkout: Path) -> None:
    (checkout / ".venv/ready-runtime").rename(checkout / ".venv/building")
    assert not is_fresh(checkout)


def test_a_copied_checkout_does_not_run_the_program_of_the_original(checkout: Path, tmp_path: Path) -> None:
    shutil.copytree(checkout, tmp_path / "copy", symlinks=True)
    assert not is_fresh(tmp_path / "copy")


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda decision: decision.stem)
def test_a_decision_tells_context_decision_alternatives_and_consequences(decision: Path) -> None:
    headings = re.findall(r"^## (.*)$", decision.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == ["Context", "Decision", "Alternatives", "Consequences"]


def test_the_decisions_are_numbered_without_a_gap() -> None:
    assert [int(decision.name[:4]) for decision in DECISIONS] == list(range(1, len(DECISIONS) + 1))


@pytest.mark.parametrize(
    "page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"]
)
def test_the_page_exists_and_says_something(page: str) -> None:
    assert (ROOT / page).read_text(encoding="utf-8").strip()
