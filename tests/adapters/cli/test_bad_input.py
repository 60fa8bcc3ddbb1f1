"""What is asked for and cannot be done is refused with a code of its own, and leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.adapters.cli.conftest import Desk, Ran

    Laneyard = Callable[..., Ran]

NAMES = ["", "   ", "x" * 101, "a\tb", "a\nb", "a\x1b[31mb", "a\udcffb"]
BASES = ["-x", "nothing", "a\nb", "a\0b", "", " ", "main^{tree}", "HEAD:file", "main..main", "a\udcffb"]
BRANCHES = [
    "-x",
    "a..b",
    "a@{b",
    "a.lock",
    "a.lock/b",
    "a b",
    "",
    "@",
    "/a",
    "a/",
    "a//b",
    ".a",
    "a/.b",
    "a.",
]
OWNERS = ["me", "", "session:", "Manual", "session"]


def refused(desk: Desk, laneyard: Laneyard, code: str, *arguments: str | Path) -> dict[str, object]:
    """Runs a command that must be refused without a trace, and returns the error's details."""
    before = desk.traces()
    ran = laneyard("--json", *arguments)
    assert ran.out == ""
    assert (ran.code, ran.error["code"]) == (1, code)
    assert list(ran.error) == ["code", "message", "details"]
    assert ran.error["message"].endswith(".")
    assert desk.traces() == before
    details = ran.error["details"]
    assert isinstance(details, dict)
    return details


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_cannot_be_used_is_refused(desk: Desk, laneyard: Laneyard, name: str) -> None:
    refused(desk, laneyard, "invalid_name", "create", name)


def test_a_name_that_leaves_nothing_becomes_lane(desk: Desk, laneyard: Laneyard) -> None:
    assert laneyard("create", "«!»").out == f"{desk.tree('lane')}\n"
    assert laneyard("create", "日本語").out == f"{desk.tree('lane-2')}\n"


@pytest.mark.parametrize("base", BASES)
def test_a_base_that_is_no_commit_is_refused(desk: Desk, laneyard: Laneyard, base: str) -> None:
    refused(desk, laneyard, "unknown_base", "create", "x", f"--base={base}")


def test_the_id_of_a_file_is_no_base(desk: Desk, laneyard: Laneyard) -> None:
    blob = desk.git("rev-parse", "HEAD:file").strip()
    assert refused(desk, laneyard, "unknown_base", "create", "x", "--base", blob) == {"base": blob}


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_branch_name_that_git_does_not_take_is_refused(desk: Desk, laneyard: Laneyard, branch: str) -> None:
    refused(desk, laneyard, "invalid_branch_name", "create", "x", f"--branch={branch}")


@pytest.mark.parametrize("owner", OWNERS)
def test_an_owner_that_is_neither_manual_nor_a_session_is_refused(
    desk: Desk, laneyard: Laneyard, owner: str
) -> None:
    refused(desk, laneyard, "invalid_owner", "create", "x", f"--owner={owner}")


def test_a_parent_that_is_not_known_is_refused(desk: Desk, laneyard: Laneyard) -> None:
    refused(desk, laneyard, "no_such_lane", "create", "x", "--parent", "nobody")


def test_a_branch_that_exists_is_refused(desk: Desk, laneyard: Laneyard) -> None:
    desk.git("branch", "taken")
    assert refused(desk, laneyard, "branch_exists", "create", "taken")["branch"] == "taken"
    refused(desk, laneyard, "branch_exists", "create", "x", "--branch", "taken")


def test_a_branch_that_is_checked_out_elsewhere_is_refused(desk: Desk, laneyard: Laneyard) -> None:
    refused(desk, laneyard, "branch_in_use", "create", "x", "--branch", "main")
    desk.git("worktree", "add", "-q", "-b", "theirs", desk.home / "theirs")
    details = refused(desk, laneyard, "branch_in_use", "create", "x", "--branch", "theirs")
    assert details == {"branch": "theirs", "holder": f"the worktree {desk.home / 'theirs'}"}


def test_a_branch_that_a_lane_has_is_refused_by_the_lanes_name(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "Fix login", "--branch", "topic")
    details = refused(desk, laneyard, "branch_in_use", "create", "x", "--branch", "topic")
    assert details["holder"] == f"lane fix-login, the worktree {desk.tree('fix-login')}"
    details = refused(desk, laneyard, "branch_in_use", "create", "x", "--branch", "main")
    assert details["holder"] == f"the main checkout {desk.root}"


def test_a_branch_that_is_being_rebased_elsewhere_is_refused(desk: Desk, laneyard: Laneyard) -> None:
    theirs = desk.home / "theirs"
    desk.git("worktree", "add", "-q", "-b", "theirs", theirs)
    desk.git("commit", "-q", "--allow-empty", "-m", "more", cwd=theirs)
    (theirs / "file").write_text("kept for later\n")
    desk.git("commit", "-q", "-a", "-m", "still more", cwd=theirs)
    desk.git("-c", "sequence.editor=sed -i 1ibreak", "rebase", "-q", "-i", "main", cwd=theirs)
    assert desk.git("symbolic-ref", "-q", "HEAD") == "refs/heads/main\n"
    refused(desk, laneyard, "branch_in_use", "create", "x", "--branch", "theirs")


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
@pytest.mark.parametrize(
    ("existing", "wanted"),
    [("topic", "topic/one"), ("topic/one", "topic"), ("a/b", "a/b/c/d"), ("a/b/c", "a")],
)
def test_branches_that_git_cannot_keep_side_by_side_are_refused(
    desk: Desk, laneyard: Laneyard, existing: str, wanted: str, packed: bool
) -> None:
    desk.git("branch", existing)
    if packed:
        desk.git("pack-refs", "--all")
    details = refused(desk, laneyard, "branch_conflict", "create", "x", "--branch", wanted)
    assert details == {"branch": wanted, "other": existing}


def test_what_is_no_lanes_in_the_lanes_place_is_refused(desk: Desk, laneyard: Laneyard) -> None:
    desk.tree("fix").mkdir(parents=True)
    for more in ([], ["--branch", "mine"]):
        assert refused(desk, laneyard, "path_in_use", "create", "fix", *more) == {
            "path": str(desk.tree("fix"))
        }
    message = str(laneyard("create", "fix").err)
    assert "Move what is there out of the way, or choose another name." in message
    assert list(desk.tree("fix").iterdir()) == []


@pytest.mark.slow
def test_a_name_that_another_lane_has_is_numbered_around_what_is_in_the_way(
    desk: Desk, laneyard: Laneyard
) -> None:
    laneyard("create", "fix")
    desk.tree("fix-2").mkdir()
    assert laneyard("create", "fix").out == f"{desk.tree('fix-3')}\n"
    laneyard("remove", "fix")
    assert laneyard("create", "fix").out == f"{desk.tree('fix-4')}\n"


def test_a_file_where_the_managed_root_belongs_is_refused(desk: Desk, laneyard: Laneyard) -> None:
    (desk.root / ".laneyard").write_text("mine\n")
    refused(desk, laneyard, "unsafe_path", "create", "x")


@pytest.mark.parametrize("link", [".laneyard", ".laneyard/worktrees"])
def test_a_link_where_the_managed_root_belongs_is_refused(
    desk: Desk, laneyard: Laneyard, link: str, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = desk.root / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(elsewhere)
    refused(desk, laneyard, "unsafe_path", "create", "x")
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("place", ["mistyped", "file", "mistyped/../.."])
def test_a_mistyped_repository_is_never_the_one_around_it(desk: Desk, laneyard: Laneyard, place: str) -> None:
    assert laneyard("create", "same").code == 0
    for words in (("create", "x"), ("remove", "same", "--reap"), ("show", "same"), ("snapshot", "same")):
        refused(desk, laneyard, "not_a_repository", "-C", place, *words)
    assert [lane["state"] for lane in laneyard("list", "--json").json] == ["active", "active"]


def test_outside_of_a_repository_nothing_is_made(desk: Desk, laneyard: Laneyard) -> None:
    elsewhere = desk.home / "elsewhere"
    elsewhere.mkdir()
    for place in (elsewhere, desk.home / "nowhere"):
        details = refused(desk, laneyard, "not_a_repository", "-C", place, "create", "x")
        assert str(place) in str(details["path"])
    assert list(elsewhere.iterdir()) == []
    assert desk.way == "service" or not desk.state.exists()


@pytest.mark.engine_only("a service has a state directory")
@pytest.mark.parametrize("command", ["snapshot", "remove", "restore", "reap", "review"])
def test_where_nothing_is_recorded_a_refusal_makes_no_state_directory(
    desk: Desk, laneyard: Laneyard, command: str
) -> None:
    refused(desk, laneyard, "no_such_lane", command, "nobody")
    assert not desk.state.exists()


def test_a_repository_without_a_commit_has_nothing_to_start_from(desk: Desk, laneyard: Laneyard) -> None:
    empty = desk.home / "empty"
    empty.mkdir()
    desk.git("init", "-q", "-b", "main", cwd=empty)
    before = sorted(empty.rglob("*"))
    refused(desk, laneyard, "unborn_head", "-C", empty, "create", "x")
    refused(desk, laneyard, "unknown_base", "-C", empty, "create", "x", "--base", "nothing")
    assert sorted(empty.rglob("*")) == before


@pytest.mark.parametrize("command", ["show", "snapshot", "remove", "restore", "reap", "review", "log"])
def test_a_lane_that_is_not_known_is_refused(desk: Desk, laneyard: Laneyard, command: str) -> None:
    assert refused(desk, laneyard, "no_such_lane", command, "nobody") == {"lane": "nobody"}
    laneyard("create", "fix")
    assert refused(desk, laneyard, "no_such_lane", command, "nobody") == {"lane": "nobody"}


def test_a_name_that_two_repositories_have_is_ambiguous_outside_of_both(
    desk: Desk, laneyard: Laneyard, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.git("clone", "-q", desk.root, desk.home / "second")
    laneyard("create", "fix")
    laneyard("-C", desk.home / "second", "create", "fix")
    assert laneyard("show", "fix").code == 0
    monkeypatch.chdir(desk.home)
    assert len(str(refused(desk, laneyard, "ambiguous_lane", "show", "fix")["candidates"])) > 0


STATES = {
    "active": ["restore", "reap", "review"],
    "quarantined": ["remove", "review"],
    "reaped": ["snapshot", "remove", "reap", "review"],
}
STEPS = {"active": [], "quarantined": ["remove"], "reaped": ["remove", "reap"]}


@pytest.mark.parametrize(("state", "command"), [(s, c) for s, each in STATES.items() for c in each])
def test_a_command_that_does_not_apply_is_refused(
    desk: Desk, laneyard: Laneyard, state: str, command: str
) -> None:
    laneyard("create", "fix")
    for step in STEPS[state]:
        assert laneyard(step, "fix").code == 0
    assert refused(desk, laneyard, "wrong_state", command, "fix")["state"] == state


@pytest.mark.parametrize("way_out", ["--put-back", "--resnapshot", "--discard"])
def test_a_review_of_what_needs_none_changes_nothing(desk: Desk, laneyard: Laneyard, way_out: str) -> None:
    laneyard("create", "fix")
    refused(desk, laneyard, "wrong_state", "review", "fix", way_out)


def test_the_main_checkout_is_never_removed(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    refused(desk, laneyard, "edit_protected", "remove", "primary")
    refused(desk, laneyard, "edit_protected", "remove", "primary", "--force")


@pytest.mark.slow
def test_an_edition_a_snapshot_or_a_position_that_is_not_known_is_refused(
    desk: Desk, laneyard: Laneyard
) -> None:
    laneyard("create", "fix")
    laneyard("remove", "fix")
    assert refused(desk, laneyard, "no_such_edition", "restore", "fix", "--edition", "7")["known"] == [1]
    laneyard("reap", "fix")
    refused(desk, laneyard, "no_such_snapshot", "restore", "fix", "--snapshot", "abcd")
    refused(desk, laneyard, "no_such_position", "list", "--at", "999")
    refused(desk, laneyard, "no_such_position", "list", "--at", "-1")
    refused(desk, laneyard, "no_such_position", "diff", "0", "999")


def test_what_cannot_be_read_as_a_command_is_a_usage_error(desk: Desk, laneyard: Laneyard) -> None:
    before = desk.traces()
    for wrong in (["nonsense"], [], ["create"], ["list", "--at", "x"], ["remove", "fix", "--del"]):
        ran = laneyard(*wrong)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("usage: laneyard")
        assert laneyard("--json", *wrong).error["code"] == "usage"
    assert desk.traces() == before


def test_a_refusal_in_words_is_one_line_that_ends_with_its_code(desk: Desk, laneyard: Laneyard) -> None:
    ran = laneyard("show", "nobody")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "laneyard: No lane is called 'nobody' here. 'laneyard list --all' shows every lane. [no_such_lane]\n"
    )


@pytest.mark.parametrize("more", [(), ("--follow",), ("same",)])
def test_a_position_that_the_log_has_not_come_to_is_refused(
    desk: Desk, laneyard: Laneyard, more: tuple[str, ...]
) -> None:
    assert laneyard("create", "same").code == 0
    refused(desk, laneyard, "no_such_position", "log", "--after", "99999", *more)
