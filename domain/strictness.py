"""What a removal that has recorded nothing of the tree is held to: there must be nothing in it to lose."""

from domain.errors import CannotHold, NotSnapshotted
from domain.evidence import Place, Seen
from domain.snapshots import described, known, require_known, require_same, unknown_ignored


def require_nothing_to_lose(place: Place, seen: Seen) -> None:
    """Refuses a tree that holds anything but its commit: also what is ignored, of whatever class.

    Raises EvidenceUnavailable, IdentityChanged, CannotHold, NotSnapshotted, UnknownIgnored.
    """
    require_known(seen)
    require_same(place, seen)
    changed, untracked, obstacles = known(seen.changed), known(seen.untracked), known(seen.obstacles)
    if obstacles:
        raise CannotHold(described(obstacles))
    if changed or untracked:
        raise NotSnapshotted(len(changed), len(untracked))
    if ignored := known(seen.ignored):
        raise unknown_ignored(ignored)
