"""The states of a lane as they really follow each other."""

from typing import get_args

from domain import commands
from domain.events import BY_TAG
from domain.lane import fold
from domain.states import NAMES
from domain.transitions import COMMANDS, ENDINGS, EXAMPLES, table

GOLDEN = (
    ("active", "RemoveLane", "leaving"),
    ("active", "SnapshotLane", "snapshotting"),
    ("leaving", "lane.quarantined@1", "quarantined"),
    ("leaving", "removal.abandoned@1", "active"),
    ("needs-review", "DiscardLane", "reaping"),
    ("needs-review", "ReapLane", "reaping"),
    ("needs-review", "RestoreLane", "returning"),
    ("needs-review", "SnapshotLane", "snapshotting"),
    ("none", "AdoptLane", "active"),
    ("none", "CreateLane", "opening"),
    ("none", "lane.adopted@1", "active"),
    ("opening", "ReapLane", "opening"),
    ("opening", "creation.undone@1", "failed"),
    ("opening", "lane.created@1", "active"),
    ("opening", "tree.unexplained@1", "needs-review"),
    ("quarantined", "DiscardLane", "reaping"),
    ("quarantined", "ReapLane", "reaping"),
    ("quarantined", "RestoreLane", "returning"),
    ("quarantined", "SnapshotLane", "snapshotting"),
    ("reaped", "RestoreLane", "returning"),
    ("reaping", "ReapLane", "reaping"),
    ("reaping", "creation.undone@1", "failed"),
    ("reaping", "lane.reaped@1", "reaped"),
    ("reaping", "restore.abandoned@1", "reaped"),
    ("reaping", "tree.unexplained@1", "needs-review"),
    ("returning", "ReapLane", "returning"),
    ("returning", "lane.restored@1", "active"),
    ("returning", "restore.abandoned@1", "needs-review"),
    ("returning", "restore.abandoned@1", "quarantined"),
    ("returning", "restore.abandoned@1", "reaped"),
    ("returning", "tree.unexplained@1", "needs-review"),
    ("snapshotting", "lane.snapshotted@2", "active"),
    ("snapshotting", "lane.snapshotted@2", "needs-review"),
    ("snapshotting", "lane.snapshotted@2", "quarantined"),
    ("snapshotting", "snapshot.failed@1", "active"),
    ("snapshotting", "snapshot.failed@1", "needs-review"),
    ("snapshotting", "snapshot.failed@1", "quarantined"),
)
UNKNOWN = {"blocked"}  # no command and no fact that we know leads there, or away
BUSY = ("opening", "leaving", "returning", "reaping", "snapshotting")


def test_the_table_is_this() -> None:
    assert table() == GOLDEN


def test_every_state_is_reachable() -> None:
    reached = {"none"}
    while True:
        more = {after for before, _, after in GOLDEN if before in reached} - reached
        if not more:
            break
        reached |= more
    assert reached == set(NAMES.values()) - UNKNOWN


def test_only_what_has_failed_is_a_dead_end_and_what_was_reaped_comes_back_if_at_all() -> None:
    leads_on = {before for before, _, after in GOLDEN if after != before}
    assert set(NAMES.values()) - leads_on == {"failed"} | UNKNOWN
    assert [row for row in GOLDEN if row[0] == "reaped"] == [("reaped", "RestoreLane", "returning")]


def test_a_lane_with_an_unfinished_journal_admits_nothing_but_a_retry() -> None:
    asked = [row for row in GOLDEN if row[0] in BUSY and row[1] in {type(each).__name__ for each in COMMANDS}]
    assert asked == [
        ("opening", "ReapLane", "opening"),
        ("reaping", "ReapLane", "reaping"),
        ("returning", "ReapLane", "returning"),
    ]


def test_from_every_unfinished_journal_some_fact_leads_to_rest() -> None:
    rests = {after for before, _, after in GOLDEN if before in BUSY} - set(BUSY)
    assert rests == {"active", "failed", "needs-review", "quarantined", "reaped"}
    assert {before for before, _, after in GOLDEN if after not in BUSY} >= set(BUSY)


def test_every_way_out_of_review_begins_with_a_command() -> None:
    assert {word for before, word, _ in GOLDEN if before == "needs-review"} == {
        "DiscardLane",
        "ReapLane",
        "RestoreLane",
        "SnapshotLane",
    }


def test_there_is_an_example_of_every_command_state_and_milestone() -> None:
    assert {type(each) for each in COMMANDS} == set(get_args(commands.AnyCommand))
    assert {type(fold(facts)) for facts in EXAMPLES} == {each for each in NAMES if NAMES[each] not in UNKNOWN}
    assert {fact.TAG for fact in ENDINGS} >= {tag for tag in BY_TAG if tag.startswith("lane.")}
