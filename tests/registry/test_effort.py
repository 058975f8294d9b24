"""Schemas of a few kilobytes that would take hours, or all memory: they are judged at once, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla.avro import compatibility as avro_compatibility
from ottla.avro.compatibility import differences as avro_differences
from ottla.avro.parse import parse as parse_avro
from ottla.common.schemas import Effort, InvalidSchema
from ottla.registry import changes, parsing
from ottla.registry.changes import Registration
from ottla.registry.errors import RegistryError
from ottla.registry.json_schema import compatibility
from ottla.registry.json_schema.compatibility import differences
from ottla.registry.json_schema.format import JsonSchema, parse_json_schema
from ottla.registry.protobuf.format import parse_protobuf
from ottla.registry.schemas import AVRO, JSON, SchemaText
from ottla.registry.state import RegistryState

DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def json_schema(tree: Any) -> JsonSchema:
    return parse_json_schema(tree if isinstance(tree, str) else json.dumps(tree), (), is_new=True)


def rules(reader: Any, writer: Any) -> set[str]:
    return {each.rule for each in differences(json_schema(reader).node, json_schema(writer).node)}


# --- Avro


def twice_in_each(depth: int, size: int) -> str:
    """A record with two fields of a type, which has two fields of a type, and so on."""
    tree: Any = {"type": "fixed", "name": "Leaf", "size": size}
    for number in range(depth):
        fields = [{"name": "a", "type": tree}, {"name": "b", "type": tree["name"]}]
        tree = {"type": "record", "name": f"R{number}", "fields": fields}
    return json.dumps(tree)


def test_a_difference_is_told_once_however_often_its_type_is_used() -> None:
    found = avro_differences(parse_avro(twice_in_each(60, 1)), parse_avro(twice_in_each(60, 2)))
    assert [each.rule for each in found] == ["FIXED_SIZE_MISMATCH"]


def test_a_default_is_judged_once_by_each_type() -> None:
    both = ["null", "A", {"type": "record", "name": "B", "fields": [{"name": "x", "type": ["null", "A", "B"]}]}]
    kind = {"type": "record", "name": "A", "fields": [{"name": "x", "type": both}]}
    for innermost, is_good in ((None, True), (5, False)):
        value: Any = innermost
        for _ in range(60):
            value = {"x": value}
        text = json.dumps({"type": "record", "name": "T", "fields": [{"name": "f", "type": kind, "default": value}]})
        if is_good:
            parse_avro(text)
        else:
            with pytest.raises(InvalidSchema, match="Invalid default"):
                parse_avro(text)


def test_a_symbol_that_is_there_twice_is_found_among_many() -> None:
    symbols = [*(f"s{number}" for number in range(50_000)), "z", "z"]
    with pytest.raises(InvalidSchema, match="Duplicate enum symbol: z"):
        parse_avro(json.dumps({"type": "enum", "name": "E", "symbols": symbols}))


def test_what_is_told_again_on_each_way_counts_as_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred types, each within the next one: ten thousand pairs, and fifty differences in each of them."""

    def types(size: int) -> Any:
        tree: list[Any] = [{"type": "fixed", "name": "T0", "size": size}]
        for number in range(100):
            fields = [{"name": "a", "type": f"T{number}"}]
            tree.append({"type": "record", "name": f"T{number + 1}", "fields": fields})
        return parse_avro(json.dumps(tree))

    assert avro_differences(types(1), types(2))
    monkeypatch.setattr(avro_compatibility, "_STEPS_MAX", 100_000)
    with pytest.raises(InvalidSchema, match="more than 100,000 steps"):
        avro_differences(types(1), types(2))


# --- JSON Schema


def chain(depth: int, leaf: dict[str, Any]) -> dict[str, Any]:
    """Each definition leads to the next one on three ways."""
    defined: dict[str, Any] = {f"d{depth}": leaf}
    for number in range(depth):
        below = {"$ref": f"#/definitions/d{number + 1}"}
        defined[f"d{number}"] = {"anyOf": [below, {"type": "object", "properties": {"a": below, "b": below}}]}
    return {"definitions": defined, "$ref": "#/definitions/d0"}


def test_places_are_compared_once_on_whatever_ways_they_are_reached() -> None:
    assert not rules(chain(40, {"type": "number"}), chain(40, {"type": "integer"}))
    assert rules(chain(40, {"type": "string"}), chain(40, {"type": "integer"}))


def test_a_verdict_that_leans_on_one_that_is_not_there_yet_is_not_remembered() -> None:
    """The first branch of `a` is looked at while `root` is under way, and `root` turns out not to be readable."""

    def tree(kind: str) -> dict[str, Any]:
        loop = {"type": "object", "properties": {"again": {"$ref": "#"}}}
        properties = {"a": {"$ref": "#/definitions/loop"}, "n": {"type": kind}}
        return {"definitions": {"loop": loop}, "type": "object", "properties": properties}

    assert rules(tree("string"), tree("integer")) == {"TYPE_CHANGED"}
    assert not rules(tree("number"), tree("integer"))


def test_what_takes_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    effort = Effort(2)
    effort.spend(2)
    with pytest.raises(InvalidSchema, match="more than 2 steps"):
        effort.spend()
    monkeypatch.setattr(compatibility, "_PAIRS_MAX", 50)
    state = RegistryState()

    def register(limit: int) -> None:
        properties = {f"p{number}": {"type": "string", "maxLength": limit} for number in range(60)}
        text = json.dumps({"properties": properties, "additionalProperties": False})
        for record in changes.register(state, Registration("s", SchemaText(JSON, text))).records:
            state.replay(record)

    register(5)
    with pytest.raises(RegistryError, match="more than 50 steps to be judged") as caught:
        register(6)
    assert caught.value.code == 42201


def test_types_that_lead_too_deep_to_be_compared_are_refused() -> None:
    """Each by its name only, so no text is deep."""
    state = RegistryState()

    def register(kind: str, text: str) -> None:
        change = changes.register(state, Registration(kind, SchemaText(kind, text)))
        for record in change.records:
            state.replay(record)

    def avro(size: int) -> str:
        tree: list[Any] = [{"type": "fixed", "name": "T0", "size": size}]
        for number in range(1_000):
            fields = [{"name": "a", "type": f"T{number}"}]
            tree.append({"type": "record", "name": f"T{number + 1}", "fields": fields})
        return json.dumps(tree)

    register(AVRO, avro(1))
    register(JSON, json.dumps(chain(500, {"type": "integer"})))
    for kind, text in ((AVRO, avro(2)), (JSON, json.dumps(chain(500, {"type": "string"})))):
        with pytest.raises(RegistryError) as caught:
            register(kind, text)
        assert caught.value.code in (42201, 40901), kind


def test_branches_that_stay_where_they_are_are_not_compared_with_all_others() -> None:
    before = {"anyOf": [{"const": number} for number in range(2_000)]}
    after = {"anyOf": [*before["anyOf"], {"const": "more"}]}
    assert not rules(after, before)
    assert rules(before, after) == {"SUM_TYPE_NARROWED"}


def test_a_pattern_that_backtracks_is_matched_in_linear_time() -> None:
    before = {"patternProperties": {"^(a+)+$": {"type": "string"}}, "additionalProperties": False}
    after = before | {"properties": {"a" * 60 + "!": {"type": "string"}}}
    assert not rules(after, before)


def test_a_pattern_that_cannot_be_judged_may_match_or_not() -> None:
    before = {"patternProperties": {"^(?=a).*$": {"type": "string"}}, "additionalProperties": False}
    assert not rules(before | {"properties": {"a": {"type": "string"}}}, before)
    refused = {"PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"}
    assert rules(before | {"properties": {"a": {"type": "integer"}}}, before) == refused


@pytest.mark.parametrize("pattern", ["^\\p{L}+$", "(?=a)b", "(a)\\1", "a{1,5000}", "(?<=a)b"])
def test_patterns_of_other_dialects_are_patterns(pattern: str) -> None:
    json_schema({"pattern": pattern})


@pytest.mark.parametrize("pattern", ["[", "(", "*a", "x)", "[z-a]"])
def test_what_is_a_pattern_nowhere_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidSchema, match="regex"):
        json_schema({"pattern": pattern})


def test_long_lists_of_a_schema_are_judged_quickly() -> None:
    mixed = [value for number in range(20_000) for value in (number, str(number))]
    json_schema({"$schema": DRAFT_4, "enum": mixed})
    json_schema({"enum": [*mixed, 0]})
    for value in (0, 0.0, "0"):
        with pytest.raises(InvalidSchema, match="twice"):
            json_schema({"$schema": DRAFT_4, "enum": [*mixed, value]})
    json_schema({"$schema": DRAFT_4, "enum": [*mixed, False, {"a": [1]}, {"a": [True]}]})
    with pytest.raises(InvalidSchema, match="no text"):
        json_schema({"required": mixed})


@pytest.mark.parametrize("schema", ['{"maximum": 1e400}', '{"multipleOf": 1e400}', '{"const": -1e999}'])
def test_a_number_that_could_not_be_read_again_is_refused(schema: str) -> None:
    with pytest.raises(InvalidSchema, match="too large a number"):
        json_schema(schema)


@pytest.mark.parametrize("draft", [5, [], {}, None, "http://[bad"])
def test_a_draft_that_has_no_address_is_refused(draft: Any) -> None:
    with pytest.raises(InvalidSchema, match="schema"):
        json_schema({"$schema": draft})


@pytest.mark.parametrize("word", ["dependentRequired", "dependentSchemas", "maxContains", "minContains"])
def test_words_that_a_draft_does_not_know_may_be_anything(word: str) -> None:
    for value in (True, 5, "x", ["x"], {}, [[1]]):
        assert not rules({word: 5 if "Contains" in word else {}}, {word: value}) - {
            "MAX_CONTAINS_ADDED", "MAX_CONTAINS_DECREASED", "MIN_CONTAINS_ADDED", "MIN_CONTAINS_INCREASED",
        }  # fmt: skip


def test_multiples_are_those_of_decimal_numbers() -> None:
    assert not rules({"multipleOf": 0.1}, {"multipleOf": 0.3})
    assert rules({"multipleOf": 0.3}, {"multipleOf": 0.1}) == {"MULTIPLE_OF_EXPANDED"}


# --- Protobuf


@pytest.mark.parametrize(
    "text",
    [
        'syntax = "proto3"; message A { int32 a = 99999999999; }',
        'syntax = "proto3"; message A { reserved 5 to 99999999999999; }',
        'syntax = "proto3"; message A { reserved 0x5 to 7; }',
        'syntax = "proto3"; enum A { B = 0; C = 99999999999; }',
        'syntax = "proto3"; message A { string a = 1 [json_name = "\\ud800"]; }',
        'syntax = "proto3"; message A { string a = 1 [json_name = foo]; }',
        'syntax = "proto9"; message A { }',
    ],
)
def test_what_is_no_proto_file_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_protobuf(text, (), is_new=True)


# --- what is remembered


def test_texts_that_are_remembered_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = parsing._Remembered()
    monkeypatch.setattr(parsing, "_remembered", remembered)
    monkeypatch.setattr(parsing, "_CHARACTERS_MAX", 1_000)
    asked: list[str] = []

    def parsed(text: str, references: Any, *, is_new: bool) -> Any:
        asked.append(text)
        raise InvalidSchema("no")

    monkeypatch.setitem(parsing._PARSERS, AVRO, parsed)

    def ask(text: str) -> None:
        with pytest.raises(RegistryError, match="no"):
            parsing.parse(SchemaText(AVRO, text), (), is_new=True)

    first, second, third = "a" * 400, "b" * 400, "c" * 400
    for text in (first, second, first, second):
        ask(text)
    assert asked == [first, second], "also what is no schema is remembered"
    for text in (third, second, first):
        ask(text)
    assert asked == [first, second, third, first]


def test_a_new_schema_is_parsed_before_the_writer_looks_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_remembered", parsing._Remembered())
    asked = []
    parser = parsing._PARSERS[AVRO]

    def counted(*arguments: Any, **more: Any) -> Any:
        asked.append(arguments)
        return parser(*arguments, **more)

    monkeypatch.setitem(parsing._PARSERS, AVRO, counted)
    state, registration = RegistryState(), Registration("s", SchemaText(AVRO, '"int"'))
    assert changes.already_there(state, registration) is None
    assert len(asked) == 1
    changes.register(state, registration)
    assert len(asked) == 1
