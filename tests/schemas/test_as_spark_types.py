"""A registered schema as a type of Spark's."""

from __future__ import annotations

import json

import pytest

from ottla.schemas.registered import Registered
from ottla.schemas.registry import SchemaRegistry


def test_spark_takes_the_columns_of_a_schema_for_a_struct() -> None:
    types = pytest.importorskip("pyspark.sql.types")
    from ottla.spark.registered import RegisteredColumns

    text = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":["null","string"]}]}'
    registry = SchemaRegistry("http://user:secret@127.0.0.1:9", subject="s")
    columns = RegisteredColumns(registry, Registered(1, "AVRO", text))
    assert types.StructType.fromJson(json.loads(columns.json())).simpleString() == "struct<a:int,b:string>"
    assert "secret" not in repr(columns) + repr(registry)
