"""What programs read: the fields and their order, and that nothing else is on standard output."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.adapters.cli.conftest import Desk, Ran

    Laneyard = Callable[..., Ran]

LANE = [
    *("id", "slug", "name", "state", "kind", "path", "branch", "head", "base_ref", "base_commit", "parent"),
    *("owner", "edition", "created_at", "position", "repository", "version"),
]
EVENT = ["position", "type", "lane", "stream", "version", "time", "actor", "cause", "fact"]
SEEN = [
    *("branch_now", "head_now", "locked_now", "changed_now", "untracked_now", "ignored_now", "obstacles_now"),
]


def test_a_lane_has_the_fields_of_a_lane_in_their_order(desk: Desk, laneyard: Laneyard) -> None:
    made = laneyard("--json", "create", "Fix login", "--owner", "session:7").json
    head = desk.git("rev-parse", "HEAD").strip()
    assert list(made) == [*LANE, "warnings", "outcome"]
    assert (made["slug"], made["name"]) == ("fix-login", "Fix login")
    assert (made["state"], made["kind"], made["owner"]) == ("active", "managed", "session:7")
    assert made["path"] == str(desk.tree("fix-login"))
    assert (made["branch"], made["head"]) == ("refs/heads/fix-login", head)
    assert (made["base_ref"], made["base_commit"]) == ("refs/heads/main", head)
    assert (made["parent"], made["edition"], made["warnings"], made["outcome"]) == (None, 0, [], "done")
    assert (made["repository"], made["version"]) == (str(desk.root / ".git"), 3)


def test_the_list_is_an_array_of_lanes_with_what_was_observed(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    lanes = laneyard("--json", "list").json
    assert [each["slug"] for each in lanes] == ["primary", "fix"]
    assert all(list(each) == [*LANE, "present", "branch_now", "head_now"] for each in lanes)
    assert [each["kind"] for each in lanes] == ["primary", "managed"]
    assert [list(each["present"]) for each in lanes] == [["value", "at"]] * 2
    assert [each["present"]["value"] for each in lanes] == [True, True]
    assert [each["branch_now"]["value"] for each in lanes] == ["refs/heads/main", "refs/heads/fix"]
    assert [each["head_now"]["value"] for each in lanes] == [each["head"] for each in lanes]


def test_the_list_sees_what_the_log_cannot_know(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    desk.git("switch", "-q", "-c", "other", cwd=desk.tree("fix"))
    desk.git("commit", "-q", "--allow-empty", "-m", "more", cwd=desk.tree("fix"))
    desk.git("pack-refs", "--all")
    lane = laneyard("--json", "list").json[1]
    assert (lane["branch"], lane["branch_now"]["value"]) == ("refs/heads/fix", "refs/heads/other")
    assert lane["head"] == desk.git("rev-parse", "main").strip()
    assert lane["head_now"]["value"] == desk.git("rev-parse", "other").strip()
    desk.git("checkout", "-q", "--detach", "main", cwd=desk.tree("fix"))
    lane = laneyard("--json", "list").json[1]
    assert (lane["branch_now"]["value"], lane["head_now"]["value"]) == (None, lane["head"])


def test_the_list_says_why_it_does_not_know(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    laneyard("create", "gone")
    (desk.root / ".git/reftable").mkdir()
    desk.tree("gone").rename(desk.home / "gone")
    _, fix, gone = laneyard("--json", "list").json
    assert "reftable" in fix["branch_now"]["unknown"]
    assert (gone["present"]["value"], list(gone["head_now"])) == (False, ["unknown"])
    (desk.root / ".git/reftable").rmdir()
    (desk.tree("fix") / ".git").write_text(f"gitdir: {desk.root}/.git/worktrees/gone\n")
    fix = laneyard("--json", "list").json[1]
    assert "the registration names another worktree" in fix["branch_now"]["unknown"]
    assert fix["branch_now"] == fix["head_now"]


@pytest.mark.slow
def test_a_list_of_an_earlier_position_observes_nothing(desk: Desk, laneyard: Laneyard) -> None:
    position = laneyard("--json", "create", "fix").json["position"]
    laneyard("remove", "fix")
    assert [each["state"] for each in laneyard("--json", "list").json] == ["active", "quarantined"]
    before = laneyard("--json", "list", "--at", position).json
    assert [each["state"] for each in before] == ["active", "active"]
    assert all(list(each) == LANE for each in before)
    assert laneyard("--json", "list", "--at", 0).json == []


def test_an_empty_list_is_an_empty_array(desk: Desk, laneyard: Laneyard) -> None:
    assert laneyard("--json", "list").json == []
    assert laneyard("--json", "log").out == ""
    assert desk.way == "service" or not desk.state.exists()


@pytest.mark.slow
def test_the_list_hides_what_is_gone_unless_all_are_wanted(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    laneyard("remove", "fix", "--reap")
    assert [each["slug"] for each in laneyard("--json", "list").json] == ["primary"]
    lanes = laneyard("--json", "list", "--all").json
    assert [(each["slug"], each["state"]) for each in lanes] == [("primary", "active"), ("fix", "reaped")]
    assert lanes[1]["present"]["value"] is False


def test_show_tells_what_is_seen_now_and_what_comes_next(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    (desk.tree("fix") / "new").write_text("x")
    laneyard("snapshot", "fix")
    shown = laneyard("--json", "show", "fix").json
    assert list(shown) == [*LANE, *SEEN, "since", "reason", "snapshots", "journal", "next"]
    assert all(list(shown[each]) == ["value", "at"] for each in SEEN)
    assert shown["untracked_now"]["value"] == ["new"]
    assert list(shown["snapshots"][0]) == ["id", "ref", "commit", "entries", "bytes", "omitted"]
    assert shown["journal"]["owed"] is None
    assert list(shown["journal"]["last"][0]) == EVENT
    assert shown["next"] == "laneyard remove fix"


def test_what_cannot_be_observed_is_unknown_with_a_reason(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    (desk.tree("fix") / ".git").unlink()
    shown = laneyard("--json", "show", "fix").json
    assert list(shown["changed_now"]) == ["unknown"]
    assert "unknown: the worktree has no .git file" in laneyard("show", "fix").out.replace(
        f"{desk.tree('fix')}: ", ""
    )
    ran = laneyard("--json", "remove", "fix")
    assert (ran.code, ran.error["code"]) == (1, "evidence_unavailable")


def test_the_log_is_one_event_a_line(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    events = laneyard("--json", "log").lines
    assert all(list(each) == EVENT for each in events)
    assert [each["position"] for each in events] == list(range(1, len(events) + 1))
    assert events[0]["type"] == "repository.registered@1"
    assert events[0]["lane"] is None
    assert list(events[0]["actor"]) == ["uid", "pid", "client"]
    assert events[0]["actor"]["uid"] == os.getuid()


def test_the_log_can_be_narrowed_by_lane_position_and_type(desk: Desk, laneyard: Laneyard) -> None:
    made = laneyard("--json", "create", "fix").json
    laneyard("create", "other")
    of_the_lane = laneyard("--json", "log", "fix").lines
    assert {each["lane"] for each in of_the_lane} == {made["id"]}
    assert [each["type"] for each in laneyard("--json", "log", "--type", "lane.*").lines] == [
        *("lane.adopted@1", "lane.created@1", "lane.created@1"),
    ]
    last = of_the_lane[-1]["position"]
    assert all(each["position"] > last for each in laneyard("--json", "log", "--after", last).lines)


def test_the_difference_names_each_lane_and_field(desk: Desk, laneyard: Laneyard) -> None:
    position = laneyard("--json", "create", "fix").json["position"]
    last = laneyard("--json", "remove", "fix").json["position"]
    shape = laneyard("--json", "diff", position, last).json
    assert list(shape) == ["from", "to", "lanes"]
    assert [list(each) for each in shape["lanes"]] == [["id", "slug", "changed"]]
    assert shape["lanes"][0]["changed"]["state"] == ["active", "quarantined"]
    assert laneyard("--json", "diff", last, last).json["lanes"] == []


@pytest.mark.slow
def test_the_sweep_is_an_array_of_what_is_due(desk: Desk, laneyard: Laneyard) -> None:
    desk.configure("[quarantine]\nretention = '0s'\n")
    laneyard("create", "fix")
    assert laneyard("--json", "sweep").json == []
    laneyard("remove", "fix")
    due = laneyard("--json", "sweep").json
    assert [list(each) for each in due] == [["lane", "slug", "action", "until", "reason"]]
    assert due[0]["action"] == "reap"
    swept = laneyard("--json", "sweep", "--apply").json
    assert [(each["slug"], each["state"], each["problem"]) for each in swept] == [("fix", "reaped", None)]


@pytest.mark.slow
def test_upkeep_has_shapes_of_its_own(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    assert laneyard("--json", "verify").json == {"events": 5, "log": [], "world": []}
    assert laneyard("--json", "rebuild").json == {"rebuilt": True}
    checks = laneyard("--json", "doctor").json
    assert all(list(each) == ["check", "ok", "message"] for each in checks)
    assert all(each["ok"] for each in checks)


@pytest.mark.slow
def test_a_path_that_is_not_text_is_shown_and_also_encoded(desk: Desk) -> None:
    root = os.fsencode(desk.home) + b"/caf\xe9 50%"
    os.mkdir(root)
    subject = os.fsdecode(root)
    desk.git("clone", "-q", desk.root, subject, cwd=desk.home)
    ran = desk.program("-C", root, "--json", "create", "fix")
    assert ran.json["path"] == f"{desk.home}/caf\ufffd 50%/.laneyard/worktrees/fix"
    assert ran.json["path_encoded"] == f"{desk.home}/caf%E9 50%25/.laneyard/worktrees/fix"
    assert list(ran.json)[5:7] == ["path", "path_encoded"]
    assert "path_encoded" not in desk.program("--json", "create", "fix").json
    assert desk.program("-C", root, "list").out.count("caf\ufffd 50%/.laneyard") == 1
    lost = desk.program("-C", root + b"/../caf\xe8", "--json", "create", "fix")
    assert (lost.code, lost.error["code"]) == (1, "not_a_repository")
    assert "caf\ufffd" in lost.error["message"]


@pytest.mark.slow
def test_the_real_program_prints_plain_text_when_it_is_piped(desk: Desk) -> None:
    for arguments in (["create", "fix"], ["list"], ["show", "fix"], ["snapshot", "fix"], ["remove", "fix"]):
        ran = desk.program(*arguments)
        assert (ran.code, ran.err) == (0, "")
        assert ran.out
        assert "\x1b" not in ran.out
        assert not any(line.endswith(" ") for line in ran.out.splitlines())
