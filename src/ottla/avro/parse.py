"""Avro's JSON to a schema, with the checks of Java's `Schema.Parser`: names, redefinitions, unions, defaults.

fastavro's parser takes other texts than Java's and forgets how they were written (namespaces, the order of properties),
which the text that a registry keeps depends on; so there is one here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ottla.avro.schema import ABSENT, PRIMITIVES, Field, Name, Schema
from ottla.common.schemas import InvalidSchema, no_constant

DEPTH_MAX = 200
_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SCHEMA_WORDS = frozenset(
    ("doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases", "default")
)
_ENUM_WORDS = _SCHEMA_WORDS
_OTHER_WORDS = _SCHEMA_WORDS - {"default"}
_FIELD_WORDS = frozenset(("default", "doc", "name", "order", "type", "aliases"))
_ORDERS = ("ascending", "descending", "ignore")
_INT_MAX, _LONG_MAX = 2**31 - 1, 2**63 - 1


def parse(text: str, known: Mapping[str, Schema] | None = None, *, checks_defaults: bool = True) -> Schema:
    """`known`: named types that the text may use without a definition. Raises InvalidSchema."""
    return Parser(known or {}, checks_defaults).parse(read_json(text))


def read_json(text: str) -> Any:
    """A text that is one word, such as `string`, is a schema for Java's parser too."""
    if text.strip() in PRIMITIVES:
        return text.strip()
    try:
        return json.loads(text, parse_constant=no_constant)
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply to be read") from None
    except ValueError as error:
        raise InvalidSchema(f"the schema is no JSON: {error}") from None


class Parser:
    def __init__(self, known: Mapping[str, Schema], checks_defaults: bool = True) -> None:
        self.names: dict[str, Schema] = dict(known)
        self.defined: dict[str, Schema] = {}
        self._checks_defaults = checks_defaults
        # Defaults are checked when all names are known: a type may be used before it is complete.
        self._defaults: list[tuple[str, Field]] = []

    def parse(self, tree: Any) -> Schema:
        schema = self._schema(tree, None, 0)
        if self._checks_defaults:
            judge = _Defaults()
            for record, its in self._defaults:
                if not judge.is_valid(its.schema, its.default):
                    shown = json.dumps(its.default, ensure_ascii=False)
                    raise InvalidSchema(
                        f"Invalid default for field {its.name}: {shown} not a {_shown_type(its.schema)} (in {record})"
                    )
        return schema

    def _schema(self, tree: Any, space: str | None, depth: int) -> Schema:
        if depth > DEPTH_MAX:
            raise InvalidSchema(f"the schema is nested deeper than {DEPTH_MAX} levels")
        if isinstance(tree, str):
            return self._named(tree, space)
        if isinstance(tree, list):
            return self._union(tree, space, depth)
        if not isinstance(tree, dict):
            raise InvalidSchema(f"Schema not yet supported: {json.dumps(tree)}")
        kind = tree.get("type")
        if not isinstance(kind, str):
            raise InvalidSchema(f"No type: {_shown(tree)}")
        if kind in PRIMITIVES:
            return Schema(kind, _rest(tree, _OTHER_WORDS))
        if kind in ("record", "error", "enum", "fixed"):
            return self._definition(kind, tree, space, depth)
        if kind == "array" or kind == "map":
            word = "items" if kind == "array" else "values"
            if word not in tree:
                raise InvalidSchema(f"No {word} type: {_shown(tree)}")
            return Schema(kind, _rest(tree, _OTHER_WORDS), items=self._schema(tree[word], space, depth + 1))
        return self._named(kind, space)

    def _named(self, word: str, space: str | None) -> Schema:
        if word in PRIMITIVES:
            return Schema(word)
        full = word if "." in word or not space else f"{space}.{word}"
        found = self.names.get(full)
        if found is None and "." not in word:
            found = self.names.get(word)
        if found is None:
            raise InvalidSchema(f'Undefined name: "{word}"')
        return found

    def _union(self, tree: list[Any], space: str | None, depth: int) -> Schema:
        branches = [self._schema(branch, space, depth + 1) for branch in tree]
        seen: set[str] = set()
        for branch in branches:
            if branch.type == "union":
                raise InvalidSchema(f"Nested union: {_shown(tree)}")
            if branch.full_name in seen:
                raise InvalidSchema(f"Duplicate in union: {branch.full_name}")
            seen.add(branch.full_name)
        return Schema("union", branches=branches)

    def _definition(self, kind: str, tree: dict[str, Any], space: str | None, depth: int) -> Schema:
        name = _name_of(tree, space)
        schema = Schema(kind, _rest(tree, _ENUM_WORDS if kind == "enum" else _OTHER_WORDS), name=name)
        schema.doc = tree["doc"] if isinstance(tree.get("doc"), str) else None
        schema.aliases = tuple(_full_name(alias, name.space) for alias in _texts(tree, "aliases"))
        if kind == "enum":
            self._symbols(schema, tree)
        elif kind == "fixed":
            size = tree.get("size")
            if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= _INT_MAX:
                raise InvalidSchema(f"Invalid or no size: {_shown(tree)}")
            schema.size = size
        if name.full in self.names or name.full in PRIMITIVES:
            raise InvalidSchema(f"Can't redefine: {name.full}")
        self.names[name.full] = self.defined[name.full] = schema
        if schema.is_record:
            self._fields(schema, tree, depth)
        return schema

    def _symbols(self, schema: Schema, tree: dict[str, Any]) -> None:
        symbols = tree.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise InvalidSchema(f"Enum has no symbols: {_shown(tree)}")
        for symbol in symbols:
            _check_simple(symbol)
        if len(set(symbols)) < len(symbols):
            duplicate = Counter(symbols).most_common(1)[0][0]
            raise InvalidSchema(f"Duplicate enum symbol: {duplicate}")
        schema.symbols = symbols
        default = tree.get("default")
        if default is not None:
            if default not in symbols:
                raise InvalidSchema(f"The Enum Default: {default} is not in the enum symbol set: {symbols}")
            schema.enum_default = default

    def _fields(self, schema: Schema, tree: dict[str, Any], depth: int) -> None:
        assert schema.name is not None
        trees = tree.get("fields")
        if not isinstance(trees, list):
            raise InvalidSchema(f"Record has no fields: {_shown(tree)}")
        seen: set[str] = set()
        for one in trees:
            its = self._field(one, schema.name, depth)
            if its.name in seen:
                raise InvalidSchema(f"Duplicate field {its.name} in record {schema.full_name}")
            seen.add(its.name)
            schema.fields.append(its)

    def _field(self, tree: Any, record: Name, depth: int) -> Field:
        if not isinstance(tree, dict) or not isinstance(tree.get("name"), str):
            raise InvalidSchema(f"No field name: {_shown(tree)}")
        if "type" not in tree:
            raise InvalidSchema(f"No field type: {_shown(tree)}")
        _check_simple(tree["name"])
        order = str(tree.get("order", "ascending")).lower()
        if order not in _ORDERS:
            raise InvalidSchema(f"the order of field {tree['name']} is one of {', '.join(_ORDERS)}, not {order}")
        its = Field(
            tree["name"],
            self._schema(tree["type"], record.space, depth + 1),
            doc=tree["doc"] if isinstance(tree.get("doc"), str) else None,
            default=tree.get("default", ABSENT),
            order=order,
            aliases=tuple(_texts(tree, "aliases")),
            properties=_rest(tree, _FIELD_WORDS),
        )
        if its.schema.type in ("float", "double") and isinstance(its.default, str):
            its.default = _number_of_text(its.default)
        if its.has_default:
            self._defaults.append((record.full, its))
        return its


def is_valid_default(schema: Schema, value: Any) -> bool:
    """As Java 1.12 judges: the default of a union may be one of any of its branches."""
    return _Defaults().is_valid(schema, value)


class _Defaults:
    """Remembers what it has judged: a value may be tried by many branches, each time with all below it."""

    def __init__(self) -> None:
        # With the value, so that no other one gets its id.
        self._judged: dict[tuple[int, int], tuple[bool, Any]] = {}
        self._symbols: dict[int, frozenset[str]] = {}

    def is_valid(self, schema: Schema, value: Any) -> bool:
        if schema.type != "union" and not schema.is_record:
            return self._is_valid(schema, value)
        pair = (id(schema), id(value))
        if pair not in self._judged:
            self._judged[pair] = self._is_valid(schema, value), value
        return self._judged[pair][0]

    def _is_valid(self, schema: Schema, value: Any) -> bool:
        kind, is_number = schema.type, isinstance(value, int) and not isinstance(value, bool)
        if kind == "null":
            return value is None
        if kind == "boolean":
            return isinstance(value, bool)
        if kind in ("string", "bytes", "fixed"):
            return isinstance(value, str)
        if kind == "enum":
            return isinstance(value, str) and (schema.enum_default is not None or value in self._symbols_of(schema))
        if kind == "int":
            return is_number and -_INT_MAX - 1 <= value <= _INT_MAX
        if kind == "long":
            return is_number and -_LONG_MAX - 1 <= value <= _LONG_MAX
        if kind in ("float", "double"):
            return is_number or isinstance(value, float)
        if kind == "array":
            return isinstance(value, list) and all(self.is_valid(schema.element(), one) for one in value)
        if kind == "map":
            return isinstance(value, dict) and all(self.is_valid(schema.element(), one) for one in value.values())
        if kind == "union":
            return any(self.is_valid(branch, value) for branch in schema.branches)
        return isinstance(value, dict) and all(
            self.is_valid(its.schema, value[its.name]) if its.name in value else its.has_default
            for its in schema.fields
        )

    def _symbols_of(self, schema: Schema) -> frozenset[str]:
        if id(schema) not in self._symbols:
            self._symbols[id(schema)] = frozenset(schema.symbols)
        return self._symbols[id(schema)]


def _number_of_text(text: str) -> Any:
    """Java reads "NaN" and "Infinity" as defaults of floats; any other text stays one, which is no number."""
    try:
        return float(text)
    except ValueError:
        return text


def _name_of(tree: dict[str, Any], space: str | None) -> Name:
    text = tree.get("name")
    if not isinstance(text, str):
        raise InvalidSchema(f"No name in schema: {_shown(tree)}")
    given = tree.get("namespace", space)
    name = _full_name(text, given if isinstance(given, str) else space)
    for part in (*(name.space.split(".") if name.space else ()), name.simple):
        _check_simple(part)
    return name


def _full_name(text: str, space: str | None) -> Name:
    before, dot, simple = text.rpartition(".")
    return Name(before or None, simple) if dot else Name(space or None, text)


def _check_simple(name: str) -> None:
    if not name:
        raise InvalidSchema("Empty name")
    if not _SIMPLE.fullmatch(name):
        what = "initial character" if not re.match(r"[A-Za-z_]", name) else "character in"
        raise InvalidSchema(f"Illegal {what}: {name}")


def _texts(tree: dict[str, Any], word: str) -> list[str]:
    listed = tree.get(word)
    if listed is None:
        return []
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise InvalidSchema(f"{word} not an array of names: {_shown(tree)}")
    return list(dict.fromkeys(listed))


def _rest(tree: dict[str, Any], words: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in tree.items() if name not in words}


def _shown(tree: Any) -> str:
    text = json.dumps(tree, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _shown_type(schema: Schema) -> str:
    return schema.full_name if schema.name is not None else f'"{schema.type}"'
