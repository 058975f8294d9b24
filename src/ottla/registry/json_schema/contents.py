"""Objects and arrays: what may come and go depends on what else may be there.

A content model is open when anything else is allowed, closed when nothing is, and partially open when there is a schema
for the rest. To add a property to an open model is refused, since earlier records may have anything under its name; to
take one away from a model that is not open is refused, since earlier records have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.common.linear_regex import BadPattern, compile_pattern
from ottla.common.schemas import Difference
from ottla.registry.json_schema.node import Node

if TYPE_CHECKING:
    from ottla.registry.json_schema.compatibility import Comparison

_OBJECT_WORDS = frozenset(
    """properties required additionalProperties patternProperties dependencies dependentRequired dependentSchemas
    propertyNames unevaluatedProperties""".split()  # noqa: SIM905
)
_ARRAY_WORDS = frozenset(("items", "prefixItems", "additionalItems", "uniqueItems", "contains", "unevaluatedItems"))


# --- objects


def compare_object(by: Comparison, reader: Node, writer: Node, path: str) -> list[Difference]:
    if not _OBJECT_WORDS & (reader.words.keys() | writer.words.keys()) or not _may_be(writer, "object"):
        return []
    return [
        *_required(by, reader, writer, path),
        *_properties(by, reader, writer, path),
        *_dependencies(by, reader, writer, path),
        *_rest(by, reader, writer, path, "additionalProperties", "ADDITIONAL_PROPERTIES"),
        *_rest(by, reader, writer, path, "unevaluatedProperties", "UNEVALUATED_PROPERTIES"),
        *_added(by, reader, writer, path, "propertyNames"),
    ]


def _required(by: Comparison, reader: Node, writer: Node, path: str) -> list[Difference]:
    mine, properties = set(reader.get("required") or ()), reader.table("properties")
    found: list[Difference] = []
    known = writer.table("properties").keys() & properties.keys()
    for name in sorted((mine - set(writer.get("required") or ())) & known):
        if not properties[name].has_default:
            what = f"The property '{name}' is required now and has no default"
            found.append(by.refusal("REQUIRED_ATTRIBUTE_ADDED", f"{path}/required/{name}", what))
    return found


def _properties(by: Comparison, reader: Node, writer: Node, path: str) -> list[Difference]:
    mine, theirs = reader.table("properties"), writer.table("properties")
    found: list[Difference] = []
    for name in sorted(mine.keys() | theirs.keys()):
        at = f"{path}/properties/{name}"
        if name in mine and name in theirs:
            found += by.compare(mine[name], theirs[name], at)
        elif name in theirs:
            found += _gone(by, reader, name, theirs[name], at)
        else:
            found += _came(by, reader, writer, name, mine[name], at)
    return found


def _gone(by: Comparison, reader: Node, name: str, before: Node, path: str) -> list[Difference]:
    if _is_open(reader):
        return []
    for rest in _covering(by, reader, name):
        if rest is None and not before.is_false:
            return [by.refusal("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path, f"The property '{name}' is gone")]
        if rest is not None and not by.fits(rest, before, path):
            what = f"The property '{name}' is gone, and what remains does not read it"
            return [by.refusal("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path, what)]
    return []


def _came(by: Comparison, reader: Node, writer: Node, name: str, now: Node, path: str) -> list[Difference]:
    found: list[Difference] = []
    if _is_open(writer):
        if not now.is_empty:
            what = f"The property '{name}' is new where anything was allowed"
            found.append(by.refusal("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", path, what))
        return found
    if any(rest is not None and not by.fits(now, rest, path) for rest in _covering(by, writer, name)):
        what = f"The property '{name}' is new and does not read all that was allowed there"
        found.append(by.refusal("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path, what))
    if name in (reader.get("required") or ()) and not now.has_default:
        what = f"The required property '{name}' is new and has no default"
        found.append(by.refusal("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", path, what))
    return found


def _is_open(node: Node) -> bool:
    rest = node.get("additionalProperties")
    return not node.get("patternProperties") and (rest is None or rest is True or rest == {})


def _covering(by: Comparison, node: Node, name: str) -> list[Node | None]:
    """What a property has to fit that is not named: the schema of the first pattern that matches, else that of the
    rest, None if there may be none. Patterns that RE2 does not know (they look ahead or back) may match or not."""
    found: list[Node | None] = []
    for pattern, schema in (node.get("patternProperties") or {}).items():
        by.effort.spend()
        try:
            if compile_pattern(pattern).search(name.encode()) is None:
                continue
            return [*found, node.child(schema)]
        except BadPattern:
            found.append(node.child(schema))
    rest = node.get("additionalProperties")
    return [*found, None if rest is False else node.child(rest if rest is not None else True)]


def _dependencies(by: Comparison, reader: Node, writer: Node, path: str) -> list[Difference]:
    found: list[Difference] = []
    for name, mine in sorted(_dependent(reader).items()):
        at, theirs = f"{path}/dependencies/{name}", _dependent(writer).get(name)
        if isinstance(mine, list):
            found += _dependency_array(by, set(mine), theirs, at)
        elif theirs is None or isinstance(theirs, list):
            found.append(by.refusal("DEPENDENCY_SCHEMA_ADDED", at, f"The dependency on '{name}' is new"))
        else:
            found += by.compare(reader.child(mine), writer.child(theirs), at)
    return found


def _dependency_array(by: Comparison, mine: set[str], theirs: Any, path: str) -> list[Difference]:
    if not isinstance(theirs, list):
        return [by.refusal("DEPENDENCY_ARRAY_ADDED", path, "The dependency is new")]
    if mine <= set(theirs):
        return []
    rule = "DEPENDENCY_ARRAY_EXTENDED" if mine > set(theirs) else "DEPENDENCY_ARRAY_CHANGED"
    return [by.refusal(rule, path, "The dependency demands more properties")]


def _dependent(node: Node) -> dict[str, Any]:
    """Where the draft does not know a word, anything may be behind it."""
    words = ("dependencies", "dependentRequired", "dependentSchemas")
    tables = [table for word in words if isinstance(table := node.get(word), dict)]
    return {name: its for table in tables for name, its in table.items()}


# --- arrays


def compare_array(by: Comparison, reader: Node, writer: Node, path: str) -> list[Difference]:
    if not _ARRAY_WORDS & (reader.words.keys() | writer.words.keys()) or not _may_be(writer, "array"):
        return []
    found: list[Difference] = []
    if reader.get("uniqueItems") is True and writer.get("uniqueItems") is not True:
        found.append(by.refusal("UNIQUE_ITEMS_ADDED", f"{path}/uniqueItems", "Items have to be unique now"))
    found += _rest(by, reader, writer, path, "unevaluatedItems", "UNEVALUATED_ITEMS")
    mine, theirs = _tuple(reader), _tuple(writer)
    if not mine and not theirs:
        return [*found, *_added(by, reader, writer, path, "items"), *_added(by, reader, writer, path, "contains")]
    for number in range(max(len(mine), len(theirs))):
        at = f"{path}/items/{number}"
        if number < len(mine) and number < len(theirs):
            found += by.compare(mine[number], theirs[number], at)
        elif number < len(theirs):
            found += _item_gone(by, reader, theirs[number], at)
        else:
            found += _item_came(by, writer, mine[number], at)
    return found + _rest(by, reader, writer, path, _rest_word(reader), "ADDITIONAL_ITEMS", _rest_word(writer))


def _tuple(node: Node) -> list[Node]:
    return node.nodes("prefixItems") or node.nodes("items")


def _rest_word(node: Node) -> str:
    return "items" if node.get("prefixItems") else "additionalItems"


def _item_gone(by: Comparison, reader: Node, before: Node, path: str) -> list[Difference]:
    rest = reader.get(_rest_word(reader))
    if rest is False:
        if before.is_false:
            return []
        return [by.refusal("ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL", path, "The item is gone")]
    if rest is None or by.fits(reader.child(rest), before, path):
        return []
    what = "The item is gone, and what remains does not read it"
    return [by.refusal("ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path, what)]


def _item_came(by: Comparison, writer: Node, now: Node, path: str) -> list[Difference]:
    rest = writer.get(_rest_word(writer))
    if rest is False or now.is_empty:
        return []
    if rest is None or rest is True:
        return [by.refusal("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", path, "The item is new where anything was allowed")]
    if by.fits(now, writer.child(rest), path):
        return []
    what = "The item is new and does not read all that was allowed there"
    return [by.refusal("ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path, what)]


# --- both


def _rest(
    by: Comparison, reader: Node, writer: Node, path: str, word: str, rule: str, their_word: str | None = None
) -> list[Difference]:
    """What is allowed beside what is named."""
    mine, theirs, at = reader.get(word), writer.get(their_word or word), f"{path}/{word}"
    if mine is None or mine is True or mine == {} or theirs is False:
        return []
    if mine is False:
        return [by.refusal(f"{rule}_REMOVED", at, "Nothing else is allowed any more")]
    if theirs is None or theirs is True:
        return [by.refusal(f"{rule}_NARROWED", at, "Not everything else is allowed any more")]
    return by.compare(reader.child(mine), writer.child(theirs), at)


def _added(by: Comparison, reader: Node, writer: Node, path: str, word: str) -> list[Difference]:
    """A schema for all items or names: none before is a schema that allows everything."""
    mine, theirs = reader.node(word), writer.node(word)
    if mine is None or mine.is_empty:
        return []
    if theirs is None:
        return [by.refusal("SCHEMA_ADDED", f"{path}/{word}", f"A schema for {word} is new")]
    return by.compare(mine, theirs, f"{path}/{word}")


def _may_be(node: Node, kind: str) -> bool:
    types = node.types()
    return types is None or kind in types
