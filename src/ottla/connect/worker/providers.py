"""Values that a configuration only refers to: `${file:/etc/secrets.properties:password}`, `${env:PASSWORD}`.

The topic of configurations keeps the reference, and REST shows it; what it stands for is looked up when a connector
starts. Kafka's three providers are known: FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider, under
the names that `config.providers` of the worker gives them, with the limits that Kafka's have: `param.allowed.paths` of
files and folders, `param.allowlist.pattern` of variables. Whoever may create connectors sees what they refer to.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, quote_plus

from ottla.common.errors import OttlaError
from ottla.connect.api import ConnectorFailure
from ottla.connect.api.config import HIDDEN
from ottla.connect.worker.properties import read_properties

REFERENCE = re.compile(r"\$\{([a-zA-Z0-9_.-]+):(?:([^}:]*):)?([^}:]+)\}")
Provider = Callable[[str, str], str | None]
_LOG = logging.getLogger("ottla.connect.providers")
_PATHS, _PATTERN = "allowed.paths", "allowlist.pattern"


def _file(path: str, key: str) -> str | None:
    return read_properties(path).get(key)


def _directory(path: str, key: str) -> str | None:
    file = Path(path, key)
    # A key is the name of a file there, and no way out of it.
    return file.read_text() if file.name == key and file.is_file() else None


def _environment(path: str, key: str) -> str | None:
    return os.environ.get(key)


_PREFIX = "org.apache.kafka.common.config.provider."
# With the parameter that limits it.
_KNOWN: Mapping[str, tuple[Provider, str]] = {
    f"{_PREFIX}FileConfigProvider": (_file, _PATHS),
    f"{_PREFIX}DirectoryConfigProvider": (_directory, _PATHS),
    f"{_PREFIX}EnvVarConfigProvider": (_environment, _PATTERN),
}


def providers_of(given: Mapping[str, str]) -> dict[str, Provider]:
    """From a worker's properties. Raises OttlaError."""
    found = {}
    for name in filter(None, (part.strip() for part in given.get("config.providers", "").split(","))):
        kind = given.get(f"config.providers.{name}.class", "")
        if kind not in _KNOWN:
            raise OttlaError(
                f"config.providers.{name}.class is '{kind}', which is not known here: there are {', '.join(_KNOWN)}."
            )
        provider, limit = _KNOWN[kind]
        prefix = f"config.providers.{name}.param."
        if idle := sorted(one for one in given if one.startswith(prefix) and one != prefix + limit):
            _LOG.warning("these settings have no effect here: %s", ", ".join(idle))
        text = given.get(prefix + limit, "").strip()
        found[name] = _limited(provider, limit, prefix + limit, text) if text else provider
    return found


def _limited(provider: Provider, limit: str, setting: str, text: str) -> Provider:
    is_allowed = _by_paths(setting, text) if limit == _PATHS else _by_pattern(setting, text)

    def look_up(path: str, key: str) -> str | None:
        if not is_allowed(path, key):
            raise OttlaError(f"the worker does not allow it, see its {setting}.")
        return provider(path, key)

    return look_up


def _by_paths(setting: str, text: str) -> Callable[[str, str], bool]:
    allowed = [Path(part.strip()) for part in text.split(",") if part.strip()]
    for one in allowed:
        if not one.is_absolute() or not one.exists():
            raise OttlaError(f"{setting} has '{one}', expected absolute paths that are there, separated by commas.")

    # As Kafka's: by the path as it is written, without its `..`; links may lead anywhere.
    return lambda path, _: any(Path(os.path.normpath(path)).is_relative_to(os.path.normpath(one)) for one in allowed)


def _by_pattern(setting: str, text: str) -> Callable[[str, str], bool]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise OttlaError(f"{setting} is '{text}', which is no regular expression: {error}.") from None
    return lambda _, key: pattern.fullmatch(key) is not None


class Resolved(NamedTuple):
    """A configuration with what its references stand for."""

    config: dict[str, str]
    # What is nobody's to see, and what is shown in its place; the longest first.
    secrets: tuple[tuple[str, str], ...]

    def hidden(self, text: str) -> str:
        for value, shown in self.secrets:
            text = text.replace(value, shown)
        return text


def resolved(config: Mapping[str, str], providers: Mapping[str, Provider], passwords: Collection[str] = ()) -> Resolved:
    """`passwords`: settings whose values are secrets themselves. Raises ConnectorFailure. What is no reference of a
    known provider stays as it is: `${topic}` means something to some connectors."""
    secrets: dict[str, str] = {}

    def hide(value: str, shown: str) -> None:
        # As it is, and as addresses have it.
        for each in (value, value.strip(), quote(value.strip(), safe=""), quote_plus(value.strip())):
            if each:
                secrets.setdefault(each, shown)

    def look_up(setting: str, match: re.Match[str]) -> str:
        provider = providers.get(match[1])
        if provider is None:
            return match[0]
        try:
            value = provider(match[2] or "", match[3])
        except (OttlaError, OSError) as error:
            raise ConnectorFailure(f"{setting} refers to {match[0]}, which cannot be looked up: {error}") from None
        if value is None:
            raise ConnectorFailure(f"{setting} refers to {match[0]}, and there is no such value.")
        hide(value, match[0])
        return value

    found = {
        name: REFERENCE.sub(lambda match, name=name: look_up(name, match), value)  # type: ignore[misc]
        for name, value in config.items()
    }
    for name in passwords:
        if name in found:
            hide(found[name], HIDDEN)
    ordered = sorted(secrets.items(), key=lambda pair: len(pair[0]), reverse=True)
    return Resolved(found, tuple(ordered))
