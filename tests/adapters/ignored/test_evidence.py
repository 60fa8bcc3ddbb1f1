"""What is let go has evidence, what holds is named, and nothing of somebody's is taken for a build's."""

from __future__ import annotations

import os
import py_compile
from typing import TYPE_CHECKING

import pytest

from adapters.ignored.classes import Rules
from adapters.ignored.evidence import classify
from adapters.ignored.patterns import Patterns

if TYPE_CHECKING:
    from pathlib import Path

    from domain.evidence import Ignored

TAG = "Signature: 8a477f597d28d172789f06886806bc55\n# made by a tool\n"


def put(root: Path, files: dict[str, str]) -> None:
    """Writes files, a path that ends in a slash as an empty directory."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(exist_ok=True) if name.endswith("/") else path.write_text(text)


def pyc(root: Path, *names: str, header: bytes = b"\xa7\r\r\n" + bytes(12)) -> None:
    """Writes files of bytecode."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(header + b"\xe3code")


def told(root: Path, *paths: str, rules: Rules | None = None, most: int = 1000) -> list[Ignored]:
    """Returns how ignored paths are classed."""
    return list(classify(os.fsencode(root), map(os.fsencode, paths), rules or Rules(), most))


def kinds(root: Path, *paths: str, rules: Rules | None = None) -> dict[str, str]:
    """Returns the class of each path that is told."""
    return {each.path: each.kind for each in told(root, *paths, rules=rules)}


BUILD = Rules(rebuildable=Patterns(["build/", "*.o"]))


def test_a_directory_with_the_standards_tag_is_rebuildable(tmp_path: Path) -> None:
    put(tmp_path, {"target/CACHEDIR.TAG": TAG, "target/debug/app": "12345"})
    (each,) = told(tmp_path, "target/")
    assert (each.path, each.kind, each.why) == ("target", "rebuildable", "CACHEDIR.TAG")
    assert (each.bytes, each.entries) == (len(TAG) + 5, 4)


@pytest.mark.parametrize("text", ["", "Signature: 8a477f597d28d172789f06886806bc5", "# cache\n" + TAG])
def test_a_tag_without_the_signature_says_nothing(tmp_path: Path, text: str) -> None:
    put(tmp_path, {"target/CACHEDIR.TAG": text})
    assert kinds(tmp_path, "target/") == {"target": "unknown"}


def test_a_link_to_a_tag_says_nothing(tmp_path: Path) -> None:
    put(tmp_path, {"tag": TAG, "target/app": ""})
    (tmp_path / "target/CACHEDIR.TAG").symlink_to(tmp_path / "tag")
    assert kinds(tmp_path, "target/") == {"target": "unknown"}


VENV = {".venv/pyvenv.cfg": "home = /usr", ".venv/bin/python3": "", ".venv/lib/x.py": ""}


def test_a_virtual_environment_is_rebuildable(tmp_path: Path) -> None:
    put(tmp_path, VENV)
    (each,) = told(tmp_path, ".venv/")
    assert (each.kind, each.why) == ("rebuildable", "pyvenv.cfg")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({".venv/main.py": ""}, "and no part of a virtual environment: .venv/main.py"),
        ({".venv/src/x": ""}, "and no part of a virtual environment: .venv/src"),
        ({".venv/main.py": "", ".venv/CACHEDIR.TAG": TAG}, "no part of a virtual environment: .venv/main.py"),
    ],
)
def test_a_virtual_environment_with_somebodys_work_in_it_is_unknown_and_names_it(
    tmp_path: Path, more: dict[str, str], why: str
) -> None:
    put(tmp_path, VENV | more)
    (each,) = told(tmp_path, ".venv/")
    assert (each.path, each.kind) == (".venv", "unknown")
    assert why in each.why
    (each,) = told(tmp_path, ".venv/", rules=Rules(rebuildable=Patterns([".venv/"])))
    assert each.kind == "rebuildable"


@pytest.mark.parametrize(
    ("missing", "why"),
    [(".venv/bin/python3", "pyvenv.cfg without a python"), (".venv/lib/x.py", "pyvenv.cfg without packages")],
)
def test_what_has_not_the_shape_of_a_virtual_environment_is_none(
    tmp_path: Path, missing: str, why: str
) -> None:
    put(tmp_path, {path: text for path, text in VENV.items() if path != missing})
    (each,) = told(tmp_path, ".venv/")
    assert (each.kind, each.why) == ("unknown", why)


@pytest.mark.parametrize(
    "lock",
    [
        *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock"),
        *("pnpm-lock.yaml", "bun.lock", "bun.lockb"),
    ],
)
def test_node_modules_beside_a_lock_file_are_rebuildable(tmp_path: Path, lock: str) -> None:
    put(tmp_path, {f"web/{lock}": "", "web/node_modules/a/index.js": ""})
    (each,) = told(tmp_path, "web/node_modules/")
    assert (each.kind, each.why) == ("rebuildable", f"node_modules beside {lock}")


def test_node_modules_without_a_lock_file_beside_them_are_unknown(tmp_path: Path) -> None:
    put(tmp_path, {"package-lock.json": "", "web/node_modules/a": "", "modules/a": "", "yarn.lock/": ""})
    assert kinds(tmp_path, "web/node_modules/", "modules/") == {
        "web/node_modules": "unknown",
        "modules": "unknown",
    }


BYTECODE = "pkg/__pycache__"


@pytest.mark.parametrize(
    "name",
    ["m.cpython-311.pyc", "m.cpython-311.opt-1.pyc", "m.cpython-311-pytest-9.2.0.pyc", "m.pypy310.pyc"],
)
def test_bytecode_of_present_sources_is_rebuildable(tmp_path: Path, name: str) -> None:
    put(tmp_path, {"pkg/m.py": ""})
    pyc(tmp_path, f"{BYTECODE}/{name}")
    (each,) = told(tmp_path, f"{BYTECODE}/")
    assert (each.kind, each.why) == ("rebuildable", "bytecode of present sources")
    (each,) = told(tmp_path, f"{BYTECODE}/{name}")
    assert (each.kind, each.why) == ("rebuildable", "bytecode of a present source")


@pytest.mark.parametrize(
    "name",
    [
        *("gone.cpython-311.pyc", "m.pyc", "m.cpython-311.pyc.1234", "notes.txt", "sub/m.cpython-311.pyc"),
        *("m.notes-2.pyc", "m.backup2024.tar.gz-1.pyc", "m.cpython-311.notes.pyc"),
    ],
)
def test_bytecode_with_anything_else_is_unknown(tmp_path: Path, name: str) -> None:
    put(tmp_path, {"pkg/m.py": ""})
    pyc(tmp_path, f"{BYTECODE}/m.cpython-311.pyc", f"{BYTECODE}/{name}")
    assert kinds(tmp_path, f"{BYTECODE}/") == {BYTECODE: "unknown"}
    assert kinds(tmp_path, f"{BYTECODE}/{name}") == {f"{BYTECODE}/{name}": "unknown"}


@pytest.mark.parametrize(
    "header", [b"", b"my notes, no bytecode", b"\xa7\r\r\n", b"\xa7\r\r\n" + b"\x09" + bytes(11)]
)
def test_what_has_only_the_name_of_bytecode_is_unknown(tmp_path: Path, header: bytes) -> None:
    put(tmp_path, {"pkg/m.py": "", f"{BYTECODE}/": ""})
    (tmp_path / BYTECODE / "m.cpython-311.pyc").write_bytes(header)
    assert kinds(tmp_path, f"{BYTECODE}/") == {BYTECODE: "unknown"}


def test_what_the_interpreter_writes_is_bytecode(tmp_path: Path) -> None:
    put(tmp_path, {"pkg/m.py": "x = 1\n"})
    py_compile.compile(str(tmp_path / "pkg/m.py"), doraise=True)
    py_compile.compile(str(tmp_path / "pkg/m.py"), doraise=True, optimize=2)
    assert len(os.listdir(tmp_path / BYTECODE)) == 2
    assert kinds(tmp_path, f"{BYTECODE}/") == {BYTECODE: "rebuildable"}


def test_bytecode_elsewhere_is_unknown(tmp_path: Path) -> None:
    put(tmp_path, {"m.py": "", "m.pyc": "", "cache/m.cpython-311.pyc": ""})
    assert kinds(tmp_path, "m.pyc", "cache/") == {"m.pyc": "unknown", "cache": "unknown"}


def test_a_configured_pattern_makes_files_and_directories_rebuildable(tmp_path: Path) -> None:
    put(tmp_path, {"build/app": "", "a.o": "", "sub/build/b": "", "builds/c": ""})
    found = told(tmp_path, "build/", "a.o", "sub/build/", "builds/", rules=BUILD)
    assert [each.kind for each in found] == ["rebuildable", "rebuildable", "rebuildable", "unknown"]
    assert found[0].why == "pattern build/ of the configuration"


@pytest.mark.parametrize(
    "name",
    [
        *(".env", ".ENV", ".env.local", ".env.production", "server.pem", "tls.key", "id_rsa", "id_ed25519"),
        *("a.p12", "a.pfx", "a.jks", "a.keystore", "credentials.json", ".netrc", ".npmrc", ".pypirc"),
        *(".envrc", ".git-credentials"),
        *("a.sqlite", "a.sqlite3", "a.db", "a.mdb", "a.db-wal", "a.sqlite3-journal", "terraform.tfstate"),
    ],
)
def test_secrets_and_databases_are_precious_by_their_names(tmp_path: Path, name: str) -> None:
    put(tmp_path, {name: "x", f"sub/{name}": "x"})
    found = told(tmp_path, name, f"sub/{name}")
    assert [(each.path, each.kind) for each in found] == [(name, "precious"), (f"sub/{name}", "precious")]
    assert found[0].why.startswith("named ")


@pytest.mark.parametrize(
    "name", [".env.example", ".env.sample", ".env.template", "id_rsa.pub", "env", ".environment", "a.dbx"]
)
def test_other_names_say_nothing(tmp_path: Path, name: str) -> None:
    put(tmp_path, {name: "x"})
    (each,) = told(tmp_path, name)
    assert (each.kind, each.why) == ("unknown", "nothing says what it is")


def test_what_is_precious_in_a_directory_is_told_by_itself_and_the_rest_in_few_parts(tmp_path: Path) -> None:
    put(tmp_path, {"build/.env": "12", "build/a/b/c": "1", "build/a/x.db": "123", "build/lib/d": "1234"})
    found = told(tmp_path, "build/", rules=BUILD)
    assert [(each.path, each.kind, each.bytes, each.entries) for each in found] == [
        ("build/.env", "precious", 2, 1),
        ("build/a/b", "rebuildable", 1, 2),
        ("build/a/x.db", "precious", 3, 1),
        ("build/lib", "rebuildable", 4, 2),
    ]


SEALS = {
    "target": {"target/CACHEDIR.TAG": TAG},
    ".venv": VENV,
    "node_modules": {"yarn.lock": "", "node_modules/index": ""},
}


@pytest.mark.parametrize("directory", SEALS)
def test_fixtures_of_packages_are_not_yours(tmp_path: Path, directory: str) -> None:
    put(tmp_path, {**SEALS[directory], f"{directory}/lib/test/server.pem": "", f"{directory}/lib/.env": ""})
    assert kinds(tmp_path, f"{directory}/") == {directory: "rebuildable"}
    put(tmp_path, {f"all/{path}": text for path, text in SEALS[directory].items()})
    put(tmp_path, {f"all/{directory}/lib/test/server.pem": ""})
    assert kinds(tmp_path, "all/") == {"all": "unknown"}


@pytest.mark.parametrize("directory", SEALS)
def test_a_secret_right_in_a_tools_directory_is_yours(tmp_path: Path, directory: str) -> None:
    put(tmp_path, {**SEALS[directory], f"{directory}/.env": "x"})
    assert kinds(tmp_path, f"{directory}/")[f"{directory}/.env"] == "precious"


@pytest.mark.parametrize("directory", SEALS)
def test_a_configured_pattern_is_precious_wherever_it_is(tmp_path: Path, directory: str) -> None:
    put(tmp_path, {**SEALS[directory], f"{directory}/lib/keep/x": "x"})
    rules = Rules(precious=Patterns(["keep/"]))
    assert kinds(tmp_path, f"{directory}/", rules=rules)[f"{directory}/lib/keep"] == "precious"


def test_a_pattern_that_names_the_directory_makes_all_of_it_precious(tmp_path: Path) -> None:
    put(tmp_path, {"data/CACHEDIR.TAG": TAG, "data/x": "", "data/.env": ""})
    (each,) = told(tmp_path, "data/", rules=Rules(precious=Patterns(["/data/"])))
    assert (each.path, each.kind, each.why) == ("data", "precious", "pattern /data/ of the configuration")


def test_the_user_can_take_a_name_back_and_a_repository_cannot(tmp_path: Path) -> None:
    put(tmp_path, {"test.db": "", "build/test.db": ""})
    back = Patterns(["!test.db"])
    assert kinds(tmp_path, "test.db", rules=Rules(precious=back)) == {"test.db": "unknown"}
    assert kinds(tmp_path, "test.db", rules=Rules(added=back)) == {"test.db": "precious"}
    rules = Rules(precious=back, rebuildable=Patterns(["build/"]))
    assert kinds(tmp_path, "build/", rules=rules) == {"build": "rebuildable"}
    rules = Rules(precious=back, added=Patterns(["*.db"]))
    assert kinds(tmp_path, "test.db", rules=rules) == {"test.db": "precious"}


def test_precious_goes_before_rebuildable(tmp_path: Path) -> None:
    put(tmp_path, {"build/.env": "", ".env": ""})
    rules = Rules(rebuildable=Patterns(["build/", ".env"]), added=Patterns(["build/"]))
    assert kinds(tmp_path, ".env", "build/", rules=rules) == {".env": "precious", "build": "precious"}


def test_what_a_repository_is_not_trusted_to_say_is_told(tmp_path: Path) -> None:
    put(tmp_path, {"out/x": ""})
    (each,) = told(tmp_path, "out/", rules=Rules(untrusted=Patterns(["out/"])))
    assert (each.kind, each.why) == (
        "unknown",
        "pattern out/ of a repository that ignored.trusted does not name",
    )


@pytest.mark.parametrize(
    "inner",
    [
        *({"c/.git/HEAD": ""}, {"c/.git": "gitdir: x"}, {".git/HEAD": ""}, {"c/.GIT/": "", "c/x": ""}),
        {"c.git/HEAD": "", "c.git/objects/": "", "c.git/refs/": ""},
        *({f"c/{name}/x": ""} for name in (".hg", ".jj", ".svn", ".bzr", "CVS", "_darcs", ".pijul")),
        {"c/.fslckout": ""},
    ],
)
@pytest.mark.parametrize("seal", [{"build/x": ""}, {"build/CACHEDIR.TAG": TAG}])
def test_a_repository_in_it_makes_it_unknown_whatever_else_is_said(
    tmp_path: Path, inner: dict[str, str], seal: dict[str, str]
) -> None:
    put(tmp_path, {**seal, **{f"build/{path}": text for path, text in inner.items()}})
    (each,) = told(tmp_path, "build/", rules=BUILD)
    assert (each.path, each.kind) == ("build", "unknown")
    assert each.why.startswith("a repository is in it: build")


def test_nothing_in_somebodys_repository_is_told_by_itself(tmp_path: Path) -> None:
    put(tmp_path, {"scratch/clone/.git/HEAD": "", "scratch/clone/.env": "", "scratch/.env": ""})
    found = kinds(tmp_path, "scratch/", rules=Rules(rebuildable=Patterns(["scratch/"])))
    assert found == {"scratch/.env": "precious", "scratch/clone": "unknown"}


def test_a_part_of_a_bare_repository_is_none(tmp_path: Path) -> None:
    put(tmp_path, {"build/HEAD": "", "build/objects/x": ""})
    assert kinds(tmp_path, "build/", rules=BUILD) == {"build": "rebuildable"}


def test_what_a_request_names_is_told_by_itself_with_the_class_of_its_directory(tmp_path: Path) -> None:
    put(tmp_path, {"data/raw/x": "1", "data/out/y": "22", "build/a/b": "", "build/keep": ""})
    rules = Rules(rebuildable=Patterns(["build/"]), wanted=Patterns(["raw", "/build/keep"]))
    assert kinds(tmp_path, "data/", "build/", rules=rules) == {
        "data/raw": "unknown",
        "data/out": "unknown",
        "build/keep": "rebuildable",
        "build/a": "rebuildable",
    }


def test_a_directory_that_a_request_names_is_not_divided(tmp_path: Path) -> None:
    put(tmp_path, {"data/raw/x": "1", "data/out/y": "22"})
    assert kinds(tmp_path, "data/", rules=Rules(wanted=Patterns(["data/"]))) == {"data": "unknown"}


def test_a_part_that_a_request_names_is_precious_if_anything_in_it_is(tmp_path: Path) -> None:
    put(tmp_path, {"build/sub/.env": "", "build/sub/x": "", "build/y": ""})
    rules = Rules(rebuildable=Patterns(["build/"]), wanted=Patterns(["sub/"]))
    assert kinds(tmp_path, "build/", rules=rules) == {"build/sub": "precious", "build/y": "rebuildable"}


def test_directories_without_a_file_are_told_by_nobody(tmp_path: Path) -> None:
    put(tmp_path, {"build/a/b/": "", "data/c/": "", "data/.env": ""})
    assert kinds(tmp_path, "build/", "data/") == {"data/.env": "precious"}


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(tmp_path, {"outside/big": "x" * 5000, "root/build/x": "1"})
    (tmp_path / "root/build/away").symlink_to(outside)
    (tmp_path / "root/linked").symlink_to(outside)
    inner, whole = told(tmp_path / "root", "build/", "linked", rules=BUILD)
    assert (inner.kind, inner.bytes, inner.entries) == ("rebuildable", 1 + len(os.fsencode(outside)), 3)
    assert (whole.kind, whole.bytes, whole.entries) == ("unknown", len(os.fsencode(outside)), 1)


def test_beyond_a_limit_of_entries_nothing_is_known(tmp_path: Path) -> None:
    put(tmp_path, {f"build/{n}": "" for n in range(10)} | {"more/x": "", "a.o": ""})
    first, second, third = told(tmp_path, "build/", "more/", "a.o", rules=BUILD, most=5)
    assert (first.kind, first.why) == ("unknown", "one look ends after 5 entries")
    assert (second.kind, second.why) == ("unknown", "one look ends after 5 entries")
    assert third.kind == "rebuildable"


@pytest.mark.parametrize(
    ("rules", "counted"),
    [
        (Rules(everything=True), (11, 6)),
        (Rules(wanted=Patterns(["build/"])), (11, 0)),
        (Rules(), (3, 0)),
    ],
)
def test_what_a_request_asks_for_is_counted_beyond_the_limit(
    tmp_path: Path, rules: Rules, counted: tuple[int, int]
) -> None:
    put(tmp_path, {f"build/{n}": "1" for n in range(11)} | {"more/x": "123456"})
    first, second = told(tmp_path, "build/", "more/", rules=rules, most=4)
    assert (first.bytes, second.bytes) == counted
    assert {first.kind, second.kind} == {"unknown"}


BACK = Rules(rebuildable=Patterns(["out/", "!out/keep/", "!*.csv"]))


def test_what_a_pattern_takes_back_below_a_directory_is_not_let_go_with_it(tmp_path: Path) -> None:
    put(
        tmp_path,
        {"out/o": "", "out/keep/results": "1", "out/a/b": "", "out/a/x.csv": "", "out/keep/.env": ""},
    )
    assert kinds(tmp_path, "out/", rules=BACK) == {
        "out/a/b": "rebuildable",
        "out/a/x.csv": "unknown",
        "out/keep": "precious",
        "out/o": "rebuildable",
    }
    (tmp_path / "out/keep/.env").unlink()
    kept = {each.path: each for each in told(tmp_path, "out/", rules=BACK)}["out/keep"]
    assert (kept.kind, kept.why) == ("unknown", "pattern !out/keep/ of the configuration")


def test_what_is_taken_back_is_not_let_go_as_a_tools_either(tmp_path: Path) -> None:
    put(tmp_path, {"target/CACHEDIR.TAG": TAG, "target/x.csv": "", "x.csv": ""})
    found = kinds(tmp_path, "target/", "x.csv", rules=BACK)
    assert found == {"target/CACHEDIR.TAG": "rebuildable", "target/x.csv": "unknown", "x.csv": "unknown"}


def test_a_trusted_repository_cannot_override_what_the_user_takes_back(tmp_path: Path) -> None:
    put(tmp_path, {"keep.csv": "", "out/keep.csv": "", "out/x": "", "y": ""})
    rules = Rules(rebuildable=Patterns(["!*.csv", "!out/"]), trusted=Patterns(["*", "!y"]))
    assert kinds(tmp_path, "keep.csv", "out/", "y", rules=rules) == {
        "keep.csv": "unknown",
        "out/keep.csv": "unknown",
        "out/x": "unknown",
        "y": "unknown",
    }


def test_what_the_commit_has_is_not_let_go_with_its_directory(tmp_path: Path) -> None:
    put(tmp_path, {"out/CACHEDIR.TAG": TAG, "out/keep.txt": "", "out/x": "", "a.o": ""})
    committed = [b"out/keep.txt", b"a.o"]
    paths = [b"out/", b"a.o"]
    found = classify(os.fsencode(tmp_path), paths, BUILD, changed=committed, committed=committed)
    why = "the commit has it, and the index has not any more"
    assert {each.path: (each.kind, each.why) for each in found} == {
        "out/CACHEDIR.TAG": ("rebuildable", "CACHEDIR.TAG"),
        "out/keep.txt": ("unknown", why),
        "out/x": ("rebuildable", "CACHEDIR.TAG"),
        "a.o": ("unknown", why),
    }


def test_what_is_gone_meanwhile_is_unknown(tmp_path: Path) -> None:
    (each,) = told(tmp_path, "build/", rules=BUILD)
    assert (each.path, each.kind) == ("build", "unknown")
    assert each.why.startswith("it cannot be looked at: No such file or directory")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    put(tmp_path, {"build/inner/x": ""})
    (tmp_path / "build/inner").chmod(0)
    (each,) = told(tmp_path, "build/", rules=BUILD)
    assert (each.kind, each.why) == (
        "unknown",
        f"it cannot be looked at: Permission denied: {tmp_path}/build/inner",
    )
    (tmp_path / "build/inner").chmod(0o700)


def test_special_files_are_content_and_no_bytecode(tmp_path: Path) -> None:
    put(tmp_path, {"pkg/m.py": "", f"{BYTECODE}/": ""})
    os.mkfifo(tmp_path / BYTECODE / "m.cpython-311.pyc")
    assert kinds(tmp_path, f"{BYTECODE}/") == {BYTECODE: "unknown"}


def test_names_of_any_bytes_are_packed(tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/caf\xe9\n/.env"
    os.makedirs(os.path.dirname(odd))
    with open(odd, "w"):
        pass
    (each,) = classify(os.fsencode(tmp_path), [b"caf\xe9\n/"], Rules())
    assert (each.path, each.kind) == ("caf%E9\n/.env", "precious")
