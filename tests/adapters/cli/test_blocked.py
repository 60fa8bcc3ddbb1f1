"""A lane that only a newer program understands, as a user meets it: told, refused, and left as it is."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING

import pytest

from adapters.store.append import append
from adapters.store.connection import connect, transaction
from adapters.store.reader import Reader
from domain.envelope import stream_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.adapters.cli.conftest import Desk, Ran

    Laneyard = Callable[..., Ran]

COMMANDS = (
    ["remove", "fix"],
    ["remove", "fix", "--force", "--reap"],
    ["restore", "fix"],
    ["reap", "fix"],
    ["snapshot", "fix"],
    ["review", "fix"],
    ["review", "fix", "--put-back"],
    ["review", "fix", "--resnapshot"],
    ["review", "fix", "--discard"],
    ["create", "child", "--parent", "fix"],
)


def goes_on(desk: Desk, slug: str, tag: str, fact: dict[str, object]) -> str:
    """Lets a newer program go on with a lane, and returns the lane's id."""
    desk.close()
    store = os.fsencode(desk.state / "journal.db")
    with Reader(store) as reader:
        row = next(each for each in reader.lanes() if each["slug"] == slug)
    lane, version = str(row["id"]), int(row["version"] or 0)
    actor = {"uid": 1000, "pid": 4242, "client": "newer"}
    state = {"time": "2026-03-01T09:00:00.000000Z", "actor": actor, "cause": "theirs", "fact": fact}
    with contextlib.closing(connect(store)) as connection, transaction(connection):
        append(connection, [(stream_of(lane), version + 1, tag, json.dumps(state).encode())])
    return lane


def traces(desk: Desk) -> dict[str, object]:
    return {name: seen for name, seen in desk.traces().items() if name != "exclude"}


@pytest.mark.parametrize("tag", ["removal.planned@5", "lane.teleported@1"])
def test_a_blocked_lane_is_told_and_nothing_of_it_can_be_changed(
    desk: Desk, laneyard: Laneyard, tag: str
) -> None:
    laneyard("create", "fix")
    lane = goes_on(desk, "fix", tag, {"edition": 1, "colour": "blue"})
    [told] = [each for each in laneyard("--json", "list").json if each["slug"] == "fix"]
    assert (told["id"], told["state"]) == (lane, "blocked")
    assert tag in told["blocked"]
    text = laneyard("list").out
    assert "blocked" in text
    assert f"fix is blocked: {told['blocked']}. Update Laneyard.\n" in text
    before = traces(desk)
    for command in COMMANDS:
        ran = laneyard("--json", *command)
        assert (ran.code, ran.out, ran.error["code"]) == (1, "", "lane_blocked"), command
        assert ran.error["details"] == {"lane": "fix", "reason": told["blocked"]}
        assert ran.error["message"].endswith("Update Laneyard.")
    assert traces(desk) == before


def test_what_only_reads_works_beside_a_blocked_lane_and_on_it(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    laneyard("create", "other")
    fact = {"edition": 1, "colour": "blue", "resting": "/somewhere"}
    goes_on(desk, "fix", "removal.planned@5", fact)
    shown = laneyard("--json", "show", "fix")
    assert (shown.code, shown.json["state"]) == (0, "blocked")
    assert shown.json["next"].startswith("update Laneyard")
    assert shown.json["journal"]["last"][-1]["fact"] == fact
    last = laneyard("--json", "log", "fix").lines[-1]
    assert (last["type"], last["fact"], last["actor"]["client"]) == ("removal.planned@5", fact, "newer")
    assert "update Laneyard" in laneyard("log", "fix").out
    for command in (["log"], ["list", "--all"], ["snapshot", "list"], ["diff", "0", "5"], ["sweep"]):
        assert laneyard(*command).code == 0, command
    assert laneyard("--json", "list", "--at", "4").json[-1]["state"] != "blocked"
    assert laneyard("remove", "other").code == 0
    assert laneyard("restore", "other").code == 0
    verified = laneyard("verify")
    assert verified.code != 0
    assert verified.out.count("update Laneyard") + verified.err.count("update Laneyard") == 1
    assert "that is no damage" in verified.out
    assert "restore a copy" not in verified.out


def test_the_tables_are_made_anew_with_the_blocked_lane_in_them(desk: Desk, laneyard: Laneyard) -> None:
    laneyard("create", "fix")
    goes_on(desk, "fix", "lane.created@2", {"path": "/elsewhere"})
    assert laneyard("rebuild").code == 0
    assert ("fix", "blocked") in {each[:2] for each in desk.lanes()}
    assert laneyard("create", "fix").out.endswith("fix-2\n")
