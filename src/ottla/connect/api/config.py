"""Settings of a connector, transform or converter: typed, documented, validated, told as Kafka Connect tells them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ottla.common.errors import OttlaError


class ConfigType(StrEnum):
    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"


class Importance(StrEnum):
    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class _NoDefault:
    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT = _NoDefault()
# In place of a password.
HIDDEN = "[hidden]"
_RANGES = {ConfigType.SHORT: 15, ConfigType.INT: 31, ConfigType.LONG: 63}


class ConfigInvalid(OttlaError):
    """Some settings are wrong; the sentence names each of them."""


@dataclass(frozen=True)
class ConfigKey:
    name: str
    type: ConfigType
    doc: str
    # NO_DEFAULT: it must be set. The default has the type of a parsed value.
    default: Any = NO_DEFAULT
    importance: Importance = Importance.MEDIUM
    # Given the parsed value; returns what is wrong with it, or None.
    check: Callable[[Any], str | None] | None = None
    recommended: Sequence[str] = ()
    group: str | None = None
    display_name: str | None = None
    # How a form shows it: as Kafka says it (NONE, SHORT, MEDIUM, LONG), and its place in the group.
    width: str = "NONE"
    order: int = -1

    @property
    def required(self) -> bool:
        return self.default is NO_DEFAULT

    def parse(self, text: str | None) -> Any:
        """Raises ValueError with what is wrong."""
        if text is None:
            if self.required:
                raise ValueError(f'Missing required configuration "{self.name}" which has no default value.')
            return self.default
        value = _parsed(self.type, text.strip() if self.type is not ConfigType.PASSWORD else text, self.name)
        if self.check is not None and (problem := self.check(value)) is not None:
            shown = HIDDEN if self.type is ConfigType.PASSWORD else text
            raise ValueError(f"Invalid value {shown} for configuration {self.name}: {problem}")
        return value


@dataclass(frozen=True)
class ConfigValue:
    key: ConfigKey
    text: str | None
    errors: tuple[str, ...] = ()
    visible: bool = True


@dataclass(frozen=True)
class ConfigDef:
    keys: Sequence[ConfigKey] = field(default_factory=tuple)

    @property
    def passwords(self) -> frozenset[str]:
        return frozenset(key.name for key in self.keys if key.type is ConfigType.PASSWORD)

    def __add__(self, other: ConfigDef) -> ConfigDef:
        return ConfigDef((*self.keys, *other.keys))

    def validate(self, config: Mapping[str, str]) -> list[ConfigValue]:
        values = []
        for key in self.keys:
            text = config.get(key.name)
            try:
                key.parse(text)
                errors: tuple[str, ...] = ()
            except ValueError as error:
                errors = (str(error),)
            values.append(ConfigValue(key, text, errors))
        return values

    def parse(self, config: Mapping[str, str]) -> dict[str, Any]:
        """Values by name. Raises ConfigInvalid that names every setting that is wrong."""
        errors = [error for value in self.validate(config) for error in value.errors]
        if errors:
            raise ConfigInvalid(" ".join(errors))
        return {key.name: key.parse(config.get(key.name)) for key in self.keys}


def _parsed(kind: ConfigType, text: str, name: str) -> Any:
    def wrong(what: str) -> ValueError:
        return ValueError(f"Invalid value {text} for configuration {name}: {what}")

    if kind is ConfigType.BOOLEAN:
        if text.lower() not in ("true", "false"):
            raise wrong("Expected value to be either true or false")
        return text.lower() == "true"
    if kind in _RANGES:
        if not re.fullmatch(r"[+-]?[0-9]+", text) or not -(1 << _RANGES[kind]) <= int(text) < 1 << _RANGES[kind]:
            raise wrong(f"Not a number of type {kind}")
        return int(text)
    if kind is ConfigType.DOUBLE:
        try:
            return float(text)
        except ValueError:
            raise wrong("Not a number of type DOUBLE") from None
    if kind is ConfigType.LIST:
        return [part.strip() for part in text.split(",")] if text else []
    return text
