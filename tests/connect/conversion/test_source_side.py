"""Records of a source become rows to publish, in order; and configurations say what they take."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect.api import Column, Field, Header, Records, Schema, SchemaType
from ottla.connect.api.config import ConfigType
from ottla.connect.api.data import TIMESTAMP
from ottla.connect.conversion import ConversionFailed, config_def, sink_side, source_side
from ottla.connect.conversion.arrow import from_python
from tests.connect.conversion.batches import rows

ROW = Schema(
    SchemaType.STRUCT,
    fields=(Field("id", Schema(SchemaType.INT64)), Field("text", Schema(SchemaType.STRING, optional=True))),
)
PLAIN = {"key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false"}


def records(values: list[Any], schema: Schema | None = ROW, **more: Any) -> Records:
    count = len(values)
    return Records(
        topics=pa.array(["t"] * count, pa.string()),
        partitions=pa.nulls(count, pa.int32()),
        timestamps=pa.array([None if at % 2 else at for at in range(count)], pa.int64()),
        keys=Column(None, [None] * count),
        values=from_python(schema, values),
        **more,
    )


def test_rows_have_what_is_published() -> None:
    headers = [(Header("h", Schema(SchemaType.INT8), 5),), ()]
    config = {
        **PLAIN,
        "transforms": "key",
        "transforms.key.type": "org.apache.kafka.connect.transforms.ValueToKey",
        "transforms.key.fields": "id",
    }
    given = records([{"id": 1, "text": "a"}, {"id": 2, "text": None}], headers=headers)
    found = source_side(config).run(given).rows
    assert found.to_pylist() == [
        {
            "topic": "t",
            "partition": None,
            "key": b'{"id":1}',
            "value": b'{"id":1,"text":"a"}',
            "headers": [{"key": "h", "value": b"5"}],
            "timestamp": 0,
        },
        {
            "topic": "t",
            "partition": None,
            "key": b'{"id":2}',
            "value": b'{"id":2,"text":null}',
            "headers": None,
            "timestamp": None,
        },
    ]


def test_no_records_are_no_rows() -> None:
    assert source_side(PLAIN).run(records([])).rows.num_rows == 0
    dropping = {**PLAIN, "transforms": "f", "transforms.f.type": "Filter"}
    assert source_side(dropping).run(records([{"id": 1}])).rows.num_rows == 0


def test_what_fails_is_left_out_and_the_order_of_others_stays() -> None:
    config = {
        **PLAIN,
        "errors.tolerance": "all",
        "transforms": "cast,hoist",
        "transforms.cast.type": "Cast$Value",
        "transforms.cast.spec": "text:int32",
        "transforms.hoist.type": "HoistField$Value",
        "transforms.hoist.field": "it",
        "transforms.hoist.predicate": "gone",
        "predicates": "gone",
        "predicates.gone.type": "RecordIsTombstone",
    }
    values = [{"id": 0, "text": "5"}, {"id": 1, "text": "x"}, {"id": 2, "text": None}, {"id": 3, "text": "7"}]
    found = source_side(config).run(records(values))
    assert [json.loads(each)["id"] for each in found.rows.column("value").to_pylist()] == [0, 2, 3]
    [failed] = found.failures
    assert (failed.stage, failed.offset, failed.key, failed.value) == ("TRANSFORMATION", None, None, None)
    assert failed.class_name == "org.apache.kafka.connect.transforms.Cast$Value"
    with pytest.raises(ConversionFailed, match="'x' is no integer"):
        source_side({**config, "errors.tolerance": "none"}).run(records(values))


def test_a_transform_that_needs_an_offset_fails_in_a_source() -> None:
    config = {**PLAIN, "transforms": "i", "transforms.i.type": "InsertField$Value", "transforms.i.offset.field": "o"}
    with pytest.raises(ConversionFailed, match="records of a source have no offsets"):
        source_side(config).run(records([{"id": 1}]))


def test_what_goes_out_comes_in_again() -> None:
    values = [{"id": number, "text": None if number % 3 else 'a "\\ \n' + "ä" * number} for number in range(50)]
    for config in ({}, {"value.converter.schemas.enable": "true", "value.converter.schemas.cache.size": "1"}):
        out = source_side(config).run(records(values)).rows
        [found] = sink_side(config).run(rows(out.column("value").to_pylist())).records
        assert found.values.schema == ROW
        assert found.values.data.to_pylist() == values  # type: ignore[union-attr]


def test_a_moment_that_python_does_not_have_fails_alone_or_not_at_all() -> None:
    schema = Schema(
        SchemaType.STRUCT,
        fields=(Field("at", Schema(SchemaType.INT64, name=TIMESTAMP, version=1)), Field("b", Schema(SchemaType.BYTES))),
    )
    moments = pa.array([0, 1 << 50, 5], pa.timestamp("ms", tz="UTC"))
    values = Column(schema, pa.StructArray.from_arrays([moments, pa.array([b"x"] * 3)], names=["at", "b"]))
    given = replace(records([{"id": 1}] * 3), values=values)
    found = source_side({**PLAIN, "errors.tolerance": "all"}).run(given)
    assert [json.loads(each)["at"] for each in found.rows.column("value").to_pylist()] == [0, 5]
    assert [each.stage for each in found.failures] == ["VALUE_CONVERTER"]


# --- settings


def test_a_configuration_has_the_settings_of_what_it_names() -> None:
    config = {
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        "transforms": "cast, drop",
        "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Key",
        "transforms.cast.spec": "int32",
        "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
        "transforms.drop.predicate": "old",
        "predicates": "old",
        "predicates.old.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        "predicates.old.pattern": "old-.*",
    }
    keys = {key.name: key for key in config_def(config).keys}
    for name in ("value.converter.converter.encoding", "key.converter.schemas.enable", "transforms.cast.negate"):
        assert name in keys
    assert keys["transforms.cast.spec"].type is ConfigType.LIST
    assert keys["transforms.cast.type"].required
    assert keys["predicates.old.pattern"].group == "Predicates: old"
    assert keys["key.converter"].default == "org.apache.kafka.connect.json.JsonConverter"
    assert all(key.doc for key in keys.values())
    assert not [value for value in config_def(config).validate(config) if value.errors]


def test_every_error_of_a_configuration_is_at_its_setting() -> None:
    config = {
        "key.converter": "JsonConverter",
        "key.converter.decimal.format": "ROMAN",
        "transforms": "a,b",
        "transforms.a.type": "Cast$Value",
        "transforms.a.spec": "x:int33",
        "transforms.b.type": "HeaderFrom$Value",
        "transforms.b.fields": "x,y",
        "transforms.b.headers": "z",
        "transforms.b.operation": "move",
    }
    wrong = {value.key.name: value.errors[0] for value in config_def(config).validate(config) if value.errors}
    assert wrong.keys() == {"key.converter.decimal.format", "transforms.a.spec", "transforms.b.type"}
    assert "int33" in wrong["transforms.a.spec"]
    assert "as many names" in wrong["transforms.b.type"]
