"""The clock, as the log keeps time."""

from datetime import UTC, datetime


def now() -> str:
    """Returns the time as the log keeps it: UTC, ISO 8601, microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
