"""What names and patterns say of an ignored path, before anything of it is looked at."""

from __future__ import annotations

import re

import msgspec

from adapters.ignored.patterns import Patterns

# What no build makes again, by the names of files: secrets, databases, the state of infrastructure.
PRECIOUS = (
    *(".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "credentials.json", ".netrc", ".npmrc", ".pypirc"),
    *("*.sqlite", "*.sqlite3", "*.db", "*.mdb", "*.sqlite-*", "*.sqlite3-*", "*.db-*"),
    *("*.tfstate", "*.tfstate.*"),
)
EXAMPLES = (".env.example", ".env.sample", ".env.template", "*.pub")
# A name is all that is looked at: the slash spares the search for where it begins.
NAMES = Patterns(
    (*(f"/{each}" for each in PRECIOUS), *(f"!/{each}" for each in EXAMPLES)), flags=re.IGNORECASE
)
BYTECODE = re.compile(rb"(?P<name>.+?)\.[a-z]+-?[0-9]+(?:[.-][A-Za-z0-9.+-]+)?\.pyc")
CACHE = b"__pycache__"


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration says of ignored paths, and which ones a request names (those are told singly).

    `precious` is the user's, and may take back a built-in name; `added` is a repository's, and may not.
    `untrusted` is what a repository would declare rebuildable, if the user let it.
    """

    rebuildable: Patterns = Patterns()
    precious: Patterns = Patterns()
    added: Patterns = Patterns()
    untrusted: Patterns = Patterns()
    wanted: Patterns = Patterns()

    def precious_by_pattern(self, path: bytes, *, directory: bool) -> str | None:
        """Returns why a path is precious, if a configured pattern says so."""
        for patterns in (self.precious, self.added):
            if patterns and (found := patterns.match(path, directory=directory)) is not None:
                return f"pattern {found.text} of the configuration"
        return None

    def precious_by_name(self, path: bytes) -> str | None:
        """Returns why a file is precious, if its name says so and the user does not take that back."""
        found = NAMES.match(path.rpartition(b"/")[2], directory=False)
        if found is None or (self.precious and self.precious.last(path, directory=False) is not None):
            return None
        return f"named {found.text[1:]}"

    def made_again(self, path: bytes, *, directory: bool) -> str | None:
        """Returns why a path is rebuildable, if a configured pattern says so."""
        found = self.rebuildable.match(path, directory=directory)
        return None if found is None else f"pattern {found.text} of the configuration"

    def why_unknown(self, path: bytes, *, directory: bool) -> str:
        """Returns why nothing is known of a path that no rule and no evidence speaks for."""
        found = self.untrusted.match(path, directory=directory)
        if found is None:
            return "nothing says what it is"
        return f"pattern {found.text} of a repository that ignored.trusted does not name"


def source_names(name: bytes) -> list[bytes]:
    """Returns what the source of a file of bytecode may be called; empty for a file that is none."""
    if BYTECODE.fullmatch(name) is None:
        return []
    parts = name.split(b".")
    return [b".".join(parts[:end]) + b".py" for end in range(1, len(parts) - 1)]
