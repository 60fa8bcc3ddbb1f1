"""Given facts, when a command, then facts; and for what follows: what is owed, and what an outcome means."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from domain.commands import AnyCommand
from domain.effects import Effect, Outcome
from domain.errors import Refusal
from domain.events import Fact
from domain.lane import decide, fold, learn, pending
from domain.retries import ATTEMPTS
from domain.states import Lane, name


@dataclass(frozen=True)
class Asked:
    """A lane that was asked for something."""

    lane: Lane
    command: AnyCommand

    def then(self, *facts: Fact) -> "Given":
        """Asserts what is decided, and goes on from there."""
        assert decide(self.lane, self.command) == facts
        return Given(fold(facts, self.lane))

    def refused(self, refusal: type[Refusal], **fields: object) -> None:
        """Asserts the answer and its evidence."""
        with pytest.raises(refusal) as caught:
            decide(self.lane, self.command)
        assert type(caught.value) is refusal
        assert {key: caught.value.details[key] for key in fields} == fields


@dataclass(frozen=True)
class Given:
    """A lane with a past."""

    lane: Lane

    def when(self, command: AnyCommand) -> Asked:
        """Asks for something."""
        return Asked(self.lane, command)

    def owes(self, effect: Effect) -> "Given":
        """Asserts what the world owes the lane next."""
        assert pending(self.lane) == effect
        return self

    @property
    def owed(self) -> Effect:
        """Returns what is owed, which must be something."""
        effect = pending(self.lane)
        assert effect is not None
        return effect

    def learns(self, outcome: Outcome, *facts: Fact) -> "Given":
        """Asserts what an outcome amounts to, and goes on from there."""
        assert learn(self.lane, outcome) == facts
        return Given(fold(facts, self.lane))

    def tries_again(self, outcome: Outcome, fact: Callable[[int], Fact]) -> "Given":
        """Asserts that a step is owed again after each failure but the last, and goes on before that one."""
        lane, owed = self, self.owed
        for attempt in range(1, ATTEMPTS):
            lane = lane.learns(outcome, fact(attempt)).owes(owed)
        return lane

    def rests(self, state: str) -> "Given":
        """Asserts that the lane is in that state and nothing is owed."""
        assert name(self.lane) == state
        assert pending(self.lane) is None
        return self

    def is_now(self, lane: Lane) -> "Given":
        """Asserts the whole state."""
        assert self.lane == lane
        return self


def given(*facts: Fact) -> Given:
    """Returns the lane that these facts tell of."""
    return Given(fold(facts))
