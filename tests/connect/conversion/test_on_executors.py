"""Conversion runs where only PySpark and PyArrow are, from the zip file that executors get."""

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
        if name.partition(".")[0] in ("fastavro", "httpx", "confluent_kafka", "jsonschema", "google", "re2", "numpy"):
            raise ImportError(name)

sys.meta_path.insert(0, Absent())
import pyarrow as pa
import ottla.connect.conversion as conversion

assert ".zip" in conversion.__file__
headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
count = 20
rows = pa.RecordBatch.from_arrays(
    [
        pa.array([b"k"] * count), pa.array([b'{"a":%d}' % at for at in range(count)]), pa.array(["t"] * count),
        pa.array([0] * count, pa.int32()), pa.array(range(count)), pa.array(range(count)),
        pa.array([[{"key": "h", "value": b"1"}]] * count, headers),
    ],
    names=["key", "value", "topic", "partition", "offset", "timestamp", "headers"],
)
content = '{"type":"struct","optional":false,"fields":[{"field":"a","type":"int32","optional":false}]}'
config = {
    "key.converter": "StringConverter", "value.converter.schema.content": content, "transforms": "r,c",
    "transforms.r.type": "RegexRouter", "transforms.r.regex": "(.*)", "transforms.r.replacement": "x-$1",
    "transforms.c.type": "Cast$Value", "transforms.c.spec": "a:string",
}
[records] = conversion.sink_side(config).run(rows).records
made = conversion.source_side({"value.converter.schemas.enable": "false"}).run(records).rows
print(made.column("topic")[1], made.column("value")[1])
"""


def test_records_are_converted_where_only_pyspark_and_pyarrow_are(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    from ottla.spark.ship import package_zip

    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        env=os.environ | {"PYTHONPATH": str(package_zip())},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == 'x-t b\'{"a":"1"}\'\n'
