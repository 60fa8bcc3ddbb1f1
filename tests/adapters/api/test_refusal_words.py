"""What refusals say where there is nothing, one thing, or a name of any kind to tell."""

from __future__ import annotations

from adapters.snapshots.reading.extraction import AlreadyThere, NoRoom
from domain.errors import NoSuchEdition, UnknownIgnored


def test_nothing_is_told_as_none() -> None:
    assert "(known: none)" in str(NoSuchEdition(3, ()))
    assert "(known: 1, 2)" in str(NoSuchEdition(3, (1, 2)))


def test_one_ignored_path_is_not_told_as_several() -> None:
    held = {"path": ".env", "class": "precious", "why": "named .env", "bytes": 7}
    said = str(UnknownIgnored((".env",), (held,), 1))
    assert said.startswith("of what git ignores would be in no snapshot, 1 in all: .env (precious")


def test_names_are_in_quotes() -> None:
    assert "in '/x' there is already 'a, b', 'c\\x1b'," in str(AlreadyThere("/x", ("a, b", "c\x1b")))


def test_a_full_disk_has_a_code_of_its_own() -> None:
    assert (NoRoom("/x", "no space").code, NoRoom.status) == ("disk_full", 507)
