"""What a request's headers ask for: which command it is, on which version, and how long to wait."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from adapters.service.web.misuse import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

# A key is a segment of an address, `/v1/commands/KEY`, as it is: nothing in it needs to be escaped (pchar in
# RFC 3986, 3.3). `.` and `..` would be taken away by whoever normalises the address (6.2.2.3).
KEY_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._~!$&'()*+,;=:@-]{0,254}$"
KEY = re.compile(KEY_PATTERN)
MATCH_PATTERN = r'^(\*|"[0-9]{1,18}")$'
TAG = re.compile(r'"(\d{1,18})"', re.ASCII)


class Preference(msgspec.Struct, frozen=True):
    """How long to wait for a command's end, in seconds (RFC 7240), and what of it was asked for."""

    seconds: float
    applied: str | None


def command_id(value: str | None) -> str | None:
    """Returns the id in `Idempotency-Key`, plain or as a string of RFC 8941. Raises InvalidRequest."""
    if value is None:
        return None
    found = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
    if not KEY.fullmatch(found):
        raise InvalidRequest(
            "Idempotency-Key must be a letter or digit, then at most 254 letters, digits or ._~!$&'()*+,;=:@-"
        )
    return found


def digest_of(method: str, path: str, body: object) -> bytes:
    """Returns what tells one request from another: the body as it was understood, not as it was spelt."""
    encoded = msgspec.json.encode(body, order="sorted")
    return sha256(b"\0".join((method.encode(), path.encode(), encoded))).digest()


def expected_version(value: str | None) -> int | None:
    """Returns the version in `If-Match`, or None for any. Raises InvalidRequest for what is no version."""
    if value is None or value.strip() == "*":
        return None
    found = TAG.fullmatch(value.strip())
    if found is None:
        raise InvalidRequest('If-Match must be one version as in ETag, for instance "7"')
    return int(found[1])


def preference(values: str | None, usual: float, longest: float) -> Preference:
    """Returns how long to wait: as `Prefer` says, at most `longest`, else as usual.

    With both `wait` and `respond-async` it is `wait` that counts (RFC 7240, section 4.3).
    """
    seconds, applied = usual, dict[str, str]()
    for each in (values or "").split(","):
        name, _, value = each.partition(";")[0].strip().partition("=")
        name, value = name.strip().lower(), value.strip().strip('"')
        if name == "respond-async" and name not in applied:
            seconds = seconds if "wait" in applied else 0.0
            applied[name] = name
        elif name == "wait" and name not in applied and value.isascii() and value.isdecimal():
            seconds = min(float(value[:9]), longest)
            applied[name] = f"wait={seconds:.0f}"
    return Preference(seconds, ", ".join(applied.values()) or None)


def client_of(headers: Mapping[str, str]) -> str:
    """Returns the name that a client gives itself for the log: printable, at most 100 characters."""
    name = headers.get("laneyard-client") or headers.get("user-agent") or "http"
    return "".join(each for each in name if each.isprintable())[:100] or "http"
