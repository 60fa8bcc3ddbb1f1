"""The commands as a person types them: what is printed, what is left, and the exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from adapters.api import showing
from adapters.cli import changing, engine
from adapters.cli.parser import build_parser
from adapters.config import load
from adapters.store.reader import Record
from adapters.yard.create import BranchConflicts
from domain.lane import fold, pending
from domain.states import Reaping, Returning, Undoing
from tests.domain.lives import LIVES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from domain.events import Fact
    from tests.adapters.cli.conftest import Desk, Ran

    Laneyard = Callable[..., Ran]

pytestmark = pytest.mark.slow


@pytest.fixture
def work(desk: Desk, laneyard: Laneyard) -> str:
    """A lane with work in it: what git says of it."""
    laneyard("create", "fix")
    tree = desk.tree("fix")
    (tree / "file").write_text("staged\n")
    desk.git("add", "file", cwd=tree)
    (tree / "file").write_text("not staged\n")
    (tree / "new").write_text("untracked\n")
    return desk.git("status", "--porcelain=v2", "--branch", cwd=tree)


def test_create_prints_the_path_and_nothing_else(desk: Desk, laneyard: Laneyard) -> None:
    ran = laneyard("create", "Fix login!")
    assert ran == type(ran)(0, f"{desk.tree('fix-login')}\n", "")
    assert desk.git("branch", "--show-current", cwd=desk.tree("fix-login")) == "fix-login\n"
    assert desk.git("status", "--porcelain") == ""


def test_create_starts_from_a_base_or_from_another_lane(desk: Desk, laneyard: Laneyard) -> None:
    desk.git("tag", "v1")
    desk.git("commit", "-q", "--allow-empty", "-m", "second")
    assert laneyard("--json", "create", "old", "--base", "v1").json["base_ref"] == "refs/tags/v1"
    parent = laneyard("--json", "list").json[1]["id"]
    child = laneyard("--json", "create", "child", "--parent", "old", "--branch", "topic/x").json
    assert (child["parent"], child["base_ref"]) == (parent, "refs/heads/old")
    assert child["branch"] == "refs/heads/topic/x"
    assert "parent     old" in laneyard("show", "child").out


def test_the_base_is_what_git_means_by_its_name(desk: Desk, laneyard: Laneyard) -> None:
    desk.git("branch", "v1")
    desk.git("commit", "-q", "--allow-empty", "-m", "second")
    desk.git("tag", "-m", "first version", "v1")
    desk.git("update-ref", "refs/remotes/origin/v2", "HEAD~1")
    desk.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/v2")
    given = {
        "v1": "refs/tags/v1",
        "heads/v1": "refs/heads/v1",
        "refs/heads/v1": "refs/heads/v1",
        "main": "refs/heads/main",
        "origin/v2": "refs/remotes/origin/v2",
        "origin": "refs/remotes/origin/HEAD",
        "HEAD": "HEAD",
    }
    for number, (base, full) in enumerate(given.items()):
        made = laneyard("--json", "create", f"lane {number}", "--base", base).json
        commit = desk.git("rev-parse", f"{base}^{{commit}}").strip()
        assert (made["base_ref"], made["base_commit"]) == (full, commit)
        assert desk.git("rev-parse", f"{full}^{{commit}}").strip() == commit


def test_a_lane_is_found_by_slug_id_prefix_and_a_path_inside(desk: Desk, laneyard: Laneyard) -> None:
    lane = laneyard("--json", "create", "fix").json["id"]
    inside = desk.tree("fix") / "deep" / "down"
    inside.mkdir(parents=True)
    for wanted in ("fix", lane, lane[:4], lane[:13], str(inside), str(desk.tree("fix"))):
        assert laneyard("--json", "show", wanted).json["id"] == lane, wanted
    assert laneyard("-C", inside, "--json", "show", "fix").json["id"] == lane
    assert laneyard("show", lane[:3]).code == 1


@pytest.mark.engine_only("it is about a second state directory")
def test_options_may_stand_before_and_after_the_command(desk: Desk, laneyard: Laneyard) -> None:
    state = str(desk.home / "other")
    assert laneyard("create", "fix", "--json", "--state-dir", state).json["slug"] == "fix"
    assert laneyard("--state-dir", state, "list", "--json").json[1]["slug"] == "fix"
    assert not desk.state.exists()


def test_remove_and_restore_give_the_same_status(desk: Desk, laneyard: Laneyard, work: str) -> None:
    ran = laneyard("remove", "fix")
    assert ran.out == "fix is in quarantine as edition 1. Bring it back with: laneyard restore fix\n"
    assert not desk.tree("fix").exists()
    assert laneyard("restore", "fix").out == f"fix is back at {desk.tree('fix')}\n"
    assert desk.git("status", "--porcelain=v2", "--branch", cwd=desk.tree("fix")) == work
    laneyard("remove", "fix")
    assert laneyard("--json", "restore", "fix", "--edition", "2").json["state"] == "active"


def test_a_reaped_lane_comes_back_from_its_snapshot(desk: Desk, laneyard: Laneyard, work: str) -> None:
    ran = laneyard("remove", "fix", "--reap", "--delete-branch")
    assert ran.code == 0
    assert "fix is reaped; snapshot" in ran.out
    assert desk.git("branch", "--list", "fix") == ""
    assert list((desk.root / ".laneyard/quarantine").iterdir()) == []
    snapshot = laneyard("--json", "show", "fix").json["snapshots"][-1]["id"]
    assert laneyard("restore", "fix", "--snapshot", snapshot[:8]).code == 0
    assert desk.git("status", "--porcelain=v2", "--branch", cwd=desk.tree("fix")) == work


def test_ignored_files_hold_a_removal_until_it_is_forced(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    (desk.root / ".git/info/exclude").write_text("/.laneyard/\n.env\n")
    (desk.tree("fix") / ".env").write_text("secret\n")
    ran = laneyard("--json", "remove", "fix")
    assert (ran.code, ran.out, ran.error["code"]) == (1, "", "unknown_ignored")
    assert ran.error["details"]["paths"] == [".env"]
    assert laneyard("remove", "fix", "--force").code == 0
    consents = [each["fact"].get("consent") for each in laneyard("--json", "log", "fix").lines]
    assert [each["paths"] for each in consents if each] == [[".env"]]
    assert laneyard("restore", "fix").code == 0
    assert (desk.tree("fix") / ".env").read_text() == "secret\n"


def test_what_cannot_be_explained_waits_for_a_person(desk: Desk, laneyard: Laneyard, work: str) -> None:
    laneyard("remove", "fix")
    resting = next((desk.root / ".laneyard/quarantine").iterdir())
    (resting / "later").write_text("written after the snapshot\n")
    ran = laneyard("--json", "reap", "fix")
    assert (ran.code, ran.out, ran.error["code"]) == (3, "", "unexplained_entries")
    assert ran.error["details"]["state"] == "needs-review"
    assert (resting / "later").read_text() == "written after the snapshot\n"
    shown = laneyard("review", "fix").out
    assert "  later\n" in shown
    assert all(each in shown for each in ("--put-back", "--resnapshot", "--discard"))
    shape = laneyard("--json", "review", "fix").json
    assert (shape["paths"], shape["exits"]) == (["later"], ["--put-back", "--resnapshot", "--discard"])
    assert laneyard("show", "fix").out.endswith("next\n  laneyard review fix\n")
    assert laneyard("review", "fix", "--put-back").out == "fix is back\n"
    assert (desk.tree("fix") / "later").exists()
    assert desk.git("status", "--porcelain", cwd=desk.tree("fix")).splitlines()[-2:] == ["?? later", "?? new"]


@pytest.mark.parametrize("way_out", ["--resnapshot", "--discard"])
def test_a_review_can_end_with_the_reaping(desk: Desk, laneyard: Laneyard, work: str, way_out: str) -> None:
    laneyard("remove", "fix")
    resting = next((desk.root / ".laneyard/quarantine").iterdir())
    (resting / "later").write_text("written after the snapshot\n")
    laneyard("reap", "fix")
    ran = laneyard("--json", "review", "fix", way_out)
    assert (ran.code, ran.json["state"]) == (0, "reaped")
    assert not resting.exists()


def test_show_says_none_where_there_is_nothing(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    shown = laneyard("show", "fix").out
    for line in (
        "changed    none",
        "untracked  none",
        "ignored    none",
        "obstacles  none",
        "locked     none",
    ):
        assert f"  {line}\n" in shown
    assert "snapshots\n  none\n" in shown
    assert "owed: nothing\n" in shown
    assert shown.endswith("next\n  laneyard remove fix\n")
    assert "()" not in shown


def test_show_names_what_it_sees_and_counts_the_rest(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    for number in range(7):
        (desk.tree("fix") / f"n{number}").touch()
    assert "  untracked  7: n0, n1, n2, n3, n4 and 2 more\n" in laneyard("show", "fix").out


def test_the_list_is_a_table_in_the_order_of_the_creations(desk: Desk, laneyard: Laneyard) -> None:
    assert laneyard("list").out == "no lanes; 'laneyard create NAME' makes one\n"
    for name in ("zebra", "ant"):
        laneyard("create", name)
    laneyard("remove", "zebra")
    lines = laneyard("list").out.splitlines()
    assert lines[0].split() == ["LANE", "STATE", "BRANCH", "HEAD", "EDITION", "PATH"]
    assert [line.split()[:2] for line in lines[1:]] == [
        *(["primary", "active"], ["zebra", "quarantined"], ["ant", "active"]),
    ]


def test_the_list_shows_what_a_lane_is_on_now_and_marks_what_has_changed(
    desk: Desk, laneyard: Laneyard
) -> None:
    for name in ("one", "two", "three"):
        laneyard("create", name)
    desk.git("switch", "-q", "-c", "other", cwd=desk.tree("one"))
    desk.git("commit", "-q", "--allow-empty", "-m", "more", cwd=desk.tree("two"))
    desk.git("checkout", "-q", "--detach", cwd=desk.tree("three"))
    head, tip = (desk.git("rev-parse", name)[:12] for name in ("main", "two"))
    lines = laneyard("list").out.splitlines()
    assert [line.split()[2:4] for line in lines[1:-1]] == [
        *(["main", head], ["other*", head], ["two", f"{tip}*"], ["(detached)*", head]),
    ]
    assert lines[-1].startswith("* as it is now")
    laneyard("remove", "two")
    assert laneyard("list").out.splitlines()[3].split()[:4] == ["two", "quarantined", "two", tip]


def test_a_lane_whose_folder_is_gone_is_not_offered_for_removal(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    desk.tree("fix").rename(desk.home / "elsewhere")
    assert laneyard("show", "fix").out.endswith(
        f"next\n  put its folder back: nothing is at {desk.tree('fix')}\n"
    )
    message = laneyard("--json", "remove", "fix").error["message"]
    assert message.count("the worktree has no .git file") == 1
    (desk.home / "elsewhere").rename(desk.tree("fix"))
    assert laneyard("show", "fix").out.endswith("next\n  laneyard remove fix\n")
    (desk.tree("fix") / ".git").unlink()
    assert laneyard("show", "fix").out.endswith("next\n  mend what is unknown, then laneyard remove fix\n")


@pytest.fixture
def stubborn(desk: Desk, laneyard: Laneyard) -> Iterator[Path]:
    """A file of a lane in quarantine that cannot be deleted."""
    laneyard("create", "fix")
    laneyard("remove", "fix")
    file = next((desk.root / ".laneyard/quarantine").iterdir()) / "file"
    if subprocess.run(["chattr", "+i", file], capture_output=True, check=False).returncode != 0:
        pytest.skip("no file can be made immutable here")
    yield file
    subprocess.run(["chattr", "-f", "-i", file], check=False)


def test_a_deletion_that_gave_up_is_tried_again_by_the_sweep(
    desk: Desk, laneyard: Laneyard, stubborn: Path
) -> None:
    ran = laneyard("--json", "reap", "fix")
    assert (ran.code, ran.out, ran.error["code"]) == (3, "", "residual")
    assert ran.error["message"].endswith("What is left is tried again by 'laneyard sweep --apply'.")
    assert laneyard("show", "fix").out.endswith("next\n  laneyard sweep --apply\n")
    assert laneyard("sweep", "--apply").code == 3
    subprocess.run(["chattr", "-i", stubborn], check=True)
    assert laneyard("sweep", "--apply").out == "fix is reaped\n"


@pytest.mark.parametrize("facts", LIVES.values(), ids=LIVES)
def test_the_next_step_is_one_that_the_lane_admits(facts: tuple[Fact, ...]) -> None:
    for length in range(1, len(facts) + 1):
        lane, row = fold(facts[:length]), Record(slug="fix", owed=None)
        if pending(lane) is None and isinstance(lane, Undoing | Returning | Reaping):
            assert showing.next_step(lane, row, None) == "laneyard sweep --apply"
        elif pending(lane) is not None:
            told = showing.next_step(lane, row | {"owed": "Move"}, None)
            assert told == "the next command finishes what was begun"


def test_the_sweep_is_a_dry_run_until_it_is_applied(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    assert laneyard("sweep").out.startswith("nothing to sweep")
    laneyard("remove", "fix")
    assert laneyard("sweep").out.splitlines()[1].split()[:3] == ["fix", "rests", "until"]
    assert laneyard("sweep", "--apply").out == "nothing was due\n"
    (desk.root / ".laneyard.toml").write_text("[quarantine]\nretention = '0s'\n")
    assert laneyard("sweep", "--apply").out == "nothing was due\n"  # a repository can only lengthen it
    desk.configure("[quarantine]\nretention = '0s'\n")
    dry = laneyard("sweep").out
    assert "fix   would be reaped  now" in dry
    assert dry.endswith("this was a dry run: 'laneyard sweep --apply' does what is due\n")
    assert laneyard("show", "fix").out.startswith("fix is quarantined")
    assert laneyard("sweep", "--apply").out == "fix is reaped\n"


@pytest.mark.engine_only("the engine is made to die")
def test_what_a_dead_process_left_half_done_is_finished_by_the_next_command(
    desk: Desk, laneyard: Laneyard, work: str
) -> None:
    class Died(BaseException):
        pass

    def die(moment: str, step: str) -> None:
        if (moment, step) == ("after-effect", "Move"):
            raise Died

    arguments = build_parser().parse_args(["remove", "fix"])
    with pytest.raises(Died):
        engine.engine(arguments, engine.working(arguments, "remove", changing.removal(arguments)), die)
    doctor = laneyard("doctor")
    assert doctor.code == 3
    assert "owes Move" in doctor.out
    assert [each["state"] for each in laneyard("--json", "list").json] == ["active", "quarantined"]
    assert laneyard("doctor").code == 0
    assert laneyard("restore", "fix").code == 0
    assert desk.git("status", "--porcelain=v2", "--branch", cwd=desk.tree("fix")) == work


def test_verify_tells_the_log_from_the_world(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    assert laneyard("verify").code == 0
    desk.tree("fix").rename(desk.home / "moved")
    ran = laneyard("verify")
    assert ran.code == 3
    assert "the log is in order: 5 events" in ran.out
    assert f"world: fix: {desk.tree('fix')} is not there\n" in ran.out
    assert ran.out.endswith("git or the disk is NOT as the log says: 1 difference\n")


def test_a_stranger_in_our_directories_is_a_difference(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    desk.tree("stranger").mkdir()
    ran = laneyard("verify")
    assert ran.code == 3
    assert f"world: {desk.tree('stranger')} belongs to no lane\n" in ran.out


@pytest.mark.engine_only("it begins without a state directory")
def test_doctor_says_line_by_line_what_is_in_order(desk: Desk, laneyard: Laneyard) -> None:
    before = laneyard("doctor")
    assert before.code == 0
    assert "does not exist yet" in before.out
    assert not desk.state.exists()
    laneyard("create", "fix")
    ran = laneyard("doctor")
    assert ran.code == 0
    assert all(line.startswith("ok ") for line in ran.out.splitlines()[:-1])
    assert ran.out.endswith("everything is in order to work\n")
    os.chmod(desk.state, 0o755)
    ran = laneyard("doctor")
    assert ran.code == 3
    assert f"BAD  state directory  {desk.state}, mode 0755; others may look into it" in ran.out


def test_a_followed_log_goes_on_until_it_is_interrupted(desk: Desk) -> None:
    desk.program("create", "fix")
    with desk.start("--json", "log", "--type", "lane.*", "--follow") as following:
        assert following.stdout is not None
        first = [json.loads(following.stdout.readline())["type"] for _ in range(2)]
        desk.program("remove", "fix")
        then = json.loads(following.stdout.readline())["type"]
        following.send_signal(signal.SIGINT)
        assert following.wait(10) == 130
        assert following.stderr is not None
        assert following.stderr.read() == ""
    assert [*first, then] == ["lane.adopted@1", "lane.created@1", "lane.quarantined@1"]


@pytest.mark.engine_only("a service is not interrupted")
def test_an_interrupted_creation_ends_with_130_and_is_finished_by_the_next_command(desk: Desk) -> None:
    mark = desk.home / "mark"
    desk.git("config", "filter.slow.smudge", f"touch {mark}; test -e {mark}.go || sleep 60; cat")
    (desk.root / ".git/info/attributes").write_text("file filter=slow\n")
    with desk.start("create", "fix") as creating:
        while not mark.exists():
            assert creating.poll() is None
        creating.send_signal(signal.SIGINT)
        assert creating.wait(30) == 130
        assert creating.stderr is not None
        assert creating.stderr.read() == ""
    (desk.home / "mark.go").touch()
    assert [each["state"] for each in desk.program("--json", "list").json] == ["active", "active"]
    assert (desk.tree("fix") / "file").read_text() == "one\n"
    assert desk.program("verify").code == 0


def test_a_refusal_of_the_creation_is_found_with_the_others() -> None:
    assert str(BranchConflicts("a", "a/b")).startswith("the branch a cannot exist beside a/b")


def test_the_state_directory_is_chosen_by_option_variable_and_standard_in_this_order() -> None:
    values = {"HOME": "/h", "XDG_STATE_HOME": "/x", "LANEYARD_STATE_DIR": "/l"}
    assert load("/o", values).state_dir == b"/o"
    assert load(None, values).state_dir == b"/l"
    assert load(None, {"HOME": "/h", "XDG_STATE_HOME": "/x"}).state_dir == b"/x/laneyard"
    assert load(None, {"HOME": "/h"}).state_dir == b"/h/.local/state/laneyard"


def test_a_reaping_that_is_refused_after_the_removal_says_that_the_lane_has_moved(
    desk: Desk, laneyard: Laneyard
) -> None:
    laneyard("create", "fix")
    lane = desk.root / ".laneyard" / "worktrees" / "fix"
    (lane / "pipe").parent.mkdir(exist_ok=True)
    os.mkfifo(lane / "pipe")
    ran = laneyard("--json", "remove", "fix", "--reap")
    assert (ran.code, ran.error["code"]) == (3, "cannot_hold")
    assert "is in quarantine, but was not reaped" in ran.error["message"]
    assert laneyard("restore", "fix").code == 0
    assert (lane / "pipe").is_fifo()


def test_what_a_consent_gave_up_is_named_when_it_is_gone(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    exclude = desk.root / ".git" / "info" / "exclude"
    exclude.write_text(exclude.read_text() + "*.log\n")
    (desk.root / ".laneyard" / "worktrees" / "fix" / "k.log").write_text("gone\n")
    ran = laneyard("remove", "fix", "--force", "--reap")
    assert ran.code == 0
    assert "given up by consent: k.log" in ran.out
