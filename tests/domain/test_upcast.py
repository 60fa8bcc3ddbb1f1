"""Old shapes are read as the new ones, and what is not known is refused."""

import pytest

from domain.events import BY_TAG
from domain.upcast import UPCASTERS, NewerFact, UnknownFact, refusal, upcast


@pytest.mark.parametrize("tag", sorted(BY_TAG))
def test_a_current_fact_is_left_as_it_is(tag: str) -> None:
    raw = {"anything": 1}
    assert upcast(tag, raw) == (tag, raw)


def test_a_plan_of_format_3_becomes_a_strict_safe_removal() -> None:
    tag, raw = upcast("removal.planned@3", {"journal_format": 3, "edition": 2, "head": "b" * 40})
    assert tag == "removal.planned@4"
    assert raw == {
        "journal_format": 3,
        "edition": 2,
        "head": "b" * 40,
        "mode": "safe",
        "snapshot_id": None,
        "snapshot_ref": None,
        "snapshot_commit": None,
        "snapshot_tree": None,
        "provisioned_ignored": [],
        "consent": None,
        "evidence": None,
        "delete_branch": False,
    }


def test_a_capture_of_old_held_nothing_that_is_ignored() -> None:
    raw = {"snapshot": "s-1", "tolerant": False, "omit": [".env"]}
    assert upcast("snapshot.planned@1", raw) == ("snapshot.planned@2", {**raw, "apart": []})
    assert upcast("lane.snapshotted@1", {"snapshot": {"id": "s-1"}}) == (
        "lane.snapshotted@2",
        {"snapshot": {"id": "s-1", "ignored": []}},
    )


def test_a_restore_of_old_has_found_no_difference() -> None:
    assert upcast("restore.applied@1", {"content": "c"}) == (
        "restore.applied@2",
        {"content": "c", "differences": []},
    )


def test_the_old_shape_is_not_changed_in_place() -> None:
    raw = {"journal_format": 3}
    upcast("removal.planned@3", raw)
    assert raw == {"journal_format": 3}


def test_every_upcaster_leads_from_an_old_tag_to_a_current_one() -> None:
    for tag in UPCASTERS:
        assert tag not in BY_TAG
        assert upcast(tag, {})[0] in BY_TAG


@pytest.mark.parametrize("tag", ["removal.planned@5", "lane.created@2", "lane.created@10"])
def test_a_newer_shape_is_refused_with_what_would_help(tag: str) -> None:
    with pytest.raises(NewerFact, match="update Laneyard") as caught:
        upcast(tag, {})
    assert caught.value.tag == tag
    assert repr(tag) in str(caught.value)


@pytest.mark.parametrize(
    "tag", ["lane.sold@1", "removal.planned@2", "removal.planned", "", "@", "lane.created@", "lane.created@²"]
)
def test_an_unknown_tag_is_refused_by_name(tag: str) -> None:
    with pytest.raises(UnknownFact) as caught:
        upcast(tag, {})
    assert type(caught.value) is UnknownFact
    assert caught.value.tag == tag
    assert repr(tag) in str(caught.value)
    assert type(refusal(tag)) is UnknownFact
