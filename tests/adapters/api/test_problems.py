"""What went wrong, as it is told: in one line, and alike wherever the work is done."""

from __future__ import annotations

import msgspec
import pytest

from adapters.api import bodies
from adapters.api.problems import begun, problem
from domain.errors import NotARepository

LONG = "x" * 4097


@pytest.mark.parametrize(
    "said",
    [
        {"repository": "/", "name": LONG},
        {"repository": "/", "name": "x", "base": LONG},
        {"repository": "/", "name": "x", "parent": LONG},
        {"repository": "/", "name": "x", "branch": LONG},
        {"repository": "/", "name": "x", "owner": "x" * 201},
        {"repository": "/" * 12_289, "name": "x"},
    ],
)
def test_a_body_that_is_too_long_is_a_refusal(said: dict[str, str]) -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert(said, bodies.CreateBody)
    told = problem(caught.value)
    assert told is not None
    assert told == problem(bodies.misfit(caught.value))
    assert (told.code, told.outcome, told.status) == ("invalid_request", "refused", 400)
    assert f"$.{[*said][-1] if len(said) > 2 or LONG in said.values() else 'repository'}" in told.detail


def test_words_are_one_line_and_the_evidence_is_exact() -> None:
    told = problem(NotARepository("/a\nb\x1b[2J"))
    assert told is not None
    assert told.detail.isprintable()
    assert told.details == {"path": "/a\nb\x1b[2J"}
    assert begun("a\nb", {}) == "A\\nb"
    assert begun("a \udcff", {}) == "A \ufffd"
