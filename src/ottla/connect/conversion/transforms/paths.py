"""The path of a field: its name (V1), or names of levels with dots between them (V2)."""

from __future__ import annotations

from typing import Any

from ottla.connect.api.config import ConfigInvalid, ConfigType, Importance
from ottla.connect.api.data import Field, Schema, SchemaType
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.schemas import field_value
from ottla.connect.conversion.transforms.base import key, require_map


def _version(text: str) -> str | None:
    return None if text.upper() in ("V1", "V2") else "it is V1 or V2."


SYNTAX_VERSION = key(
    "field.syntax.version",
    ConfigType.STRING,
    "V1: the name of a field of the record. V2: names of levels with dots between them; a name that has dots itself "
    "stands in backticks.",
    "V1",
    Importance.HIGH,
    _version,
    ("V1", "V2"),
)


class FieldPath:
    def __init__(self, text: str, version: str) -> None:
        """Raises ConfigInvalid."""
        self.text = text
        self.steps = _steps(text) if version.upper() == "V2" else [text]

    def field(self, schema: Schema) -> Field | None:
        found = None
        for step in self.steps:
            if schema.type is not SchemaType.STRUCT:
                raise DataError(f"'{self.text}' leads through a value that is no struct.")
            found = next((each for each in schema.fields if each.name == step), None)
            if found is None:
                return None
            schema = found.schema
        return found

    def in_struct(self, schema: Schema, value: dict[str, Any], use_default: bool) -> Any:
        """A default counts on the way, whatever is set."""
        for number, step in enumerate(self.steps):
            field = next((each for each in schema.fields if each.name == step), None)
            if field is None:
                return None
            is_last = number == len(self.steps) - 1
            found = field_value(value, field, use_default or not is_last)
            if is_last or found is None:
                return found
            schema, value = field.schema, found
        return None

    def in_map(self, value: dict[str, Any]) -> Any:
        found: Any = value
        for step in self.steps[:-1]:
            found = found.get(step)
            if found is None:
                return None
            found = require_map(found, f"the path '{self.text}'")
        return found.get(self.steps[-1])


def _steps(path: str) -> list[str]:
    found: list[str] = []
    at = 0
    while at < len(path):
        if path[at] != "`":
            end = path.find(".", at)
            found.append(path[at : end if end >= 0 else len(path)])
            at = end + 1 if end >= 0 else len(path)
        else:
            name, at = _in_backticks(path, at)
            found.append(name)
    if path.endswith("."):
        found.append("")
    return found


def _in_backticks(path: str, begin: int) -> tuple[str, int]:
    """A backtick ends the name before a dot and at the end, unless a backslash stands before it."""
    name = ""
    start = at = begin + 1
    while True:
        at = path.find("`", at)
        if at < 0 or (at >= len(path) - 1 and path[at - 1] == "\\"):
            raise ConfigInvalid(
                f"in the path '{path}' the backtick at {begin} has no partner: write a backslash before one that "
                "belongs to a name."
            )
        if at >= len(path) - 1:
            return name + path[start:at], at + 1
        if path[at + 1] != ".":
            at += 1
        elif path[at - 1] == "\\":
            name += path[start : at - 1] + "`"
            at += 1
            start = at
        else:
            return name + path[start:at], at + 2
