"""The repositories under our care."""

from msgspec.structs import replace

from projections import repositories
from tests.domain.facts import LANE, registered
from tests.domain.lives import REAPED
from tests.projections.folded import rows, told


def test_a_repository_has_its_row() -> None:
    assert told(("repository-1", (registered,))).table(repositories.TABLE) == [
        ("/srv/shop/.git", "/srv/shop", "sha1", 1)
    ]


def test_each_repository_has_one_and_what_is_told_again_replaces_it() -> None:
    bare = replace(registered, common="/srv/bare.git", root=None, object_format="sha256")
    moved = replace(registered, root="/srv/shop-2")
    log = told(("repository-1", (registered,)), ("repository-2", (bare,)), ("repository-1", (moved,)))
    assert log.table(repositories.TABLE) == [
        ("/srv/bare.git", None, "sha256", 2),
        ("/srv/shop/.git", "/srv/shop-2", "sha1", 3),
    ]


def test_a_lane_is_not_a_repository() -> None:
    assert rows(repositories.TABLE, LANE, REAPED) == []
