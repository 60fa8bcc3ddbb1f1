"""What names and patterns say of an ignored path, before anything of it is looked at."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from adapters.ignored.patterns import Patterns

if TYPE_CHECKING:
    from adapters.ignored.patterns import Pattern

# What no build makes again, by the names of files: secrets, databases, the state of infrastructure.
PRECIOUS = (
    *(".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "credentials.json", ".netrc", ".npmrc", ".pypirc"),
    *(".envrc", ".git-credentials"),
    *("*.sqlite", "*.sqlite3", "*.db", "*.mdb", "*.sqlite-*", "*.sqlite3-*", "*.db-*"),
    *("*.tfstate", "*.tfstate.*"),
)
EXAMPLES = (".env.example", ".env.sample", ".env.template", "*.pub")
# A name is all that is looked at: the slash spares the search for where it begins.
NAMES = Patterns(
    (*(f"/{each}" for each in PRECIOUS), *(f"!/{each}" for each in EXAMPLES)), flags=re.IGNORECASE
)
# Of CPython, PyPy and GraalPy; what rewrites sources before they run adds its own name and version.
INTERPRETER = rb"(?:cpython-|pypy|graalpy)[0-9]{2,4}"
BYTECODE = re.compile(
    rb"(?P<name>.+)\." + INTERPRETER + rb"(?:\.opt-[12]|-[a-z]+-[0-9]+(?:\.[0-9a-z]+)*)?\.pyc", re.DOTALL
)
CACHE = b"__pycache__"
FLAGS = {bytes((each, 0, 0, 0)) for each in (0, 1, 3)}
HEADER = 16  # bytes, https://peps.python.org/pep-0552/


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration says of ignored paths, and which ones a request names (those are told singly).

    `precious` is the user's, and may take back a built-in name; `added` is a repository's, and may not.
    `rebuildable` is the user's, `trusted` what a repository that the user trusts adds to it, `untrusted` what
    another one would. With `everything`, a request asks for all that is not rebuildable.
    """

    rebuildable: Patterns = Patterns()
    trusted: Patterns = Patterns()
    precious: Patterns = Patterns()
    added: Patterns = Patterns()
    untrusted: Patterns = Patterns()
    wanted: Patterns = Patterns()
    everything: bool = False

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
        found = self._of_rebuildable(path, directory=directory)
        return None if found is None or found.negated else f"pattern {found.text} of the configuration"

    def taken_back(self, path: bytes, *, directory: bool) -> str | None:
        """Returns why a path is not to be let go, if a configured pattern says that it is not rebuildable."""
        if not self.takes_back:
            return None
        found = self._of_rebuildable(path, directory=directory)
        return f"pattern {found.text} of the configuration" if found is not None and found.negated else None

    @property
    def takes_back(self) -> bool:
        """Tells whether any pattern does."""
        return self.rebuildable.takes_back or self.trusted.takes_back

    def _of_rebuildable(self, path: bytes, *, directory: bool) -> Pattern | None:
        """Returns the pattern that counts: what the user's list says, no repository's can change."""
        return self.rebuildable.last(path, directory=directory) or self.trusted.last(
            path, directory=directory
        )

    def why_unknown(self, path: bytes, *, directory: bool) -> str:
        """Returns why nothing is known of a path that no rule and no evidence speaks for."""
        found = self.untrusted.match(path, directory=directory)
        if found is None:
            return "nothing says what it is"
        return f"pattern {found.text} of a repository that ignored.trusted does not name"

    def asks_for(self, path: bytes, *, directory: bool) -> bool:
        """Tells whether the request may capture the path."""
        return self.everything or self.wanted.match(path, directory=directory) is not None


def source_name(name: bytes) -> bytes | None:
    """Returns what the source of a file of bytecode is called, or nothing for a name that is none."""
    found = BYTECODE.fullmatch(name)
    return None if found is None else found["name"] + b".py"


def is_bytecode(header: bytes) -> bool:
    """Tells whether a file of bytecode may begin so: magic of some version, known flags."""
    return len(header) == HEADER and header[2:4] == b"\r\n" and header[4:8] in FLAGS
