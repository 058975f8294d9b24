"""Named clusters: `--profile prod` takes its settings from ~/.config/ottla/profiles.toml.

    [profiles.prod]
    bootstrap.servers = "kafka-1:9092,kafka-2:9092"
    security.protocol = "SASL_SSL"

TOML reads a dotted name as nested tables; they are joined again here, so settings can be written as librdkafka names
them. A name that is also the beginning of another one (`ssl.key` next to `ssl.key.location`) is written in quotes.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from ottla.common.errors import OttlaError


def profiles_path() -> Path:
    """XDG_CONFIG_HOME/ottla/profiles.toml, or what OTTLA_PROFILES names."""
    if named := os.environ.get("OTTLA_PROFILES"):
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "ottla" / "profiles.toml"


def load_profile(name: str) -> dict[str, str]:
    path = profiles_path()
    profiles = read_profiles(path)
    if name not in profiles:
        known = ", ".join(sorted(profiles)) or "none"
        raise OttlaError(f"{path} has no profile '{name}' (it has: {known}): add a section [profiles.{name}].")
    settings = profiles[name]
    if not isinstance(settings, Mapping):
        raise OttlaError(f"profile '{name}' in {path} is not a section: write [profiles.{name}] and settings below.")
    return dict(_flatten(settings))


def read_profiles(path: Path) -> Mapping[str, object]:
    try:
        text = path.read_text()
    except FileNotFoundError:
        raise OttlaError(
            f'there is no {path}: create it with a section [profiles.NAME] and bootstrap.servers = "host:9092".'
        ) from None
    except OSError as error:
        raise OttlaError(f"cannot read {path}: {error.strerror}.") from None
    try:
        profiles = tomllib.loads(text).get("profiles", {})
    except tomllib.TOMLDecodeError as error:
        raise OttlaError(f"{path} is not valid TOML: {error}.") from None
    return profiles if isinstance(profiles, Mapping) else {}


def _flatten(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        elif isinstance(value, bool):
            yield prefix + name, str(value).lower()
        elif isinstance(value, list):
            yield prefix + name, ",".join(map(str, value))
        else:
            yield prefix + name, str(value)
