"""Values that a configuration only refers to: `${file:/etc/secrets.properties:password}`, `${env:PASSWORD}`.

The topic of configurations keeps the reference, and REST shows it; what it stands for is looked up when a connector
starts. Kafka's three providers are known: FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider, under
the names that `config.providers` of the worker gives them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from ottla.common.errors import OttlaError
from ottla.connect.api import ConnectorFailure
from ottla.connect.worker.properties import read_properties

REFERENCE = re.compile(r"\$\{([a-zA-Z0-9_.-]+):(?:([^}:]*):)?([^}:]+)\}")
Provider = Callable[[str, str], str | None]


def _file(path: str, key: str) -> str | None:
    return read_properties(path).get(key)


def _directory(path: str, key: str) -> str | None:
    file = Path(path, key)
    # A key is the name of a file there, and no way out of it.
    return file.read_text() if file.name == key and file.is_file() else None


def _environment(path: str, key: str) -> str | None:
    return os.environ.get(key)


_PREFIX = "org.apache.kafka.common.config.provider."
_KNOWN: Mapping[str, Provider] = {
    f"{_PREFIX}FileConfigProvider": _file,
    f"{_PREFIX}DirectoryConfigProvider": _directory,
    f"{_PREFIX}EnvVarConfigProvider": _environment,
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
        found[name] = _KNOWN[kind]
    return found


def resolved(config: Mapping[str, str], providers: Mapping[str, Provider]) -> dict[str, str]:
    """With what references stand for. Raises ConnectorFailure. What is no reference of a known provider stays as it is:
    `${topic}` means something to some connectors."""

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
        return value

    return {
        name: REFERENCE.sub(lambda match, name=name: look_up(name, match), value)  # type: ignore[misc]
        for name, value in config.items()
    }
