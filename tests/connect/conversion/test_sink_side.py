"""Rows of a topic become runs of one shape, in order, and what fails is told or raised."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ottla.connect.api import ConnectorFailure
from ottla.connect.api.config import ConfigInvalid
from ottla.connect.conversion import ConversionFailed, dead_letter_headers, sink_side
from tests.connect.conversion.batches import rows

SCHEMA = {
    "type": "struct",
    "optional": False,
    "fields": [
        {"field": "a", "type": "int32", "optional": False},
        {"field": "b", "type": "string", "optional": True},
    ],
}
OTHER = {"type": "string", "optional": False}
TOLERANT = {"key.converter": "StringConverter", "errors.tolerance": "all"}
PLAIN = {**TOLERANT, "value.converter.schemas.enable": "false"}


def enveloped(payload: Any, schema: Any = SCHEMA) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}).encode()


def test_a_tombstone_does_not_cut_a_run_apart() -> None:
    values = [enveloped({"a": 1, "b": "x"}), None, enveloped({"a": 2}), None]
    found = sink_side(TOLERANT).run(rows(values))
    [records] = found.records
    assert not found.failures
    assert records.values.data.to_pylist() == [{"a": 1, "b": "x"}, None, {"a": 2, "b": None}, None]  # type: ignore[union-attr]
    assert records.offsets is not None
    assert records.offsets.to_pylist() == [0, 1, 2, 3]


def test_values_of_two_schemas_are_runs_in_the_order_of_the_rows() -> None:
    values = [enveloped({"a": 1}), enveloped("x", OTHER), enveloped("y", OTHER), enveloped({"a": 2})]
    found = sink_side(TOLERANT).run(rows(values))
    assert [len(records) for records in found.records] == [1, 2, 1]
    assert [offset for records in found.records for offset in records.offsets.to_pylist()] == [0, 1, 2, 3]  # type: ignore[union-attr]


def test_a_record_that_fails_is_told_with_its_bytes_and_others_go_on() -> None:
    headers = [[{"key": "h", "value": b"1"}], None, None]
    found = sink_side(TOLERANT).run(rows([b"{", enveloped({"a": 1}), enveloped({"b": "x"})], headers=headers))
    assert [len(records) for records in found.records] == [1]
    first, second = found.failures
    assert (first.topic, first.partition, first.offset, first.value) == ("t", 0, 0, b"{")
    assert first.headers == [("h", b"1")]
    assert first.stage == second.stage == "VALUE_CONVERTER"
    assert first.exception_class == "org.apache.kafka.connect.errors.DataException"
    assert second.offset == 2
    assert "not optional" in second.error


def test_without_tolerance_the_first_failure_is_raised_with_its_place() -> None:
    conversion = sink_side({**TOLERANT, "errors.tolerance": "none"})
    with pytest.raises(ConversionFailed, match="topic 't', partition 0, offset 1 fails in VALUE_CONVERTER") as raised:
        conversion.run(rows([enveloped({"a": 1}), b"nonsense"]))
    assert isinstance(raised.value, ConnectorFailure)


def test_the_first_failure_is_the_first_of_the_rows() -> None:
    values = [enveloped({"a": 1}), b"nonsense", enveloped({"b": "no a"})]
    keys = [b"\0\0\0\1", b"\0\0\0\1", b"too long for a number"]
    conversion = sink_side({"key.converter": "IntegerConverter"})
    with pytest.raises(ConversionFailed, match="offset 1 fails in VALUE_CONVERTER") as raised:
        conversion.run(rows(values, keys=keys))
    assert "no JSON" in str(raised.value.__cause__)


def test_a_dead_letter_has_kafka_connects_headers() -> None:
    [failed] = sink_side(TOLERANT).run(rows([b"{"])).failures
    names = [name for name, _ in dead_letter_headers(failed, "orders", 3)]
    assert names == [
        f"__connect.errors.{name}"
        for name in (
            "topic",
            "partition",
            "offset",
            "connector.name",
            "task.id",
            "stage",
            "class.name",
            "exception.class.name",
            "exception.message",
            "exception.stacktrace",
        )
    ]
    found = dict(dead_letter_headers(failed, "orders", 3))
    assert found["__connect.errors.offset"] == b"0"
    assert found["__connect.errors.task.id"] == b"3"
    assert found["__connect.errors.class.name"] == b"org.apache.kafka.connect.json.JsonConverter"


def test_a_predicate_chooses_and_order_stays() -> None:
    config = {
        **PLAIN,
        "transforms": "drop,route",
        "transforms.drop.type": "Filter",
        "transforms.drop.predicate": "gone",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": "t(.)",
        "transforms.route.replacement": "new-$1",
        "transforms.route.predicate": "one",
        "transforms.route.negate": "true",
        "predicates": "gone,one",
        "predicates.gone.type": "RecordIsTombstone",
        "predicates.one.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "predicates.one.pattern": "t1",
    }
    values = [b"1", None, b"2", b"3", None]
    [records] = sink_side(config).run(rows(values, topics=["t1", "t1", "t2", "t1", "t2"])).records
    assert records.topics.to_pylist() == ["t1", "new-2", "t1"]
    assert records.values.data == [1, 2, 3]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"value.converter": "NoConverter"}, "NoConverter could not be found"),
        ({"transforms": "a"}, "transforms.a.type"),
        ({"transforms": "a", "transforms.a.type": "Nothing"}, "Nothing could not be found"),
        ({"transforms": "a", "transforms.a.type": "Cast$Value"}, "transforms.a.spec"),
        ({"transforms": "a", "transforms.a.type": "InsertField$Value"}, "needs a field to insert"),
        (
            {"transforms": "a", "transforms.a.type": "Filter", "transforms.a.predicate": "p"},
            "no predicate 'p'",
        ),
        (
            {
                "transforms": "a",
                "transforms.a.type": "RegexRouter",
                "transforms.a.regex": "[a-z&&[^b]]",
                "transforms.a.replacement": "x",
            },
            "classes within classes",
        ),
        ({"errors.tolerance": "some"}, "none or all"),
    ],
)
def test_a_setting_that_is_wrong_is_named(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigInvalid, match=sentence.replace("$", r"\$")):
        sink_side({**TOLERANT, **settings})
