"""Looking into snapshots over HTTP: addresses, pages, bytes, and what is refused."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from adapters.service.web.snapshots import AT_ONCE
from domain.paths import pack, unpack
from tests.adapters.service.http_house import TEXT, House, house

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
LARGE = os.urandom(AT_ONCE + 12_345)


def put(place: bytes, name: bytes, data: bytes) -> None:
    with open(os.path.join(place, name), "wb") as file:
        file.write(data)


async def captured(house: House) -> str:
    """Makes a lane, leaves work in it, captures it, and returns the address of the snapshot."""
    lane = await house.lane()
    place = unpack(str((await house.get(f"/v1/lanes/{lane}")).json()["path"]))
    put(place, b"file", b"two\n")
    put(place, b"new \xff&?", b"odd\n")
    put(place, b"large", LARGE)
    assert (await house.post(f"/v1/lanes/{lane}/snapshot")).status_code == 200
    (found,) = (await house.get("/v1/snapshots")).json()
    return f"/v1/snapshots/{found['id']}"


async def test_a_snapshot_is_found_listed_and_shown(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        address = await captured(served)
        shown = (await served.get(address)).json()
        found = (await served.get("/v1/resolve/snapshot", snapshot="work", repository=served.root)).json()
        assert f"/v1/snapshots/{found['id']}" == address
        assert (found["slug"], shown["why"], shown["verified"]) == ("work", "asked", False)
        assert (await served.get(address, verify="true", paths="all")).json()["verified"] is True
        listed = (await served.get("/v1/snapshots", repository=served.root)).json()
        assert [each["id"] for each in listed] == [shown["id"]]
        assert (await served.get("/v1/snapshots", lane=shown["lane"])).json() == listed
        assert (await served.get("/v1/snapshots", lane="nobody")).status_code == 404
        assert (await served.get(address, TEXT)).text.startswith(f"snapshot {shown['id']} of work\n")


async def test_content_is_bytes_whole_and_of_known_length(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        address = await captured(served)
        large = await served.get(f"{address}/content", path="large")
        assert (large.status_code, large.content) == (200, LARGE)
        assert large.headers["content-type"] == "application/octet-stream"
        assert large.headers["content-length"] == str(len(LARGE))
        odd = await served.get(f"{address}/content", path=pack(b"new \xff&?"))
        assert odd.content == b"odd\n"
        staged = await served.get(f"{address}/content", path="file", staged="true")
        assert staged.content == b"one\n"
        both = await served.get(f"{address}/content", path=["file", "large", "file"])
        assert both.content == b"two\n" + LARGE + b"two\n"
        head = await served.client.head(f"{address}/content", params={"path": "large"})
        assert (head.status_code, head.content) == (200, b"")


async def test_the_difference_is_text(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        address = await captured(served)
        found = await served.get(f"{address}/diff", below=["file"])
        assert found.headers["content-type"].startswith("text/plain")
        assert found.text.endswith("-one\n+two\n")
        assert (await served.get(f"{address}/diff", staged="true")).content == b""
        refused = await served.get(f"{address}/diff", below=["file", "nowhere"])
        assert (refused.status_code, refused.json()["code"]) == (404, "not_in_snapshot")


async def test_entries_are_paged_and_link_to_the_next_page(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        address = await captured(served)
        whole = (await served.get(f"{address}/entries")).json()["entries"]
        got, following = [], f"{address}/entries?limit=3&below=."
        while following:
            page = await served.client.get(following)
            got += page.json()["entries"]
            link = page.headers.get("link", "")
            assert bool(link) == (page.json()["next"] is not None)
            following = link.partition(">")[0].removeprefix("<")
        assert got == whole
        odd = next(each for each in whole if "path_encoded" in each and each["size"] == 4)
        assert unpack(odd["path_encoded"]) == b"new \xff&?"
        only = await served.client.get(f"{address}/entries?below={quote(odd['path_encoded'])}&below=file")
        assert len(only.json()["entries"]) == 2


@pytest.mark.parametrize(
    ("below", "status", "code"),
    [
        ("/content?path=nowhere", 404, "not_in_snapshot"),
        ("/content?path=../file", 404, "not_in_snapshot"),
        ("/content?path=.", 404, "not_in_snapshot"),
        ("/content", 400, "invalid_request"),
        ("/content?path=file&path=nowhere", 404, "not_in_snapshot"),
        ("/content?path=file&staged=true&staged=true", 400, "invalid_request"),
        ("/entries?below=nowhere", 404, "not_in_snapshot"),
        ("/entries?limit=10001", 400, "invalid_request"),
        ("/entries?offset=3", 400, "invalid_request"),
        ("?paths=some", 400, "invalid_request"),
        ("/nothing", 404, "no_such_address"),
    ],
)
async def test_what_cannot_be_given_is_refused(tmp_path: Path, below: str, status: int, code: str) -> None:
    async with house(tmp_path) as served:
        address = await captured(served)
        answer = await served.client.get(address + below)
        assert (answer.status_code, answer.json()["code"]) == (status, code)


async def test_no_name_of_a_snapshot_leads_out_of_where_they_are(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        await captured(served)
        for name in ("..", "0" * 36, "x", "%2e%2e", "manifest.json"):
            answer = await served.get(f"/v1/snapshots/{name}/content", path="file")
            assert answer.status_code == 404
        for word in ("nobody", "nobody@1", "work@1"):
            answer = await served.get("/v1/resolve/snapshot", snapshot=word, repository=served.root)
            assert answer.status_code == 404


async def test_damage_is_told_before_any_content(tmp_path: Path) -> None:
    async with house(tmp_path) as served:
        address = await captured(served)
        state = os.fsdecode(served.world.settings.state_dir)
        put(os.fsencode(f"{state}/snapshots/{address.rpartition('/')[2]}"), b"manifest.json", b"{}")
        for below in ("", "/content?path=file", "/diff", "/entries"):
            answer = await served.client.get(address + below)
            assert (answer.status_code, answer.json()["code"]) == (409, "snapshot_damaged")
