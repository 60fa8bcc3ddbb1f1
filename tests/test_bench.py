"""The benchmark runs on any machine, and says of every promise whether it is kept."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.log import WAITING
from tests.bench.recovery import recovered
from tests.bench.table import (
    LANE_GOALS,
    WORDS,
    drawn,
    of_folding,
    of_growth,
    of_journal,
    of_lanes,
    of_memory,
    of_pairs,
    of_recovery,
    of_served,
)

ROOT = Path(__file__).parents[1]
JOURNAL = of_journal("memory", {waiting: [(100.0, 200.0)] for waiting in WAITING})
SERVED = of_served(
    500,
    {
        "list": [(1.9, 10.0), (2.1, 10.0), (1.0, 10.0)],
        "list_command": [(26.0, 10.0)],
        "list_command_all": [(90.0, 10.0)],
    },
)
FOLDING = of_folding({"lanes": [9.9, 12.0, 1.0], "tables": [10.0]})


def bench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    argv = (sys.executable, "-m", "tests.bench", *arguments)
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)


@pytest.mark.slow
def test_a_small_run_prints_every_row_and_leaves_nothing_behind(tmp_path: Path) -> None:
    rows = json.loads(
        bench(
            *("--files", "200", "--rounds", "1", "--lanes", "8", "--large", "9", "--dir", tmp_path, "--json")
        ).stdout
    )
    told = {row["what"] for row in rows}
    assert {f"200 files: {words}" for words in WORDS.values()} < told
    assert len(told) == len(rows) == len(WORDS) + 2 + 2 * len(JOURNAL) + len(FOLDING) + len(SERVED)
    assert all(row["ours"] > 0 for row in rows)
    assert all(row["least"] <= row["most"] for row in rows if row["least"] is not None)
    assert {
        f"journal in {where}, 16 waiting / bare SQLite inserts" for where in ("scratch", "the checkout")
    } < told
    assert list(tmp_path.iterdir()) == []


def test_the_ratio_is_the_median_over_the_pairs_and_is_held_against_the_goal() -> None:
    row = of_pairs("a thing", [(1.0, 10.0), (9.0, 10.0), (2.0, 10.0)], 0.2)
    assert (row.ratio, row.least, row.most, row.met) == (0.2, 0.1, 0.9, True)
    assert of_pairs("a thing", [(3.0, 10.0)], 0.2).met is False


def test_goals_hold_from_ten_thousand_files_on() -> None:
    pairs = {name: [(0.22, 1.0)] for name in WORDS}
    assert {row.met for row in of_lanes(9_999, pairs)} == {None}
    assert [row.met for row in of_lanes(10_000, pairs) if "settled / worktree" in row.what] == [True]
    assert [row.met for row in of_lanes(100_000, pairs) if "settled / worktree" in row.what] == [False]


def test_every_goal_is_of_a_row_and_what_is_slower_misses_it() -> None:
    pairs = {name: [(2.5, 1.0)] for name in WORDS}
    rows = {row.what: row.met for row in of_lanes(10_000, pairs)}
    due = {f"10,000 files: {WORDS[name]}" for name in LANE_GOALS}
    assert {what for what, met in rows.items() if met is False} == due


def test_growth_compares_how_many_times_longer_either_side_takes() -> None:
    few, many = ({name: [pair] for name in WORDS} for pair in ((1.0, 2.0), (50.0, 200.0)))
    rows = of_growth({1_000: few, 10_000: few, 100_000: many})
    assert {(row.ours, row.theirs, row.ratio) for row in rows} == {(50.0, 100.0, 0.5)}
    assert rows[0].what.startswith("1,000 to 100,000 files: ")


def test_memory_is_held_against_its_goal() -> None:
    assert [row.met for row in of_memory({"a": 199.9, "b": 200.0})] == [True, False]


def test_the_log_is_held_against_its_own_goals() -> None:
    assert [row.met for row in JOURNAL] == [None, True, None]
    assert [row.met for row in FOLDING] == [True, False]
    assert (FOLDING[0].ours, FOLDING[0].least, FOLDING[0].most) == (9.9, 1.0, 12.0)


def test_the_service_is_held_against_git_and_a_bare_python() -> None:
    assert [row.met for row in SERVED] == [True, None, False, None]
    assert (SERVED[1].ours, SERVED[1].theirs) == (2100.0, 10_000.0)


def test_a_start_may_take_longer_for_what_is_owed_but_not_for_what_is_past() -> None:
    few = {(100, count): [1.0 + count / 10] for count in (0, 10, 20)}
    many = {(1000, count): [taken[0] * 1.2] for (_, count), taken in few.items()}
    rows = of_recovery(few | many, 500)
    assert [row.met for row in rows] == [None] * 3 + [True] * 3 + [True] * 2
    assert (rows[0].ours, rows[2].ours) == (1000.0, 3000.0)
    assert rows[-1].ratio == pytest.approx(1.0)
    slow = {(1000, count): [taken[0] * (2 + count)] for (_, count), taken in few.items()}
    assert {row.met for row in of_recovery(few | slow, 500)[3:6]} == {False}
    assert of_recovery(few | slow, 500)[-1].met is False


@pytest.mark.slow
def test_starts_are_measured_with_real_journals_and_leave_nothing_behind(tmp_path: Path) -> None:
    spans = recovered(tmp_path, (60, 600), (0, 2, 4), lanes=10, rounds=1)
    assert list(spans) == [(events, count) for events in (60, 600) for count in (0, 2, 4)]
    assert all(0 < taken < 60 for each in spans.values() for taken in each)


def test_the_table_has_a_line_for_each_row_that_says_yes_or_no() -> None:
    lines = drawn([*JOURNAL, *FOLDING]).splitlines()
    assert len(lines) == 1 + len(JOURNAL) + len(FOLDING)
    assert lines[2].endswith("yes")
    assert lines[5].endswith("NO")
    assert "1.000-12.000" in lines[4]
