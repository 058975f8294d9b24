"""What messages are made of, by version: `messages.json`, and a plain class for each message."""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Sequence
from functools import cache
from typing import Any

ZERO_UUID = bytes(16)
# Kinds of a fixed size: the letter of `struct`, and bytes.
FIXED = {
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "bool": ("?", 1),
}


class Message:
    """Base of all message classes and of the structs inside them."""

    __slots__: tuple[str, ...] = ()

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({inner})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_same(getattr(self, name), getattr(other, name)) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]


def _same(a: object, b: object) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return a == b


# --- the definitions -------------------------------------------------------------------------------------------


@cache
def _lines() -> dict[str, str]:
    # Through the loader: on Spark's executors the package is a zip file.
    raw = pkgutil.get_data(__package__, "messages.json")
    assert raw is not None
    text = raw.decode()
    return {line[9 : line.index('"', 9)]: line for line in text.splitlines()}


@cache
def definition(name: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(_lines()[name])
    except KeyError:
        raise KeyError(f"no message is called {name}") from None
    return found


def message_names() -> Sequence[str]:
    return list(_lines())


def version_range(text: str | None) -> tuple[int, int]:
    """'3+' -> (3, 32767), '0-4' -> (0, 4), '5' -> (5, 5), 'none' -> an empty range."""
    if text is None or text == "none":
        return (1, 0)
    if text.endswith("+"):
        return (int(text[:-1]), 32767)
    low, _, high = text.partition("-")
    return (int(low), int(high or low))


def is_within(version: int, text: str | None) -> bool:
    low, high = version_range(text)
    return low <= version <= high


def is_array(kind: str) -> bool:
    return kind.startswith("[]")


def default_of(field: dict[str, Any]) -> Any:
    kind = field["type"]
    given = field.get("default")
    if given == "null":
        return None
    if is_array(kind):
        return ()
    if kind == "string":
        return given or ""
    if kind in ("bytes", "records"):
        return b""
    if kind == "uuid":
        return ZERO_UUID
    if kind == "bool":
        return given in (True, "true")
    if kind == "float64":
        return float(given or 0)
    if kind in FIXED:
        return int(str(given or 0), 0)
    return None  # a struct; its default is made by the class


# --- the classes -----------------------------------------------------------------------------------------------


def _make_class(name: str, fields: list[dict[str, Any]], structs: dict[str, type[Message]]) -> type[Message]:
    arguments, body, scope = [], [], dict(structs)
    for field in fields:
        attribute = field["name"]
        scope[f"_d_{attribute}"] = default_of(field)
        arguments.append(f"{attribute}=_d_{attribute}")
        kind = field["type"]
        if kind in structs and not is_array(kind) and field.get("default") != "null":
            nullable = "nullable" in field
            body.append(
                f"    self.{attribute} = {attribute}"
                + ("" if nullable else f" if {attribute} is not None else {kind}()")
            )
        else:
            body.append(f"    self.{attribute} = {attribute}")
    source = f"def __init__(self{', *, ' + ', '.join(arguments) if arguments else ''}):\n"
    source += "\n".join(body or ["    pass"])
    exec(compile(source, f"<{name}>", "exec"), scope)
    return type(
        name,
        (Message,),
        {
            "__slots__": tuple(field["name"] for field in fields),
            "__init__": scope["__init__"],
            "__module__": __name__,
        },
    )


@cache
def message_class(name: str) -> type[Message]:
    """The class of a message; the structs inside it are its attributes."""
    structs: dict[str, type[Message]] = {}

    def visit(fields: list[dict[str, Any]]) -> None:
        for field in fields:
            if "fields" in field:
                visit(field["fields"])
                kind = field["type"].removeprefix("[]")
                if kind not in structs:
                    structs[kind] = _make_class(kind, field["fields"], structs)

    fields = definition(name)["fields"]
    visit(fields)
    made = _make_class(name, fields, structs)
    for kind, struct_class in structs.items():
        setattr(made, kind, struct_class)
    return made
