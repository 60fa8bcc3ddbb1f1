"""Facts in, rows out: envelopes with literal times, folded as the program folds its log."""

from collections.abc import Iterable

from adapters.store.fold import Fold
from domain.envelope import Actor, Envelope, stream_of
from domain.events import Fact
from projections.table import Row, Table

ME = Actor(uid=1000, pid=42, client="tests")


def told(*lives: tuple[str, Iterable[Fact]]) -> Fold:
    """Folds (stream, facts) in order; the n-th event has position n and happens at second n."""
    fold, versions = Fold(), dict.fromkeys((stream for stream, _ in lives), 0)
    for stream, facts in lives:
        for fact in facts:
            versions[stream] += 1
            fold.take(event(fold.position + 1, stream, versions[stream], fact))
    return fold


def event(position: int, stream: str, version: int, fact: Fact) -> Envelope:
    """Returns a fact in its place."""
    return Envelope(
        position=position,
        stream=stream,
        version=version,
        type=fact.TAG,
        time=f"2026-03-01T09:00:{position:02}Z",
        actor=ME,
        cause="command-1",
        fact=fact,
    )


def rows(table: Table, lane: str, facts: Iterable[Fact]) -> list[Row]:
    """Returns a projection's rows after one life."""
    return told((stream_of(lane), facts)).table(table)


def row(table: Table, lane: str, facts: Iterable[Fact]) -> dict[str, str | int | None]:
    """Returns the only row by column."""
    (found,) = rows(table, lane, facts)
    return dict(zip(table.names, found, strict=True))
