"""What was once written can always be read: a file per tag, never edited, decoded by every run."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from adapters.store.codec import StoreNewer, StoreUnreadable, decode, encode
from domain.envelope import Actor, Envelope
from domain.events import BY_TAG, LaneAdopted, RemovalPlanned, SnapshotPlanned
from domain.evidence import Identity, Place
from domain.formats import Foreign
from domain.lane import fold, pending
from domain.states import Leaving
from domain.upcast import UPCASTERS

FOLDER = Path(__file__).parents[2] / "golden/events"
FILES = sorted(FOLDER.glob("*.json"))
POSITION = 7


def golden(tag: str) -> dict[str, Any]:
    read = json.loads((FOLDER / f"{tag}.json").read_text(encoding="utf-8"))
    assert isinstance(read, dict)
    return read


def read_back(tag: str, state: object, stream: str = "lane-1") -> Envelope:
    return decode((POSITION, stream, 3, tag, json.dumps(state).encode()))


@pytest.mark.parametrize("tag", sorted({*BY_TAG, *UPCASTERS}))
def test_every_tag_that_was_ever_written_has_a_golden_file(tag: str) -> None:
    assert (FOLDER / f"{tag}.json").exists()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_golden_file_is_read(file: Path) -> None:
    written = golden(file.stem)
    event = read_back(written["type"], written["state"])
    assert file.stem == written["type"] == event.type
    assert (event.position, event.stream, event.version) == (7, "lane-1", 3)
    assert (event.time, event.cause) == (
        "2026-03-01T09:00:00.000000Z",
        "8c1f0f7a-4a6b-4f0e-9c57-2f4b7a3e6d11",
    )
    assert event.actor == Actor(uid=1000, pid=4242, client="laneyard-cli")


@pytest.mark.parametrize("tag", sorted(BY_TAG))
def test_what_is_read_is_written_the_same(tag: str) -> None:
    state = golden(tag)["state"]
    event = read_back(tag, state)
    assert type(event.fact) is BY_TAG[tag]
    assert json.loads(encode(event.fact, event.time, event.actor, event.cause)) == state


@pytest.mark.parametrize("tag", sorted(BY_TAG))
def test_a_golden_file_shows_every_field(tag: str) -> None:
    assert set(golden(tag)["state"]["fact"]) == set(BY_TAG[tag].__struct_fields__)


def test_values_come_back_as_what_they_were() -> None:
    fact = read_back("lane.adopted@1", golden("lane.adopted@1")["state"]).fact
    assert isinstance(fact, LaneAdopted)
    assert fact.place == Place(
        "/srv/shop/.laneyard/worktrees/fix-login",
        "/srv/shop/.git/worktrees/fix-login",
        Identity(64, 1001, 1772355600123456789),
    )
    planned = read_back("snapshot.planned@1", golden("snapshot.planned@1")["state"]).fact
    assert planned == SnapshotPlanned(snapshot="s-1", tolerant=True, omit=(".env", "caf%E9"))


def test_a_plan_of_format_3_is_read_as_a_strict_safe_removal_and_driven() -> None:
    fact = read_back("removal.planned@3", golden("removal.planned@3")["state"]).fact
    place = Place(
        "/srv/shop/.laneyard/worktrees/fix-login",
        "/srv/shop/.git/worktrees/fix-login",
        Identity(64, 1001, 1772355600123456789),
    )
    assert fact == RemovalPlanned(
        journal_format=3,
        edition=1,
        mode="safe",
        place=place,
        resting="/srv/shop/.laneyard/quarantine/fix-login-1",
        head="b" * 40,
        branch="refs/heads/fix-login",
        snapshot_id=None,
        snapshot_ref=None,
        snapshot_commit=None,
        snapshot_tree=None,
        provisioned_ignored=(),
        consent=None,
        evidence=None,
        delete_branch=False,
    )
    adopted = read_back("lane.adopted@1", golden("lane.adopted@1")["state"]).fact
    lane = fold((adopted, fact))
    assert isinstance(lane, Leaving)
    assert pending(lane) is not None


@pytest.mark.parametrize(
    ("tag", "words"),
    [
        ("lane.sold@1", "event 7 cannot be read: the log holds a fact of an unknown type: 'lane.sold@1'"),
        ("lane.sold", "event 7 cannot be read: the log holds a fact of an unknown type: 'lane.sold'"),
        ("", "event 7 cannot be read: the log holds a fact of an unknown type: ''"),
        ("removal.planned@2", "event 7 .* unknown type: 'removal.planned@2'"),
        (
            "removal.planned@5",
            "event 7 .* holds 'removal.planned@5', and this program knows no newer than 'removal.planned@4': "
            "update Laneyard",
        ),
    ],
)
def test_an_unknown_or_newer_tag_is_refused_and_not_skipped(tag: str, words: str) -> None:
    """In a lane's stream it is a fact that blocks the lane, unless not even its envelope can be read."""
    state = golden("lane.created@1")["state"]
    for stream, said in (("repository-1", state), ("lane-1", {})):
        with pytest.raises(StoreNewer, match=words) as caught:
            read_back(tag, said, stream)
        assert caught.value.position == POSITION
    fact = read_back(tag, state).fact
    assert isinstance(fact, Foreign)
    assert (fact.tag, fact.told) == (tag, state["fact"])
    assert fact.why in str(caught.value)


@pytest.mark.parametrize("tag", sorted({*BY_TAG, *UPCASTERS}))
def test_a_missing_field_is_refused_at_its_position(tag: str) -> None:
    for field in _required(tag):
        state = golden(tag)["state"]
        del state["fact"][field]
        with pytest.raises(StoreUnreadable, match=rf"event 7 cannot be read: {tag}: .*`{field}`"):
            read_back(tag, state)


def _required(tag: str) -> list[str]:
    fields = msgspec.structs.fields(BY_TAG.get(tag, RemovalPlanned))
    return [field.name for field in fields if field.required and field.name in golden(tag)["state"]["fact"]]


@pytest.mark.parametrize("tag", sorted({*BY_TAG, *UPCASTERS}))
def test_a_wrong_type_is_refused_at_its_position(tag: str) -> None:
    for field in golden(tag)["state"]["fact"]:
        state = golden(tag)["state"]
        state["fact"][field] = {"of": "no type that any field has"}
        with pytest.raises(StoreUnreadable, match=f"event 7 cannot be read: {tag}: ") as caught:
            read_back(tag, state)
        assert not isinstance(caught.value, StoreNewer)


@pytest.mark.parametrize("field", ["time", "actor", "cause", "fact"])
@pytest.mark.parametrize("tag", ["lane.created@1", "removal.planned@3"])
def test_a_missing_part_of_the_envelope_is_refused(tag: str, field: str) -> None:
    state = golden(tag)["state"]
    del state[field]
    with pytest.raises(StoreUnreadable, match=f"event 7 .*`{field}`"):
        read_back(tag, state)


@pytest.mark.parametrize("tag", ["lane.created@1", "removal.planned@3"])
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b'{"time":"\xff"}', b"null"])
def test_what_is_not_even_json_is_refused(tag: str, data: bytes) -> None:
    with pytest.raises(StoreUnreadable, match="event 7 cannot be read") as caught:
        decode((POSITION, "lane-1", 3, tag, data))
    assert caught.value.position == POSITION
