"""What is answered to who only reads: documents with their fields, and the text beside them."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import replace

from adapters.api import comparing, documents, keeping, lanes, showing
from adapters.api.answers import encoded
from adapters.glances import Glance
from adapters.store.journal import Journal
from adapters.store.reader import Reader
from adapters.yard.ending import Candidate, Swept
from domain.envelope import REPOSITORY_STREAM
from domain.errors import NoSuchPosition, WrongState
from domain.events import RepositoryRegistered, TreeUnexplained
from domain.evidence import Identity, Obstacle, Seen, Unknown
from domain.lane import fold
from domain.states import Active, NeedsReview, Quarantined
from tests.adapters.store.lives import NOON, REPOSITORY, entry, life, noon
from tests.domain.lives import IN_REVIEW, LIVES, REAPING, REMNANT_REAPED, UNDOING_IN_REVIEW, WORN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adapters.api.answers import Answer
    from domain.events import Fact

ROOT = Path(__file__).parents[3]
CREATED, QUARANTINED, REAPED = 3, 10, 16  # events of a life
HEAD = "4" * 40
SEEN = Seen(
    at=NOON,
    identity=Identity(1, 2),
    head=HEAD,
    branch=None,
    locked=None,
    changed=("a", "caf%E9"),
    untracked=(),
    ignored=Unknown("not today"),
    obstacles=(Obstacle("submodule", "lib"),),
)


@pytest.fixture
def store(tmp_path: Path) -> bytes:
    """A repository with a lane that is worked in, one in quarantine and one that is gone."""
    path = bytes(tmp_path / "journal.db")
    registered = RepositoryRegistered(common=REPOSITORY, root="/srv/yard", object_format="sha1")
    with closing(Journal(path, noon)) as journal:
        journal.submit(replace(entry("", registered), stream=f"{REPOSITORY_STREAM}1")).result()
        for lane, length in (("one", CREATED), ("two", QUARANTINED), ("three", REAPED)):
            journal.submit(entry(lane, *life(lane)[:length])).result()
    return path


@pytest.fixture
def reader(store: bytes) -> Iterator[Reader]:
    with Reader(store) as reader:
        yield reader


def row_of(reader: Reader, lane: str) -> dict[str, Any]:
    return next(row for row in reader.lanes() if row["id"] == lane)


def decoded(answer: Answer) -> Any:  # noqa: ANN401
    return msgspec.json.decode(encoded(answer.document))


def told(facts: tuple[Fact, ...], tmp_path: Path) -> Reader:
    """Returns a reader of a log that tells of one lane."""
    path = bytes(tmp_path / "one.db")
    with closing(Journal(path, noon)) as journal:
        journal.submit(entry("only", *facts)).result()
    return Reader(path)


def test_a_list_has_the_lanes_of_a_repository_that_are_not_gone(reader: Reader) -> None:
    rows = reader.lanes()
    listed = [each["slug"] for each in decoded(lanes.list_lanes(rows, None, REPOSITORY, False))]
    assert listed == ["fix-one", "fix-two"]
    assert len(decoded(lanes.list_lanes(rows, None, None, True))) == 3
    elsewhere = lanes.list_lanes(rows, None, "/srv/another/.git", True)
    assert (elsewhere.document, elsewhere.text) == ([], "no lanes; 'laneyard create NAME' makes one")


def test_a_list_has_what_was_seen_of_those_that_were_looked_at(reader: Reader) -> None:
    seen = Glance(
        documents.ObservedFlag(value=True, at=NOON),
        documents.ObservedText(value=None, at=NOON),
        documents.ObservedText(unknown="silent"),
    )
    answer = lanes.list_lanes(reader.lanes(), {"one": seen, "two": seen}, None, True)
    by_id = {each["id"]: each for each in decoded(answer)}
    assert by_id["one"]["branch_now"] == {"value": None, "at": NOON}
    assert by_id["one"]["head_now"] == {"unknown": "silent"}
    assert "present" not in by_id["three"]
    cells = {line.split()[0]: line.split()[2:4] for line in answer.text.splitlines()[1:]}
    assert cells["fix-one"] == ["(detached)*", "3" * 12]
    assert cells["fix-two"] == ["fix-two", "3" * 12]
    assert answer.text.endswith("has what was recorded beside it")


def test_a_changed_lane_ends_with_its_warnings_and_the_outcome(reader: Reader) -> None:
    shape = msgspec.to_builtins(lanes.changed_document(row_of(reader, "one"), ["look"], "unfinished"))
    assert list(shape)[-4:] == ["repository", "version", "warnings", "outcome"]
    assert (shape["repository"], shape["version"]) == (REPOSITORY, CREATED)


def test_the_lanes_of_an_earlier_position_are_as_they_were(reader: Reader) -> None:
    assert lanes.lanes_at(reader, 0) == []
    assert [row["state"] for row in lanes.lanes_at(reader, 1 + CREATED)] == ["active"]
    last = reader.head().position
    assert sorted(map(str, lanes.lanes_at(reader, last))) == sorted(map(str, reader.lanes()))
    for position in (-1, last + 1):
        with pytest.raises(NoSuchPosition):
            lanes.lanes_at(reader, position)


def test_a_difference_is_by_field_before_and_after(reader: Reader) -> None:
    answer = comparing.diff(reader, 1 + CREATED, 1 + CREATED + QUARANTINED)
    assert list(decoded(answer)) == ["from", "to", "lanes"]
    [changed] = decoded(answer)["lanes"]
    assert (changed["id"], changed["slug"]) == ("two", "fix-two")
    assert changed["changed"]["state"] == [None, "quarantined"]
    assert "version" not in changed["changed"]
    assert "  state        - -> quarantined" in answer.text.splitlines()
    assert comparing.diff(reader, 3, 3).text == "no lane differs"
    with pytest.raises(NoSuchPosition):
        comparing.diff(reader, 1, 9999)


def test_the_repositories_are_counted_with_the_lanes_that_are_not_gone(reader: Reader) -> None:
    answer = keeping.repositories(reader)
    assert decoded(answer) == [
        {"common": REPOSITORY, "root": "/srv/yard", "object_format": "sha1", "lanes": 2}
    ]
    assert answer.text == "REPOSITORY  LANES  OBJECTS\n/srv/yard   2      sha1"


def test_the_snapshots_are_those_of_the_log_whatever_their_table_says(store: bytes, reader: Reader) -> None:
    assert [(each["id"], each["edition"]) for each in decoded(keeping.snapshots(reader))] == [
        ("snapshot-two", 1),
        ("snapshot-three", 1),
    ]
    with closing(Journal(store, noon)) as journal:
        position = journal.submit(entry("four", *life("four")[:5])).result().last
        kept = decoded(keeping.snapshots(reader))[-1]
    assert kept == {
        "id": "snapshot-four",
        "lane": "four",
        "slug": "fix-four",
        "repository": REPOSITORY,
        "edition": None,
        "ref": "refs/laneyard/snapshots/four",
        "commit": "5" * 40,
        "entries": 120,
        "bytes": 4096,
        "position": position,
    }


def test_where_nothing_is_kept_it_is_said(tmp_path: Path) -> None:
    path = bytes(tmp_path / "empty.db")
    Journal(path, noon).close()
    with Reader(path) as reader:
        for answer in (keeping.repositories(reader), keeping.snapshots(reader)):
            assert answer.document == []
            assert answer.text.startswith("no ")


def test_what_is_seen_is_shown_and_what_is_not_is_unknown(reader: Reader) -> None:
    answer = showing.show(reader, row_of(reader, "one"), SEEN)
    shape = decoded(answer)
    assert shape["branch_now"] == {"value": None, "at": NOON}
    assert shape["changed_now"] == {"value": ["a", "caf%E9"], "at": NOON}
    assert shape["ignored_now"] == {"unknown": "not today"}
    assert shape["obstacles_now"]["value"] == [{"kind": "submodule", "path": "lib"}]
    assert list(shape)[-5:] == ["since", "reason", "snapshots", "journal", "next"]
    seen = answer.text.partition("seen now, at 2026-01-31 12:00:00 UTC\n")[2].partition("snapshots")[0]
    assert seen.splitlines() == [
        f"  head       {HEAD}",
        "  branch     none: HEAD is detached",
        "  locked     none",
        "  changed    2: a, caf\ufffd",
        "  untracked  none",
        "  ignored    unknown: not today",
        "  obstacles  1: submodule lib",
    ]


def test_a_lane_that_cannot_be_seen_has_no_time_of_seeing(reader: Reader) -> None:
    dark = Unknown("no worktree")
    unseen = {name: dark for name in SEEN.__struct_fields__ if name not in ("at", "fingerprint")}
    answer = showing.show(reader, row_of(reader, "one"), replace(SEEN, **unseen))
    assert "\nseen now\n  head       unknown: no worktree\n" in answer.text


@pytest.mark.parametrize("facts", LIVES.values(), ids=LIVES)
def test_a_lane_can_be_shown_after_every_event(facts: tuple[Fact, ...], tmp_path: Path) -> None:
    path = bytes(tmp_path / "one.db")
    with closing(Journal(path, noon)) as journal, Reader(path) as reader:
        for fact in facts:
            journal.submit(entry("only", fact)).result()
            for row in reader.lanes():
                answer = showing.show(reader, row, None)
                assert msgspec.json.decode(encoded(answer.document), type=documents.ShownLane).id == "only"
                assert answer.text.splitlines()[-2] == "next"
                assert all(line == line.rstrip() for line in answer.text.splitlines())


@pytest.mark.parametrize("facts", LIVES.values(), ids=LIVES)
def test_a_lane_is_inspected_where_its_tree_is_ours_and_at_rest(facts: tuple[Fact, ...]) -> None:
    for length in range(len(facts) + 1):
        lane = fold(facts[:length])
        resting = isinstance(lane, Active | Quarantined | NeedsReview)
        primary = isinstance(lane, Active) and lane.record.kind == "primary"
        assert (showing.inspected_place(lane) is not None) == (resting and not primary)


def test_a_review_names_the_ways_out(tmp_path: Path) -> None:
    with told(IN_REVIEW, tmp_path) as reader:
        [row] = reader.lanes()
        answer = showing.review(reader, row)
    shape = decoded(answer)
    assert list(shape)[-7:] == ["reason", "found", "safe", "remedy", "paths", "count", "exits"]
    assert (shape["cause"], shape["detail"]) == ("evidence_unavailable", "changed")
    assert shape["exits"] == ["--put-back", "--resnapshot", "--discard"]
    slug, lines = row["slug"], answer.text.splitlines()
    assert lines[0] == f"{slug} waits for a person: {shape['reason']} [{shape['detail']}]"
    assert f"{shape['found']} [{shape['cause']}]: {shape['remedy']}" in lines
    assert f"{shape['safe']}; the ways out:" in lines
    assert lines[-1] == f"  laneyard review {slug} --discard     delete it, with a recorded consent"


def test_what_a_failed_creation_left_can_only_be_discarded(tmp_path: Path) -> None:
    with told(UNDOING_IN_REVIEW, tmp_path) as reader:
        [row] = reader.lanes()
        assert decoded(showing.review(reader, row))["exits"] == ["--discard"]


def test_what_may_be_gone_in_part_is_not_put_back(tmp_path: Path) -> None:
    with told(WORN, tmp_path) as reader:
        [row] = reader.lanes()
        answer = showing.review(reader, row)
        lane, _ = reader.lane(str(row["id"]))
    assert decoded(answer)["exits"] == ["--resnapshot", "--discard"]
    slug, lines = row["slug"], answer.text.splitlines()
    assert lines[-3:] == [
        f"  laneyard review {slug} --resnapshot  capture what is left of it, and reap that",
        f"  laneyard review {slug} --discard     delete what is left of it, with a recorded consent",
        f"after --discard, 'laneyard restore {slug}' brings it back from snapshot s-1",
    ]
    out = f"laneyard review {slug}"
    told_next = f"{out}; or {out} --discard, and then laneyard restore {slug}"
    assert showing.next_step(lane, row, None) == told_next


def test_a_tree_that_is_missing_can_only_be_discarded(tmp_path: Path) -> None:
    missing = TreeUnexplained(cause="tree_missing", reason="it is not there", paths=(), count=0)
    with told((*REAPING, missing), tmp_path) as reader:
        [row] = reader.lanes()
        answer = showing.review(reader, row)
    assert decoded(answer)["exits"] == ["--discard"]
    assert answer.text.endswith(f"'laneyard restore {row['slug']}' brings it back from snapshot s-1")


def test_a_snapshot_of_what_was_left_is_marked(tmp_path: Path) -> None:
    with told(REMNANT_REAPED, tmp_path) as reader:
        [row] = reader.lanes()
        lines = showing.show(reader, row, None).text.splitlines()
    at = lines.index("snapshots")
    assert [line.endswith(", of what was left") for line in lines[at + 1 : at + 3]] == [False, True]


def test_a_lane_that_waits_for_nobody_is_not_reviewed(reader: Reader) -> None:
    with pytest.raises(WrongState):
        showing.review(reader, row_of(reader, "one"))


def test_a_sweep_says_what_is_due_and_what_rests(reader: Reader) -> None:
    row = row_of(reader, "two")
    rests = Candidate(row=row, action="wait", until="2026-02-07T12:00:00.000000Z", reason="resting")
    due = replace(rests, action="reap")
    again = Candidate(row=row_of(reader, "three"), action="retry", until=None, reason="stuck")
    waiting = showing.candidates([rests]).text.splitlines()
    assert waiting[1:] == [
        "fix-two  rests  until 2026-02-07 12:00:00 UTC  in quarantine since 2026-01-31 12:00:00 UTC"
    ]
    answer = showing.candidates([due, again])
    assert [list(each) for each in decoded(answer)] == [["lane", "slug", "action", "until", "reason"]] * 2
    assert answer.text.splitlines()[2:] == [
        "fix-three  would be tried again  now   stuck",
        "this was a dry run: 'laneyard sweep --apply' does what is due",
    ]
    assert showing.candidates([]).text.startswith("nothing to sweep")


def test_a_sweep_is_unfinished_where_one_lane_was_in_trouble(reader: Reader) -> None:
    gone = Swept(candidate=Candidate(row=row_of(reader, "three"), action="reap", until=None, reason=""))
    held = Swept(
        candidate=Candidate(row=row_of(reader, "two"), action="reap", until=None, reason=""),
        refused=("cannot_hold", "it holds a fifo"),
    )
    answer = showing.swept([gone, held])
    assert answer.outcome == "unfinished"
    assert answer.text == "fix-three is reaped\nfix-two is quarantined: it holds a fifo [cannot_hold]"
    assert [each["problem"] for each in decoded(answer)] == [None, ["cannot_hold", "it holds a fifo"]]
    assert showing.swept([gone]).outcome == "done"
    assert showing.swept([]).text == "nothing was due"


@pytest.mark.parametrize(
    "module", ["lanes", "showing", "comparing", "resolve", "keeping", "events", "words", "text"]
)
@pytest.mark.slow
def test_reading_loads_neither_the_engine_nor_a_server(module: str) -> None:
    look = f"before = set(sys.modules); import adapters.api.{module}; print(*set(sys.modules) - before)"
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); {look}"
    ran = subprocess.run([sys.executable, "-I", "-c", start], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in ran.stdout.split()}
    assert not loaded & {"trio", "litestar", "hypercorn"}
    if module in ("words", "text"):
        assert loaded <= {*sys.stdlib_module_names, "adapters"}
