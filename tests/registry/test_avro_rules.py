"""Every row of the table of Avro in docs/registry-compatibility.md: a change that passes, and one that is refused."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest

from ottla.avro.compatibility import differences
from ottla.avro.parse import parse
from tests.support.kafka_jars import REPO_ROOT


class Rule(NamedTuple):
    name: str
    old: Any
    fits: Any
    breaks: Any


def record(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


A, B, C = {"name": "a", "type": "int"}, {"name": "b", "type": "string"}, {"name": "c", "type": "int"}
RULES = [
    Rule("READER_FIELD_MISSING_DEFAULT_VALUE", record(A), record(A, B | {"default": ""}), record(A, B)),
    Rule("READER_FIELD_MISSING_DEFAULT_VALUE", record(A, B), record(A), record(A, {**B, "name": "c"})),
    Rule("READER_FIELD_MISSING_DEFAULT_VALUE", record(A), record({**C, "aliases": ["a"]}), record(C)),
    *(Rule("TYPE_MISMATCH", old, new, old_breaks) for old, new, old_breaks in (
        ("int", "long", "boolean"), ("int", "float", "string"), ("int", "double", "bytes"), ("long", "float", "int"),
        ("long", "double", "int"), ("float", "double", "long"), ("string", "bytes", "int"), ("bytes", "string", "int"),
    )),
    Rule("MISSING_ENUM_SYMBOLS", enum("X", "Y"), enum("X", "Y", "Z"), enum("X")),
    Rule("MISSING_ENUM_SYMBOLS", enum("X", "Y"), enum("X", default="X"), enum("X")),
    Rule("MISSING_UNION_BRANCH", ["int", "string"], ["int", "string", "null"], ["int", "null"]),
    Rule("MISSING_UNION_BRANCH", "int", ["null", "int"], ["null", "string"]),
    Rule("NAME_MISMATCH", record(A), record(A, namespace="other"), record(A, name="S")),
    Rule("FIXED_SIZE_MISMATCH", *({"type": "fixed", "name": "F", "size": size} for size in (4, 4, 5))),
]  # fmt: skip


def rules_of(reader: Any, writer: Any) -> set[str]:
    return {found.rule for found in differences(parse(json.dumps(reader)), parse(json.dumps(writer)))}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_change_passes_or_is_refused_under_the_rules_name(rule: Rule) -> None:
    assert rules_of(rule.fits, rule.old) == set()
    found = differences(parse(json.dumps(rule.breaks)), parse(json.dumps(rule.old)))
    assert rule.name in {each.rule for each in found}
    assert all(each.path in each.message() or each.path == "/" for each in found), "the message names the path"


def test_the_page_names_the_same_rules() -> None:
    page = (REPO_ROOT / "docs" / "registry-compatibility.md").read_text()
    for name in {rule.name for rule in RULES}:
        assert f"`{name}`" in page
