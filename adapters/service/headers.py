"""What a request's headers ask for: which command it is, on which version, and how long to wait."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from adapters.service.misuse import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY = re.compile(r"[!-~]{1,255}")
TAG = re.compile(r'"(\d{1,18})"')


class Preference(msgspec.Struct, frozen=True):
    """How long to wait for a command's end, in seconds (RFC 7240), and what of it was asked for."""

    seconds: float
    applied: str | None


def command_id(value: str | None) -> str | None:
    """Returns the id in `Idempotency-Key`: 1 to 255 visible ASCII characters. Raises InvalidRequest."""
    if value is not None and not KEY.fullmatch(value):
        raise InvalidRequest("Idempotency-Key must be 1 to 255 visible ASCII characters")
    return value


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
    """Returns how long to wait: as `Prefer` says, at most `longest`, else as usual."""
    for each in (values or "").split(","):
        name, _, value = each.strip().partition("=")
        if name.lower() == "respond-async":
            return Preference(0.0, "respond-async")
        if name.lower() == "wait" and value.strip('"').isdecimal() and len(value) < 10:
            seconds = min(float(value.strip('"')), longest)
            return Preference(seconds, f"wait={seconds:.0f}")
    return Preference(usual, None)


def client_of(headers: Mapping[str, str]) -> str:
    """Returns the name that a client gives itself for the log: printable, at most 100 characters."""
    name = headers.get("laneyard-client") or headers.get("user-agent") or "http"
    return "".join(each for each in name if each.isprintable())[:100] or "http"
