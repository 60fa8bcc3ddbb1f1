"""Ignored files as a user meets them: what holds, what is let go, and what can be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.adapters.cli.conftest import Desk, Ran

    Laneyard = Callable[..., Ran]

TAG = "Signature: 8a477f597d28d172789f06886806bc55\n"


@pytest.fixture
def lane(desk: Desk, laneyard: Laneyard) -> Path:
    """A lane in which much is ignored."""
    laneyard("create", "fix")
    (desk.root / ".git/info/exclude").write_text("/.laneyard/\n.env\ndata/\ncache/\nout/\n")
    tree = desk.tree("fix")
    for name, text in {"cache/CACHEDIR.TAG": TAG, "cache/x": "made", ".env": "secret\n"}.items():
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text(text)
    return tree


def test_what_can_be_made_again_does_not_hold_and_is_named(lane: Path, laneyard: Laneyard) -> None:
    (lane / ".env").unlink()
    ran = laneyard("remove", "fix")
    assert ran.code == 0
    assert "rebuildable, and not kept when it is reaped: 1: cache" in ran.out
    events = {each["type"]: each["fact"] for each in laneyard("--json", "log", "fix").lines}
    (let_go,) = events["ignored.let-go@1"]["ignored"]
    assert (let_go["path"], let_go["why"], let_go["entries"]) == ("cache", "CACHEDIR.TAG", 3)
    assert events["removal.planned@4"]["consent"] == {"paths": ["cache"], "reason": "rebuildable"}
    assert laneyard("restore", "fix").code == 0
    assert (lane / "cache/x").read_text() == "made"
    reaped = laneyard("remove", "fix", "--reap")
    assert reaped.code == 0
    assert "note: not kept, as it can be made again: cache\n" in reaped.out
    assert "given up" not in reaped.out
    assert laneyard("restore", "fix").code == 0
    assert not (lane / "cache").exists()


def test_a_refusal_names_path_class_evidence_and_size_and_what_would_change_it(
    lane: Path, laneyard: Laneyard
) -> None:
    (lane / "data").mkdir()
    (lane / "data/x").write_text("12345")
    ran = laneyard("--json", "remove", "fix")
    assert (ran.code, ran.error["code"]) == (1, "unknown_ignored")
    assert ran.error["details"] == {
        "paths": [".env", "data"],
        "ignored": [
            {"path": ".env", "class": "precious", "why": "named .env", "bytes": 7},
            {"path": "data", "class": "unknown", "why": "nothing says what it is", "bytes": 5},
        ],
        "count": 2,
    }
    assert "--include-ignored" in ran.error["message"]
    assert "--force" in ran.error["message"]


def test_show_tells_the_class_of_each_and_its_evidence(lane: Path, laneyard: Laneyard) -> None:
    assert "  ignored    2: precious .env, rebuildable cache\n" in laneyard("show", "fix").out
    seen = laneyard("--json", "show", "fix").json["ignored_now"]["value"]
    assert seen == [
        {"path": ".env", "class": "precious", "why": "named .env", "bytes": 7, "entries": 1},
        {
            "path": "cache",
            "class": "rebuildable",
            "why": "CACHEDIR.TAG",
            "bytes": len(TAG) + 4,
            "entries": 3,
        },
    ]


@pytest.mark.parametrize("option", ["--include-ignored", "--include-ignored=.env"])
@pytest.mark.parametrize("force", [(), ("--force",)])
def test_what_is_asked_for_is_kept_and_comes_back(
    lane: Path, laneyard: Laneyard, option: str, force: tuple[str, ...]
) -> None:
    ran = laneyard("remove", "fix", option, *force, "--reap")
    assert (ran.code, ran.err) == (0, "")
    assert laneyard("restore", "fix").code == 0
    assert (lane / ".env").read_text() == "secret\n"
    assert not (lane / "cache").exists()


def test_a_pattern_keeps_also_what_could_be_made_again(lane: Path, laneyard: Laneyard) -> None:
    ran = laneyard("remove", "fix", "--include-ignored=.env", "--include-ignored=cache/", "--reap")
    assert ran.code == 0
    assert "ignored.let-go@1" not in laneyard("log", "fix").out
    assert laneyard("restore", "fix").code == 0
    assert (lane / "cache/x").read_text() == "made"


def test_a_snapshot_says_what_of_the_ignored_it_holds(lane: Path, laneyard: Laneyard) -> None:
    ran = laneyard("snapshot", "--include-ignored", "fix")
    assert ran.code == 0
    assert ", 1 ignored path included, verified" in ran.out
    facts = [each["fact"] for each in laneyard("--json", "log", "fix", "--type", "*napshot*").lines]
    assert (facts[0]["apart"], facts[0]["omit"]) == ([".env"], ["cache"])
    assert facts[1]["snapshot"]["ignored"] == [".env"]


def test_a_pattern_that_names_nothing_is_refused_also_by_force(lane: Path, laneyard: Laneyard) -> None:
    ran = laneyard("--json", "remove", "fix", "--force", "--include-ignored=.envv")
    assert (ran.code, ran.error["code"]) == (1, "no_such_ignored")
    assert lane.exists()


def test_much_that_can_be_made_again_is_named_briefly(desk: Desk, lane: Path, laneyard: Laneyard) -> None:
    desk.configure('[ignored]\nrebuildable = ["*.o"]\n')
    (desk.root / ".git/info/exclude").write_text("/.laneyard/\n*.o\n")
    for number in range(30):
        (lane / f"m{number}.o").write_text("")
    reaped = laneyard("remove", "fix", "--reap")
    assert reaped.code == 0
    assert reaped.out.count("note: not kept, as it can be made again: ") == 21
    assert "note: not kept, as it can be made again: 10 more, which the log names\n" in reaped.out


def test_an_empty_pattern_is_not_taken_for_everything(lane: Path, laneyard: Laneyard) -> None:
    ran = laneyard("remove", "fix", "--force", "--include-ignored=")
    assert ran.code == 2
    assert "'' is no pattern" in ran.err
    assert lane.exists()


def test_more_than_the_limit_is_refused_and_nothing_is_changed(
    desk: Desk, lane: Path, laneyard: Laneyard
) -> None:
    (desk.root / ".laneyard.toml").write_text("[ignored]\ncapture_limit = 6\n")
    ran = laneyard("--json", "remove", "fix", "--include-ignored")
    assert (ran.code, ran.error["code"]) == (1, "ignored_too_large")
    assert ran.error["details"] == {"size": 7, "limit": 6, "file": ".laneyard.toml"}
    assert laneyard("--json", "show", "fix").json["snapshots"] == []


def test_a_repository_cannot_declare_everything_rebuildable(
    desk: Desk, lane: Path, laneyard: Laneyard
) -> None:
    (desk.root / ".laneyard.toml").write_text('[ignored]\nrebuildable = ["*"]\n')
    (lane / ".env").unlink()
    (lane / "out").mkdir()
    (lane / "out/x").write_text("work")
    ran = laneyard("--json", "remove", "fix")
    assert [each["class"] for each in ran.error["details"]["ignored"]] == ["unknown"]
    assert "ignored.trusted" in ran.error["details"]["ignored"][0]["why"]


def test_a_repositorys_file_that_cannot_be_read_makes_what_is_ignored_unknown(
    desk: Desk, lane: Path, laneyard: Laneyard
) -> None:
    (desk.root / ".laneyard.toml").write_text("[ignored]\nall = true\n")
    ran = laneyard("--json", "remove", "fix", "--force")
    assert (ran.code, ran.error["code"]) == (1, "evidence_unavailable")
    assert "unknown field `all`" in ran.error["message"]


@pytest.mark.parametrize(
    "said",
    [("--include-ignored", "--include-ignored=a"), ("--include-ignored=[",), ("--include-ignored=!a",)],
)
def test_what_cannot_be_meant_is_a_misuse(laneyard: Laneyard, said: tuple[str, ...]) -> None:
    ran = laneyard("--json", "remove", "fix", *said)
    assert (ran.code, ran.error["code"]) == (2, "usage")


def test_a_secret_in_a_build_directory_is_kept_and_the_rest_of_it_let_go(
    desk: Desk, laneyard: Laneyard
) -> None:
    desk.state.mkdir(mode=0o700)
    (desk.state / "config.toml").write_text('[ignored]\nrebuildable = ["out/"]\n')
    laneyard("create", "fix")
    (desk.root / ".git/info/exclude").write_text("/.laneyard/\nout/\n")
    out = desk.tree("fix") / "out"
    for name in ("a/b/made", "conf/.env", "conf/made", "empty/.env/x"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(name)
    (out / "hollow").mkdir()
    assert laneyard("--json", "remove", "fix").error["details"]["paths"] == ["out/conf/.env"]
    ran = laneyard("remove", "fix", "--include-ignored", "--reap")
    assert (ran.code, ran.err) == (0, "")
    (consent,) = [
        each["fact"]["consent"] for each in laneyard("--json", "log", "fix", "--type", "removal.p*").lines
    ]
    assert consent == {"paths": ["out/a", "out/conf/made", "out/empty"], "reason": "rebuildable"}
    assert laneyard("restore", "fix").code == 0
    left = sorted(str(each.relative_to(out)) for each in out.rglob("*"))
    assert left == ["conf", "conf/.env", "hollow"]
    assert (out / "conf/.env").read_text() == "conf/.env"
