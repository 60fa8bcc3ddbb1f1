"""What a soak has met, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.soak.__main__ import Sample
    from tests.soak.load import Tally

MIB = 1 << 20


def rows(
    tally: Tally, samples: Sequence[Sample], seconds: float, events: int, wrong: Sequence[str]
) -> list[tuple[str, ...]]:
    """Returns the rows, the first of which is the head."""
    counts = sum(map(len, tally.seconds.values()))
    told: list[tuple[str, ...]] = [("WHAT", "COUNT", "PER SECOND", "P50 MS", "P99 MS")]
    told += [_timed(kind, tally.seconds[kind], seconds) for kind in sorted(tally.seconds)]
    told.append(("all requests", str(counts), f"{counts / seconds:.1f}", "", ""))
    told.append(("events", str(events), f"{events / seconds:.1f}", "", ""))
    for name, counter in (("backpressure", tally.pressed), ("problem", tally.problems), ("lost", tally.lost)):
        told += [(f"{name}: {what}", str(count), "", "", "") for what, count in sorted(counter.items())]
    told += [
        ("", "FIRST", "HALF TIME", "MOST", "LAST"),
        _of("memory, MiB", [each.rss // MIB for each in samples]),
        _of("threads", [each.threads for each in samples]),
        _of("descriptors", [each.descriptors for each in samples]),
        ("verify and git", "clean" if not wrong else "see below", "", "", ""),
    ]
    return told


def _timed(kind: str, taken: list[float], seconds: float) -> tuple[str, ...]:
    return (
        kind,
        str(len(taken)),
        f"{len(taken) / seconds:.1f}",
        f"{1e3 * part(taken, 0.5):.1f}",
        f"{1e3 * part(taken, 0.99):.1f}",
    )


def part(values: Sequence[float], share: float) -> float:
    """Returns the value below which such a share of them lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def _of(name: str, values: Sequence[int]) -> tuple[str, ...]:
    return name, *(str(each) for each in (values[0], values[len(values) // 2], max(values), values[-1]))


def drawn(rows: Sequence[tuple[str, ...]]) -> str:
    """Returns the table as it is printed."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        f"{row[0]:<{widths[0]}}  "
        + "  ".join(f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    )
