"""How a checkout that others made becomes a lane."""

import pytest

from domain.commands import AdoptLane
from domain.errors import WrongState
from domain.events import Fact, Kind, LaneAdopted
from domain.states import Active
from tests.domain.facts import BRANCH, COMMON, HEAD, LANE, PLACE, adopted
from tests.domain.lives import CREATED, FAILED_AT_ONCE, REAPED
from tests.given import given


def adopt(kind: Kind, branch: str | None, head: str | None) -> AdoptLane:
    return AdoptLane(
        lane=LANE,
        repository=COMMON,
        name="fix login",
        slug="fix-login",
        kind=kind,
        place=PLACE,
        branch=branch,
        head=head,
    )


@pytest.mark.parametrize("kind", ["primary", "managed", "external"])
@pytest.mark.parametrize(("branch", "head"), [(BRANCH, HEAD), (None, HEAD), (BRANCH, None)])
def test_a_checkout_is_adopted_as_it_is(kind: Kind, branch: str | None, head: str | None) -> None:
    lane = (
        given()
        .when(adopt(kind, branch, head))
        .then(
            LaneAdopted(
                lane=LANE,
                repository=COMMON,
                name="fix login",
                slug="fix-login",
                kind=kind,
                place=PLACE,
                branch=branch,
                head=head,
            )
        )
        .rests("active")
        .lane
    )
    assert isinstance(lane, Active)
    assert (lane.place, lane.record.kind, lane.record.branch, lane.record.head) == (PLACE, kind, branch, head)
    assert (lane.record.base_ref, lane.record.base_commit, lane.record.parent) == (None, None, None)


@pytest.mark.parametrize(
    ("facts", "state"),
    [((adopted,), "active"), (CREATED, "active"), (FAILED_AT_ONCE, "failed"), (REAPED, "reaped")],
)
def test_a_lane_is_adopted_once(facts: tuple[Fact, ...], state: str) -> None:
    given(*facts).when(adopt("external", BRANCH, HEAD)).refused(WrongState, command="adopted", state=state)
