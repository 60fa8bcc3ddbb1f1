"""A path of any bytes is written as text and read back the same."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.paths import display, is_inside, is_text, join, pack, unpack

PIECES = st.sampled_from(
    [b"%", b"%25", b"\xff", b"\xc3", b"\xa9", b"\xed\xb2\x80", b"/", b"a", b"\0", b"4", b"1"]
)
PATHS = st.binary(max_size=40) | st.lists(PIECES, max_size=10).map(b"".join)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (b"", ""),
        (b"/srv/shop", "/srv/shop"),
        ("/srv/café".encode(), "/srv/café"),
        (b"caf\xe9", "caf%E9"),
        (b"100%", "100%25"),
        (b"%41", "%2541"),
        (b"\xed\xb2\x80", "%ED%B2%80"),
        (b"a\nb\0c", "a\nb\0c"),
    ],
)
def test_a_path_is_packed(path: bytes, text: str) -> None:
    assert pack(path) == text
    assert unpack(text) == path


@given(PATHS)
def test_packing_loses_nothing(path: bytes) -> None:
    assert unpack(pack(path)) == path


@given(PATHS, PATHS)
def test_different_paths_are_packed_differently(one: bytes, other: bytes) -> None:
    assert (pack(one) == pack(other)) == (one == other)


@given(PATHS)
def test_a_packed_path_survives_json(path: bytes) -> None:
    text = pack(path)
    assert json.loads(json.dumps(text).encode("utf-8")) == text
    assert text.encode("utf-8").decode("utf-8") == text


@given(PATHS)
def test_the_display_form_is_exact_where_the_path_is_text(path: bytes) -> None:
    text = pack(path)
    assert is_text(text) == (display(text).encode("utf-8") == path)


@given(PATHS, PATHS)
def test_packing_keeps_what_lies_inside_what(parent: bytes, name: bytes) -> None:
    assert pack(parent + b"/" + name) == pack(parent) + "/" + pack(name)


@pytest.mark.parametrize(("text", "shown"), [("caf%E9", "caf\ufffd"), ("100%25", "100%"), ("é", "é")])
def test_a_path_is_shown_as_people_read_it(text: str, shown: str) -> None:
    assert display(text) == shown


def test_an_entry_is_joined_to_its_directory_by_one_slash() -> None:
    assert (join("/srv", "a"), join("/srv/", "a"), join("/", "a")) == ("/srv/a", "/srv/a", "/a")


@pytest.mark.parametrize(
    ("path", "ancestor", "inside"),
    [
        ("a", "a", True),
        ("a/b", "a", True),
        ("a/b", "a/", True),
        ("a", "a/", True),
        ("ab", "a", False),
        ("a", "a/b", False),
        ("b/a", "a", False),
    ],
)
def test_a_path_covers_itself_and_what_is_below(path: str, ancestor: str, inside: bool) -> None:
    assert is_inside(path, ancestor) is inside
