"""Settings: the only reader of the environment and of configuration files. Everybody else is given values.

Names are loaded when they are asked for: whoever needs only `place` does not pay for the rest.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, whose import would cost more than all of `place`
if TYPE_CHECKING:
    from adapters.config.settings import (
        Configuration,
        GitSettings,
        InvalidConfiguration,
        Lock,
        Quarantine,
        RepositoryConfiguration,
        Settings,
        load,
        repository_configuration,
        retention,
        seconds,
    )

__all__ = [
    "Configuration",
    "GitSettings",
    "InvalidConfiguration",
    "Lock",
    "Quarantine",
    "RepositoryConfiguration",
    "Settings",
    "load",
    "repository_configuration",
    "retention",
    "seconds",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Returns what `settings` has under a public name. Raises AttributeError."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # Not `from adapters.config import settings`, which would come back here and ask for `settings`.
        import adapters.config.settings as settings

        return getattr(settings, name)
