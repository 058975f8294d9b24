"""Every rule for Protobuf: a change that passes, and one that is refused under the rule's name; and its texts."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from ottla.common.schemas import NEW_READS_OLD
from ottla.registry.parsed import Resolved
from ottla.registry.protobuf.format import ProtobufSchema, parse_protobuf


class Rule(NamedTuple):
    """The bodies of files, or of the message M where there is no `message` in them."""

    name: str
    old: str
    fits: str
    breaks: str
    path: str


FIELD = "int32 a = 1;"
OPTIONAL = "optional int32 a = 1;"
RULES = [
    Rule("PACKAGE_CHANGED", "package p; message M {}", "package p; message M {}", "package q; message M {}", "#/"),
    Rule(
        "MESSAGE_REMOVED", "message M {} message N {}", "message N {} message M {} message O {}", "message M {}", "#/N"
    ),
    Rule("MESSAGE_REMOVED", "message M { message N {} }", "message M { message N {} }", "message M {}", "#/M.N"),
    Rule("FIELD_SCALAR_KIND_CHANGED", FIELD, "int64 b = 1;", "string a = 1;", "#/M/1"),
    Rule("FIELD_SCALAR_KIND_CHANGED", "sint32 a = 1;", "sint64 a = 1;", "int32 a = 1;", "#/M/1"),
    Rule("FIELD_SCALAR_KIND_CHANGED", "string a = 1;", "bytes a = 1;", "int32 a = 1;", "#/M/1"),
    Rule("FIELD_SCALAR_KIND_CHANGED", "fixed32 a = 1;", "sfixed32 a = 1;", "fixed64 a = 1;", "#/M/1"),
    Rule("FIELD_SCALAR_KIND_CHANGED", "float a = 1;", "float b = 1;", "double a = 1;", "#/M/1"),
    Rule(
        "FIELD_SCALAR_KIND_CHANGED",
        "enum E { Z = 0; } E a = 1;",
        "int32 a = 1;",
        "enum E { Z = 0; } float a = 1;",
        "#/M/1",
    ),
    Rule("FIELD_KIND_CHANGED", FIELD, "uint32 a = 1;", "N a = 1; message N {}", "#/M/1"),
    Rule(
        "FIELD_KIND_CHANGED", "map<string, int32> a = 1;", "map<string, int64> b = 1;", "repeated int32 a = 1;", "#/M/1"
    ),
    Rule(
        "FIELD_SCALAR_KIND_CHANGED",
        "map<string, int32> a = 1;",
        "map<string, int64> a = 1;",
        "map<string, string> a = 1;",
        "#/M/1",
    ),
    Rule(
        "FIELD_NAMED_TYPE_CHANGED",
        "N a = 1; message N {} message O {}",
        "N a = 1; message N { int32 z = 1; } message O {}",
        "O a = 1; message N {} message O {}",
        "#/M/1",
    ),
    Rule("FIELD_NUMERIC_LABEL_CHANGED", FIELD, OPTIONAL, "repeated int32 a = 1;", "#/M/1"),
    Rule(
        "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
        "int32 a = 1; int32 b = 2;",
        "oneof o { int32 a = 1; } int32 b = 2;",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "#/M/o",
    ),
    Rule(
        "FIELD_MOVED_TO_EXISTING_ONEOF",
        "int32 a = 1; oneof o { int32 b = 2; }",
        "int32 a = 1; oneof o { int32 b = 2; int32 c = 3; }",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "#/M/o",
    ),
    Rule(
        "ONEOF_FIELD_REMOVED",
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof o { int32 a = 1; int32 b = 2; int32 c = 3; }",
        "oneof o { int32 a = 1; }",
        "#/M/o/2",
    ),
    Rule(
        "REQUIRED_FIELD_ADDED",
        'syntax = "proto2"; message M { optional int32 a = 1; }',
        'syntax = "proto2"; message M { optional int32 a = 1; optional int32 b = 2; }',
        'syntax = "proto2"; message M { optional int32 a = 1; required int32 b = 2; }',
        "#/M/2",
    ),
    Rule(
        "REQUIRED_FIELD_REMOVED",
        'syntax = "proto2"; message M { required int32 a = 1; optional int32 b = 2; }',
        'syntax = "proto2"; message M { required int32 a = 1; }',
        'syntax = "proto2"; message M { optional int32 b = 2; }',
        "#/M/1",
    ),
]


def schema(text: str, *references: Resolved) -> ProtobufSchema:
    if "package" not in text and not text.startswith(("message", "syntax")):
        text = f"message M {{ {text} }}"
    if "syntax" not in text:
        text = f'syntax = "proto3"; {text}'
    return parse_protobuf(text, references, is_new=True)


def differences(new: str, old: str) -> list[tuple[str, str]]:
    return [(found.rule, found.path) for found in schema(new).reads(schema(old), NEW_READS_OLD)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.name}-{RULES.index(rule)}")
def test_a_rule_lets_one_change_pass_and_refuses_another(rule: Rule) -> None:
    assert differences(rule.fits, rule.old) == []
    assert differences(rule.old, rule.old) == []
    assert (rule.name, rule.path) in differences(rule.breaks, rule.old)


def test_what_comes_and_goes_without_harm() -> None:
    old = "message M { int32 a = 1; enum E { Z = 0; Y = 1; } oneof o { int32 x = 2; } } enum F { W = 0; }"
    new = "message N {} message M { int32 b = 5; enum E { Z = 0; V = 3; } } service S { rpc R (M) returns (N); }"
    assert differences(new, old) == []


def test_the_text_of_a_file_reads_back_as_the_same_file() -> None:
    text = """syntax = "proto3";
package a.b;
import "google/protobuf/timestamp.proto";
import "other.proto";
option java_package = "com.example";
// a comment
message Order {
  reserved 10, 20 to 30; reserved "old";
  string name = 1 [deprecated = true, json_name = "label", (my.option) = { a: 1 }];
  repeated int32 numbers = 2 [packed = false];
  map<string, Line> lines = 3;
  oneof what { int32 left = 4; other.Thing right = 5; }
  optional int64 maybe = 6;
  google.protobuf.Timestamp at = 7;
  message Line { Colour colour = 1; }
  enum Colour { option allow_alias = true; RED = 0; ROUGE = 0; GREEN = 1 [deprecated = true]; }
}
service Orders { rpc Watch (stream Order) returns (stream Order); }
"""
    other = Resolved("other.proto", 'syntax = "proto3"; package other; message Thing { int32 a = 1; }')
    first = schema(text, other)
    again = schema(first.canonical(), other)
    assert again.canonical() == first.canonical()
    assert again.serialised() == first.serialised()
    assert parse_protobuf(first.serialised(), (other,), is_new=True).canonical() == first.canonical()
    assert "package a.b" in first.canonical() and "(my.option) = { a: 1 }" in first.canonical()


def test_old_syntax_reads_back_too() -> None:
    text = """syntax = "proto2"; package p;
message M { required int32 a = 1 [default = -5]; optional group G = 2 { optional string b = 3 [default = "x\\"y"]; }
  extensions 100 to max; }
extend M { optional int32 more = 101; }
"""
    first = schema(text)
    assert schema(first.canonical()).serialised() == first.serialised()


def test_fields_in_another_order_are_the_same_once_normalised() -> None:
    one, two = schema("int32 a = 1; int32 b = 2;"), schema("int32 b = 2; int32 a = 1;")
    assert one.canonical() != two.canonical()
    assert one.normalised() == two.normalised()


def test_the_table_has_every_rule_of_the_sources() -> None:
    from tests.registry.rule_names import names_in

    assert names_in("protobuf") - {rule.name for rule in RULES} == set()
