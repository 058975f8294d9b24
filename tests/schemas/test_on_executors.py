"""What runs on executors comes as a zip file, to a Python that has nothing but PySpark and PyArrow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("fastavro", "httpx", "confluent_kafka", "jsonschema", "starlette", "google"):
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
import pyarrow as pa
import ottla.spark.registered
from ottla.schemas.columns import decoder_for
from ottla.schemas.encoding import encoder_for
from ottla.schemas.registered import Registered
from ottla.schemas.registry import SchemaRegistry

assert ".zip" in ottla.__file__
registry = SchemaRegistry("http://127.0.0.1:9", subject="s")
avro = Registered(1, "AVRO", '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}')
values = encoder_for(registry, avro, ("a",)).encode(pa.array([{"a": 7}], pa.struct([("a", pa.int32())])))
print(decoder_for(registry, avro).decode(values)[0].to_pylist())
json_schema = Registered(2, "JSON", '{"type":"object","properties":{"b":{"type":"integer"}}}')
print(decoder_for(registry, json_schema).decode(pa.array([b"\\0\\0\\0\\0\\2" + b'{"b":8}']))[0].to_pylist())
"""


def test_values_are_decoded_where_only_pyspark_and_pyarrow_are(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from ottla.spark.ship import package_zip

    environment = os.environ | {"PYTHONPATH": str(package_zip())}
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[{'a': 7}]\n[{'b': 8}]\n"
