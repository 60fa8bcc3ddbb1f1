"""Everything that the wiring needs, from the environment and from configuration files."""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from adapters.config import ignored, place
from adapters.config.ignored import IgnoredSettings, RepositoryIgnored
from adapters.config.service import ServiceSettings
from adapters.files.durable import read_file
from adapters.files.errors import FilesError
from domain.errors import Refusal

T = TypeVar("T", bound=msgspec.Struct)

LIMIT = 1 << 20  # bytes of a configuration file
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(r"(\d+)\s*([smhdw])")


@dataclass(eq=False)
class InvalidConfiguration(Refusal):
    """A configuration file is no file, has a key that is unknown, or a value that does not fit."""

    path: str
    why: str
    code = "invalid_configuration"
    text = "{path}: {why}."
    remedy = "The keys are described in docs/configuration.md."
    status = 409


class Quarantine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long a removed lane rests before a sweep may reap it: `90s`, `30m`, `12h`, `7d`, `2w`."""

    retention: str = "7d"


class GitSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The git program, and the seconds that a reading and a writing command may take."""

    program: str = "git"
    read_timeout: float = 60.0
    write_timeout: float = 600.0


class Lock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The seconds to wait for another process that uses the state directory."""

    wait: float = 10.0


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `<state>/config.toml` may say."""

    quarantine: Quarantine = Quarantine()
    git: GitSettings = GitSettings()
    lock: Lock = Lock()
    service: ServiceSettings = ServiceSettings()
    ignored: IgnoredSettings = IgnoredSettings()


class RepositoryConfiguration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `<root>/.laneyard.toml` may say: it can make us more careful than the user's file does."""

    quarantine: Quarantine | None = None
    ignored: RepositoryIgnored | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the wiring needs."""

    state_dir: bytes
    environment: dict[str, str]
    client: str
    configuration: Configuration

    @property
    def store(self) -> bytes:
        """Returns the path of the log."""
        return os.path.join(self.state_dir, b"journal.db")


def load(state_dir: str | None, environment: Mapping[str, str] | None = None) -> Settings:
    """Returns the settings of this process. Raises InvalidConfiguration, OSError."""
    values = place.environment() if environment is None else dict(environment)
    directory = place.state_directory(state_dir, values)
    return Settings(
        state_dir=directory,
        environment=values,
        client=place.client(values),
        configuration=_read(os.path.join(directory, b"config.toml"), Configuration) or Configuration(),
    )


def repository_configuration(root: bytes) -> RepositoryConfiguration:
    """Returns what a repository's own file says. Raises InvalidConfiguration, OSError."""
    path = os.path.join(root, b".laneyard.toml")
    return _read(path, RepositoryConfiguration) or RepositoryConfiguration()


def retention(settings: Configuration, repository: RepositoryConfiguration) -> int:
    """Returns the seconds that a removed lane rests: its repository can only lengthen that."""
    own = seconds(settings.quarantine.retention)
    return own if repository.quarantine is None else max(own, seconds(repository.quarantine.retention))


def seconds(duration: str) -> int:
    """Returns a duration such as `7d` in seconds. Raises ValueError."""
    found = _DURATION.fullmatch(duration.strip())
    if found is None:
        raise ValueError(f"{duration!r} is not a duration such as 90s, 30m, 12h, 7d or 2w")
    return int(found[1]) * _UNITS[found[2]]


def _read(path: bytes, kind: type[T]) -> T | None:
    try:
        # A link is followed, as to a file that is kept elsewhere; a pipe there would never come to its end.
        data = read_file(os.path.realpath(path), LIMIT).decode("utf-8")
        found = msgspec.convert(tomllib.loads(data), kind)
        _check(found)
    except FileNotFoundError:
        return None
    except FilesError as error:
        raise InvalidConfiguration(os.fsdecode(path), error.summary) from error
    except (ValueError, msgspec.ValidationError) as error:
        raise InvalidConfiguration(os.fsdecode(path), str(error)) from error
    return found


def _check(found: msgspec.Struct) -> None:
    quarantine = getattr(found, "quarantine", None)
    if quarantine is not None:
        seconds(quarantine.retention)
    said = getattr(found, "ignored", None)
    if said is not None:
        ignored.check(said)
