"""Every rule for JSON Schema: a change that passes, and one that is refused under the rule's name."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from ottla.common.schemas import NEW_READS_OLD, OLD_READS_NEW
from ottla.registry.json_schema.format import parse_json_schema
from ottla.registry.parsed import Resolved


class Rule(NamedTuple):
    """`fits` is read by nothing less than `old` allowed; `breaks` allows less."""

    name: str
    old: Any
    fits: Any
    breaks: Any
    path: str


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def opened(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


INT, TEXT, NUMBER = {"type": "integer"}, {"type": "string"}, {"type": "number"}
PARTLY = {"type": "object", "additionalProperties": TEXT}
HAS = {"type": "array", "contains": INT}
PAIR = {"type": "array", "items": [INT, TEXT]}
TWO, ONE = {"oneOf": [INT, TEXT]}, {"oneOf": [INT]}

RULES = [
    Rule("TYPE_CHANGED", INT, {"type": ["integer", "string"]}, TEXT, "#"),
    Rule("TYPE_NARROWED", NUMBER, {}, INT, "#"),
    Rule("TYPE_CHANGED", False, INT, None, "#"),
    Rule("MAX_LENGTH_ADDED", TEXT, TEXT, {**TEXT, "maxLength": 5}, "#/maxLength"),
    Rule(
        "MAX_LENGTH_DECREASED",
        {**TEXT, "maxLength": 5},
        {**TEXT, "maxLength": 6},
        {**TEXT, "maxLength": 4},
        "#/maxLength",
    ),
    Rule("MIN_LENGTH_ADDED", TEXT, {**TEXT, "minLength": 0}, {**TEXT, "minLength": 5}, "#/minLength"),
    Rule(
        "MIN_LENGTH_INCREASED",
        {**TEXT, "minLength": 5},
        {**TEXT, "minLength": 4},
        {**TEXT, "minLength": 6},
        "#/minLength",
    ),
    Rule("PATTERN_ADDED", TEXT, TEXT, {**TEXT, "pattern": "a"}, "#/pattern"),
    Rule("PATTERN_CHANGED", {**TEXT, "pattern": "a"}, TEXT, {**TEXT, "pattern": "b"}, "#/pattern"),
    Rule("MAXIMUM_ADDED", INT, INT, {**INT, "maximum": 5}, "#/maximum"),
    Rule("MAXIMUM_DECREASED", {**INT, "maximum": 5}, {**INT, "maximum": 6}, {**INT, "maximum": 4}, "#/maximum"),
    Rule("MINIMUM_ADDED", INT, INT, {**INT, "minimum": 5}, "#/minimum"),
    Rule("MINIMUM_INCREASED", {**INT, "minimum": 5}, {**INT, "minimum": 4}, {**INT, "minimum": 6}, "#/minimum"),
    Rule("EXCLUSIVE_MAXIMUM_ADDED", INT, INT, {**INT, "exclusiveMaximum": 5}, "#/exclusiveMaximum"),
    Rule(
        "EXCLUSIVE_MAXIMUM_DECREASED",
        {**INT, "exclusiveMaximum": 5},
        {**INT, "exclusiveMaximum": 6},
        {**INT, "exclusiveMaximum": 4},
        "#/exclusiveMaximum",
    ),
    Rule("EXCLUSIVE_MINIMUM_ADDED", INT, INT, {**INT, "exclusiveMinimum": 5}, "#/exclusiveMinimum"),
    Rule(
        "EXCLUSIVE_MINIMUM_INCREASED",
        {**INT, "exclusiveMinimum": 5},
        {**INT, "exclusiveMinimum": 4},
        {**INT, "exclusiveMinimum": 6},
        "#/exclusiveMinimum",
    ),
    Rule("MULTIPLE_OF_ADDED", INT, INT, {**INT, "multipleOf": 2}, "#/multipleOf"),
    Rule(
        "MULTIPLE_OF_EXPANDED",
        {**INT, "multipleOf": 4},
        {**INT, "multipleOf": 2},
        {**INT, "multipleOf": 8},
        "#/multipleOf",
    ),
    Rule(
        "MULTIPLE_OF_CHANGED",
        {**INT, "multipleOf": 4},
        {**INT, "multipleOf": 4},
        {**INT, "multipleOf": 3},
        "#/multipleOf",
    ),
    Rule("ENUM_ARRAY_NARROWED", {"enum": ["a", "b"]}, {"enum": ["a", "b", "c"]}, {"enum": ["a"]}, "#/enum"),
    Rule("ENUM_ARRAY_CHANGED", {"enum": ["a", "b"]}, {"enum": ["b", "a"]}, {"enum": ["a", "c"]}, "#/enum"),
    Rule("ENUM_ARRAY_CHANGED", {"const": "a"}, {"enum": ["a", "b"]}, {"const": "b"}, "#/const"),
    Rule(
        "REQUIRED_ATTRIBUTE_ADDED", opened(a=INT), opened(a=INT), {**opened(a=INT), "required": ["a"]}, "#/required/a"
    ),
    Rule(
        "REQUIRED_ATTRIBUTE_ADDED",
        closed(a=INT),
        {**closed(a={**INT, "default": 1}), "required": ["a"]},
        {**closed(a=INT), "required": ["a"]},
        "#/required/a",
    ),
    Rule("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", opened(), opened(a={}), opened(a=INT), "#/properties/a"),
    Rule("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", closed(a=INT), opened(), closed(), "#/properties/a"),
    Rule(
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", closed(a=INT, b=False), closed(a=INT), closed(), "#/properties/a"
    ),
    Rule(
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        {**PARTLY, "properties": {"a": INT}},
        {**PARTLY, "additionalProperties": {"type": ["integer", "string"]}},
        PARTLY,
        "#/properties/a",
    ),
    Rule(
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        PARTLY,
        {**PARTLY, "properties": {"a": TEXT}},
        {**PARTLY, "properties": {"a": INT}},
        "#/properties/a",
    ),
    Rule(
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        closed(),
        {**closed(a={**INT, "default": 0}), "required": ["a"]},
        {**closed(a=INT), "required": ["a"]},
        "#/properties/a",
    ),
    Rule(
        "DEPENDENCY_ARRAY_ADDED",
        opened(a=INT, b=INT),
        opened(a=INT, b=INT),
        {**opened(a=INT, b=INT), "dependencies": {"a": ["b"]}},
        "#/dependencies/a",
    ),
    Rule(
        "DEPENDENCY_ARRAY_EXTENDED",
        {"dependencies": {"a": ["b", "c"]}},
        {"dependencies": {"a": ["b"]}},
        {"dependencies": {"a": ["b", "c", "d"]}},
        "#/dependencies/a",
    ),
    Rule(
        "DEPENDENCY_ARRAY_CHANGED",
        {"dependencies": {"a": ["b"]}},
        {},
        {"dependencies": {"a": ["c"]}},
        "#/dependencies/a",
    ),
    Rule(
        "DEPENDENCY_SCHEMA_ADDED",
        opened(),
        opened(),
        {**opened(), "dependencies": {"a": opened(b=INT)}},
        "#/dependencies/a",
    ),
    Rule("ADDITIONAL_PROPERTIES_REMOVED", opened(), opened(), closed(), "#/additionalProperties"),
    Rule("ADDITIONAL_PROPERTIES_NARROWED", opened(), opened(), PARTLY, "#/additionalProperties"),
    Rule("MAX_PROPERTIES_ADDED", opened(), opened(), {**opened(), "maxProperties": 2}, "#/maxProperties"),
    Rule(
        "MAX_PROPERTIES_DECREASED", {"maxProperties": 3}, {"maxProperties": 4}, {"maxProperties": 2}, "#/maxProperties"
    ),
    Rule("MIN_PROPERTIES_ADDED", opened(), opened(), {**opened(), "minProperties": 2}, "#/minProperties"),
    Rule(
        "MIN_PROPERTIES_INCREASED", {"minProperties": 3}, {"minProperties": 2}, {"minProperties": 4}, "#/minProperties"
    ),
    Rule("MAX_ITEMS_ADDED", {"type": "array"}, {"type": "array"}, {"type": "array", "maxItems": 2}, "#/maxItems"),
    Rule("MAX_ITEMS_DECREASED", {"maxItems": 3}, {"maxItems": 4}, {"maxItems": 2}, "#/maxItems"),
    Rule("MIN_ITEMS_ADDED", {"type": "array"}, {"type": "array"}, {"type": "array", "minItems": 2}, "#/minItems"),
    Rule("MIN_ITEMS_INCREASED", {"minItems": 3}, {"minItems": 2}, {"minItems": 4}, "#/minItems"),
    Rule("MAX_CONTAINS_ADDED", HAS, HAS, {**HAS, "maxContains": 2}, "#/maxContains"),
    Rule("MAX_CONTAINS_DECREASED", {**HAS, "maxContains": 2}, HAS, {**HAS, "maxContains": 1}, "#/maxContains"),
    Rule("MIN_CONTAINS_ADDED", HAS, {**HAS, "minContains": 0}, {**HAS, "minContains": 2}, "#/minContains"),
    Rule("MIN_CONTAINS_INCREASED", {**HAS, "minContains": 2}, HAS, {**HAS, "minContains": 3}, "#/minContains"),
    Rule("UNEVALUATED_ITEMS_REMOVED", HAS, HAS, {**HAS, "unevaluatedItems": False}, "#/unevaluatedItems"),
    Rule("UNEVALUATED_ITEMS_NARROWED", HAS, HAS, {**HAS, "unevaluatedItems": TEXT}, "#/unevaluatedItems"),
    Rule(
        "UNEVALUATED_PROPERTIES_REMOVED",
        opened(),
        {**opened(), "unevaluatedProperties": True},
        {**opened(), "unevaluatedProperties": False},
        "#/unevaluatedProperties",
    ),
    Rule(
        "UNEVALUATED_PROPERTIES_NARROWED",
        opened(),
        opened(),
        {**opened(), "unevaluatedProperties": TEXT},
        "#/unevaluatedProperties",
    ),
    Rule("UNIQUE_ITEMS_ADDED", {"uniqueItems": False}, {}, {"uniqueItems": True}, "#/uniqueItems"),
    Rule("SCHEMA_ADDED", {"type": "array"}, {"type": "array", "items": {}}, {"type": "array", "items": INT}, "#/items"),
    Rule(
        "TYPE_CHANGED",
        {"type": "array", "items": INT},
        {"type": "array", "items": NUMBER},
        {"type": "array", "items": TEXT},
        "#/items",
    ),
    Rule("ADDITIONAL_ITEMS_REMOVED", PAIR, PAIR, {**PAIR, "additionalItems": False}, "#/additionalItems"),
    Rule("ADDITIONAL_ITEMS_NARROWED", PAIR, PAIR, {**PAIR, "additionalItems": INT}, "#/additionalItems"),
    Rule(
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        {**PAIR, "additionalItems": False},
        {**PAIR, "items": [INT]},
        {**PAIR, "items": [INT], "additionalItems": False},
        "#/items/1",
    ),
    Rule(
        "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        {**PAIR, "additionalItems": INT},
        {**PAIR, "items": [INT, {}], "additionalItems": INT},
        {**PAIR, "items": [INT], "additionalItems": INT},
        "#/items/1",
    ),
    Rule(
        "ITEM_ADDED_TO_OPEN_CONTENT_MODEL",
        PAIR,
        {**PAIR, "items": [INT, TEXT, {}]},
        {**PAIR, "items": [INT, TEXT, INT]},
        "#/items/2",
    ),
    Rule(
        "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        {**PAIR, "additionalItems": INT},
        {"type": "array", "items": [INT, TEXT, INT], "additionalItems": INT},
        {"type": "array", "items": [INT, TEXT, TEXT], "additionalItems": INT},
        "#/items/2",
    ),
    Rule("SUM_TYPE_NARROWED", TWO, {"oneOf": [INT, TEXT, {"type": "null"}]}, ONE, "#/oneOf"),
    Rule(
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
        TWO,
        {"oneOf": [TEXT, NUMBER]},
        {"oneOf": [INT, {"type": "null"}]},
        "#/oneOf",
    ),
    Rule("COMBINED_TYPE_CHANGED", {"anyOf": [INT, TEXT]}, {"anyOf": [INT, TEXT]}, TWO, "#/oneOf"),
    Rule("TYPE_CHANGED", {"type": "null"}, {"oneOf": [INT, {"type": "null"}]}, TWO, "#/oneOf"),
    Rule(
        "PRODUCT_TYPE_EXTENDED",
        {"allOf": [{"maximum": 5}]},
        {"allOf": [{"maximum": 6}]},
        {"allOf": [{"maximum": 5}, {"minimum": 1}]},
        "#/allOf",
    ),
    Rule("NOT_TYPE_EXTENDED", {"not": NUMBER}, {"not": INT}, {"not": {"type": ["number", "string"]}}, "#/not"),
]


def differences(new: Any, old: Any, sides: Any = NEW_READS_OLD) -> list[tuple[str, str]]:
    reader, writer = (parse_json_schema(json.dumps(tree), (), is_new=True) for tree in (new, old))
    return [(found.rule, found.path) for found in reader.reads(writer, sides)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}-{RULES.index(rule)}")
def test_a_rule_lets_one_change_pass_and_refuses_another(rule: Rule) -> None:
    assert differences(rule.fits, rule.old) == []
    assert differences(rule.old, rule.old) == []
    if rule.breaks is not None:
        assert (rule.name, rule.path) in differences(rule.breaks, rule.old)


def test_a_refusal_tells_the_direction_that_it_was_looked_at() -> None:
    reader, writer = (parse_json_schema(json.dumps(tree), (), is_new=True) for tree in (INT, TEXT))
    (backward,), (forward,) = reader.reads(writer, NEW_READS_OLD), reader.reads(writer, OLD_READS_NEW)
    assert backward.text != forward.text


def test_titles_descriptions_and_defaults_change_freely() -> None:
    assert differences({**INT, "title": "b", "description": "d", "default": 3}, {**INT, "title": "a"}) == []


def test_references_are_followed_even_in_circles() -> None:
    def tree(kind: str) -> dict[str, Any]:
        node = {"type": "object", "properties": {"value": {"type": kind}, "next": {"$ref": "#/definitions/node"}}}
        return {"$ref": "#/definitions/node", "definitions": {"node": node}}

    assert differences(tree("integer"), tree("integer")) == []
    assert differences(tree("string"), tree("integer")) == [("TYPE_CHANGED", "#/properties/value")]
    modern = tree("integer") | {"$schema": "https://json-schema.org/draft/2020-12/schema", "minProperties": 1}
    assert differences(modern, modern) == []
    assert differences({**modern, "minProperties": 2}, modern) == [("MIN_PROPERTIES_INCREASED", "#/minProperties")]


def test_references_to_other_subjects_are_compared_by_what_they_mean() -> None:
    def schema(other: str) -> Any:
        return parse_json_schema('{"$ref": "other.json"}', (Resolved("other.json", other),), is_new=True)

    assert schema('{"type": "number"}').reads(schema('{"type": "integer"}'), NEW_READS_OLD) == []
    (found,) = schema('{"type": "integer"}').reads(schema('{"type": "number"}'), NEW_READS_OLD)
    assert found.rule == "TYPE_NARROWED"


def test_the_fourth_draft_says_exclusive_with_a_flag() -> None:
    draft = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer"}
    old = {**draft, "maximum": 5, "exclusiveMaximum": True}
    assert differences({**draft, "maximum": 6, "exclusiveMaximum": True}, old) == []
    narrower = {**draft, "maximum": 4, "exclusiveMaximum": True}
    assert differences(narrower, old) == [("EXCLUSIVE_MAXIMUM_DECREASED", "#/exclusiveMaximum")]


def test_the_table_has_every_rule_of_the_sources() -> None:
    from tests.registry.rule_names import names_in

    assert names_in("json_schema") - {rule.name for rule in RULES} == set()
