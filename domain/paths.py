"""How a path of any bytes is written down as text, and read back the same.

A path is bytes to the kernel and text in a JSON log. Packed text is the path itself where it is UTF-8;
every other byte, and the percent sign, is written as `%XX`. Packing is one-to-one.
"""

import re

_ESCAPED = re.compile(rb"%([0-9A-Fa-f]{2})")


def pack(path: bytes) -> str:
    """Returns the text form of a path."""
    escaped = path.replace(b"%", b"%25")
    if escaped.isascii():  # nearly every path, and there are many
        return escaped.decode("ascii")
    text = escaped.decode("utf-8", "surrogateescape")
    return "".join(f"%{ord(c) - 0xDC00:02X}" if "\udc80" <= c <= "\udcff" else c for c in text)


def unpack(text: str) -> bytes:
    """Returns the path that was packed."""
    if "%" not in text:
        return text.encode("utf-8")
    return _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), text.encode("utf-8"))


def display(text: str) -> str:
    """Returns a packed path as people read it: bytes that are not UTF-8 become U+FFFD."""
    return unpack(text).decode("utf-8", "replace")


def is_text(text: str) -> bool:
    """Tells whether the packed path is UTF-8, so that its display form is exact."""
    try:
        unpack(text).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def join(parent: str, name: str) -> str:
    """Returns the packed path of an entry below a packed directory."""
    return f"{parent.rstrip('/')}/{name}"


def is_inside(path: str, ancestor: str) -> bool:
    """Tells whether a packed relative path is the ancestor or lies below it."""
    stem = ancestor.rstrip("/")
    return path == stem or path.startswith(stem + "/")
