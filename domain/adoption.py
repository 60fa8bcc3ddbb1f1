"""The adoption chapter: a checkout that others made becomes a lane as it is."""

from domain.commands import AdoptLane
from domain.errors import WrongState
from domain.events import Fact, LaneAdopted
from domain.states import Active, Lane, Nowhere, Record, name


def decide(lane: Lane, command: AdoptLane) -> tuple[Fact, ...]:
    """Returns the facts of an adoption, or raises a Refusal."""
    if not isinstance(lane, Nowhere):
        raise WrongState("adopted", name(lane))
    return (
        LaneAdopted(
            lane=command.lane,
            repository=command.repository,
            name=command.name,
            slug=command.slug,
            kind=command.kind,
            place=command.place,
            branch=command.branch,
            head=command.head,
        ),
    )


def evolve(lane: Lane, fact: Fact) -> Lane:
    """Returns the lane after the fact."""
    match lane, fact:
        case Nowhere(), LaneAdopted():
            record = Record(
                lane=fact.lane,
                repository=fact.repository,
                name=fact.name,
                slug=fact.slug,
                kind=fact.kind,
                branch=fact.branch,
                base_ref=None,
                base_commit=None,
                parent=None,
                owner="manual",
                head=fact.head,
            )
            return Active(record=record, place=fact.place)
        case _:
            return lane
