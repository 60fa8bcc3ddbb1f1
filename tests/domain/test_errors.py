"""A refusal is an answer: a stable code, the evidence, and what would change it."""

import dataclasses
import re
import typing

import pytest

from domain import errors
from domain.errors import CannotHold, EditProtected, NotSnapshotted, Refusal, UnknownIgnored

REFUSALS = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, Refusal) and each is not Refusal
]
CODES = [
    "ambiguous_lane",
    "branch_exists",
    "branch_in_use",
    "cannot_hold",
    "changed_since_snapshot",
    "command_reused",
    "edit_protected",
    "evidence_unavailable",
    "foreign_lock",
    "identity_changed",
    "invalid_branch_name",
    "invalid_name",
    "invalid_owner",
    "no_such_edition",
    "no_such_lane",
    "no_such_snapshot",
    "not_a_repository",
    "not_snapshotted",
    "path_in_use",
    "too_many_to_name",
    "unborn_head",
    "unknown_base",
    "unknown_ignored",
    "unsafe_path",
    "version_mismatch",
    "wrong_state",
]
EXAMPLES: dict[object, object] = {
    str: "x{0}y",
    int: 7,
    tuple[str, ...]: ("a", "b"),
    tuple[int, ...]: (1, 2),
    tuple[dict[str, object], ...]: ({"path": "a", "class": "unknown", "why": "nothing", "bytes": 1},),
}


def example(refusal: type[Refusal]) -> Refusal:
    hints = typing.get_type_hints(refusal)
    return refusal(*(EXAMPLES[hints[field.name]] for field in dataclasses.fields(refusal)))


def test_the_codes_never_change() -> None:
    """New codes may come; a code that is gone or renamed breaks the programs that read it."""
    assert set(CODES) <= {each.code for each in REFUSALS}


def test_every_refusal_has_a_code_of_its_own() -> None:
    codes = [each.code for each in REFUSALS]
    assert sorted(set(codes)) == sorted(codes)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes)


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda each: each.code)
def test_a_refusal_tells_its_evidence_in_words_and_by_field(refusal: type[Refusal]) -> None:
    raised = example(refusal)
    text = str(raised)
    assert text.endswith((".", ")."))
    assert set(raised.details) == {field.name for field in dataclasses.fields(refusal)}
    assert raised.status in {404, 409, 412, 422}
    named = set(re.findall(r"\{(\w+)[!}]", refusal.text + refusal.remedy))
    assert named <= set(raised.details)


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda each: each.code)
def test_a_refusal_says_what_would_change_it_unless_nothing_would(refusal: type[Refusal]) -> None:
    assert refusal.remedy or refusal is EditProtected or refusal.status == 404


def test_long_evidence_is_cut_in_words_and_whole_by_field() -> None:
    raised = CannotHold(("a", "b", "c", "d", "e", "f", "g"))
    assert "a, b, c, d, e and 2 more" in str(raised)
    assert raised.details == {"obstacles": ("a", "b", "c", "d", "e", "f", "g")}


def test_an_ignored_path_is_told_with_its_class_and_why() -> None:
    named: dict[str, object] = {"path": ".env", "class": "precious", "why": "named .env", "bytes": 12}
    assert ".env (precious: named .env, 12 bytes)" in str(UnknownIgnored((".env",), (named,), 1))


def test_evidence_is_quoted_and_never_read_as_a_format() -> None:
    assert "{0} {remedy}" in str(CannotHold(("socket '{0} {remedy}'",)))


def test_a_refusal_is_one_or_two_sentences() -> None:
    assert str(NotSnapshotted(2, 1)) == (
        "2 changed and 1 untracked files are in no verified snapshot. Take one with 'laneyard snapshot LANE'."
    )
